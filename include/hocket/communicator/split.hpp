// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Makes smaller communicators from one: rows and columns of a mesh, the ranks of one host.
#pragma once

#include <hocket/collective/all_gather.hpp>
#include <hocket/collective/all_reduce.hpp>
#include <hocket/communicator/communicator.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/strong_types.hpp>
#include <hocket/operation/operations.hpp>
#include <hocket/transport/concept.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// All-gather of blobs of any size over `comm`, of which only those of `chosen` are kept.
template <class Wire>
std::vector<std::vector<std::byte>> gather_blobs(const communicator<Wire>& comm, std::span<const std::byte> blob,
                                                 const std::vector<int>& chosen) {
  const auto ranks = static_cast<std::size_t>(comm.size());
  const std::uint64_t own_size = blob.size();
  std::vector<std::uint64_t> sizes(ranks);
  all_gather(comm, std::span(&own_size, 1), sizes);
  const std::size_t largest = *std::max_element(sizes.begin(), sizes.end());
  std::vector<std::byte> own(largest);
  std::copy(blob.begin(), blob.end(), own.begin());
  std::vector<std::byte> all(largest * ranks);
  all_gather(comm, own, all);
  std::vector<std::vector<std::byte>> result;
  for (const int rank : chosen) {
    const auto r = static_cast<std::size_t>(rank);
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(r * largest);
    result.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(sizes[r]));
  }
  return result;
}

/// A context number that none of the ranks of `comm` uses yet, held by all of them.
template <class Wire>
std::uint32_t agree_on_context(const communicator<Wire>& comm) {
  auto& contexts = communicator_access::state(comm).wire()->contexts();
  for (;;) {
    const std::uint32_t proposed = contexts.propose();
    std::uint32_t agreed = 0;
    all_reduce(comm, std::span(&proposed, 1), std::span(&agreed, 1), maximum{});
    const int claimed = contexts.claim(agreed) ? 1 : 0;
    int by_all = 0;
    all_reduce(comm, std::span(&claimed, 1), std::span(&by_all, 1), minimum{});
    if (by_all == 1) return agreed;
    if (claimed == 1) contexts.release(agreed);
  }
}

/// Opens one part. What goes wrong is told with the ranks of `comm`, of which the part has those that were `chosen`.
template <class Wire>
communicator<Wire> open_part(const communicator<Wire>& comm, transport::opening how, const std::vector<int>& chosen) {
  auto& state = communicator_access::state(comm);
#if HOCKET_HAS_EXCEPTIONS
  try {
    return communicator<Wire>(state.wire(), std::move(how), state.layout().staging_bytes);
  } catch (const error& caught) {
    failure cause = caught.cause();
    const bool of_the_part = cause.context.operation == nullptr;  // else of a call on `comm`
    if (of_the_part && cause.context.peer >= 0) {
      cause.context.peer = chosen[static_cast<std::size_t>(cause.context.peer)];
      cause.context.operation = "split";
      cause.context.rank = comm.rank();
      cause.context.ranks = comm.size();
    }
    raise(std::move(cause));
  }
#else
  return communicator<Wire>(state.wire(), std::move(how), state.layout().staging_bytes);
#endif
}

}  // namespace detail

/// Splits `comm` into one communicator for each colour, and returns the one of this rank's colour. Its ranks are in the
/// order of their keys.
///
/// Collective over `comm`, at the cost of some small all-gathers. The new communicators share their parent's wires: no
/// connection is made. Each can be used beside its parent and the others, also from another thread, and outlives it.
/// Throws `error` as any collective does.
template <class Wire>
communicator<Wire> split(const communicator<Wire>& comm, color part, key order = {}) {
  struct entry {
    int part, order;
  };
  const entry own{part.value, order.value};
  std::vector<entry> all(static_cast<std::size_t>(comm.size()));
  all_gather(comm, std::span(&own, 1), all);

  std::vector<int> chosen;  // ranks of the parent
  for (int rank = 0; rank < comm.size(); ++rank) {
    if (all[static_cast<std::size_t>(rank)].part == part.value) chosen.push_back(rank);
  }
  std::stable_sort(chosen.begin(), chosen.end(), [&](int a, int b) {
    return all[static_cast<std::size_t>(a)].order < all[static_cast<std::size_t>(b)].order;
  });

  auto& state = detail::communicator_access::state(comm);
  auto members = std::make_shared<std::vector<int>>();
  for (const int rank : chosen) members->push_back((*state.members())[static_cast<std::size_t>(rank)]);
  transport::opening how;
  how.context = detail::agree_on_context(comm);
  how.rank = static_cast<int>(std::find(chosen.begin(), chosen.end(), comm.rank()) - chosen.begin());
  how.members = std::move(members);
  how.exchange = [&](std::span<const std::byte> blob) { return detail::gather_blobs(comm, blob, chosen); };
  communicator<Wire> made = detail::open_part(comm, std::move(how), chosen);
  made.set_timeout(comm.timeout());
  made.set_flight_recorder(comm.flight_recorder());
  return made;
}

HOCKET_END_NAMESPACE
