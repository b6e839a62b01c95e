// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The limits of the machine, for `./dev compare`: limit THREADS:BYTES...
///
/// Prints a line of JSON for the round trip of one cache line between two pinned threads, and one for each argument: the
/// least time in which so many pinned threads each copy so many bytes, which another thread has written, by the best of
/// memcpy, `rep movsb` and streaming stores.
#include "processor.hpp"

#include <algorithm>
#include <atomic>
#include <barrier>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace {

using copy_function = void (*)(std::byte* to, const std::byte* from, std::size_t bytes);

void by_memcpy(std::byte* to, const std::byte* from, std::size_t bytes) {
  std::memcpy(to, from, bytes);
  asm volatile("" ::: "memory");
}

#if defined(__x86_64__)
void by_rep_movsb(std::byte* to, const std::byte* from, std::size_t bytes) {
  asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes)::"memory");
}

/// Both addresses are multiples of 64.
void by_streaming_stores(std::byte* to, const std::byte* from, std::size_t bytes) {
  std::size_t done = 0;
  for (; done + 64 <= bytes; done += 64) {
    for (std::size_t part = 0; part < 64; part += 16) {
      const __m128i data = _mm_load_si128(reinterpret_cast<const __m128i*>(from + done + part));
      _mm_stream_si128(reinterpret_cast<__m128i*>(to + done + part), data);
    }
  }
  _mm_sfence();
  std::memcpy(to + done, from + done, bytes - done);
}
#endif

struct method {
  const char* name;
  copy_function copy;
};

constexpr method methods[] = {
    {"memcpy", by_memcpy},
#if defined(__x86_64__)
    {"rep_movsb", by_rep_movsb},
    {"streaming_stores", by_streaming_stores},
#endif
};

struct free_memory {
  void operator()(std::byte* memory) const { std::free(memory); }
};
using buffer = std::unique_ptr<std::byte, free_memory>;

buffer written_buffer(std::size_t bytes) {
  const std::size_t whole = (bytes + 63) / 64 * 64;
  buffer made(static_cast<std::byte*>(std::aligned_alloc(64, whole)));
  if (made == nullptr) throw std::bad_alloc();
  std::memset(made.get(), 1, whole);
  return made;
}

/// Copies in as many threads as `copying`; at least two threads own the sources.
class copies {
 public:
  copies(int copying, std::size_t bytes)
      : copying_(copying), bytes_(bytes), threads_(std::max(copying, 2)), sources_(static_cast<std::size_t>(threads_)),
        seconds_(static_cast<std::size_t>(threads_)), together_(threads_) {}

  void run() {
    std::vector<std::thread> others;
    for (int which = 1; which < threads_; ++which) others.emplace_back([this, which] { work(which); });
    std::thread first([this] { work(0); });
    first.join();
    for (std::thread& other : others) other.join();
  }

  void print() const {
    std::printf("{\"threads\":%d,\"bytes\":%zu,\"method\":\"%s\",\"us\":%.6g}\n", copying_, bytes_, best_method_,
                1e6 * best_);
  }

 private:
  static constexpr int repeats = 5;
  static constexpr double duration = 1e-3;  // of one measurement

  void work(int which) {
    compare::pin(which);
    const auto mine = static_cast<std::size_t>(which);
    sources_[mine] = written_buffer(bytes_);
    const buffer target = written_buffer(bytes_);
    together_.arrive_and_wait();
    const std::byte* from = sources_[(mine + 1) % sources_.size()].get();
    for (const method& each : methods) {
      double one = measure(which, each, target.get(), from, 1);
      for (int i = 0; i < repeats; ++i) {
        const double wanted = std::clamp(duration / std::max(one, 1e-9), 1.0, 1e5);
        one = measure(which, each, target.get(), from, static_cast<int>(wanted));
      }
    }
  }

  /// Returns the time of one copy in the slowest thread.
  double measure(int which, const method& how, std::byte* to, const std::byte* from, int count) {
    together_.arrive_and_wait();
    const double begin = compare::now();
    if (which < copying_) {
      for (int i = 0; i < count; ++i) how.copy(to, from, bytes_);
    }
    seconds_[static_cast<std::size_t>(which)] = which < copying_ ? (compare::now() - begin) / count : 0;
    together_.arrive_and_wait();
    const double slowest = *std::max_element(seconds_.begin(), seconds_.end());
    if (which == 0 && slowest < best_) {
      best_ = slowest;
      best_method_ = how.name;
    }
    together_.arrive_and_wait();
    return slowest;
  }

  int copying_;
  std::size_t bytes_;
  int threads_;
  std::vector<buffer> sources_;
  std::vector<double> seconds_;
  std::barrier<> together_;
  double best_ = 1e9;
  const char* best_method_ = "";
};

/// Returns the least time in seconds that one cache line takes from a thread to another and back.
double round_trip() {
  alignas(128) static std::atomic<std::uint32_t> line{0};
  constexpr std::uint32_t batches = 50;
  constexpr std::uint32_t trips = 1000;
  const bool yields = compare::given_cores().size() < 2;
  const auto wait_for = [yields](std::uint32_t value) {
    while (line.load(std::memory_order_acquire) != value) {
      if (yields) compare::yield();
    }
  };
  std::thread other([&] {
    compare::pin(1);
    for (std::uint32_t i = 0; i < batches * trips; ++i) {
      wait_for(2 * i + 1);
      line.store(2 * i + 2, std::memory_order_release);
    }
  });
  double best = 1e9;
  std::thread one([&] {
    compare::pin(0);
    for (std::uint32_t batch = 0; batch < batches; ++batch) {
      const double begin = compare::now();
      for (std::uint32_t i = batch * trips; i < (batch + 1) * trips; ++i) {
        line.store(2 * i + 1, std::memory_order_release);
        wait_for(2 * i + 2);
      }
      best = std::min(best, (compare::now() - begin) / trips);
    }
  });
  one.join();
  other.join();
  return best;
}

}  // namespace

int main(int count, char** arguments) {
  std::printf("{\"round_trip_us\":%.6g}\n", 1e6 * round_trip());
  for (int i = 1; i < count; ++i) {
    int threads = 0;
    std::size_t bytes = 0;
    if (std::sscanf(arguments[i], "%d:%zu", &threads, &bytes) != 2 || threads < 1) return 2;
    copies each(threads, bytes);
    each.run();
    each.print();
  }
}
