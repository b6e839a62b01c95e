// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Buffers that all ranks of a communicator can read: collectives on them copy nothing into staging memory first.
///
/// Any contiguous memory works as a buffer. One from here is worth it for large vectors that are communicated often,
/// such as gradients, where ranks are processes of one host; where they are threads, or on different hosts, it is
/// ordinary memory and costs nothing more.
#pragma once

#include <hocket/communicator/communicator.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/platform/cpu.hpp>
#include <hocket/group/exchange.hpp>
#include <hocket/transport/concept.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <source_location>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

HOCKET_BEGIN_NAMESPACE

/// Owns elements that other ranks may read. Move-only; may outlive the communicator that it was made on, but is of no
/// more use to others then. Destroying it is local: peers are not waited for, and keep what they still need.
template <class T>
class shared_buffer {
 public:
  using value_type = T;

  shared_buffer() = default;
  /// For `allocate`.
  shared_buffer(std::shared_ptr<std::byte> memory, std::size_t size)
      : memory_(std::move(memory)), elements_(reinterpret_cast<T*>(memory_.get()), size) {}
  shared_buffer(const shared_buffer&) = delete;
  shared_buffer& operator=(const shared_buffer&) = delete;
  shared_buffer(shared_buffer&& other) noexcept
      : memory_(std::move(other.memory_)), elements_(std::exchange(other.elements_, {})) {}
  shared_buffer& operator=(shared_buffer&& other) noexcept {
    memory_ = std::move(other.memory_);
    elements_ = std::exchange(other.elements_, {});
    return *this;
  }
  ~shared_buffer() = default;

  std::size_t size() const noexcept { return elements_.size(); }
  bool empty() const noexcept { return elements_.empty(); }
  T* data() noexcept { return elements_.data(); }
  const T* data() const noexcept { return elements_.data(); }
  T* begin() noexcept { return data(); }
  T* end() noexcept { return data() + size(); }
  const T* begin() const noexcept { return data(); }
  const T* end() const noexcept { return data() + size(); }
  T& operator[](std::size_t i) noexcept { return elements_[i]; }
  const T& operator[](std::size_t i) const noexcept { return elements_[i]; }

  std::span<T> span() noexcept { return elements_; }
  std::span<const T> span() const noexcept { return elements_; }

 private:
  std::shared_ptr<std::byte> memory_;
  std::span<T> elements_;
};

namespace detail {

/// Zeroed memory of this process alone.
inline std::shared_ptr<std::byte> ordinary_memory(std::size_t bytes) {
  constexpr std::align_val_t alignment{platform::cache_line};
  std::shared_ptr<std::byte> memory(static_cast<std::byte*>(::operator new(bytes, alignment)),
                                    [](std::byte* each) { ::operator delete(each, alignment); });
  std::memset(memory.get(), 0, bytes);
  return memory;
}

/// The end of an `allocate` for which there is no memory.
template <class Domain>
[[noreturn]] HOCKET_COLD void raise_no_room(const communicator<Domain>& comm, std::size_t size,
                                            std::size_t element_size, const std::source_location& site) {
  raise(errc::out_of_memory,
        "no memory for " + std::to_string(size) + " elements of " + std::to_string(element_size) + " bytes",
        {.operation = "allocate", .rank = comm.rank(), .ranks = comm.size(), .site = site});
}

struct allocating {
  static constexpr const char* name = "allocate";
};

/// A port that has memory of its own kind to offer.
template <class Endpoints>
concept allocates = requires(Endpoints& p, std::size_t bytes, const transport::exchange_function& exchange) {
  { p.allocate(bytes, exchange) } -> std::same_as<std::shared_ptr<std::byte>>;
};

}  // namespace detail

/// Gives each rank of `comm` a buffer of `size` zero elements, on a cache line of its own, that all of them can read.
///
/// Collective: every rank calls it, in the same order among the collectives on `comm`; sizes may differ. Use the buffer
/// from the thread that uses `comm`.
/// **Cost.** Two small all-gathers; none where the memory is ordinary. **Errors.** Throws `error`: `out_of_memory`, on all
/// ranks, or, where the memory is ordinary, on those that have none; and what any collective throws.
template <class T, class Domain>
shared_buffer<T> allocate(const communicator<Domain>& comm, std::size_t size,
                          const std::source_location& site = std::source_location::current()) {
  static_assert(std::is_trivially_copyable_v<T>,
                "allocate<T>: other ranks read the elements byte by byte, so T must be trivially copyable");
  static_assert(alignof(T) <= platform::cache_line,
                "allocate<T>: T may not need more than the alignment of a cache line");
  // What can't be counted is more than there is on any machine, and so refused where all ranks hear of it.
  constexpr std::size_t most = std::numeric_limits<std::ptrdiff_t>::max() / 2;
  const std::size_t bytes = size > most / sizeof(T) ? most : std::max<std::size_t>(size * sizeof(T), 1);
  auto& endpoints = detail::communicator_access::state(comm).endpoints();
  if constexpr (detail::allocates<std::remove_reference_t<decltype(endpoints)>>) {
#if HOCKET_HAS_EXCEPTIONS
    try {
      return {endpoints.allocate(bytes, detail::exchange_over<detail::allocating>(comm, site)), size};
    } catch (const error& caught) {
      if (caught.context().operation != nullptr) throw;
      failure cause = caught.cause();
      cause.context.operation = "allocate";
      cause.context.rank = comm.rank();
      cause.context.ranks = comm.size();
      cause.context.site = site;
      raise(std::move(cause));
    }
#else
    return {endpoints.allocate(bytes, detail::exchange_over<detail::allocating>(comm, site)), size};
#endif
  } else {
#if HOCKET_HAS_EXCEPTIONS
    try {
      return {detail::ordinary_memory(bytes), size};
    } catch (const std::bad_alloc&) {
      detail::raise_no_room(comm, size, sizeof(T), site);
    }
#else
    return {detail::ordinary_memory(bytes), size};
#endif
  }
}

HOCKET_END_NAMESPACE
