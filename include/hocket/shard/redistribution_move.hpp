// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Plans of redistributions: sequences of moves, with their costs.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/mesh/axis.hpp>
#include <hocket/shard/placement.hpp>

#include <array>
#include <cstddef>

HOCKET_BEGIN_NAMESPACE

/// The kind of a move of a redistribution.
enum class move_kind { slice, keep_on_first, pad_with_zeros, gather_to_all, exchange, reduce_to_all, reduce_to_slices };

constexpr const char* to_string(move_kind kind) noexcept {
  switch (kind) {
    case move_kind::slice: return "slice";
    case move_kind::keep_on_first: return "keep on first rank";
    case move_kind::pad_with_zeros: return "pad with zeros";
    case move_kind::gather_to_all: return "all_gather";
    case move_kind::exchange: return "all_to_all";
    case move_kind::reduce_to_all: return "all_reduce";
    case move_kind::reduce_to_slices: return "reduce_scatter";
  }
  return "unknown";
}

/// Returns whether a move needs a collective.
constexpr bool communicates(move_kind kind) noexcept { return kind > move_kind::pad_with_zeros; }

/// Parameters of the cost model for moves; the defaults are for processes on one host.
struct move_costs {
  double latency = 2e-6;            ///< seconds per round of messages; a collective among p ranks has log2 p
  double seconds_per_byte = 2e-10;  ///< received from other ranks
  double copy_per_byte = 5e-11;     ///< within a rank
};

/// One move: `after` are the placements after it; its collective is among the ranks along the axes `along`.
template <std::size_t Axes>
struct redistribution_move {
  move_kind kind = move_kind::slice;    ///< what is moved
  detail::axis_set along = 0;           ///< axes, as bits
  std::array<placement, Axes> after{};  ///< by axis
  std::size_t elements = 0;             ///< that all ranks along the axes together receive from other ranks
  double seconds = 0;                   ///< predicted by the cost model
  double counts = 0;                    ///< part of `seconds` for the all_reduce of the counts of means before the move
};

/// A sequence of moves: two per axis suffice, because every axis can be whole in between.
template <std::size_t Axes>
struct redistribution_plan {
  static constexpr std::size_t most = 2 * Axes + 1;     ///< capacity
  std::array<redistribution_move<Axes>, most> moves{};  ///< in order
  std::size_t size = 0;                                 ///< number of moves
  bool possible = false;                                ///< true if a plan was found
  bool search_abandoned = false;  ///< the search was abandoned before it found whether a plan is possible

  constexpr const redistribution_move<Axes>* begin() const noexcept { return moves.data(); }
  constexpr const redistribution_move<Axes>* end() const noexcept { return moves.data() + size; }

  /// Returns the number of collectives.
  constexpr std::size_t collectives() const noexcept {
    std::size_t count = 0;
    for (const auto& each : *this) count += (communicates(each.kind) ? 1U : 0U) + (each.counts > 0 ? 1U : 0U);
    return count;
  }
  /// Returns the time by the model.
  constexpr double seconds() const noexcept {
    double total = 0;
    for (const auto& each : *this) total += each.seconds;
    return total;
  }
};

HOCKET_END_NAMESPACE
