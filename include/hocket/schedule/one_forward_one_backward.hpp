// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// 1F1B: as long as GPipe, with the activations of at most P microbatches in memory instead of all M.
///
/// Due to Narayanan et al. (PipeDream-Flush, 2021).
#pragma once

#include <hocket/schedule/schedule.hpp>

#include <algorithm>

HOCKET_BEGIN_NAMESPACE
namespace plan::pipeline {

/// One stage per rank. A rank warms up with as many forward passes as there are ranks behind it, then alternates one
/// forward and one backward pass. With unit costs: 3(M+P-1) long, min(P-r, M) microbatches of activations on rank r.
constexpr schedule one_forward_one_backward(int ranks, int microbatches) {
  detail::require_sizes("one_forward_one_backward", ranks, microbatches);
  schedule made("one_forward_one_backward", placement::loop(ranks), microbatches);
  for (int rank = 0; rank < ranks; ++rank) {
    const int warm_up = std::min(microbatches, ranks - 1 - rank);
    row& actions = made.of(rank);
    for (int m = 0; m < warm_up; ++m) actions.push_back(forward(rank, m));
    for (int m = warm_up; m < microbatches; ++m) {
      actions.push_back(forward(rank, m));
      actions.push_back(backward(rank, m - warm_up));
    }
    for (int m = microbatches - warm_up; m < microbatches; ++m) actions.push_back(backward(rank, m));
  }
  return made;
}

}  // namespace plan::pipeline
HOCKET_END_NAMESPACE
