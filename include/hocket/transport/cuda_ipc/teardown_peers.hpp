// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// How ranks that go apart know where the others are: who still has memory of peers mapped, who has not any more, and who
/// has ended and never will say. Each question is asked for one peer, so that one that is dead does not hide the others.
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

/// How a rank stands to the memory of its peers.
enum class mapping_state {
  mapped,    ///< it may have some of it mapped
  unmapped,  ///< it has said that it has none
  ended      ///< its process is gone, and its mappings with it
};

template <class Peers>
concept teardown_peers = requires(Peers& peers, int peer) {
  { peers.rank() } -> std::convertible_to<int>;
  { peers.size() } -> std::convertible_to<int>;
  /// Tells all that this rank has unmapped everything. Does not wait.
  { peers.announce() };
  /// Asked for again and again: does what progress needs of this thread.
  { peers.mapping_state_of(peer) } -> std::same_as<mapping_state>;
};

/// By a word per rank, zero at first, in memory that all ranks of the host see, and whatever knows of ended processes.
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
                               : mapping_state::ended;  // it may have done so just before its end
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
