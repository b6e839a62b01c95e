// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a layer got the whole result of a forward pass: pass its .output
//
// The logits are the .output of the layer before.
#include <shard/setting_with_domains.hpp>

#include <hocket/shard/layer/cross_entropy.hpp>

using tokens = tensor<int, extents<dynamic>, ranks, on<"dp", invariant>, on<"tp", invariant>>;

auto loss(const matrix_on_tp<invariant>& x, const matrix_on_tp<shard<1>>& w, const tokens& targets) {
  const auto logits = column_parallel_linear<"tp">::forward(compute, x, w);
  return vocabulary_parallel_cross_entropy<"tp">().forward(logits, targets);
}
