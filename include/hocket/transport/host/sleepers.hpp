// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Ranks of one host that sleep until a peer writes to them, so that a rank that waits for long leaves its core to others
/// and still continues soon.
///
/// A rank announces that it will sleep, looks once more for what it waits for, and sleeps. A peer reads the word of a
/// rank after it has written something that the rank may wait for. That read needs no fence: the sleeper looks once more
/// only after a time in which processors make the stores visible that preceded a read without the announcement. Each
/// sleep is short, so that a rank notices what wakes no rank, such as the end of a process.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/platform/cpu.hpp>
#include <hocket/core/platform/fence.hpp>
#include <hocket/core/platform/futex.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace host {

class sleepers {
 public:
  static constexpr std::size_t bytes_per_rank = platform::cache_line;
  static constexpr std::chrono::milliseconds longest_sleep{5};

  /// Makes an object without ranks.
  sleepers() = default;
  /// `words`: the zeroed memory of each rank, aligned to a cache line.
  sleepers(const std::vector<std::byte*>& words, int rank) : rank_(rank) {
    for (std::byte* const each : words) words_.push_back(reinterpret_cast<std::atomic<std::uint32_t>*>(each));
  }

  /// Wakes `peer` if it sleeps or is about to. Call it after storing what `peer` may wait for.
  void wake(int peer) const noexcept {
    std::atomic<std::uint32_t>& word = *words_[static_cast<std::size_t>(peer)];
    platform::light_fence();  // after the store that it may wait for
    if (word.load(std::memory_order_relaxed) == awake) [[likely]]
      return;
    word.store(awake, std::memory_order_seq_cst);
    platform::wake(word);
  }

  /// Announces that this rank will sleep. Afterwards look for what it waits for, then call `sleep` or `stay_awake`.
  void announce() const noexcept {
    own().store(asleep, std::memory_order_seq_cst);
    // A processor keeps a store to itself for less than this, so a peer that has not seen the announcement has stored
    // visibly. Should one ever not, the sleep still ends.
    const auto visible = std::chrono::steady_clock::now() + time_until_visible;
    while (std::chrono::steady_clock::now() < visible) platform::pause();
  }
  void sleep() const noexcept {
    platform::sleep_while(own(), asleep, longest_sleep);
    stay_awake();
  }
  void stay_awake() const noexcept { own().store(awake, std::memory_order_relaxed); }

 private:
  static constexpr std::uint32_t awake = 0;
  static constexpr std::uint32_t asleep = 1;
  static constexpr std::chrono::microseconds time_until_visible{2};

  std::atomic<std::uint32_t>& own() const noexcept { return *words_[static_cast<std::size_t>(rank_)]; }

  std::vector<std::atomic<std::uint32_t>*> words_;
  int rank_ = 0;
};

}  // namespace host
HOCKET_END_NAMESPACE
