// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// A rank's row of a schedule, compiled for execution: for each task its stage and buffers, the message and its peer,
/// and the requests to wait for. Execution needs no lookups.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/pipeline/buffers.hpp>
#include <hocket/pipeline/tags.hpp>
#include <hocket/schedule/messages.hpp>
#include <hocket/schedule/schedule.hpp>
#include <hocket/schedule/schedule_trace.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace pipeline::detail {

inline constexpr std::size_t none = std::numeric_limits<std::size_t>::max();

/// One task, ready to execute. Buffers and requests are given by number.
struct instruction {
  plan::pipeline::task what;
  std::size_t step = 0;   ///< position of its action in the row
  std::size_t stage = 0;  ///< index among the stages of the rank
  std::size_t in = none;
  std::size_t out = none;
  std::size_t out_gradient = none;
  std::size_t in_gradient = none;
  std::size_t message = none;            ///< the buffer to send, or to receive into
  std::size_t request = none;            ///< started by a send or receive; other tasks wait for it first
  std::size_t request_of_second = none;  ///< of the first half of a pair: the request that the second half waits for
  int peer = -1;
  std::uint32_t tag = 0;
  bool forgets = false;  ///< a forward pass whose activations are recomputed later
};

/// A compiled row.
struct program {
  std::vector<instruction> instructions;
  std::vector<lifetime> lifetimes;  ///< of the buffers
  std::size_t requests = 0;         ///< maximum number of messages in flight
};

/// Compiles a row. Activations cross boundaries forward, gradients backward.
class compiler {
 public:
  /// `plan` must contain its messages. `bytes` has the size of what crosses each boundary per microbatch. `tags_apart`:
  /// whether the messages of a step must have different tags.
  compiler(const plan::pipeline::schedule& plan, int rank, const std::vector<int>& stages,
           const std::vector<std::size_t>& bytes, bool tags_apart)
      : plan_(plan), rank_(rank), stages_(stages), bytes_(bytes), tags_apart_(tags_apart),
        numbers_(kinds * bytes.size() * static_cast<std::size_t>(plan.microbatches), none) {}

  program compile() {
    const auto& row = plan_.of(rank_);
    recomputed_ = plan::pipeline::detail::recomputed_forwards(plan_, row);
    for (step_ = 0; step_ < row.size(); ++step_) {
      plan::pipeline::for_each_task(row[step_],
                                    [&](const task& what) { made_.instructions.push_back(translate(what)); });
      if (row[step_].is_pair()) begin_together(*(made_.instructions.end() - 2), made_.instructions.back());
    }
    return std::move(made_);
  }

 private:
  using task_kind = plan::pipeline::task_kind;
  using task = plan::pipeline::task;

  /// Buffers and requests that have a number for each boundary and microbatch.
  enum kind : std::size_t { activation, gradient, sent_forward, received_forward, sent_backward, received_backward };
  static constexpr std::size_t kinds = 6;

  /// A pair is one action: its first half also waits for the request of the second.
  static void begin_together(instruction& first, instruction& second) {
    first.request_of_second = std::exchange(second.request, none);
  }

  instruction translate(const task& what) {
    instruction made;
    made.what = what;
    made.step = step_;
    made.stage =
        static_cast<std::size_t>(std::lower_bound(stages_.begin(), stages_.end(), what.stage) - stages_.begin());
    const int before = what.stage - 1;  // the boundaries on both sides of the stage
    const int after = what.stage;
    const int m = what.microbatch;
    switch (what.kind) {
      case task_kind::forward:
        made.in = buffer(activation, before, m);
        made.out = buffer(activation, after, m);
        made.request = release_request(received_forward, before, m);
        made.forgets = !recomputed_.empty() && recomputed_[plan_.index(what.stage, m)];
        break;
      case task_kind::input_gradient:
      case task_kind::backward:
        made.in = buffer(activation, before, m);
        made.in_gradient = buffer(gradient, before, m);
        made.out_gradient = buffer(gradient, after, m);
        made.request = release_request(received_backward, after, m);
        break;
      case task_kind::recompute: made.in = buffer(activation, before, m); break;
      case task_kind::weight_gradient:
        made.in = buffer(activation, before, m);
        made.out_gradient = buffer(gradient, after, m);
        break;
      case task_kind::send_forward: start(made, activation, sent_forward, after); break;
      case task_kind::receive_forward: start(made, activation, received_forward, before); break;
      case task_kind::send_backward: start(made, gradient, sent_backward, before); break;
      case task_kind::receive_backward: start(made, gradient, received_backward, after); break;
      case task_kind::wait_send_forward:
        buffer(activation, after, m);  // needed until here
        made.request = release_request(sent_forward, after, m);
        break;
      case task_kind::wait_send_backward:
        buffer(gradient, before, m);
        made.request = release_request(sent_backward, before, m);
        break;
      default: break;
    }
    return made;
  }

  void start(instruction& made, kind moved, kind request, int boundary) {
    const int m = made.what.microbatch;
    made.message = buffer(moved, boundary, m);
    made.request = number(request, boundary, m) = free_request();
    made.peer = plan::pipeline::peer_of(plan_, made.what);
    made.tag = tags_apart_ ? crossing_of(plan_, made.what) : 0;
  }

  std::size_t free_request() {
    if (free_requests_.empty()) return made_.requests++;
    const std::size_t last = free_requests_.back();
    free_requests_.pop_back();
    return last;
  }

  /// Returns the buffer of a boundary, `none` at the ends of the pipeline. Extends its lifetime to the current step.
  std::size_t buffer(kind what, int boundary, int microbatch) {
    if (boundary < 0 || boundary + 1 >= plan_.stages()) return none;
    std::size_t& found = number(what, boundary, microbatch);
    if (found == none) {
      found = made_.lifetimes.size();
      made_.lifetimes.push_back({step_, step_, bytes_[static_cast<std::size_t>(boundary)]});
    }
    made_.lifetimes[found].last = step_;
    return found;
  }

  /// Returns the request of a message, and frees it, because it completes with this instruction; `none` if it has none.
  std::size_t release_request(kind what, int boundary, int microbatch) {
    if (boundary < 0 || boundary + 1 >= plan_.stages()) return none;
    const std::size_t found = number(what, boundary, microbatch);
    if (found != none) free_requests_.push_back(found);
    return found;
  }

  std::size_t& number(kind what, int boundary, int microbatch) {
    return numbers_[(what * bytes_.size() + static_cast<std::size_t>(boundary)) *
                        static_cast<std::size_t>(plan_.microbatches) +
                    static_cast<std::size_t>(microbatch)];
  }

  const plan::pipeline::schedule& plan_;
  int rank_;
  const std::vector<int>& stages_;         // of the rank
  const std::vector<std::size_t>& bytes_;  // by boundary
  const bool tags_apart_;
  std::vector<std::size_t> numbers_;
  std::vector<std::size_t> free_requests_;
  std::vector<char> recomputed_;  // whether the activations of a forward pass are recomputed
  std::size_t step_ = 0;
  program made_;
};

}  // namespace pipeline::detail
HOCKET_END_NAMESPACE
