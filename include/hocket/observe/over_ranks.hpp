// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The metrics of all ranks: sums, extremes and the value of each rank, so that one rank can log what matters of a job.
///
/// @code
/// for (const auto& each : hocket::observe::read_over_ranks(comm, metrics)) {
///   if (each.name == "step_seconds_last" && each.greatest > 2 * each.mean()) ...   // rank each.rank_of_greatest is slow
/// }
/// @endcode
#pragma once

#include <hocket/collective/all_gather.hpp>
#include <hocket/communicator/communicator.hpp>
#include <hocket/core/checksum.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/float_bits.hpp>
#include <hocket/core/text.hpp>
#include <hocket/observe/registry.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace observe {

/// One metric of all ranks.
struct ranked_sample {
  std::string name;
  observe::labels labels;
  metric_kind kind = metric_kind::counter;
  std::vector<double> bounds;   ///< of a histogram
  std::vector<double> by_rank;  ///< the value of each rank; of a histogram, the sum of its values
  distribution all;             ///< of a histogram: the values of all ranks

  double sum = 0;                               ///< of `by_rank`, added in the order of the ranks
  double least = 0, greatest = 0;               ///< of `by_rank` without NaN; NaN if all are
  int rank_of_least = 0, rank_of_greatest = 0;  ///< the first ranks that have these values

  double mean() const noexcept { return sum / static_cast<double>(by_rank.size()); }
};

namespace detail {

/// Returns a checksum of names, kinds and labels, which tells where the values of a snapshot are.
inline std::uint64_t layout_of(const snapshot& now) {
  std::string all;
  for (const family& each : now) {
    for (const sample& one : each.samples) {
      hocket::detail::append(all, {observe::name_of(each.name, one.labels), " ", static_cast<int>(each.kind), "\n"});
      for (const double bound : each.bounds) all.append(reinterpret_cast<const char*>(&bound), sizeof bound);
    }
  }
  return hocket::detail::checksum(std::as_bytes(std::span(all)));
}

/// Returns the values of a snapshot, one after the other: of a histogram, the sum and the counts.
inline std::vector<double> values_of(const snapshot& now) {
  std::vector<double> result;
  for (const family& each : now) {
    for (const sample& one : each.samples) {
      result.push_back(each.kind == metric_kind::histogram ? one.values.sum : one.value);
      for (const std::uint64_t count : one.values.counts) result.push_back(static_cast<double>(count));
    }
  }
  return result;
}

inline void add_rank(ranked_sample& to, int rank, double value) {
  const bool is_nan = hocket::detail::has_nan_bits(value);
  const bool is_first = rank == 0 || (hocket::detail::has_nan_bits(to.least) && !is_nan);
  if (is_first || (!is_nan && value < to.least)) to.least = value, to.rank_of_least = rank;
  if (is_first || (!is_nan && value > to.greatest)) to.greatest = value, to.rank_of_greatest = rank;
  to.sum += value;
  to.by_rank.push_back(value);
}

}  // namespace detail

/// Returns the metrics of all ranks, on every rank, sorted by name and labels.
///
/// Collective: every rank must have metrics of equal names, kinds, labels and bounds. **Cost.** Two all_gather, of 16
/// bytes and of 8 bytes for each value; a histogram has one value more than buckets. **Errors.** Those of `all_gather`;
/// on all ranks `mismatch` if metrics differ, which names a rank.
template <class Domain>
std::vector<ranked_sample> read_over_ranks(const communicator<Domain>& comm, const registry& metrics) {
  const snapshot now = metrics.read();
  const std::vector<double> own = detail::values_of(now);
  const auto ranks = static_cast<std::size_t>(comm.size());

  const std::array<std::uint64_t, 2> layout{detail::layout_of(now), own.size()};
  std::vector<std::uint64_t> layouts(2 * ranks);
  all_gather(comm, std::span(layout), std::span(layouts));
  for (std::size_t r = 1; r < ranks; ++r) {
    if (layouts[2 * r] == layouts[0] && layouts[2 * r + 1] == layouts[1]) continue;
    raise(errc::mismatch,
          hocket::detail::concat({"rank ", r, " has metrics of ", layouts[2 * r + 1],
                                  " values that differ from those of "
                                  "rank 0, of ",
                                  layouts[1], ": names, kinds, labels and bounds must be equal on all ranks"}));
  }
  std::vector<double> values(own.size() * ranks);
  if (!own.empty()) all_gather(comm, std::span(own), std::span(values));

  std::vector<ranked_sample> result;
  std::size_t at = 0;
  for (const family& each : now) {
    for (const sample& one : each.samples) {
      ranked_sample& its = result.emplace_back(ranked_sample{each.name, one.labels, each.kind, each.bounds, {}, {}});
      its.all.counts.resize(one.values.counts.size());
      for (std::size_t r = 0; r < ranks; ++r) {
        const double* const of_rank = &values[r * own.size() + at];
        detail::add_rank(its, static_cast<int>(r), of_rank[0]);
        for (std::size_t i = 0; i < its.all.counts.size(); ++i)
          its.all.counts[i] += static_cast<std::uint64_t>(of_rank[1 + i]);
      }
      its.all.sum = its.all.counts.empty() ? 0 : its.sum;
      at += 1 + its.all.counts.size();
    }
  }
  return result;
}

}  // namespace observe
HOCKET_END_NAMESPACE
