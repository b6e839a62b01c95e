// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// When the word of a signal may be reused for the next signal.
///
/// The engine on the host numbers its operations, and a signal carries the number. A stream cannot count: a graph
/// replays what was enqueued once with the same values. So a signal on a stream is a word that is initially 0. The
/// signaller sets it to 1, and the waiter resets it to 0 after its wait. The signaller must not set it for an operation
/// before the waiter has reset it in the last operation that used it. The plan shows whether that is certain:
///
/// - *early*: when the signaller ends, it knows that the waiter has waited (and reset the word).
/// - *late*: when the signaller signals, it knows that the waiter has begun.
///
/// Early and late signals use different words. Let S(m) and S(n), m < n, be consecutive uses of one word, from rank a
/// to rank b. If the word is for early signals, b's reset in m comes before the end of m on a, which comes before S(n),
/// because a's operations follow each other. If it is for late signals, b's reset in m comes before b's end of m, which
/// comes before b's begin of n, which comes before S(n). So a word is always 0 when it is set, whichever plans follow
/// each other, once or replayed, provided that all ranks run them in the same order, one after the other.
///
/// A signal that is neither is made early: at its end the waiter acknowledges all of a peer's signals, and the peer
/// waits for that acknowledgement at its own end. The acknowledgement itself is late, because it follows a signal.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/plan/action.hpp>
#include <hocket/plan/detail/action_table.hpp>
#include <hocket/plan/detail/clocks.hpp>
#include <hocket/plan/detail/index_map.hpp>
#include <hocket/plan/plan.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace plan {

enum class signal_class : std::uint8_t { early, late, acknowledged };

/// Classes of all signals of a proven plan, for one number of ranks. A plan with several lanes must have no signals.
class signal_reuse {
 public:
  template <algorithm Plan>
  signal_reuse(const Plan& of, int ranks) : signal_reuse(detail::tabulate(of, ranks)) {}

  /// True if every wait completes. Otherwise the classes are invalid, because the plan has no proof.
  bool complete() const noexcept { return complete_; }

  signal_class of(int from, int to, unsigned tag) const {
    for (const signal& each : between(from, to)) {
      if (each.tag == tag) return each.kind;
    }
    return signal_class::acknowledged;
  }

  /// Returns whether `to` must acknowledge, at its end, that it has waited for all signals of `from`.
  bool acknowledged(int from, int to) const {
    for (const signal& each : between(from, to)) {
      if (each.kind == signal_class::acknowledged) return true;
    }
    return false;
  }

 private:
  struct signal {
    unsigned tag = 0;
    signal_class kind = signal_class::acknowledged;
    std::uint32_t knowledge = 0;  ///< what the signaller knew: see `clocks::keep`
    std::uint32_t waited_at = detail::none;
  };

  struct pair_of_ranks {
    std::uint32_t from = 0;
    std::uint32_t to = 0;
    std::vector<signal> signals;
  };

  explicit signal_reuse(const detail::action_table& table) {
    if (table.ranks < 1) return;
    ranks_ = static_cast<std::size_t>(table.ranks);
    if (table.shape.lanes != 1) {
      complete_ = std::none_of(table.actions.begin(), table.actions.end(), [](const action& each) {
        return each.kind == action_kind::signal || each.kind == action_kind::wait;
      });
      return;
    }
    detail::clocks known(table.lanes());
    std::vector<std::uint32_t> positions(table.lanes());
    for (bool moved = true; moved;) {
      moved = false;
      for (std::uint32_t rank = 0; rank < table.lanes(); ++rank) {
        while (positions[rank] < table.length(rank) && advance(table, known, {rank, positions[rank]})) {
          ++positions[rank];
          moved = true;
        }
      }
    }
    complete_ = true;
    for (std::uint32_t rank = 0; rank < table.lanes(); ++rank) {
      complete_ = complete_ && positions[rank] == table.length(rank);
    }
    for (pair_of_ranks& pair : pairs_) {
      for (signal& each : pair.signals) {
        complete_ = complete_ && each.waited_at != detail::none;
        // `from` learned of the wait from a signal, which is an action after that wait: the word is already reset.
        if (complete_ && known.knows(pair.from, {pair.to, each.waited_at})) each.kind = signal_class::early;
      }
    }
  }

  bool advance(const detail::action_table& table, detail::clocks& known, detail::event now) {
    const action& what = table.at(now.lane, now.position);
    const int rank = static_cast<int>(now.lane);
    const int first = what.peer == all_peers ? 0 : what.peer;
    const int end = what.peer == all_peers ? table.ranks : what.peer + 1;
    if (what.kind == action_kind::wait) {
      for (int peer = first; peer < end; ++peer) {
        if (peer != rank && find(peer, rank, what.tag) == nullptr) return false;
      }
    }
    known.enter(now);
    const auto readers = static_cast<std::uint32_t>(what.peer == all_peers ? table.ranks - 1 : 1);
    const std::uint32_t kept = what.kind == action_kind::signal ? known.keep(now.lane, readers) : 0;
    for (int peer = first; peer < end; ++peer) {
      if (peer == rank) continue;
      if (what.kind == action_kind::signal) {
        const bool heard = known.knows(now.lane, {static_cast<std::uint32_t>(peer), 0});
        signals_for(rank, peer)
            .push_back({what.tag, heard ? signal_class::late : signal_class::acknowledged, kept, detail::none});
      } else if (what.kind == action_kind::wait) {
        signal& from = *find(peer, rank, what.tag);
        from.waited_at = now.position;
        known.learn(now.lane, from.knowledge);
      }
    }
    return true;
  }

  signal* find(int from, int to, unsigned tag) {
    for (signal& each : between(from, to)) {
      if (each.tag == tag) return &each;
    }
    return nullptr;
  }

  std::vector<signal>& signals_for(int from, int to) {
    std::uint32_t& index = index_[key(from, to)];
    if (index == detail::none) {
      index = static_cast<std::uint32_t>(pairs_.size());
      pairs_.push_back({static_cast<std::uint32_t>(from), static_cast<std::uint32_t>(to), {}});
    }
    return pairs_[index].signals;
  }
  std::span<signal> between(int from, int to) {
    const std::uint32_t index = index_.find(key(from, to));
    return index == detail::none ? std::span<signal>() : pairs_[index].signals;
  }
  std::span<const signal> between(int from, int to) const {
    const std::uint32_t index = index_.find(key(from, to));
    return index == detail::none ? std::span<const signal>() : pairs_[index].signals;
  }
  std::uint64_t key(int from, int to) const noexcept {
    return static_cast<std::uint64_t>(from) * ranks_ + static_cast<std::uint64_t>(to);
  }

  std::size_t ranks_ = 0;
  detail::index_map index_;           ///< of pairs with signals, in `pairs_`
  std::vector<pair_of_ranks> pairs_;  ///< only those with signals
  bool complete_ = false;
};

}  // namespace plan
HOCKET_END_NAMESPACE
