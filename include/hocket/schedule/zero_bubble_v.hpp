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

  constexpr void add_forward(int chunk) { add(task_kind::forward, chunk, forwards[chunk]++); }
  constexpr void add_input_gradient(int chunk) { add(task_kind::input_gradient, chunk, input_gradients[chunk]++); }
  constexpr void add_weight_gradient(int chunk) { add(task_kind::weight_gradient, chunk, weight_gradients[chunk]++); }

  int forwards[2] = {};
  int input_gradients[2] = {};
  int weight_gradients[2] = {};

 private:
  constexpr void add(task_kind what, int chunk, int microbatch) {
    if (microbatch < microbatches_) actions_.push_back({{what, stage_[chunk], microbatch}, {}});
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
    for (int i = 0; i < 2 * (ranks - rank) - 1; ++i) next.add_forward(0);
    for (int i = 0; i < rank; ++i) {
      next.add_forward(1);
      next.add_forward(0);
    }
    for (int i = 0; i < ranks - rank; ++i) {
      next.add_forward(1);
      next.add_input_gradient(1);
      next.add_weight_gradient(1);
    }
    while (next.forwards[1] < next.forwards[0] || next.forwards[0] < filled) {
      if (next.forwards[0] < filled) next.add_forward(0);
      next.add_input_gradient(0);
      next.add_weight_gradient(0);
      next.add_forward(1);
      next.add_input_gradient(1);
      next.add_weight_gradient(1);
    }
    for (int i = 0; i < rank; ++i) {
      next.add_input_gradient(0);
      next.add_input_gradient(1);
    }
    for (int i = 0; i < ranks - rank; ++i) {
      next.add_input_gradient(0);
      next.add_weight_gradient(0);
    }
    while (next.weight_gradients[1] < next.input_gradients[1]) next.add_weight_gradient(1);
    while (next.weight_gradients[0] < next.input_gradients[0]) next.add_weight_gradient(0);
  }
  return made;
}

}  // namespace plan::pipeline
HOCKET_END_NAMESPACE
