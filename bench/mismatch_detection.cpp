// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// header_only: it compares two ways to compile it
//
// Measures the cost of mismatch detection: an all_reduce of 8 bytes between two pinned threads, against the same one
// compiled with HOCKET_MISMATCH_DETECTION=0. Both run in the same threads, in alternating batches; the results are the
// medians of ratio and difference within pairs.
//
//   mismatch_detection [--check]
//
// With --check the exit status is nonzero if the cost exceeds both 5 % and 5 ns.

#include "mismatch_detection.hpp"
#include "two_threads.hpp"

#include <cstddef>
#include <cstdio>
#include <memory>
#include <vector>

namespace {

constexpr int placements = 7;  // of the communicators in memory
constexpr int pairs = 301;
constexpr int rounds = 2000;
constexpr std::size_t count = 2;

struct cost {
  std::vector<double> with, without, differences, ratios;

  void add(const bench::paired_times& took) {
    with.push_back(took.first * 1e9);
    without.push_back(took.second * 1e9);
    differences.push_back((took.first - took.second) * 1e9);
    ratios.push_back(took.first / took.second);
  }
};

void measure(cost& into) {
  const auto with = bench::all_reduce_with_detection();
  const auto without = bench::all_reduce_without_detection();
  bench::buffers data(count);
  const auto body = [&](bench::all_reduce_loop& loop) {
    return [&](int rank, int times) { loop.run(rank, data.in(rank), data.out(rank), count, times); };
  };
  for (const bench::paired_times& took : bench::time_pairs(body(*with), body(*without), rounds, pairs)) into.add(took);
  for (int rank = 0; rank < 2; ++rank) {
    if (data.out(rank)[count - 1] != 2.0F) std::printf("WRONG RESULT\n");
  }
}

}  // namespace

int main(int argc, char** argv) {
  const bool check = bench::take_flag(argc, argv, "--check");
  std::printf("one-way latency between the two cores: %.1f ns\n", bench::one_way_latency_ns());
  cost found;
  for (int i = 0; i < placements; ++i) measure(found);
  const double difference = bench::median(found.differences);
  const double ratio = bench::median(found.ratios);
  const bool within = ratio <= 1.05 || difference <= 5;
  std::printf(
      "8 B all_reduce: %.1f ns with mismatch detection, %.1f ns without: %+.1f ns, %+.1f %% (at most 5 ns or 5 %%)%s\n",
      bench::median(found.with), bench::median(found.without), difference, (ratio - 1) * 100,
      within ? "" : "  EXCEEDED");
  return check && !within ? 1 : 0;
}
