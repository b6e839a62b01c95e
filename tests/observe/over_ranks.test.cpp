// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Metrics of all ranks are equal on all of them, and metrics that differ are an error on all of them.
#include "support/catch.hpp"
#include "support/thread_ranks.hpp"

#include <hocket/observe/over_ranks.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace {

using namespace hocket::observe;
using hocket_test::on_ranks;
using hocket_test::thread_rank;

/// A value of each rank whose extremes are neither on the first rank nor on the last.
double loss_of(int rank, int ranks) { return (rank + ranks / 2) % ranks - 1.5; }

std::string problem_with(const std::vector<ranked_sample>& all, int ranks) {
  if (all.size() != 3) return "number of metrics";
  const ranked_sample &bytes = all[0], &loss = all[1], &seconds = all[2];
  double sum = 0;
  std::vector<double> losses;
  for (int r = 0; r < ranks; ++r) losses.push_back(loss_of(r, ranks)), sum += losses.back();
  if (name_of(bytes.name, bytes.labels) != "bytes{peer=\"1\"}" || bytes.sum != 100.0 * ranks * (ranks + 1) / 2)
    return "counter";
  if (loss.name != "loss" || loss.by_rank != losses || loss.sum != sum || loss.mean() != sum / ranks) return "gauge";
  if (loss.least != -1.5 || loss.greatest != ranks - 2.5) return "extremes";
  if (losses[static_cast<std::size_t>(loss.rank_of_least)] != loss.least ||
      losses[static_cast<std::size_t>(loss.rank_of_greatest)] != loss.greatest)
    return "ranks of extremes";
  const auto p = static_cast<std::uint64_t>(ranks);
  if (seconds.kind != metric_kind::histogram || seconds.all.counts != std::vector<std::uint64_t>{p, p * (p - 1) / 2})
    return "counts";
  if (seconds.sum != 0.5 * ranks + 2.0 * (ranks * (ranks - 1) / 2) || seconds.all.sum != seconds.sum)
    return "sum of a histogram";
  return {};
}

}  // namespace

TEST_CASE("metrics over ranks: sums, extremes, values by rank, merged histograms") {
  for (const int ranks : {1, 2, 3, 5}) {
    on_ranks(ranks, [&](thread_rank& me) {
      registry metrics;
      metrics.counter("bytes", "bytes", {{"peer", "1"}}).add(100.0 * (me.rank() + 1));
      metrics.gauge("loss", "loss").set(loss_of(me.rank(), ranks));
      histogram& seconds = metrics.histogram("seconds", "time", {1});
      seconds.record(0.5);
      for (int i = 0; i < me.rank(); ++i) seconds.record(2);
      const std::string problem = problem_with(read_over_ranks(me.comm(), metrics), ranks);
      me.check(problem.empty(), problem);
    });
  }
}

TEST_CASE("extremes over ranks are those of numbers, whichever ranks have none") {
  constexpr int ranks = 3;
  for (unsigned bad = 0; bad < 1U << ranks; ++bad) {
    on_ranks(ranks, [&](thread_rank& me) {
      const auto is_bad = [&](int rank) { return (bad >> rank & 1U) != 0; };
      registry metrics;
      metrics.gauge("x", "value").set(is_bad(me.rank()) ? std::numeric_limits<double>::quiet_NaN() : me.rank());
      const ranked_sample found = read_over_ranks(me.comm(), metrics).at(0);
      const std::string which = "of ranks " + std::to_string(bad);
      if (bad == (1U << ranks) - 1) {
        me.check(std::isnan(found.least) && std::isnan(found.greatest), "there are numbers: " + which);
        return;
      }
      int first = 0, last = ranks - 1;
      while (is_bad(first)) ++first;
      while (is_bad(last)) --last;
      me.check(found.least == first && found.rank_of_least == first, "another least value: " + which);
      me.check(found.greatest == last && found.rank_of_greatest == last, "another greatest value: " + which);
    });
  }
}

TEST_CASE("metrics over ranks: none") {
  on_ranks(3, [](thread_rank& me) { me.check(read_over_ranks(me.comm(), registry()).empty(), "there are metrics"); });
}

TEST_CASE("metrics that differ between ranks are an error on all of them") {
  enum difference { more, name, kind, label, bounds, all };
  for (int how = more; how < all; ++how) {
    on_ranks(3, [&](thread_rank& me) {
      const bool is_other = me.rank() == 2;
      registry metrics;
      metrics.gauge(how == name && is_other ? "b" : "a", "value");
      if (how == more && is_other) metrics.counter("more", "value");
      metrics.counter("c", "value", {{"x", how == label && is_other ? "1" : "2"}});
      if (how == kind && is_other) metrics.gauge("k", "value");
      if (how == kind && !is_other) metrics.counter("k", "value");
      metrics.histogram("h", "value", {how == bounds && is_other ? 1.0 : 2.0});
      std::string reason;
      try {
        read_over_ranks(me.comm(), metrics);
      } catch (const hocket::error& cause) {
        me.check(cause.code() == hocket::errc::mismatch, "another code");
        reason = cause.reason();
      }
      me.check(reason.starts_with("rank 2 has metrics of ") &&
                   reason.ends_with(": names, kinds, labels and bounds must be equal on all ranks"),
               std::to_string(how) + ": " + reason);
    });
  }
}
