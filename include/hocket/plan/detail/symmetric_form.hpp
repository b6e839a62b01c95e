// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Checks that the actions of all ranks correspond to those of rank 0 as the shape of the plan claims.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/plan/action.hpp>
#include <hocket/plan/detail/action_table.hpp>
#include <hocket/plan/symmetry.hpp>

#include <cstdint>

HOCKET_BEGIN_NAMESPACE
namespace plan::detail {

constexpr bool is_receive(const action& what) noexcept {
  return what.kind == action_kind::receive || what.kind == action_kind::receive_reduce;
}

/// An action that violates the claim, or `found == false`.
struct asymmetry {
  bool found = false;
  std::uint32_t lane = 0;
  std::uint32_t position = 0;
};

class symmetric_form {
 public:
  constexpr explicit symmetric_form(const action_table& table) noexcept : table_(table), claim_(table.shape.symmetry) {}

  constexpr asymmetry first() const {
    if (claim_ == rank_symmetry::none) return {};
    for (std::uint32_t lane = 0; lane < table_.lanes(); ++lane) {
      const std::uint32_t same = lane % table_.shape.lanes;
      for (std::uint32_t i = 0; i < table_.length(lane); ++i) {
        if (i >= table_.length(same) || !corresponds(lane, i)) return {true, lane, i};
      }
      if (table_.length(lane) < table_.length(same)) return {true, lane, table_.length(lane)};
      if (claim_ == rank_symmetry::exchange && !exchanges(lane)) return {true, lane, 0};
    }
    return {};
  }

 private:
  constexpr bool corresponds(std::uint32_t lane, std::uint32_t i) const {
    const action& mine = table_.at(lane, i);
    const action& other = table_.at(lane % table_.shape.lanes, i);
    const bool alike = mine.kind == other.kind && mine.join == other.join && mine.channel == other.channel &&
                       mine.tag == other.tag && mine.count == other.count &&
                       (mine.from == region::inbox) == (other.from == region::inbox);
    return alike && peers_correspond(table_.rank_of(lane), mine, other) && keeps_order(lane, i);
  }

  constexpr bool peers_correspond(int rank, const action& mine, const action& other) const noexcept {
    if (mine.kind == action_kind::copy || mine.kind == action_kind::load_reduce) return true;
    if (mine.peer == all_peers || other.peer == all_peers) return mine.peer == other.peer;
    switch (claim_) {
      case rank_symmetry::exclusive_or: return mine.peer == (other.peer ^ rank);
      case rank_symmetry::rotation: return mine.peer == rotated(other.peer, rank);
      case rank_symmetry::rotated_sends: return is_receive(mine) || mine.peer == rotated(other.peer, rank);
      case rank_symmetry::exchange:
      case rank_symmetry::none: break;
    }
    return mine.kind == action_kind::send || is_receive(mine);
  }

  constexpr int rotated(int peer, int by) const noexcept {
    return peer < table_.ranks - by ? peer + by : peer - (table_.ranks - by);
  }

  /// In `rotated_sends`, no send follows a receive, and nothing waits for a peer but the receives.
  constexpr bool keeps_order(std::uint32_t lane, std::uint32_t i) const {
    if (claim_ != rank_symmetry::rotated_sends) return true;
    const action& what = table_.at(lane, i);
    if (is_receive(what)) return !what.join;
    return what.kind == action_kind::send && !what.join && (i == 0 || !is_receive(table_.at(lane, i - 1)));
  }

  /// Returns whether the n-th send and the n-th receive of the lane have the same peer, for all n.
  constexpr bool exchanges(std::uint32_t lane) const {
    const std::uint32_t length = table_.length(lane);
    std::uint32_t received = 0;
    for (std::uint32_t sent = 0; sent < length; ++sent) {
      if (table_.at(lane, sent).kind != action_kind::send) continue;
      while (received < length && !is_receive(table_.at(lane, received))) ++received;
      if (received == length || table_.at(lane, received++).peer != table_.at(lane, sent).peer) return false;
    }
    while (received < length && !is_receive(table_.at(lane, received))) ++received;
    return received == length;
  }

  const action_table& table_;
  const rank_symmetry claim_;
};

}  // namespace plan::detail
HOCKET_END_NAMESPACE
