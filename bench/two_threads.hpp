// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Two ranks on two pinned threads, timed together by Google Benchmark.
#pragma once

#include <hocket/hocket.hpp>

#include <benchmark/benchmark.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include <pthread.h>
#include <sched.h>

namespace bench {

/// Pins this thread to the `which`-th core that the process may use.
inline void pin(int which) {
  cpu_set_t usable;
  CPU_ZERO(&usable);
  if (sched_getaffinity(0, sizeof usable, &usable) != 0) return;
  for (std::size_t core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &usable) || which-- != 0) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    pthread_setaffinity_np(pthread_self(), sizeof one, &one);
    return;
  }
}

/// Times of two variants, measured in the same two threads one after the other.
struct paired_times {
  double first = 0;   ///< seconds per round
  double second = 0;  ///< seconds per round
};

/// Runs `first(rank, rounds)` and then `second(rank, rounds)` on two pinned threads that begin each at the same time;
/// the times are those of rank 0. A tenth of the rounds precedes each as warm-up. Repeats this `pairs` times in the
/// same two threads, in reverse order for every second pair, so that the order favours neither. Short batches are
/// rarely interrupted.
template <class First, class Second>
std::vector<paired_times> time_pairs(First first, Second second, int rounds, int pairs) {
  std::atomic<int> ready{0};
  std::vector<paired_times> result(static_cast<std::size_t>(pairs));
  const auto rank = [&](int number) {
    pin(number);
    int meetings = 0;
    const auto timed = [&](auto& body) {
      body(number, rounds / 10 + 1);
      ready.fetch_add(1);
      for (meetings += 2; ready.load() < meetings;) hocket::platform::pause();
      const auto begin = std::chrono::steady_clock::now();
      body(number, rounds);
      return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / rounds;
    };
    for (int i = 0; i < pairs; ++i) {
      paired_times took;
      if (i % 2 == 0) took.first = timed(first);
      took.second = timed(second);
      if (i % 2 != 0) took.first = timed(first);
      if (number == 0) result[static_cast<std::size_t>(i)] = took;
    }
  };
  std::thread zero(rank, 0);
  std::thread one(rank, 1);
  zero.join();
  one.join();
  return result;
}

/// Measures one pair.
template <class First, class Second>
paired_times time_pair(First first, Second second, int rounds) {
  return time_pairs(first, second, rounds, 1).front();
}

/// Returns the median of `values`.
inline double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Returns the 99th percentile of `values`.
inline double percentile_99(std::vector<double> values) {
  const auto place = values.begin() + static_cast<std::ptrdiff_t>(values.size() * 99 / 100);
  std::nth_element(values.begin(), place, values.end());
  return *place;
}

/// Benchmarks `ours` against `by_hand`: an iteration is a batch of each. Google Benchmark's time is that of `ours`; the
/// counters have the medians of both over all batches and of the ratio within pairs, and the 99th percentile of `ours`.
template <class ByHand, class Ours>
void compare(benchmark::State& state, ByHand by_hand, Ours ours) {
  const int batch = state.range(0) <= 1024 ? 20'000 : state.range(0) <= (128 << 10) ? 1000 : 20;
  std::vector<double> hand_times;
  std::vector<double> our_times;
  std::vector<double> ratios;
  bool ours_first = false;  // alternates, so that the order favours neither
  for (auto unused : state) {
    static_cast<void>(unused);
    paired_times took;
    if (ours_first) {
      took = time_pair(ours, by_hand, batch);
      std::swap(took.first, took.second);
    } else {
      took = time_pair(by_hand, ours, batch);
    }
    ours_first = !ours_first;
    state.SetIterationTime(took.second);
    hand_times.push_back(took.first * 1e9);
    our_times.push_back(took.second * 1e9);
    ratios.push_back(took.second / took.first);
  }
  state.counters["by_hand_ns"] = median(hand_times);
  state.counters["hocket_ns"] = median(our_times);
  state.counters["hocket_p99_ns"] = percentile_99(our_times);
  state.counters["ratio"] = median(ratios);
}

/// An input and an output for each of two ranks, none of which share a cache line, because false sharing would make the
/// ranks wait for each other.
class buffers {
 public:
  explicit buffers(std::size_t count) {
    for (auto& each : in_) each.assign(count + padding, 1.0F);
    for (auto& each : out_) each.assign(count + padding, 0.0F);
  }
  const float* in(int rank) const { return in_[rank].data(); }
  /// Rewrites the input and returns it, which invalidates the copy in the peer's cache.
  const float* new_in(int rank) {
    std::fill(in_[rank].begin(), in_[rank].end() - static_cast<std::ptrdiff_t>(padding), 1.0F);
    benchmark::ClobberMemory();
    return in_[rank].data();
  }
  float* out(int rank) { return out_[rank].data(); }

  /// Returns whether `body(rank, 1)` in two threads writes the sum of both inputs to both outputs, and nothing beyond.
  template <class Body>
  bool added_by(Body body) {
    for (auto& each : out_) std::fill(each.begin(), each.end(), -1.0F);
    std::thread other([&] { body(1, 1); });
    body(0, 1);
    other.join();
    return std::all_of(std::begin(out_), std::end(out_), [](const std::vector<float>& each) {
      const auto end = each.end() - static_cast<std::ptrdiff_t>(padding);
      return std::all_of(each.begin(), end, [](float value) { return value == 2.0F; }) &&
             std::all_of(end, each.end(), [](float value) { return value == -1.0F; });
    });
  }

 private:
  static constexpr std::size_t padding = 128 / sizeof(float);

  std::vector<float> in_[2];
  std::vector<float> out_[2];
};

/// The communicators of two thread ranks.
class communicators {
 public:
  communicators() {
    const auto place = std::make_shared<hocket::local::world>(2);
    const auto connect = [&](int rank) {
      pin(rank);
      comms_[rank] = std::make_unique<hocket::local::communicator>(hocket::local::connect(place, rank));
    };
    std::thread zero(connect, 0);
    std::thread one(connect, 1);
    zero.join();
    one.join();
  }
  const hocket::local::communicator& operator[](int rank) const { return *comms_[rank]; }

 private:
  std::unique_ptr<hocket::local::communicator> comms_[2];
};

/// Returns the time that a flag takes from one core to the other.
inline double one_way_latency_ns() {
  struct alignas(64) word {
    std::atomic<int> value{0};
  };
  word words[2];
  const auto ping_pong = [&](int rank, int count) {
    static thread_local int last = 0;
    for (const int end = last + count; last < end;) {
      ++last;
      if (rank == 0) words[0].value.store(last, std::memory_order_release);
      while (words[1 - rank].value.load(std::memory_order_acquire) != last) hocket::platform::pause();
      if (rank == 1) words[1].value.store(last, std::memory_order_release);
    }
  };
  return time_pair(ping_pong, ping_pong, 100'000).second / 2 * 1e9;
}

/// Removes `flag` from the arguments. Returns true if it was present.
inline bool take_flag(int& argc, char** argv, const char* flag) {
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], flag) != 0) continue;
    for (int k = i; k + 1 < argc; ++k) argv[k] = argv[k + 1];
    --argc;
    return true;
  }
  return false;
}

}  // namespace bench
