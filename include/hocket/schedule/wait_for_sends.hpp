// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Lowering pass (see schedule/lower/lower.hpp): inserts waits for sends before their buffers are reused. Earlier waits
/// would delay a rank that could compute; waits at the end of the row would take a buffer for every microbatch.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/schedule/schedule.hpp>
#include <hocket/schedule/schedule_action.hpp>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace plan::pipeline {
namespace detail {

/// Returns the action, WAIT_SEND, that waits until the message of `send` has been sent.
constexpr schedule_action wait_of(const task& send) noexcept {
  const task_kind waits =
      send.kind == task_kind::send_forward ? task_kind::wait_send_forward : task_kind::wait_send_backward;
  return {{waits, send.stage, send.microbatch}, {}};
}

/// Rewrites rows, one after the other. The messages that a stage sends in one direction use `buffers` buffers in turn.
class wait_writer {
 public:
  constexpr wait_writer(int stages, std::size_t buffers)
      : buffers_(buffers), unfinished_(2 * static_cast<std::size_t>(stages)) {}

  constexpr row write(const row& actions) {
    for (const schedule_action& each : actions) {
      for_each_task(each, [&](const task& what) { make_room(what); });
      made_.push_back(each);
      if (is_send(each.first.kind)) sends_of(each.first).push_back(made_.size() - 1);
    }
    wait_for_all();
    return std::exchange(made_, {});
  }

 private:
  /// Inserts waits before `what`, so that a buffer is free if `what` writes a result that its stage sends.
  constexpr void make_room(const task& what) {
    if (what.kind == task_kind::forward)
      leave_one_free(sends_of({task_kind::send_forward, what.stage, what.microbatch}));
    if (what.kind == task_kind::input_gradient || what.kind == task_kind::backward) {
      leave_one_free(sends_of({task_kind::send_backward, what.stage, what.microbatch}));
    }
  }

  constexpr void leave_one_free(std::vector<std::size_t>& sends) {
    while (sends.size() >= buffers_) {
      const schedule_action oldest = wait_of(made_[sends.front()].first);
      made_.push_back(oldest);
      sends.erase(sends.begin());
    }
  }

  constexpr void wait_for_all() {
    const std::size_t end = made_.size();
    for (std::size_t i = 0; i < end; ++i) {
      if (!is_send(made_[i].first.kind)) continue;
      for (const std::size_t unfinished : sends_of(made_[i].first)) {
        if (unfinished != i) continue;
        const schedule_action last = wait_of(made_[i].first);
        made_.push_back(last);
      }
    }
    for (std::size_t i = 0; i < end; ++i) {
      if (is_send(made_[i].first.kind)) sends_of(made_[i].first).clear();
    }
  }

  /// Returns the sends that have no wait yet, of the stage and direction of `send`, as positions in the new row.
  constexpr std::vector<std::size_t>& sends_of(const task& send) {
    return unfinished_[2 * static_cast<std::size_t>(send.stage) + (send.kind == task_kind::send_forward)];
  }

  std::size_t buffers_;
  std::vector<std::vector<std::size_t>> unfinished_;  ///< by stage and direction; empty between two rows
  row made_;
};

}  // namespace detail

/// Inserts WAIT_SEND for each send. Each stage has `buffers` buffers for the outputs that it sends, and as many for the
/// gradients. A send's wait comes right before the action that reuses the send's buffer; other waits end the row, so
/// that the next run finds all buffers free. With two buffers, a result is sent while the next one is computed.
constexpr schedule wait_for_sends(schedule plan, int buffers = 2) {
  if (buffers < 1) {
    raise(errc::invalid_argument,
          "wait_for_sends needs at least one buffer for what a stage sends; found " + std::to_string(buffers));
  }
  detail::wait_writer writer(plan.stages(), static_cast<std::size_t>(buffers));
  for (row& actions : plan.rows) actions = writer.write(actions);
  return plan;
}

}  // namespace plan::pipeline
HOCKET_END_NAMESPACE
