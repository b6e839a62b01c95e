// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// All-gathers within a call that creates a shared object, such as a part of a communicator or memory that all ranks
/// read. Errors, the flight recorder and ranks in other calls name that call and the caller's line.
#pragma once

#include <hocket/collective/all_reduce.hpp>
#include <hocket/collective/host/call.hpp>
#include <hocket/collective/host/call_settings.hpp>
#include <hocket/collective/host/host_call.hpp>
#include <hocket/collective/host/move.hpp>
#include <hocket/communicator/communicator.hpp>
#include <hocket/communicator/signature.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/options.hpp>
#include <hocket/core/text.hpp>
#include <hocket/group/chosen_ranks.hpp>
#include <hocket/operation/operations.hpp>
#include <hocket/transport/concept.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <source_location>
#include <span>
#include <string>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// Returns the call spec of an all-gather within `operation`. Errors report no types, because the data is internal.
template <class T>
host_call make_exchange(const char* operation, std::span<const T> own, std::span<T> all) {
  host_call call = make_move<plan::collective_kind::all_gather>(own, all);
  call.name = operation;
  call.type_signature = mix(call.type_signature, hash_text(operation));
  call.types = "";
  return call;
}

/// Returns the `own` of all ranks, in rank order. Here and below, errors name `site`, the line of the user's call.
template <class Operation, class T, class Domain>
std::vector<T> gather_values(const communicator<Domain>& comm, std::span<const T> own,
                             const std::source_location& site) {
  std::vector<T> all(own.size() * static_cast<std::size_t>(comm.size()));
  deliver(run_call(comm, make_exchange(Operation::name, own, std::span(all)), default_settings, site));
  return all;
}

/// Upper limit of the bytes that a rank exchanges when an object is created. A greater length indicates corruption.
inline constexpr std::uint64_t most_exchanged = std::uint64_t{1} << 20U;

template <class Operation, class Domain>
[[noreturn]] HOCKET_COLD void refuse_length(const communicator<Domain>& comm, std::uint64_t length,
                                            const std::source_location& site) {
  const std::string reason = concat({"a rank announced ", length, " bytes to exchange, more than the limit of ",
                                     most_exchanged, ": the message was corrupted"});
  comm.revoke(reason);
  raise(errc::corrupted, reason,
        {.operation = Operation::name, .rank = comm.rank(), .ranks = comm.size(), .site = site});
}

/// All-gathers blobs of up to `most_exchanged` bytes over `comm`, and returns those of `chosen`.
template <class Operation, class Domain>
std::vector<std::vector<std::byte>> gather_blobs(const communicator<Domain>& comm, std::span<const std::byte> blob,
                                                 const std::vector<int>& chosen, const std::source_location& site) {
  const std::uint64_t own_size = blob.size();
  const auto sizes = gather_values<Operation>(comm, std::span(&own_size, 1), site);
  const std::uint64_t largest = *std::max_element(sizes.begin(), sizes.end());
  if (largest > most_exchanged) refuse_length<Operation>(comm, largest, site);
  std::vector<std::byte> own(largest);
  std::copy(blob.begin(), blob.end(), own.begin());
  const auto all = gather_values<Operation>(comm, std::span<const std::byte>(own), site);
  std::vector<std::vector<std::byte>> result;
  for (const int rank : chosen) {
    const auto r = static_cast<std::size_t>(rank);
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(r * largest);
    result.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(sizes[r]));
  }
  return result;
}

/// Returns the exchange function of the ranks `chosen` of `comm`. All ranks of `comm` must call it; `comm` must outlive
/// the result.
template <class Operation, class Domain>
transport::exchange_function exchange_over(const communicator<Domain>& comm, const std::vector<int>& chosen,
                                           const std::source_location& site) {
  return [&comm, chosen, site](std::span<const std::byte> blob) {
    return gather_blobs<Operation>(comm, blob, chosen, site);
  };
}
template <class Operation, class Domain>
transport::exchange_function exchange_over(const communicator<Domain>& comm, const std::source_location& site) {
  return exchange_over<Operation>(comm, all_ranks(communicator_access::state(comm)), site);
}

/// Returns a context number that no rank of `comm` uses yet, and reserves it on all of them.
template <class Domain>
std::uint32_t agree_on_context(const communicator<Domain>& comm, const std::source_location& site) {
  auto& contexts = communicator_access::state(comm).domain()->contexts();
  for (;;) {
    const std::uint32_t proposed = contexts.propose();
    std::uint32_t agreed = 0;
    all_reduce(comm, std::span(&proposed, 1), std::span(&agreed, 1), maximum{}, options<>(), site);
    const int claimed = contexts.claim(agreed) ? 1 : 0;
    int by_all = 0;
    all_reduce(comm, std::span(&claimed, 1), std::span(&by_all, 1), minimum{}, options<>(), site);
    if (by_all == 1) return agreed;
    if (claimed == 1) contexts.release(agreed);
  }
}

}  // namespace detail
HOCKET_END_NAMESPACE
