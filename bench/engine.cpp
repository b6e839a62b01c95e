// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the engine costs: all_reduce of two ranks on two pinned threads, beside loops written by hand for that one case.
// All variants run in one process, interleaved; what counts is the ratio of medians that is printed in the end.
//
//   engine [--check] [Google Benchmark's flags]
//
// With --check the exit status says whether the ratios are within their bounds: 1.3 at 8 B, 1.05 from 64 KiB up.

#include "two_threads.hpp"

#include <hocket/hocket.hpp>

#include <benchmark/benchmark.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>
#include <string>
#include <vector>

namespace {

using bench::pair_of_ranks;

// ── By hand ────────────────────────────────────────────────────────────────────────────────────────────────────────

struct alignas(64) line {
  float payload[2];
  std::atomic<std::uint64_t> sequence{0};
};

struct alignas(64) flag {
  std::atomic<std::uint64_t> value{0};
};

void spin_until(const std::atomic<std::uint64_t>& flag, std::uint64_t value) {
  while (flag.load(std::memory_order_acquire) != value) __builtin_ia32_pause();
}

/// Payload and flag in one line; two lines in turn, so that no closing round is needed.
class push_by_hand {
 public:
  void operator()(int rank, const float* in, float* out, std::size_t) {
    const std::uint64_t sequence = ++counters_[rank].sequence;
    line& theirs = lines_[1 - rank][sequence % 2];
    std::memcpy(theirs.payload, in, 8);
    theirs.sequence.store(sequence, std::memory_order_release);
    const line& mine = lines_[rank][sequence % 2];
    spin_until(mine.sequence, sequence);
    const float* const first = rank == 0 ? in : mine.payload;
    const float* const second = rank == 0 ? mine.payload : in;
    for (int i = 0; i < 2; ++i) out[i] = first[i] + second[i];
  }

 private:
  struct alignas(64) counter {
    std::uint64_t sequence = 0;
  };
  line lines_[2][2];
  counter counters_[2];
};

/// Each rank adds one half, reading the other's input, and then copies the other half: three rounds of flags.
class two_shot_by_hand {
 public:
  void operator()(int rank, const float* in, float* out, std::size_t count) {
    shared& mine = shared_[rank];
    const shared& theirs = shared_[1 - rank];
    mine.in = in;
    mine.out = out;
    const std::uint64_t sequence = ++mine.sequence;
    meet(0, rank, sequence);
    const std::size_t half = (count + 1) / 2;
    const std::size_t begin = rank == 0 ? 0 : half;
    const std::size_t end = rank == 0 ? half : count;
    add(out + begin, (rank == 0 ? in : theirs.in) + begin, (rank == 0 ? theirs.in : in) + begin, end - begin);
    meet(1, rank, sequence);
    const std::size_t other = rank == 0 ? half : 0;
    std::memcpy(out + other, theirs.out + other, (count - (end - begin)) * sizeof(float));
    meet(2, rank, sequence);
  }

 private:
  struct alignas(64) shared {
    const float* in = nullptr;
    float* out = nullptr;
    std::uint64_t sequence = 0;
  };

  void meet(int round, int rank, std::uint64_t sequence) {
    flags_[round][rank].value.store(sequence, std::memory_order_release);
    spin_until(flags_[round][1 - rank].value, sequence);
  }

#if defined(__GNUC__) && !defined(__clang__)
  __attribute__((optimize("O3")))
#endif
  static void add(float* to, const float* a, const float* b, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) to[i] = a[i] + b[i];
  }

  shared shared_[2];
  flag flags_[3][2];
};

// ── Both, in the same harness ──────────────────────────────────────────────────────────────────────────────────────

/// An iteration is a batch of operations, of which the time per operation is reported.
constexpr int batches = 5;
constexpr std::size_t sizes[] = {8, 64 << 10, 1 << 20, 8 << 20};

template <class ByHand>
void by_hand(benchmark::State& state) {
  const auto count = static_cast<std::size_t>(state.range(0)) / sizeof(float);
  ByHand all_reduce;
  bench::buffers data(count);
  pair_of_ranks ranks(state, [&](int rank, int rounds) {
    for (int i = 0; i < rounds; ++i) all_reduce(rank, data.in(rank), data.out(rank), count);
  });
  ranks.run();
}

void by_hocket(benchmark::State& state) {
  const auto count = static_cast<std::size_t>(state.range(0)) / sizeof(float);
  bench::communicators comms;
  bench::buffers data(count);
  pair_of_ranks ranks(state, [&](int rank, int rounds) {
    const auto& comm = comms[rank];
    const std::span<const float> in(data.in(rank), count);
    const std::span<float> out(data.out(rank), count);
    for (int i = 0; i < rounds; ++i) hocket::all_reduce(comm, in, out);
  });
  ranks.run();
}

/// Collects medians, to compare them in the end.
class medians final : public benchmark::ConsoleReporter {
 public:
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs) {
      if (run.aggregate_name == "median") times_[run.benchmark_name()] = run.GetAdjustedRealTime();
    }
    ConsoleReporter::ReportRuns(runs);
  }

  double of(const std::string& variant, std::size_t bytes) const {
    for (const auto& [name, time] : times_) {
      if (name.rfind(variant + "/" + std::to_string(bytes) + "/", 0) == 0) return time;
    }
    return 0;
  }

 private:
  std::map<std::string, double> times_;
};

bool compare(const medians& found) {
  bool within = true;
  std::printf("\n%10s %14s %14s %8s %8s\n", "bytes", "by hand (ns)", "hocket (ns)", "ratio", "bound");
  for (const std::size_t bytes : sizes) {
    const double hand = found.of("by_hand", bytes);
    const double ours = found.of("hocket", bytes);
    if (hand == 0 || ours == 0) continue;
    const double bound = bytes == 8 ? 1.3 : 1.05;
    within = within && ours <= bound * hand;
    std::printf("%10zu %14.1f %14.1f %8.3f %8.2f%s\n", bytes, hand, ours, ours / hand, bound,
                ours <= bound * hand ? "" : "  EXCEEDED");
  }
  return within;
}

}  // namespace

int main(int argc, char** argv) {
  const bool check = bench::take_flag(argc, argv, "--check");
  std::vector<const char*> arguments(argv, argv + argc);
  for (const char* each : {"--benchmark_repetitions=15", "--benchmark_enable_random_interleaving=true",
                           "--benchmark_report_aggregates_only=true"}) {
    arguments.insert(arguments.begin() + 1, each);
  }
  int count = static_cast<int>(arguments.size());
  benchmark::Initialize(&count, const_cast<char**>(arguments.data()));
  if (benchmark::ReportUnrecognizedArguments(count, const_cast<char**>(arguments.data()))) return 2;
  for (const std::size_t bytes : sizes) {
    const auto argument = static_cast<std::int64_t>(bytes);
    benchmark::RegisterBenchmark("by_hand", bytes == 8 ? by_hand<push_by_hand> : by_hand<two_shot_by_hand>)
        ->Arg(argument)
        ->Iterations(batches)
        ->UseManualTime();
    benchmark::RegisterBenchmark("hocket", by_hocket)->Arg(argument)->Iterations(batches)->UseManualTime();
  }
  std::printf("one-way latency between the two cores: %.1f ns\n", bench::one_way_latency_ns());
  medians reporter;
  benchmark::RunSpecifiedBenchmarks(&reporter);
  const bool within = compare(reporter);
  return check && !within ? 1 : 0;
}
