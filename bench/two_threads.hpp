// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Two ranks on two pinned threads, timed together by Google Benchmark.
#pragma once

#include <hocket/hocket.hpp>

#include <benchmark/benchmark.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include <pthread.h>
#include <sched.h>

namespace bench {

/// Keeps this thread on the `which`-th core that the process may use.
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

/// Starts `body(rank, rounds)` on two pinned threads at the same moment; the time is that of rank 0.
template <class Body>
double time_pair(Body& body, int rounds) {
  std::atomic<int> ready{0};
  double seconds = 0;
  const auto rank = [&](int number) {
    pin(number);
    ready.fetch_add(1);
    while (ready.load() != 2) hocket::platform::pause();
    const auto begin = std::chrono::steady_clock::now();
    body(number, rounds);
    if (number == 0) seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  std::thread zero(rank, 0);
  std::thread one(rank, 1);
  zero.join();
  one.join();
  return seconds;
}

/// Runs a body for as many rounds as Google Benchmark asks for, in batches that hide the start of the threads.
template <class Body>
class pair_of_ranks {
 public:
  pair_of_ranks(benchmark::State& state, Body body) : state_(state), body_(std::move(body)) {}

  void run() {
    const int batch = state_.range(0) <= 1024 ? 20'000 : state_.range(0) <= (128 << 10) ? 2000 : 20;
    time_pair(body_, batch / 10 + 1);  // warm-up
    for (auto unused : state_) {
      static_cast<void>(unused);
      state_.SetIterationTime(time_pair(body_, batch) / batch);
    }
  }

 private:
  benchmark::State& state_;
  Body body_;
};

template <class Body>
pair_of_ranks(benchmark::State&, Body) -> pair_of_ranks<Body>;

/// An input and an output for each of two ranks.
class buffers {
 public:
  explicit buffers(std::size_t count) {
    for (auto& each : in_) each.assign(count, 1.0F);
    for (auto& each : out_) each.assign(count, 0.0F);
  }
  const float* in(int rank) const { return in_[rank].data(); }
  float* out(int rank) { return out_[rank].data(); }

 private:
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

/// How long a flag takes from one core to the other.
inline double one_way_latency_ns() {
  struct alignas(64) word {
    std::atomic<int> value{0};
  };
  word words[2];
  constexpr int rounds = 100'000;
  auto body = [&](int rank, int count) {
    for (int i = 1; i <= count; ++i) {
      if (rank == 0) words[0].value.store(i, std::memory_order_release);
      while (words[1 - rank].value.load(std::memory_order_acquire) != i) hocket::platform::pause();
      if (rank == 1) words[1].value.store(i, std::memory_order_release);
    }
  };
  return time_pair(body, rounds) / rounds / 2 * 1e9;
}

/// Removes `flag` from the arguments; true if it was there.
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
