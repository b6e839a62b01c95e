// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Definitions of <hocket/group/allocate.hpp>.
#pragma once

#include <hocket/communicator/communicator.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/platform/cpu.hpp>
#include <hocket/core/text.hpp>
#include <hocket/group/allocate.hpp>
#include <hocket/group/exchange.hpp>
#include <hocket/transport/concept.hpp>

#include <concepts>
#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <source_location>
#include <string>
#include <type_traits>
#include <utility>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// Allocates zeroed memory that only this process can read.
inline std::shared_ptr<std::byte> ordinary_memory(std::size_t bytes) {
  constexpr std::align_val_t alignment{platform::cache_line};
  std::shared_ptr<std::byte> memory(static_cast<std::byte*>(::operator new(bytes, alignment)),
                                    [](std::byte* each) { ::operator delete(each, alignment); });
  std::memset(memory.get(), 0, bytes);
  return memory;
}

/// Ends an `allocate` for which memory is lacking.
template <class Domain>
[[noreturn]] HOCKET_COLD void raise_no_room(const communicator<Domain>& comm, std::size_t size,
                                            std::size_t element_size, const std::source_location& site) {
  raise(errc::out_of_memory, concat({"no memory for ", size, " elements of ", element_size, " bytes"}),
        {.operation = "allocate", .rank = comm.rank(), .ranks = comm.size(), .site = site});
}

struct allocating {
  static constexpr const char* name = "allocate";
};

/// An endpoint group that can allocate memory that its peers can read.
template <class Endpoints>
concept allocates = requires(Endpoints& p, std::size_t bytes, const transport::exchange_function& exchange) {
  { p.allocate(bytes, exchange) } -> std::same_as<std::shared_ptr<std::byte>>;
};

template <class Domain>
std::shared_ptr<std::byte> allocate_bytes(const communicator<Domain>& comm, std::size_t bytes,
                                          [[maybe_unused]] std::size_t size, [[maybe_unused]] std::size_t element_size,
                                          const std::source_location& site) {
  auto& endpoints = communicator_access::state(comm).endpoints();
  if constexpr (allocates<std::remove_reference_t<decltype(endpoints)>>) {
#if HOCKET_HAS_EXCEPTIONS
    try {
      return endpoints.allocate(bytes, exchange_over<allocating>(comm, site));
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
    return endpoints.allocate(bytes, exchange_over<allocating>(comm, site));
#endif
  } else {
#if HOCKET_HAS_EXCEPTIONS
    try {
      return ordinary_memory(bytes);
    } catch (const std::bad_alloc&) {
      raise_no_room(comm, size, element_size, site);
    }
#else
    return ordinary_memory(bytes);
#endif
  }
}

}  // namespace detail
HOCKET_END_NAMESPACE
