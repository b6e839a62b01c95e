// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Lowering pass: inserts sends and receives in an order that cannot deadlock, even if each blocks until its peer has
/// reached the matching action.
#pragma once

#include <hocket/core/error.hpp>
#include <hocket/schedule/schedule.hpp>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace plan::pipeline {
namespace detail {

/// Visits the ranks in turn and takes from each at most one action whose inputs are available. A send follows the
/// action, and its receive goes to the end of the peer's row at the same time. So all messages have one order, and
/// every row follows it.
class message_writer {
 public:
  constexpr explicit message_writer(const schedule& plan)
      : plan_(plan), made_(plan), next_(plan.rows.size(), 0), inputs_(plan.cells(), false),
        gradients_(inputs_.size(), false) {
    for (row& each : made_.rows) each.clear();
  }

  constexpr schedule write() {
    for (bool moved = true; moved;) {
      moved = false;
      for (int rank = 0; rank < plan_.ranks(); ++rank) moved = copy_next(rank) || moved;
    }
    for (int rank = 0; rank < plan_.ranks(); ++rank) {
      if (next_[static_cast<std::size_t>(rank)] < plan_.of(rank).size()) {
        raise(errc::invalid_argument,
              "add_messages: the schedule can't complete, because an action waits for an input that is never computed: "
              "call plan::pipeline::prove, which names the action and its rank");
      }
    }
    return made_;
  }

 private:
  constexpr bool copy_next(int rank) {
    std::size_t& next = next_[static_cast<std::size_t>(rank)];
    const row& actions = plan_.of(rank);
    if (next == actions.size()) return false;
    bool ready = true;
    for_each_task(actions[next], [&](const task& what) { ready = ready && is_ready(what); });
    if (!ready) return false;
    made_.of(rank).push_back(actions[next]);
    for_each_task(actions[next], [&](const task& what) { send_result(what, rank); });
    ++next;
    return true;
  }

  constexpr bool is_ready(const task& what) const {
    if (what.kind == task_kind::forward) return what.stage == 0 || inputs_[plan_.index(what.stage, what.microbatch)];
    if (what.kind == task_kind::input_gradient || what.kind == task_kind::backward) {
      return what.stage == plan_.stages() - 1 || gradients_[plan_.index(what.stage, what.microbatch)];
    }
    return true;
  }

  constexpr void send_result(const task& what, int rank) {
    const int m = what.microbatch;
    if (what.kind == task_kind::forward && what.stage + 1 < plan_.stages()) {
      deliver(rank, {task_kind::send_forward, what.stage, m}, {task_kind::receive_forward, what.stage + 1, m});
      inputs_[plan_.index(what.stage + 1, m)] = true;
    }
    if ((what.kind == task_kind::input_gradient || what.kind == task_kind::backward) && what.stage > 0) {
      deliver(rank, {task_kind::send_backward, what.stage, m}, {task_kind::receive_backward, what.stage - 1, m});
      gradients_[plan_.index(what.stage - 1, m)] = true;
    }
  }

  constexpr void deliver(int rank, const task& send, const task& receive) {
    const int peer = plan_.placement.rank_of(receive.stage, receive.microbatch);
    if (peer == rank) return;
    made_.of(rank).push_back({send, {}});
    made_.of(peer).push_back({receive, {}});
  }

  const schedule& plan_;
  schedule made_;
  std::vector<std::size_t> next_;  ///< by rank
  std::vector<char> inputs_;       ///< by stage and microbatch: the input is on the rank of the stage
  std::vector<char> gradients_;    ///< the same for the gradient of the stage's output
};

}  // namespace detail

/// Inserts SEND and RECV if neighbouring stages of a microbatch lie on two ranks. `prove(plan)` must hold.
constexpr schedule add_messages(const schedule& plan) { return detail::message_writer(plan).write(); }

}  // namespace plan::pipeline
HOCKET_END_NAMESPACE
