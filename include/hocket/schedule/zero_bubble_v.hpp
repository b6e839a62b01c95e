// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// ZB-V: two stages per rank in a V, with separate input and weight gradients. The last stage lies on the first rank,
/// so that the backward pass begins where the forward pass began; after that no rank is idle if F, I and W cost the
/// same. Every rank needs as much memory as rank 0 with 1F1B.
///
/// Due to Qi et al. (2024).
#pragma once

#include <hocket/schedule/schedule.hpp>

#include <algorithm>

HOCKET_BEGIN_NAMESPACE
namespace plan::pipeline {
namespace detail {

/// Writes the row of a rank with two chunks, counting the microbatches of each chunk and kind.
class two_chunk_row {
 public:
  /// Chunk 0 is stage `first`, chunk 1 stage `second`; work on microbatches from `microbatches` on is omitted.
  constexpr two_chunk_row(row& actions, int first, int second, int microbatches) noexcept
      : actions_(actions), stage_{first, second}, microbatches_(microbatches) {}

  /// Adds the next action of its kind, or counts `count` of them if all that are left are omitted.
  constexpr void add_forward(int chunk, int count = 1) { add(task_kind::forward, chunk, forwards[chunk], count); }
  constexpr void add_input_gradient(int chunk, int count = 1) {
    add(task_kind::input_gradient, chunk, input_gradients[chunk], count);
  }
  constexpr void add_weight_gradient(int chunk, int count = 1) {
    add(task_kind::weight_gradient, chunk, weight_gradients[chunk], count);
  }

  /// Calls `add(1)` as often as needed, and `add(n)` for the rest. After as many calls as there are microbatches, all
  /// actions of the kinds that it adds have been added, so that a row takes no time for those that are omitted.
  template <class Add>
  constexpr void repeat(int times, Add add) {
    const int needed = std::min(times, microbatches_);
    for (int i = 0; i < needed; ++i) add(1);
    if (needed < times) add(times - needed);
  }

  int forwards[2] = {};
  int input_gradients[2] = {};
  int weight_gradients[2] = {};

 private:
  constexpr void add(task_kind what, int chunk, int& next, int count) {
    if (next < microbatches_) actions_.push_back({{what, stage_[chunk], next}, {}});
    next += count;
  }

  row& actions_;
  int stage_[2];
  int microbatches_;
};

}  // namespace detail

/// Any number of microbatches. With unit costs: max(2P-1 + 2M, 3M + (P-1)/2) long; P microbatches of activations on
/// every rank for M >= 2P-1.
constexpr schedule zero_bubble_v(int ranks, int microbatches) {
  detail::require_sizes("zero_bubble_v", ranks, microbatches);
  schedule made("zero_bubble_v", placement::v_shape(ranks), microbatches);
  const int filled =
      std::max(2 * ranks - 1, microbatches);  // what the pattern needs; microbatches beyond M are omitted
  for (int rank = 0; rank < ranks; ++rank) {
    detail::two_chunk_row next(made.of(rank), rank, 2 * ranks - 1 - rank, microbatches);
    next.repeat(2 * (ranks - rank) - 1, [&](int count) { next.add_forward(0, count); });
    next.repeat(rank, [&](int count) {
      next.add_forward(1, count);
      next.add_forward(0, count);
    });
    next.repeat(ranks - rank, [&](int count) {
      next.add_forward(1, count);
      next.add_input_gradient(1, count);
      next.add_weight_gradient(1, count);
    });
    // Chunk 1 catches up with chunk 0, which is ahead of it until all is filled.
    next.repeat(std::max(filled, next.forwards[0]) - next.forwards[1], [&](int count) {
      const int left = filled - next.forwards[0];
      if (left > 0) next.add_forward(0, std::min(count, left));
      next.add_input_gradient(0, count);
      next.add_weight_gradient(0, count);
      next.add_forward(1, count);
      next.add_input_gradient(1, count);
      next.add_weight_gradient(1, count);
    });
    next.repeat(rank, [&](int count) {
      next.add_input_gradient(0, count);
      next.add_input_gradient(1, count);
    });
    next.repeat(ranks - rank, [&](int count) {
      next.add_input_gradient(0, count);
      next.add_weight_gradient(0, count);
    });
    for (const int chunk : {1, 0}) {
      next.repeat(next.input_gradients[chunk] - next.weight_gradients[chunk],
                  [&](int count) { next.add_weight_gradient(chunk, count); });
    }
  }
  return made;
}

}  // namespace plan::pipeline
HOCKET_END_NAMESPACE
