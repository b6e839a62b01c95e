// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The hand-over times of messages on the virtual clock, if messages stay with their sender until the receiver takes
/// them. The receiver takes a message when it has reached the receive, and is not in the middle of an action. So a
/// sender that needs its buffer again may wait for a receiver that computes.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/schedule/costs.hpp>
#include <hocket/schedule/messages.hpp>
#include <hocket/schedule/schedule.hpp>
#include <hocket/schedule/schedule_action.hpp>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace plan::pipeline::detail {

/// Messages by the task that sends them. Ranks are advanced in any order, so that their clocks differ: what a rank does
/// at some time is known only when its clock has passed that time.
class hand_overs {
 public:
  constexpr hand_overs(const schedule& plan, const costs& cost)
      : plan_(plan), cost_(cost), sent_(2 * plan.cells(), never), asked_(sent_.size(), never),
        ranks_(plan.rows.size()) {}

  /// Returns when `what` may begin, or `never` if that is not known yet. `inputs` is the time at which its inputs would
  /// be available if sends completed immediately.
  constexpr double begin_of(const task& what, int rank, double inputs) {
    if (what.kind == task_kind::wait_send_forward || what.kind == task_kind::wait_send_backward) {
      const task_kind sends =
          what.kind == task_kind::wait_send_forward ? task_kind::send_forward : task_kind::send_backward;
      return is_taken({sends, what.stage, what.microbatch}, rank);
    }
    if (inputs == never) return never;
    const task forward{task_kind::send_forward, what.stage - 1, what.microbatch};
    const task backward{task_kind::send_backward, what.stage + 1, what.microbatch};
    if (what.kind == task_kind::forward && comes_from_another(forward, rank)) return arrival(forward);
    const bool is_gradient = what.kind == task_kind::input_gradient || what.kind == task_kind::backward;
    if (!is_gradient || !comes_from_another(backward, rank)) return inputs;
    const double came = arrival(backward);
    return came == never ? never : std::max(inputs, came);
  }

  /// Records the times of an action of `rank`; `is_last`: it is the last of its row.
  constexpr void note(const schedule_action& what, int rank, double begin, double end, bool is_last) {
    rank_state& at = state_of(rank);
    if (end > begin) at.busy.push_back({begin, end});
    at.now = is_last ? latest_time : end;
    at.granted = false;
    at.wants = never;
    const task& message = what.first;
    if (is_send(message.kind)) sent_[place(message)] = end;
    if (message.kind == task_kind::receive_forward) {
      asked_[place({task_kind::send_forward, message.stage - 1, message.microbatch})] = end;
    } else if (message.kind == task_kind::receive_backward) {
      asked_[place({task_kind::send_backward, message.stage + 1, message.microbatch})] = end;
    }
  }

  /// Call when no rank can continue. The receiver of the earliest message that a rank waits for is idle then, and takes
  /// it. Returns false if there is no such message.
  constexpr bool grant_earliest() {
    rank_state* earliest = nullptr;
    for (rank_state& each : ranks_) {
      if (each.wants == never || each.granted) continue;
      if (earliest == nullptr || each.wants < earliest->wants) earliest = &each;
    }
    if (earliest != nullptr) earliest->granted = true;
    return earliest != nullptr;
  }

 private:
  static constexpr double never = -1;
  /// Not infinity: with -ffast-math, compilers assume that no value is infinite.
  static constexpr double latest_time = std::numeric_limits<double>::max();

  struct interval {
    double begin;
    double end;
  };
  struct rank_state {
    std::vector<interval> busy;
    double now = 0;        ///< the actions of the rank are known up to this time
    double wants = never;  ///< when the message that its WAIT_SEND waits for could be taken
    bool granted = false;  ///< the message is taken at that time
  };

  constexpr rank_state& state_of(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }

  constexpr std::size_t place(const task& send) const {
    const std::size_t at = plan_.index(send.stage, send.microbatch);
    return send.kind == task_kind::send_forward ? at : at + plan_.cells();
  }

  constexpr bool comes_from_another(const task& send, int rank) const {
    if (send.stage < 0 || send.stage >= plan_.stages()) return false;
    return plan_.placement.rank_of(send.stage, send.microbatch) != rank;
  }

  /// Returns when a message can be at its receiver, or `never` if the time of one of its ends is not known yet.
  constexpr double arrival(const task& send) const {
    const std::size_t at = place(send);
    if (sent_[at] == never || asked_[at] == never) return never;
    const int sender = plan_.placement.rank_of(send.stage, send.microbatch);
    return std::max(sent_[at], asked_[at]) + cost_.hop(sender, peer_of(plan_, send));
  }

  constexpr double is_taken(const task& send, int rank) {
    const double came = arrival(send);
    if (came == never) return never;
    rank_state& own = state_of(rank);
    own.wants = came;
    if (own.granted) return came;
    const rank_state& other = state_of(peer_of(plan_, send));
    if (other.now < came) return never;
    const auto found = std::lower_bound(other.busy.begin(), other.busy.end(), came,
                                        [](const interval& each, double time) { return each.end < time; });
    return found != other.busy.end() && found->begin < came ? found->end : came;
  }

  const schedule& plan_;
  const costs& cost_;
  std::vector<double> sent_;   ///< by place: when it was sent
  std::vector<double> asked_;  ///< by place: when its receive was reached
  std::vector<rank_state> ranks_;
};

}  // namespace plan::pipeline::detail
HOCKET_END_NAMESPACE
