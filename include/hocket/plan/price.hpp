// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The cost of a plan on a machine, without running it. The time is that of the virtual clock of plan/trace.hpp: a sum
/// over one rank's actions would be wrong if ranks wait for each other, as they do in every pipelined tree.
///
/// With only latency a, seconds_per_byte b and reduce_seconds_per_byte g set, the textbook's formulas hold exactly:
/// ring all-reduce of n bytes over p ranks with p | n takes 2(p-1)(a + n/p b) + (p-1) n/p g, recursive doubling over
/// p = 2^k ranks k (a + n b + n g), a binomial broadcast ceil(log2 p)(a + n b).
///
/// `price` is a pure function of its arguments, so ranks may use it to choose an algorithm. If every cost grows by one
/// factor, so does the price. If one cost grows, a plan in which no two lanes or senders compete for a port or a
/// processor never gets cheaper; if they compete, another order of service may make it cheaper, as in any queue.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/plan/action.hpp>
#include <hocket/plan/cost_model.hpp>
#include <hocket/plan/layout.hpp>
#include <hocket/plan/plan.hpp>
#include <hocket/plan/trace.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace plan {

/// The result of `price`. Counts do not depend on the cost model.
struct cost {
  double seconds = 0;                ///< from the start of all ranks until the last rank is done
  std::uint64_t actions = 0;         ///< of all ranks
  std::uint64_t messages = 0;        ///< of all ranks
  std::uint64_t bytes = 0;           ///< moved between ranks by messages, loads and pushes
  std::uint64_t messages_most = 0;   ///< sent by one rank, at most
  std::uint64_t bytes_out_most = 0;  ///< sent or pushed by one rank, at most
  std::uint64_t bytes_in_most = 0;   ///< received or loaded by one rank, or pushed to it, at most

  friend constexpr bool operator==(const cost&, const cost&) = default;
};

namespace detail {

/// An observer of `trace` that counts actions, messages and bytes.
class cost_counter {
 public:
  explicit constexpr cost_counter(int ranks) : ranks_(ranks), totals_(static_cast<std::size_t>(ranks)) {}

  constexpr void performed(const timed_action& step) {
    total& mine = totals_[static_cast<std::size_t>(step.rank)];
    ++actions_;
    seconds_ = std::max(seconds_, step.end);
    const auto others = static_cast<std::uint64_t>(ranks_ - 1);
    switch (step.what.kind) {
      case action_kind::send:
        ++mine.messages;
        mine.out += step.bytes;
        break;
      case action_kind::receive:
      case action_kind::receive_reduce: mine.in += step.bytes; break;
      case action_kind::load: mine.in += step.what.peer == step.rank ? 0 : step.bytes; break;
      case action_kind::load_reduce: mine.in += step.what.from == region::inbox ? 0 : others * step.bytes; break;
      case action_kind::push: count_push(step); break;
      case action_kind::copy:
      case action_kind::signal:
      case action_kind::wait: break;
    }
  }

  constexpr void transferred(const timed_transfer&) const noexcept {}

  constexpr cost result() const {
    cost found{.seconds = seconds_, .actions = actions_};
    for (const total& rank : totals_) {
      found.messages += rank.messages;
      found.bytes += rank.in;
      found.messages_most = std::max(found.messages_most, rank.messages);
      found.bytes_out_most = std::max(found.bytes_out_most, rank.out);
      found.bytes_in_most = std::max(found.bytes_in_most, rank.in);
    }
    return found;
  }

 private:
  struct total {
    std::uint64_t messages = 0;
    std::uint64_t out = 0;
    std::uint64_t in = 0;
  };

  constexpr void count_push(const timed_action& step) {
    for (int peer = 0; peer < ranks_; ++peer) {
      if (peer == step.rank || (step.what.peer != all_peers && step.what.peer != peer)) continue;
      totals_[static_cast<std::size_t>(step.rank)].out += step.bytes;
      totals_[static_cast<std::size_t>(peer)].in += step.bytes;
    }
  }

  int ranks_;
  double seconds_ = 0;
  std::uint64_t actions_ = 0;
  std::vector<total> totals_;
};

}  // namespace detail

/// Returns the cost of `plan` over `ranks` ranks for a vector with the layout `where` and elements of `element_bytes`
/// bytes. Raises errc::invalid_argument if the plan does not complete, if it names peers or chunks that do not exist,
/// if `ranks` is less than 1, and if the model is invalid.
template <algorithm Plan>
constexpr cost price(const Plan& plan, int ranks, const layout& where, std::size_t element_bytes,
                     const cost_model& model) {
  detail::check_simulation_arguments(plan.name(), ranks, model);
  detail::cost_counter counter(ranks);
  trace(plan, ranks, where, element_bytes, model, counter);
  return counter.result();
}

/// Returns the cost for a vector of `bytes` bytes in all blocks together.
template <algorithm Plan>
constexpr cost price(const Plan& plan, int ranks, std::size_t bytes, const cost_model& model) {
  detail::check_simulation_arguments(plan.name(), ranks, model);
  return price(plan, ranks, layout_of(plan, ranks, bytes), 1, model);
}

}  // namespace plan
HOCKET_END_NAMESPACE
