// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The result of a proof: the plan is correct, and in which order it combines; or which steps are in conflict, and why.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/text.hpp>
#include <hocket/plan/action.hpp>
#include <hocket/plan/plan.hpp>
#include <hocket/plan/to_string.hpp>

#include <cstdint>
#include <string>

HOCKET_BEGIN_NAMESPACE
namespace plan {

/// The rule that a plan violates.
enum class violation : std::uint8_t {
  none,
  bad_rank_count,
  too_large,
  bad_shape,
  no_such_peer,
  no_such_place,
  malformed,
  overlap,
  wrong_length,
  writes_in,
  undeclared_peer_pointers,
  size_mismatch,
  unordered_channel,
  tag_reused,
  reads_nothing,
  repacked_slot,
  read_races_write,
  write_races_write,
  overwrites_read,
  overwrites_send,
  reads_before_begin,
  reads_after_end,
  counted_twice,
  mixed_chunks,
  never_sent,
  never_received,
  never_signalled,
  never_waited_for,
  deadlock,
  wrong_result,
  missing_contribution,
  order_overclaimed,
  symmetry_overclaimed,
  barrier_leaks
};

/// Returns the violated rule as text.
constexpr const char* to_string(violation what) noexcept {
  switch (what) {
    case violation::none: return "no violation";
    case violation::bad_rank_count: return "there must be at least one rank";
    case violation::too_large:
      return "the ranks have more chunks, lanes and actions together than a proof can number: prove it for fewer ranks";
    case violation::bad_shape: return "the shape needs at least one piece and one lane, and a root among the ranks";
    case violation::no_such_peer: return "the peer must be another rank that exists";
    case violation::no_such_place: return "the action reaches chunks or slots that this rank does not have";
    case violation::malformed: return "the regions or the count do not match the kind of action";
    case violation::overlap: return "source and destination overlap without being the same";
    case violation::wrong_length: return "the place is for another piece of a block, whose length may differ";
    case violation::writes_in: return "contributions must not be written";
    case violation::undeclared_peer_pointers:
      return "the plan uses peer pointers, but its shape does not set peer_pointers: set it to true";
    case violation::size_mismatch: return "the message that arrives here may have another length";
    case violation::unordered_channel: return "two messages on one channel have no order: use another channel";
    case violation::tag_reused:
      return "a tag may be used only once per pair of ranks, and a rank may push only once to each peer";
    case violation::reads_nothing: return "the step reads a place that was never written";
    case violation::repacked_slot:
      return "slots that are filled together must always be used together, from the same chunk on";
    case violation::read_races_write: return "the step reads what the other may still be writing";
    case violation::write_races_write: return "both steps write the same memory, in no order";
    case violation::overwrites_read: return "the step overwrites what the other may still be reading";
    case violation::overwrites_send: return "the step overwrites what may still be in transit to a peer";
    case violation::reads_before_begin:
      return "the step reads a peer's memory without having waited for a signal from that peer before";
    case violation::reads_after_end:
      return "the peer may return, and change what is read here, before this step is done";
    case violation::counted_twice: return "a contribution would be counted twice";
    case violation::mixed_chunks: return "different chunks would be combined";
    case violation::never_sent: return "no message arrives here, because the peer ends without sending one";
    case violation::never_received: return "the message is never received";
    case violation::never_signalled: return "no signal arrives here, because the peer ends without sending one";
    case violation::never_waited_for: return "no rank waits for this signal";
    case violation::deadlock: return "both steps wait forever";
    case violation::wrong_result: return "the result is not what the collective requires";
    case violation::missing_contribution: return "the result lacks a contribution";
    case violation::order_overclaimed:
      return "the plan's shape claims a stronger order of combination than the plan has: weaken shape().order";
    case violation::symmetry_overclaimed:
      return "the step is not the one that the plan's shape().symmetry implies from rank 0: claim no symmetry";
    case violation::barrier_leaks: return "a rank may leave the barrier before another rank has entered it";
  }
  return "unknown violation";
}

/// One step of one rank.
struct step {
  int rank = -1;
  int lane = -1;
  int position = -1;  ///< in the lane; -1: unknown
  action what{};      ///< the action

  constexpr bool known() const noexcept { return rank >= 0; }  ///< whether this names a step
  friend constexpr bool operator==(const step&, const step&) = default;
};

/// The result of `prove`.
struct proof {
  bool ok = false;                   ///< whether the plan is correct
  violation what = violation::none;  ///< the kind of error, if it is not
  int ranks = 0;

  // If `ok`:
  combination_order order = combination_order::any_order;  ///< the strongest that the plan may claim
  bool same_on_all_ranks = false;  ///< every rank evaluates the same expression, so all get the same bits

  // If not `ok`:
  step where;             ///< the step at fault
  step other;             ///< the step that it is in conflict with
  int memory_of = -1;     ///< the rank in whose memory they conflict, at `memory`
  place memory;           ///< the place of the conflict
  int contribution = -1;  ///< the rank whose contribution is missing or counted twice

  constexpr explicit operator bool() const noexcept { return ok; }

  /// Returns a readable text: what was wrong, where, and which other step is in conflict.
  std::string message() const;
};

namespace detail {

inline std::string text_of(const place& at) {
  return at.where == region::inbox ? "the inbox" : range_text(to_string(at.where), at.at, 1);
}

inline std::string text_of(const step& s) {
  std::string text = hocket::detail::concat({"rank ", s.rank});
  if (s.lane > 0) hocket::detail::append(text, {", lane ", s.lane});
  return hocket::detail::concat({text, ", step ", s.position});
}

}  // namespace detail

inline std::string proof::message() const {
  std::string text = hocket::detail::concat({"on ", ranks, ranks == 1 ? " rank: " : " ranks: "});
  if (ok) {
    text += order == combination_order::fixed_tree   ? "proven, can combine in the fixed tree"
            : order == combination_order::rank_order ? "proven, combines in rank order"
                                                     : "proven, combines in another order";
    return text + (same_on_all_ranks ? ", same bits on all ranks" : ", bits may differ between ranks");
  }
  if (where.known()) {
    text += detail::text_of(where);
    if (where.position >= 0) hocket::detail::append(text, {" (", to_string(where.what), ")"});
    text += ": ";
  }
  text += to_string(what);
  if (other.known())
    hocket::detail::append(text, {"; the other step: ", detail::text_of(other), " (", to_string(other.what), ")"});
  if (memory.where != region::none) {
    text += "; in " + detail::text_of(memory);
    if (memory_of >= 0) hocket::detail::append(text, {" of rank ", memory_of});
  }
  if (contribution >= 0) hocket::detail::append(text, {"; the contribution of rank ", contribution});
  return text;
}

}  // namespace plan
HOCKET_END_NAMESPACE
