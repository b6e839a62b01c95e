// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// State of the peers during teardown: which ranks still have peers' memory mapped, which have unmapped it, and which
/// have ended and will never report. Each query is for one peer, so that an ended rank does not hide the others.
#pragma once

#include <hocket/core/config.hpp>

#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace cuda_ipc {

/// State of a rank's mappings of its peers' memory.
enum class mapping_state {
  mapped,    ///< the rank may have some of it mapped
  unmapped,  ///< the rank has reported that it has unmapped all
  ended      ///< the rank's process has ended, and its mappings with it
};

template <class Peers>
concept teardown_peers = requires(Peers& peers, int peer) {
  { peers.rank() } -> std::convertible_to<int>;
  { peers.size() } -> std::convertible_to<int>;
  /// Reports to all ranks that this rank has unmapped everything. Does not wait.
  { peers.announce() };
  /// Called repeatedly: also advances whatever needs this thread's help.
  { peers.mapping_state_of(peer) } -> std::same_as<mapping_state>;
};

/// `teardown_peers` by one word per rank, initially 0, in memory that all ranks of the host see, and by a callback.
class teardown_words {
 public:
  using word = std::atomic<std::uint32_t>;

  /// Borrows the words, in the order of ranks. `has_ended(peer)` may cost a system call.
  teardown_words(int rank, std::vector<word*> words, std::function<bool(int)> has_ended)
      : rank_(rank), words_(std::move(words)), has_ended_(std::move(has_ended)) {}

  int rank() const noexcept { return rank_; }
  int size() const noexcept { return static_cast<int>(words_.size()); }

  void announce() noexcept { of(rank_).store(1, std::memory_order_release); }

  mapping_state mapping_state_of(int peer) {
    if (has_announced(peer)) return mapping_state::unmapped;
    if (!has_ended_(peer)) return mapping_state::mapped;
    return has_announced(peer) ? mapping_state::unmapped
                               : mapping_state::ended;  // it may have announced just before it ended
  }

 private:
  word& of(int rank) noexcept { return *words_[static_cast<std::size_t>(rank)]; }
  bool has_announced(int peer) noexcept { return of(peer).load(std::memory_order_acquire) != 0; }

  int rank_;
  std::vector<word*> words_;
  std::function<bool(int)> has_ended_;
};

}  // namespace cuda_ipc
HOCKET_END_NAMESPACE
