// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Buffers that all ranks of a communicator can read, so that collectives need not copy them into staging memory.
///
/// Any contiguous memory works as a buffer. These buffers pay off for large vectors that are communicated often, such
/// as gradients, if ranks are processes of one host; if they are threads, or on different hosts, these buffers are
/// ordinary memory without extra cost.
#pragma once

#include <hocket/communicator/communicator.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/explanation.hpp>
#include <hocket/core/not_understood.hpp>
#include <hocket/core/platform/cpu.hpp>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <memory>
#include <source_location>
#include <span>
#include <type_traits>
#include <utility>

HOCKET_BEGIN_NAMESPACE

/// Owns elements that other ranks may read. Move-only. A buffer may outlive its communicator, but other ranks can't use
/// it then. Destroying a buffer is local: it does not wait for peers, which retain the memory while they need it.
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

/// Allocates `bytes` zeroed bytes that all ranks of `comm` can read, for `size` elements of `element_size` bytes.
template <class Domain>
std::shared_ptr<std::byte> allocate_bytes(const communicator<Domain>& comm, std::size_t bytes, std::size_t size,
                                          std::size_t element_size, const std::source_location& site);

template <class T>
consteval sentence explain_shared() {
  if constexpr (!std::is_object_v<T> || !std::is_trivially_copyable_v<T>) {
    return "allocate<T>: other ranks read the elements byte by byte, so T must be trivially copyable";
  } else if (alignof(T) > platform::cache_line)
    return "allocate<T>: the alignment of T must not exceed that of a cache line";
  return {};
}

template <class T>
  requires(static_cast<bool>(explain_shared<T>()))
constexpr auto why_not_shared() {
  return make_explanation([] { return explain_shared<T>(); });
}

}  // namespace detail

/// Gives each rank of `comm` a buffer of `size` zero elements, aligned to a cache line, that all ranks can read.
///
/// Collective: every rank calls it, in the same order among the collectives on `comm`; sizes may differ. Use the buffer
/// from the thread that uses `comm`.
/// **Cost.** Two small all-gathers; none if the memory is ordinary. **Errors.** Throws `error`: `out_of_memory`, on all
/// ranks, or, if the memory is ordinary, on the ranks that lack memory; and the errors of a collective.
template <class T, class Domain>
  requires(!detail::explain_shared<T>())
shared_buffer<T> allocate(const communicator<Domain>& comm, std::size_t size,
                          const std::source_location& site = std::source_location::current()) {
  // An uncountable size exceeds every machine's memory, so the allocation fails on all ranks alike.
  constexpr std::size_t most = std::numeric_limits<std::ptrdiff_t>::max() / 2;
  const std::size_t bytes = size > most / sizeof(T) ? most : std::max<std::size_t>(size * sizeof(T), 1);
  return {detail::allocate_bytes(comm, bytes, size, sizeof(T), site), size};
}

/// Deleted: `Why` explains the mistake.
template <class T, class Domain, auto Why = detail::why_not_shared<T>()>
detail::not_understood allocate(const communicator<Domain>&, std::size_t, const auto&...) = delete;

HOCKET_END_NAMESPACE

#if !defined(HOCKET_SEPARATE_COMPILATION)
#include <hocket/group/impl/allocate.ipp>
#endif
