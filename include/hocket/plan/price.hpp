// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The cost of a plan on a machine, without running it. The time is that of the virtual clock of plan/trace.hpp: a sum
/// over one rank's actions would be wrong if ranks wait for each other, as they do in every pipelined tree. If all ranks
/// do the same with other peers, the clock runs for one of them, so that a price for a million ranks takes a moment.
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
#include <hocket/core/error.hpp>
#include <hocket/core/text.hpp>
#include <hocket/plan/action.hpp>
#include <hocket/plan/cost_model.hpp>
#include <hocket/plan/detail/rank_classes.hpp>
#include <hocket/plan/detail/saturated.hpp>
#include <hocket/plan/layout.hpp>
#include <hocket/plan/plan.hpp>
#include <hocket/plan/proof_size.hpp>
#include <hocket/plan/symmetry.hpp>
#include <hocket/plan/trace.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace plan {

/// How the members of a `cost` are to be read.
enum class cost_bound : std::uint8_t {
  exact,
  at_most,          ///< the cost of a vector that is rounded up until all chunks have the same length
  at_least,         ///< the time if all ranks keep a common pace; counts are exact
  at_least_of_some  ///< the time for which the ports and the processor of some ranks are busy; counts of these ranks
};

/// The result of `price`. Counts do not depend on the cost model. Those that do not fit in 64 bits are the largest
/// number that does.
struct cost {
  double seconds = 0;                ///< from the start of all ranks until the last rank is done
  std::uint64_t actions = 0;         ///< of all ranks
  std::uint64_t messages = 0;        ///< of all ranks
  std::uint64_t bytes = 0;           ///< moved between ranks by messages, loads and pushes
  std::uint64_t messages_most = 0;   ///< sent by one rank, at most
  std::uint64_t bytes_out_most = 0;  ///< sent or pushed by one rank, at most
  std::uint64_t bytes_in_most = 0;   ///< received or loaded by one rank, or pushed to it, at most
  cost_bound bound = cost_bound::exact;

  friend constexpr bool operator==(const cost&, const cost&) = default;
};

/// The most actions that `price` looks at unless the caller passes another number. They take some seconds.
inline constexpr std::uint64_t most_priced_actions = 20'000'000;

namespace detail {

/// An observer of `trace` that counts actions, messages and bytes.
class cost_counter {
 public:
  constexpr cost_counter(int ranks, rank_classes classes)
      : others_(static_cast<std::uint64_t>(ranks - 1)), classes_(classes), totals_(classes.count()) {}

  constexpr void performed(const timed_action& step) {
    seconds_ = std::max(seconds_, step.end);
    count(step.rank, step.what, step.bytes);
  }

  constexpr void transferred(const timed_transfer&) const noexcept {}

  /// Counts one action of `rank` that moves `bytes` bytes.
  constexpr void count(int rank, const action& what, std::uint64_t bytes) {
    total& mine = totals_[classes_.index(rank)];
    ++actions_;
    switch (what.kind) {
      case action_kind::send:
        ++mine.messages;
        add(mine.out, bytes);
        break;
      case action_kind::receive:
      case action_kind::receive_reduce: add(mine.in, bytes); break;
      case action_kind::load: add(mine.in, what.peer == rank ? 0 : bytes); break;
      case action_kind::load_reduce:
        add(mine.in, what.from == region::inbox ? 0 : saturated_product(others_, bytes));
        break;
      case action_kind::push: count_push(mine, what, bytes); break;
      case action_kind::copy:
      case action_kind::signal:
      case action_kind::wait: break;
    }
  }

  constexpr cost result() const {
    // Rank 0 stands for all ranks, or each rank is there itself.
    const std::uint64_t each = classes_.rank_0_for_all() ? others_ + 1 : 1;
    cost found{.seconds = seconds_, .actions = saturated_product(each, actions_)};
    for (const total& rank : totals_) {
      const std::uint64_t in = saturated_sum(rank.in, pushed_to_all_ - rank.pushed_to_all);
      add(found.messages, saturated_product(each, rank.messages));
      add(found.bytes, saturated_product(each, in));
      found.messages_most = std::max(found.messages_most, rank.messages);
      found.bytes_out_most = std::max(found.bytes_out_most, rank.out);
      found.bytes_in_most = std::max(found.bytes_in_most, in);
    }
    return found;
  }

 private:
  struct total {
    std::uint64_t messages = 0;
    std::uint64_t out = 0;
    std::uint64_t in = 0;
    std::uint64_t pushed_to_all = 0;  ///< part of `pushed_to_all_` that this rank has pushed
  };

  static constexpr void add(std::uint64_t& to, std::uint64_t more) noexcept { to = saturated_sum(to, more); }

  constexpr void count_push(total& mine, const action& what, std::uint64_t bytes) {
    const std::uint64_t out = what.peer == all_peers ? saturated_product(others_, bytes) : bytes;
    add(mine.out, out);
    if (classes_.rank_0_for_all()) return add(mine.in, out);
    if (what.peer != all_peers) return add(totals_[classes_.index(what.peer)].in, bytes);
    add(pushed_to_all_, bytes);
    add(mine.pushed_to_all, bytes);
  }

  std::uint64_t others_;
  rank_classes classes_;
  double seconds_ = 0;
  std::uint64_t actions_ = 0;
  std::uint64_t pushed_to_all_ = 0;  ///< by all ranks; every rank gets it except its own part
  std::vector<total> totals_;
};

/// The time for which one rank's ports and processor are busy: the least that a plan can take.
class busy_time {
 public:
  constexpr busy_time(const cost_model& model, int ranks) : model_(model), ranks_(ranks) {}

  constexpr void add(const action& what, double bytes) {
    processor_ += model_.processor(what, bytes, ranks_);
    const bool receives = what.kind == action_kind::receive || what.kind == action_kind::receive_reduce;
    if (what.kind != action_kind::send && !receives) return;
    double& port = receives ? in_ : out_;
    port += model_.port(bytes);
    // The last message has arrived when its latency is over, which may be later than when the port is free again.
    rest_ = model_.message(0) - model_.port(0);
  }

  constexpr double seconds() const { return std::max(processor_, std::max(in_, out_) + rest_); }

 private:
  const cost_model& model_;
  int ranks_;
  double in_ = 0;
  double out_ = 0;
  double processor_ = 0;
  double rest_ = 0;
};

/// The arguments of a price, without the plan.
struct price_request {
  int ranks;
  const layout& where;
  std::size_t element_bytes;
  const cost_model& model;
  std::uint64_t most_actions;

  constexpr bool has_equal_chunks() const noexcept {
    return !where.has_given_lengths() && where.block_size() % where.chunks_per_block() == 0;
  }
};

/// Simulates all ranks, or rank 0 for all of them.
template <algorithm Plan>
constexpr cost simulated_price(const Plan& plan, const price_request& asked, const layout& where, rank_symmetry as) {
  cost_counter counter(asked.ranks, {asked.ranks, as});
  plan_simulator simulation(plan, asked.ranks, where, asked.element_bytes, asked.model, counter, as);
  simulation.run();
  return counter.result();
}

[[noreturn]] inline void raise_long_rank(const char* plan, int ranks, std::uint64_t actions, std::uint64_t most) {
  raise(errc::invalid_argument, hocket::detail::concat({"plan '", plan, "' over ", ranks, " ranks has ", actions,
                                                        " actions on one rank, and its price may look at ", most,
                                                        " at most: price it for fewer ranks, or allow more actions"}));
}

template <algorithm Plan>
constexpr void require_short_rank(const Plan& plan, const price_request& asked, int rank) {
  const std::uint64_t actions = actions_of_rank(plan, asked.ranks, rank, plan.shape(asked.ranks).lanes);
  if (actions > asked.most_actions) raise_long_rank(plan.name(), asked.ranks, actions, asked.most_actions);
}

/// Prices a symmetric plan by rank 0. A vector with unequal chunks is rounded up.
template <algorithm Plan>
constexpr cost price_of_rank_0(const Plan& plan, const price_request& asked, rank_symmetry as) {
  require_short_rank(plan, asked, 0);
  const layout& where = asked.where;
  const layout even(where.largest_chunk() * where.chunks_per_block(), where.blocks(), where.chunks_per_block());
  cost found = simulated_price(plan, asked, even, as);
  found.bound = as == rank_symmetry::exchange ? cost_bound::at_least
                : asked.has_equal_chunks()    ? cost_bound::exact
                                              : cost_bound::at_most;
  return found;
}

/// Looks at some ranks, and at each without the others.
template <algorithm Plan>
constexpr cost least_price(const Plan& plan, const price_request& asked, std::uint64_t actions) {
  const int ranks = asked.ranks;
  const unsigned lanes = plan.shape(ranks).lanes;
  cost_counter counter(ranks, {ranks, rank_symmetry::none});
  double seconds = 0;
  int before = -1;
  for (const int rank : {0, 1, ranks / 2, ranks - 1}) {
    if (rank <= before || rank >= ranks) continue;
    before = rank;
    require_short_rank(plan, asked, rank);
    busy_time busy(asked.model, ranks);
    for (unsigned lane = 0; lane < lanes; ++lane) {
      const unsigned length = plan.length(ranks, rank, lane);
      for (unsigned i = 0; i < length; ++i) {
        const action what = plan.at(ranks, rank, lane, i);
        const std::uint64_t bytes = asked.where.chunks(what.chunk, what.count).size * asked.element_bytes;
        busy.add(what, static_cast<double>(bytes));
        counter.count(rank, what, bytes);
      }
    }
    seconds = std::max(seconds, busy.seconds());
  }
  cost found = counter.result();
  found.seconds = seconds;
  found.actions = actions;
  found.bound = cost_bound::at_least_of_some;
  return found;
}

constexpr void check_vector_size(const layout& where, std::size_t element_bytes) {
  constexpr std::uint64_t most = std::uint64_t{1} << 62;
  const std::uint64_t block = saturated_product(where.block_size(), element_bytes);
  if (saturated_product(block, where.blocks()) <= most) return;
  raise(errc::invalid_argument, "the vector has " + std::to_string(where.blocks()) + " blocks of " +
                                    std::to_string(where.block_size()) + " elements of " +
                                    std::to_string(element_bytes) + " bytes; it must have at most 2^62 bytes");
}

}  // namespace detail

/// Returns the cost of `plan` over `ranks` ranks for a vector with the layout `where` and elements of `element_bytes`
/// bytes.
///
/// Looks at no more than `most_actions` actions:
/// - If the plan is symmetric (see plan/symmetry.hpp) and all chunks have the same length, rank 0 gives the exact price.
/// - Otherwise all ranks are simulated if they have no more actions than that together. The price is exact.
/// - Otherwise a symmetric plan is priced by rank 0 for a vector that is rounded up until all chunks have the same
///   length (`cost_bound::at_most`), or as if all ranks kept a common pace if it claims `exchange` (`at_least`).
/// - Otherwise the price is the longest time for which ports and processor of some ranks are busy (`at_least_of_some`).
///
/// Raises errc::invalid_argument if the plan does not complete, if it names peers or chunks that do not exist, if `ranks`
/// is less than 1 or more than `most_ranks`, if the vector has more than 2^62 bytes, if one rank alone has more than
/// `most_actions` actions, and if the model is invalid.
template <algorithm Plan>
constexpr cost price(const Plan& plan, int ranks, const layout& where, std::size_t element_bytes,
                     const cost_model& model, std::uint64_t most_actions = most_priced_actions) {
  detail::check_simulation_arguments(plan.name(), ranks, model);
  detail::check_vector_size(where, element_bytes);
  const detail::price_request asked{ranks, where, element_bytes, model, most_actions};
  const rank_symmetry claimed = plan.shape(ranks).symmetry;
  const bool symmetric = claimed != rank_symmetry::none && !where.has_given_lengths();
  if (symmetric && claimed != rank_symmetry::exchange && asked.has_equal_chunks())
    return detail::price_of_rank_0(plan, asked, claimed);
  const std::uint64_t actions = action_count(plan, ranks);
  if (actions <= most_actions) return detail::simulated_price(plan, asked, where, rank_symmetry::none);
  if (symmetric && (claimed != rank_symmetry::exchange || asked.has_equal_chunks()))
    return detail::price_of_rank_0(plan, asked, claimed);
  return detail::least_price(plan, asked, actions);
}

/// Returns the cost for a vector of `bytes` bytes in all blocks together.
template <algorithm Plan>
constexpr cost price(const Plan& plan, int ranks, std::size_t bytes, const cost_model& model,
                     std::uint64_t most_actions = most_priced_actions) {
  detail::check_simulation_arguments(plan.name(), ranks, model);
  return price(plan, ranks, layout_of(plan, ranks, bytes), 1, model, most_actions);
}

}  // namespace plan
HOCKET_END_NAMESPACE
