// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Definitions of <hocket/transport/host/link_measurement.hpp>.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/platform/cpu.hpp>
#include <hocket/core/platform/process_memory.hpp>
#include <hocket/transport/host/link_measurement.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>

HOCKET_BEGIN_NAMESPACE
namespace host {
namespace detail {

class link_measurement {
 public:
  explicit link_measurement(const measuring_rank& self)
      : self_(self), private_(std::make_unique<std::byte[]>(most_read_bytes)) {}

  measured_links run() {
    header(self_.own).address = reinterpret_cast<std::uintptr_t>(private_.get());
    measured_links found;
    found.line_latency = line_latency();
    if (disturbed_) return found;  // then the partner's address may not be there yet
    const double few_again = reading(few_bytes), more_again = reading(most_read_bytes);
    const double few_fresh = passing_on(few_bytes) - rewriting(few_bytes) - few_again;
    const double more_fresh = passing_on(most_read_bytes) - rewriting(most_read_bytes) - more_again;
    found.read_per_byte = few_again / few_bytes;
    found.fresh_per_byte = std::max(0.0, few_fresh / few_bytes);
    found.pass_per_byte = passing_in_turns(few_bytes) / few_bytes;
    if (found.fresh_per_byte > 0) found.fresh_bytes = std::max(0.0, more_fresh) / found.fresh_per_byte;
    if (self_.partner_process != 0) measure_copies(found);
    found.is_valid = !disturbed_ && synchronize();
    return found;
  }

 private:
  using clock = std::chrono::steady_clock;
  static constexpr std::size_t page_bytes = 4096, few_bytes = std::size_t{1} << 15;
  static constexpr int rounds = 6;
  static constexpr int round_trips = 64;
  static constexpr double largest_spread = 1.5;  ///< of the two shortest times
  static constexpr std::chrono::milliseconds longest_wait{2}, longest_first_wait{20};
  static constexpr double longest_line_latency = 1e-6;  ///< else the two share a core

  struct header_type {
    std::atomic<std::uint32_t> turn;  ///< written by the partner
    alignas(platform::cache_line) std::uint64_t address;
  };

  static header_type& header(std::byte* memory) noexcept { return *reinterpret_cast<header_type*>(memory); }
  static std::byte* data(std::byte* memory) noexcept { return memory + page_bytes; }

  void give_turn() noexcept { header(self_.partner).turn.store(turn_, std::memory_order_release); }

  bool await_turn() noexcept {
    constexpr unsigned polls_until_yield = 256;
    const std::atomic<std::uint32_t>& turn = header(self_.own).turn;
    for (unsigned polls = 0; polls < polls_until_yield; ++polls) {
      if (turn.load(std::memory_order_acquire) >= turn_) return true;
      platform::pause();
    }
    const auto last = clock::now() + (turn_ == 1 ? longest_first_wait : longest_wait);
    while (turn.load(std::memory_order_acquire) < turn_) {
      platform::yield();  // the partner may be on the same core
      if (clock::now() > last) return false;
    }
    return true;
  }

  /// Returns whether both are here.
  bool synchronize() noexcept {
    if (disturbed_) return false;
    ++turn_;
    give_turn();
    disturbed_ = !await_turn();
    return !disturbed_;
  }

  /// Returns the shortest time of `measured()`, which both call at the same time.
  template <class Measured>
  double shortest(Measured measured) {
    double first = std::numeric_limits<double>::max(), second = first;
    for (int i = 0; i <= rounds; ++i) {
      if (!synchronize()) return 0;
      const auto begin = clock::now();
      measured();
      const double seconds = std::chrono::duration<double>(clock::now() - begin).count();
      if (i == 0) continue;  // the first one finds pages that are not mapped yet
      second = std::min(second, std::max(first, seconds));
      first = std::min(first, seconds);
    }
    disturbed_ = disturbed_ || second > largest_spread * first;
    return first;
  }

  double line_latency() {
    const double seconds = shortest([&] {
      for (int i = 0; i < round_trips && !disturbed_; ++i) {
        ++turn_;
        if (self_.is_first) give_turn();
        disturbed_ = !await_turn();
        if (!self_.is_first) give_turn();
      }
    });
    const double result = seconds / (2 * round_trips);
    disturbed_ = disturbed_ || result > longest_line_latency;
    return result;
  }

  void read(std::size_t bytes) noexcept {
    std::memcpy(private_.get(), data(self_.partner), bytes);
    asm volatile("" ::"r"(private_.get()) : "memory");  // the copy must not be optimised away
  }

  /// Reads and writes, like a kernel that combines.
  static void change(std::byte* words, std::size_t bytes) noexcept {
    for (std::size_t i = 0; i < bytes; i += sizeof(std::uint64_t)) {
      std::uint64_t word = 0;
      std::memcpy(&word, words + i, sizeof word);
      ++word;
      std::memcpy(words + i, &word, sizeof word);
    }
  }

  /// Each rank reads what its partner has not changed since.
  double reading(std::size_t bytes) {
    return shortest([&] { read(bytes); });
  }
  /// Each rank writes, and then reads what its partner has written: both need lines that the other one has.
  double passing_on(std::size_t bytes) {
    return shortest([&] {
      change(data(self_.own), bytes);
      if (synchronize()) read(bytes);
    });
  }
  /// Each rank writes where it has read last, and then reads what its partner has written: so messages use blocks.
  double passing_in_turns(std::size_t bytes) {
    std::byte* mine = data(self_.own);
    std::byte* theirs = data(self_.partner);
    return shortest([&] {
      std::memcpy(mine, private_.get(), bytes);
      if (synchronize()) std::memcpy(private_.get(), theirs, bytes);
      asm volatile("" ::"r"(private_.get()) : "memory");  // the copy must not be optimised away
      std::swap(mine, theirs);
    });
  }
  /// Each rank writes what no other reads.
  double rewriting(std::size_t bytes) {
    return shortest([&] { change(private_.get(), bytes); });
  }

  void measure_copies(measured_links& found) {
    const std::uint64_t from = header(self_.partner).address;
    const auto copying = [&](std::size_t bytes) {
      return shortest([&] {
        const auto read = platform::read_process_memory(self_.partner_process, from, data(self_.own), bytes);
        if (read != platform::process_read::done) disturbed_ = true;
      });
    };
    const double page = copying(page_bytes), more = copying(few_bytes);
    found.copy_per_byte = std::max(0.0, (more - page) / (few_bytes - page_bytes));
    found.copy_latency = std::max(0.0, page - page_bytes * found.copy_per_byte);
  }

  const measuring_rank& self_;
  const std::unique_ptr<std::byte[]> private_;
  std::uint32_t turn_ = 0;
  bool disturbed_ = false;
};

}  // namespace detail

HOCKET_DECL measured_links measure_links(const measuring_rank& self) { return detail::link_measurement(self).run(); }

}  // namespace host
HOCKET_END_NAMESPACE
