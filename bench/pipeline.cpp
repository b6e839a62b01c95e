// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Measures the cost of the pipeline executor: two pinned threads whose stages compute nothing and pass 1 KiB on, one
// microbatch after the other, against the same messages by plain `send` and `recv`. Both run in the same threads, in
// alternating batches. The result is the difference of the shortest batches, per action, because disturbances on a busy
// machine only make batches longer.
//
//   pipeline [--check] [Google Benchmark's flags]
//
// With --check the exit status is nonzero if an action costs more than 2 us more than its message alone.

#include "two_threads.hpp"

#include <hocket/hocket.hpp>
#include <hocket/pipeline/executor.hpp>
#include <hocket/schedule/schedule.hpp>

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <memory>
#include <optional>
#include <span>
#include <thread>
#include <vector>

namespace {

constexpr int microbatches = 64;
constexpr int actions = 2 * microbatches;  // of each rank: a forward and a backward pass, each with one message
constexpr std::size_t bytes = 1024;

struct empty_stage {
  using input_type = std::byte;
  using output_type = std::byte;
  int index = 0;
  std::size_t input_size() const { return index == 0 ? 0 : bytes; }
  std::size_t output_size() const { return index == 0 ? bytes : 0; }
  void forward(int, std::span<const std::byte>, std::span<std::byte>) {}
  void backward(int, std::span<const std::byte>, std::span<const std::byte>, std::span<std::byte>) {}
};

/// Returns a schedule with at most one message in flight, so that no message hides the cost of another.
hocket::plan::pipeline::schedule one_by_one() {
  namespace schedules = hocket::plan::pipeline;
  schedules::schedule made("one_by_one", schedules::placement::loop(2), microbatches);
  for (int rank = 0; rank < 2; ++rank) {
    for (int m = 0; m < microbatches; ++m) {
      made.of(rank).push_back(schedules::forward(rank, m));
      made.of(rank).push_back(schedules::backward(rank, m));
    }
  }
  return made;
}

/// The messages of the same step.
class by_hand {
 public:
  void operator()(int rank, const hocket::local::communicator& comm) {
    const hocket::peer other{1 - rank};
    auto& [activation, gradient] = buffers_[rank];
    for (int m = 0; m < microbatches; ++m) {
      if (rank == 0) {
        hocket::send(comm, activation, other);
        hocket::recv(comm, gradient, other);
      } else {
        hocket::recv(comm, activation, other);
        hocket::send(comm, gradient, other);
      }
    }
  }

 private:
  struct pair {
    std::vector<std::byte> activation = std::vector<std::byte>(bytes);
    std::vector<std::byte> gradient = std::vector<std::byte>(bytes);
  };
  pair buffers_[2];
};

using executor = hocket::pipeline::executor<hocket::local::domain>;

/// One executor per rank, constructed on the thread that runs it.
std::vector<std::unique_ptr<executor>> executors(const bench::communicators& comms, empty_stage (&stages)[2]) {
  std::vector<std::unique_ptr<executor>> made(2);
  const auto make = [&](int rank) {
    const auto self = static_cast<std::size_t>(rank);
    bench::pin(rank);
    stages[self].index = rank;
    made[self] =
        std::make_unique<executor>(comms[rank], one_by_one(), std::vector<hocket::pipeline::any_stage>{stages[self]});
  };
  std::thread zero(make, 0);
  std::thread one(make, 1);
  zero.join();
  one.join();
  return made;
}

std::optional<double> excess_us;  ///< of the last benchmark

void empty_stages(benchmark::State& state) {
  const bench::communicators comms;
  empty_stage stages[2];
  const auto ranks = executors(comms, stages);
  by_hand bare;
  std::vector<double> bare_times;
  std::vector<double> our_times;
  std::vector<double> differences;
  for (auto unused : state) {
    static_cast<void>(unused);
    const auto pairs = bench::time_pairs(
        [&](int rank, int rounds) {
          for (int i = 0; i < rounds; ++i) bare(rank, comms[rank]);
        },
        [&](int rank, int rounds) {
          for (int i = 0; i < rounds; ++i) ranks[static_cast<std::size_t>(rank)]->run();
        },
        2, 100);
    double sum = 0;
    for (const bench::paired_times& took : pairs) {
      bare_times.push_back(took.first / actions * 1e9);
      our_times.push_back(took.second / actions * 1e9);
      differences.push_back((took.second - took.first) / actions * 1e9);
      sum += took.second;
    }
    state.SetIterationTime(sum / static_cast<double>(pairs.size()));
  }
  state.counters["bare_ns_per_action"] = bench::median(bare_times);
  state.counters["executor_ns_per_action"] = bench::median(our_times);
  state.counters["median_difference_ns"] = bench::median(differences);
  const double least =
      *std::min_element(our_times.begin(), our_times.end()) - *std::min_element(bare_times.begin(), bare_times.end());
  state.counters["difference_of_shortest_ns"] = least;
  excess_us = least / 1000;
}

}  // namespace

int main(int argc, char** argv) {
  const bool check = bench::take_flag(argc, argv, "--check");
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RegisterBenchmark("one_by_one/empty_stages", empty_stages)->Iterations(7)->UseManualTime();
  benchmark::RunSpecifiedBenchmarks();
  if (!excess_us) {
    std::fprintf(stderr, "pipeline: nothing was measured because no benchmark matches --benchmark_filter\n");
    return 2;
  }
  const bool within = *excess_us <= 2;
  std::printf("an action of the executor costs %.2f us more than its message alone (at most 2)%s\n", *excess_us,
              within ? "" : "  EXCEEDED");
  return check && !within ? 1 : 0;
}
