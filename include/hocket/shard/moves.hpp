// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The moves of which conversions and redistributions consist: functions that gather, reduce and scatter, or exchange
/// parts of a tensor among the ranks of a group. They handle blocks, without placements. Blocks of unequal sizes are
/// sent without padding; contiguous blocks are neither packed nor unpacked.
#pragma once

#include <hocket/collective/all_gather.hpp>
#include <hocket/collective/all_gather_v.hpp>
#include <hocket/collective/all_to_all.hpp>
#include <hocket/collective/all_to_all_v.hpp>
#include <hocket/collective/reduce_scatter.hpp>
#include <hocket/collective/reduce_scatter_v.hpp>
#include <hocket/communicator/communicator.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/options.hpp>
#include <hocket/core/strong_types.hpp>
#include <hocket/shard/boxes.hpp>
#include <hocket/shard/extents.hpp>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <source_location>
#include <span>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// Returns the options for moves that combine nothing: all, except that in a redistribution that `Reduces`, the wire
/// type and the exactness apply only to the moves that combine partial results.
template <bool Reduces, class Options>
constexpr decltype(auto) options_of_moves(const Options& options) {
  if constexpr (Reduces) {
    return options.template without<kind::wire>().template without<kind::exactness>();
  } else {
    return (options);
  }
}

/// Returns whether `ranks` slices along dimension `cut` of an array of these sizes have equal lengths and follow each
/// other in memory. A constant if the sizes are constants.
template <std::size_t Rank>
constexpr bool equal_and_in_order(const std::array<std::size_t, Rank>& sizes, std::size_t cut,
                                  std::size_t ranks) noexcept {
  std::size_t before = 1;
  for (std::size_t d = 0; d < cut; ++d) before *= sizes[d];
  return before == 1 && sizes[cut] % ranks == 0;
}

inline bool all_equal(const std::vector<std::size_t>& counts) {
  return std::all_of(counts.begin(), counts.end(), [&](std::size_t each) { return each == counts.front(); });
}

template <std::size_t Rank>
std::vector<std::size_t> volumes(const std::vector<box<Rank>>& boxes) {
  std::vector<std::size_t> result;
  for (const auto& each : boxes) result.push_back(each.volume());
  return result;
}

/// Returns whether the boxes, one after the other, are the array that holds `whole`.
template <std::size_t Rank>
bool follow_each_other(const std::vector<box<Rank>>& boxes, const box<Rank>& whole) {
  std::size_t next = 0;
  for (const auto& each : boxes) {
    if (each.volume() == 0) continue;
    if (contiguous_offset(each, whole) != next) return false;
    next += each.volume();
  }
  return next == whole.volume();
}

/// An array of uninitialized elements.
template <class T>
class scratch_array {
 public:
  explicit scratch_array(std::size_t size) : data_(std::make_unique_for_overwrite<T[]>(size)), size_(size) {}
  T* data() const noexcept { return data_.get(); }
  std::span<T> all() const noexcept { return {data_.get(), size_}; }

 private:
  std::unique_ptr<T[]> data_;
  std::size_t size_;
};

/// Gathers: every rank of `comm` has its box of `parts`, and receives the union of all boxes in `to`.
template <class T, std::size_t Rank, class Domain, class Options>
void gather_parts(const communicator<Domain>& comm, const block<T, Rank>& to, std::span<const T> own,
                  const std::vector<box<Rank>>& parts, const Options& options, const std::source_location& site) {
  const std::vector<std::size_t> sizes = volumes(parts);
  const auto gather = [&](std::span<T> out) {
    if (all_equal(sizes)) {
      all_gather(comm, own, out, options, site);
    } else {
      all_gather_v(comm, own, out, counts{sizes}, options, site);
    }
  };
  if (follow_each_other(parts, to.where)) return gather({to.data, to.where.volume()});
  const scratch_array<T> packed(to.where.volume());
  gather(packed.all());
  const T* next = packed.data();
  for (const box<Rank>& each : parts) {
    copy_region<T, Rank>(to, {next, each}, each);
    next += each.volume();
  }
}

/// Reduces and scatters: every rank of `comm` contributes all of `from`, and receives the result in its box of `parts`.
template <class T, std::size_t Rank, class Domain, class Op, class Options>
void reduce_parts(const communicator<Domain>& comm, std::span<T> out, const block<const T, Rank>& from,
                  const std::vector<box<Rank>>& parts, const Op& op, const Options& options,
                  const std::source_location& site) {
  const std::vector<std::size_t> sizes = volumes(parts);
  const auto reduce = [&](std::span<const T> in) {
    if (all_equal(sizes)) {
      reduce_scatter(comm, in, out, op, options, site);
    } else {
      reduce_scatter_v(comm, in, out, counts{sizes}, op, options, site);
    }
  };
  if (follow_each_other(parts, from.where)) return reduce({from.data, from.where.volume()});
  const scratch_array<T> packed(from.where.volume());
  T* next = packed.data();
  for (const box<Rank>& each : parts) {
    copy_region<T, Rank>({next, each}, from, each);
    next += each.volume();
  }
  reduce(packed.all());
}

/// Returns whether, in dimension `d`, all of `wide` are one range, and all of `narrow` have equal sizes within it.
template <std::size_t Rank>
bool cut_alike(const std::vector<box<Rank>>& wide, const std::vector<box<Rank>>& narrow, std::size_t d) {
  const box<Rank>& all = wide.front();
  return std::all_of(wide.begin(), wide.end(),
                     [&](const auto& each) { return each.begin[d] == all.begin[d] && each.size[d] == all.size[d]; }) &&
         std::all_of(narrow.begin(), narrow.end(), [&](const auto& each) {
           return each.size[d] == narrow.front().size[d] && each.begin[d] >= all.begin[d] &&
                  each.begin[d] + each.size[d] <= all.begin[d] + all.size[d];
         });
}

/// Returns whether no dimension is cut on both sides or unevenly, so that each box of `before` has equally many
/// elements in common with each of `after`. Equal on all ranks.
template <std::size_t Rank>
bool intersect_alike(const std::vector<box<Rank>>& before, const std::vector<box<Rank>>& after) {
  for (std::size_t d = 0; d < Rank; ++d) {
    if (!cut_alike(before, after, d) && !cut_alike(after, before, d)) return false;
  }
  return true;
}

/// Exchanges: every rank of `comm` has its box of `before`, and receives its box of `after` from the ranks for which
/// `serves(rank)` is true, which together have it. These subsets of the ranks have equal sizes.
template <class T, std::size_t Rank, class Domain, class Serves, class Options>
void exchange_parts(const communicator<Domain>& comm, const block<T, Rank>& to, const block<const T, Rank>& from,
                    const std::vector<box<Rank>>& before, const std::vector<box<Rank>>& after, const Serves& serves,
                    const Options& options, const std::source_location& site) {
  std::vector<box<Rank>> sent(before.size());
  std::vector<box<Rank>> received(before.size());
  bool even = intersect_alike(before, after);
  for (std::size_t peer = 0; peer < before.size(); ++peer) {
    if (!serves(static_cast<int>(peer))) {
      even = false;  // on all ranks, because the subsets have equal sizes
      continue;
    }
    sent[peer] = intersection(from.where, after[peer]);
    received[peer] = intersection(before[peer], to.where);
  }
  const std::vector<std::size_t> sent_sizes = volumes(sent);
  const std::vector<std::size_t> received_sizes = volumes(received);
  const auto sum = [](const std::vector<std::size_t>& sizes) {
    std::size_t total = 0;
    for (const std::size_t each : sizes) total += each;
    return total;
  };
  const scratch_array<T> outgoing(sum(sent_sizes));
  const scratch_array<T> incoming(sum(received_sizes));
  T* next = outgoing.data();
  for (const box<Rank>& each : sent) {
    copy_region<T, Rank>({next, each}, from, each);
    next += each.volume();
  }
  if (even) {
    all_to_all(comm, std::span<const T>(outgoing.all()), incoming.all(), options, site);
  } else {
    all_to_all_v(comm, std::span<const T>(outgoing.all()), incoming.all(), send_counts{sent_sizes},
                 receive_counts{received_sizes}, options, site);
  }
  const T* arrived = incoming.data();
  for (const box<Rank>& each : received) {
    copy_region<T, Rank>(to, {arrived, each}, each);
    arrived += each.volume();
  }
}

}  // namespace detail
HOCKET_END_NAMESPACE
