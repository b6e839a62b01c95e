// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Schedules in which a forward pass of one half of the model overlaps with a backward pass of the other, so that the
/// communication inside one (for example of experts) overlaps with the computation of the other.
///
/// DualPipe sends microbatches through the ranks from both ends, with two copies of the parameters; DualPipeV folds the
/// pipeline into a V and needs one copy. Both are due to DeepSeek-AI (2024, 2025).
#pragma once

#include <hocket/schedule/schedule.hpp>

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace plan::pipeline {
namespace detail {

/// A half of the work of a rank: one stage, and the microbatches from `first` on.
struct half_of_work {
  int stage;
  int first;
};

/// The eight steps of both schedules, for the rank at `position` of the `half` ranks that a microbatch passes before
/// it reaches the other half; each half has `microbatches` microbatches.
class eight_steps {
 public:
  constexpr eight_steps(row& actions, half_of_work first, half_of_work second) noexcept
      : actions_(actions), halves_{first, second} {}

  constexpr void write(int position, int half, int microbatches) {
    const int behind = half - position - 1;
    for (int i = 0; i < 2 * behind; ++i) add(take_forward(0));
    for (int i = 0; i <= position; ++i) {
      add(take_forward(0));
      add(take_forward(1));
    }
    for (int i = 0; i < behind; ++i) {
      add_backward(1, true);
      add_weight_gradient();
      add(take_forward(1));
    }
    for (int i = 0; i < microbatches - 2 * half + position + 1; ++i) {
      if (i == 0 && behind == 0) {  // without overlap, the bubble is shorter here
        add(take_forward(0));
        add_backward(1, false);
      } else {
        add_pair(0, 1);
      }
      add_pair(1, 0);
    }
    for (int i = 0; i < behind; ++i) {
      add_backward(1, false);
      add_pair(1, 0);
    }
    write_last_backwards(position);
    for (int i = 0; i < behind; ++i) {
      add_weight_gradient();
      add_backward(0, true);
    }
    for (int i = 0; i <= position; ++i) add_weight_gradient();
  }

 private:
  /// Defers the weight gradients from the middle on.
  constexpr void write_last_backwards(int position) {
    const int middle = (position + 1) / 2;
    for (int i = 0; i <= position; ++i) {
      const bool odd = position % 2 == 1;
      add_backward(1, odd ? i >= middle : i > middle);
      add_backward(0, i >= middle);
    }
  }

  constexpr schedule_action take_forward(int half) {
    return forward(halves_[half].stage, halves_[half].first + forwards_[half]++);
  }
  constexpr schedule_action take_backward(int half) {
    return backward(halves_[half].stage, halves_[half].first + backwards_[half]++);
  }
  constexpr void add(const schedule_action& what) { actions_.push_back(what); }
  constexpr void add_pair(int forward_half, int backward_half) {
    const schedule_action ahead = take_forward(forward_half);
    add(overlapped(ahead, take_backward(backward_half)));
  }

  constexpr void add_backward(int half, bool defer_weights) {
    schedule_action what = take_backward(half);
    if (defer_weights) {
      deferred_weights_.push_back(what.first);
      what.first.kind = task_kind::input_gradient;
    }
    add(what);
  }

  constexpr void add_weight_gradient() {
    const task& oldest = deferred_weights_[done_++];
    add(weight_gradient(oldest.stage, oldest.microbatch));
  }

  row& actions_;
  half_of_work halves_[2];
  int forwards_[2] = {};
  int backwards_[2] = {};
  std::vector<task> deferred_weights_;
  std::size_t done_ = 0;
};

}  // namespace detail

/// Two stages per rank in a V; M >= 2P. With unit costs, and pairs as long as their parts: 3M + P-1 long, P + 1/2
/// microbatches of activations on each rank.
constexpr schedule dual_pipe_v(int ranks, int microbatches) {
  detail::require_sizes("dual_pipe_v", ranks, microbatches);
  detail::require_rule(microbatches / 2 >= ranks, "dual_pipe_v", "at least twice as many microbatches as ranks", ranks,
                       microbatches);
  schedule made("dual_pipe_v", placement::v_shape(ranks), microbatches);
  for (int rank = 0; rank < ranks; ++rank) {
    detail::eight_steps(made.of(rank), {rank, 0}, {2 * ranks - 1 - rank, 0}).write(rank, ranks, microbatches);
  }
  return made;
}

/// As many stages as ranks, each on two ranks; the second half of the microbatches passes the ranks from the last to
/// the first. P even, M even and >= 2P. With unit costs, and pairs as long as their parts: 3M + 2(P/2-1) long, P+1
/// microbatches of activations on each rank, and two copies of the parameters.
constexpr schedule dual_pipe(int ranks, int microbatches) {
  detail::require_sizes("dual_pipe", ranks, microbatches);
  detail::require_rule(ranks % 2 == 0 && microbatches % 2 == 0 && microbatches / 2 >= ranks, "dual_pipe",
                       "an even number of ranks, and an even number of microbatches at least twice as large", ranks,
                       microbatches);
  schedule made("dual_pipe", placement::two_directions(ranks, microbatches), microbatches);
  const int turn = microbatches / 2;
  for (int rank = 0; rank < ranks; ++rank) {
    const int position = std::min(rank, ranks - 1 - rank);
    detail::half_of_work near_half{rank, 0};
    detail::half_of_work far_half{ranks - 1 - rank, turn};
    if (rank >= ranks / 2) std::swap(near_half, far_half);
    detail::eight_steps(made.of(rank), near_half, far_half).write(position, ranks / 2, turn);
  }
  return made;
}

}  // namespace plan::pipeline
HOCKET_END_NAMESPACE
