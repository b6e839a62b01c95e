// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Measures the cost of the engine: all_reduce of two ranks on two pinned threads, against hand-written loops for that
// one case. Both run in the same threads, in alternating batches; the result is the median of the ratios within pairs.
//
//   engine [--check] [Google Benchmark's flags]
//
// With --check the exit status is nonzero if a ratio exceeds its bound: 1.3 at 8 B, 1.05 from 64 KiB up.
//
// Another row explains the ratio at 8 B: it compares the hand-written loop with a variant that can't execute ahead, as
// no call of more than a few instructions can.
//
// Both variants rewrite their inputs before each call, within the measured time. Otherwise the data that a peer has
// read would stay in its cache, and the benchmark would measure cache hits.

#include "two_threads.hpp"

#include <hocket/hocket.hpp>

#include <benchmark/benchmark.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace {

// ── By hand ────────────────────────────────────────────────────────────────────────────────────────────────────────

struct alignas(64) line {
  float payload[14];
  std::atomic<std::uint64_t> sequence{0};
};

struct alignas(64) flag {
  std::atomic<std::uint64_t> value{0};
};

void spin_until(const std::atomic<std::uint64_t>& flag, std::uint64_t value) {
  while (flag.load(std::memory_order_acquire) != value) __builtin_ia32_pause();
}

/// Payload and flag in one cache line; two lines alternate, so that no closing round is needed. A processor executes
/// such a short loop speculatively ahead of the arrival, and prepares the next store; `InOrder` prevents that.
template <bool InOrder>
class push_by_hand {
 public:
  void operator()(int rank, const float* in, float* out, std::size_t count) {
    const std::uint64_t sequence = ++counters_[rank].sequence;
    line& theirs = lines_[1 - rank][sequence % 2];
    if constexpr (InOrder) __builtin_ia32_lfence();
    for (std::size_t i = 0; i < count; ++i) theirs.payload[i] = in[i];
    theirs.sequence.store(sequence, std::memory_order_release);
    const line& mine = lines_[rank][sequence % 2];
    spin_until(mine.sequence, sequence);
    const float* const first = rank == 0 ? in : mine.payload;
    const float* const second = rank == 0 ? mine.payload : in;
    for (std::size_t i = 0; i < count; ++i) out[i] = first[i] + second[i];
  }

 private:
  struct alignas(64) counter {
    std::uint64_t sequence = 0;
  };
  line lines_[2][2];
  counter counters_[2];
};

/// Each rank adds one half, reading the other rank's input, and then copies the other half: three rounds of flags.
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
  static void
  add(float* to, const float* a, const float* b, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) to[i] = a[i] + b[i];
  }

  shared shared_[2];
  flag flags_[3][2];
};

// ── Both, in the same threads ──────────────────────────────────────────────────────────────────────────────────────

constexpr std::size_t sizes[] = {8, 64 << 10, 1 << 20, 8 << 20};

/// Calls `loop` the given number of times, each time with a new input.
template <class Loop>
auto repeating(Loop& loop, bench::buffers& data, std::size_t count) {
  return [&loop, &data, count](int rank, int rounds) {
    for (int i = 0; i < rounds; ++i) loop(rank, data.new_in(rank), data.out(rank), count);
  };
}

template <class ByHand>
void all_reduce(benchmark::State& state) {
  const auto count = static_cast<std::size_t>(state.range(0)) / sizeof(float);
  ByHand by_hand;
  const bench::communicators comms;
  bench::buffers data(count);
  const auto call = [&](int rank, const float* in, float* out, std::size_t) {
    hocket::all_reduce(comms[rank], std::span<const float>(in, count), std::span<float>(out, count));
  };
  const auto hand = repeating(by_hand, data, count);
  const auto ours = repeating(call, data, count);
  if (!data.added_by(hand) || !data.added_by(ours)) return state.SkipWithError("a sum is wrong");
  bench::compare(state, hand, ours);
}

void in_order(benchmark::State& state) {
  const auto count = static_cast<std::size_t>(state.range(0)) / sizeof(float);
  push_by_hand<false> ahead;
  push_by_hand<true> in_order;
  bench::buffers data(count);
  bench::compare(state, repeating(ahead, data, count), repeating(in_order, data, count));
}

/// Collects the ratios, to compare them with their bounds at the end.
class ratios final : public benchmark::ConsoleReporter {
 public:
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs) {
      const auto found = run.counters.find("ratio");
      if (found != run.counters.end()) found_[run.benchmark_name()] = found->second.value;
    }
    ConsoleReporter::ReportRuns(runs);
  }

  /// Prints each ratio with its bound. Returns false if a bound is exceeded or nothing was measured.
  bool within_bounds() const {
    bool within = true;
    bool compared = false;
    for (const std::size_t bytes : sizes) {
      for (const auto& [name, ratio] : found_) {
        if (name.rfind("all_reduce/" + std::to_string(bytes) + "/", 0) != 0) continue;
        const double bound = bytes == 8 ? 1.3 : 1.05;
        compared = true;
        within = within && ratio <= bound;
        std::printf("%8zu B: hocket takes %.3f times as long as the loop written by hand (at most %.2f)%s\n", bytes,
                    ratio, bound, ratio <= bound ? "" : "  EXCEEDED");
      }
    }
    if (!compared) std::fprintf(stderr, "engine: no benchmark with a bound was measured: check --benchmark_filter\n");
    return within && compared;
  }

 private:
  std::map<std::string, double> found_;
};

}  // namespace

int main(int argc, char** argv) {
  const bool check = bench::take_flag(argc, argv, "--check");
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  using push = push_by_hand<false>;
  const auto enter = [](const char* name, auto* what, std::size_t bytes) {
    benchmark::RegisterBenchmark(name, what)->Arg(static_cast<std::int64_t>(bytes))->Iterations(101)->UseManualTime();
  };
  for (const std::size_t bytes : sizes) {
    enter("all_reduce", bytes == 8 ? all_reduce<push> : all_reduce<two_shot_by_hand>, bytes);
    if (bytes == 8) enter("by_hand_in_order", in_order, bytes);
  }
  std::printf("one-way latency between the two cores: %.1f ns\n", bench::one_way_latency_ns());
  ratios reporter;
  benchmark::RunSpecifiedBenchmarks(&reporter);
  const bool within = reporter.within_bounds();
  return check && !within ? 1 : 0;
}
