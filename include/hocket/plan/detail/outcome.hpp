// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Checks at the end of all ranks: no signal is left over, no rank still reads a peer's memory, the result is right.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/plan/detail/traffic.hpp>

#include <algorithm>
#include <cstdint>

HOCKET_BEGIN_NAMESPACE
namespace plan::detail {

class outcome : public traffic {
 protected:
  using traffic::traffic;
  constexpr ~outcome() = default;

  constexpr bool signals_waited_for() {
    for (const signal_state& s : signals_) {
      if (!s.waited_for) return fail(violation::never_waited_for, s.sent) == progress::done;
    }
    return true;
  }

  constexpr bool ends_in_time() {
    for (const foreign_read& read : foreign_reads_) {
      if (any_lane_of(read.owner, [&](std::uint32_t lane) { return known_.knows(lane, read.when); })) continue;
      result_.memory_of = read.owner;
      result_.memory = {step_of(read.when).what.from, step_of(read.when).what.from_at};
      return fail(violation::reads_after_end, read.when) == progress::done;
    }
    return true;
  }

  constexpr void check_postcondition() {
    result_.same_on_all_ranks = true;
    result_.order = combination_order::fixed_tree;
    if (table_.collective.kind == collective_kind::barrier) return check_barrier();
    for (int rank = 0; rank < table_.ranks; ++rank) {
      for (std::uint32_t c = 0; c < table_.chunks(); ++c) {
        if (!holds(table_.collective.out_part(rank), rank, c)) continue;
        const violation v = check_result(rank, c, memory_.value(memory_.cell_of(rank, out(c))));
        if (v == violation::none) continue;
        result_.what = v;
        result_.memory_of = rank;
        result_.memory = out(c);
        return;
      }
    }
    if (table_.collective.reduces() && table_.shape.order < result_.order) result_.what = violation::order_overclaimed;
  }

  constexpr violation check_result(int rank, std::uint32_t c, std::uint32_t value) {
    if (value == none) return violation::wrong_result;
    if (!table_.collective.reduces()) return value == wanted(rank, c) ? violation::none : violation::wrong_result;
    if (values_.chunk_of(value) != c) return violation::wrong_result;
    result_.contribution = values_.missing(value);
    if (result_.contribution >= 0) return violation::missing_contribution;
    const bool has_others = table_.collective.kind == collective_kind::all_reduce && rank > 0;
    if (has_others && value == memory_.value(memory_.cell_of(0, out(c)))) return violation::none;
    if (has_others) result_.same_on_all_ranks = false;
    result_.order = std::max(result_.order, order_of(value));
    return violation::none;
  }

  constexpr combination_order order_of(std::uint32_t value) {
    if (!values_.in_rank_order(value)) return combination_order::any_order;
    return values_.in_fixed_tree(value) ? combination_order::fixed_tree : combination_order::rank_order;
  }

  constexpr std::uint32_t wanted(int rank, std::uint32_t c) const noexcept {
    const std::uint32_t chunks_per_block = table_.shape.chunks_per_block;
    const auto block = static_cast<int>(c / chunks_per_block);
    switch (table_.collective.kind) {
      case collective_kind::broadcast:
      case collective_kind::scatter: return values_.contribution(table_.collective.root, c);
      case collective_kind::all_to_all:
        return values_.contribution(block, static_cast<std::uint32_t>(rank) * chunks_per_block + c % chunks_per_block);
      default: return values_.contribution(block, c);
    }
  }

  /// Returns whether the buffer of `rank` that holds this part of the vector has chunk `c`.
  constexpr bool holds(buffer_part part, int rank, std::uint32_t c) const noexcept {
    const bool is_own = c / table_.shape.chunks_per_block == static_cast<std::uint32_t>(rank);
    return part == buffer_part::whole || (part == buffer_part::own_block && is_own);
  }

  constexpr void check_barrier() {
    for (int rank = 0; rank < table_.ranks; ++rank) {
      for (int peer = 0; peer < table_.ranks; ++peer) {
        if (peer == rank || knows_of_begin(rank, peer)) continue;
        result_.what = violation::barrier_leaks;
        result_.where.rank = rank;
        result_.other.rank = peer;
        return;
      }
    }
  }

  constexpr bool knows_of_begin(int rank, int peer) const {
    return any_lane_of(rank, [&](std::uint32_t lane) {
      return any_lane_of(peer, [&](std::uint32_t other) { return known_.knows(lane, {other, 0}); });
    });
  }
};

}  // namespace plan::detail
HOCKET_END_NAMESPACE
