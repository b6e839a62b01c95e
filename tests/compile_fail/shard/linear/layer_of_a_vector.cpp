// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a layer takes matrices
//
// A single token's activations: [features], where [tokens, features] is meant.
#include <shard/setting_with_domains.hpp>

#include <hocket/shard/layer/linear.hpp>

auto up(const vector_on_tp<invariant>& x, const matrix_on_tp<shard<1>>& w) {
  return column_parallel_linear<"tp">::forward(compute, x, w);
}
