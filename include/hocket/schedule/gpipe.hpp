// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The two simplest schedules: first all forward passes, then all backward passes. Simple, but every activation of the
/// batch is in memory at the same time.
///
/// GPipe is due to Huang et al. (2019), the breadth-first order to Lamy-Poirier (2023).
#pragma once

#include <hocket/schedule/schedule.hpp>

HOCKET_BEGIN_NAMESPACE
namespace plan::pipeline {

/// Each rank has `stages_per_rank` stages in a loop. It runs all microbatches through a stage before it continues with
/// its next stage; the backward passes run in reverse order. Holds M microbatches of activations on each rank; with
/// unit costs it takes as long as `interleaved`. The gradients of each stage are complete as early as possible.
constexpr schedule breadth_first(int ranks, int microbatches, int stages_per_rank) {
  detail::require_sizes("breadth_first", ranks, microbatches);
  schedule made("breadth_first", placement::loop(ranks, stages_per_rank), microbatches);
  for (int rank = 0; rank < ranks; ++rank) {
    row& actions = made.of(rank);
    for (int chunk = 0; chunk < stages_per_rank; ++chunk) {
      for (int m = 0; m < microbatches; ++m) actions.push_back(forward(chunk * ranks + rank, m));
    }
    for (int chunk = stages_per_rank - 1; chunk >= 0; --chunk) {
      for (int m = microbatches - 1; m >= 0; --m) actions.push_back(backward(chunk * ranks + rank, m));
    }
  }
  return made;
}

/// One stage per rank; all forward passes, then all backward passes, both in order of the microbatches. With unit costs
/// for forward, input and weight gradient: 3(M+P-1) long, M microbatches of activations on each rank.
constexpr schedule gpipe(int ranks, int microbatches) {
  detail::require_sizes("gpipe", ranks, microbatches);
  schedule made("gpipe", placement::loop(ranks), microbatches);
  for (int rank = 0; rank < ranks; ++rank) {
    for (int m = 0; m < microbatches; ++m) made.of(rank).push_back(forward(rank, m));
    for (int m = 0; m < microbatches; ++m) made.of(rank).push_back(backward(rank, m));
  }
  return made;
}

}  // namespace plan::pipeline
HOCKET_END_NAMESPACE
