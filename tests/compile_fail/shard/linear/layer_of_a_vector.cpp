// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a layer takes matrices
//
// The activations of a single token are [features] instead of [tokens, features].
#include <shard/setting_with_domains.hpp>

#include <hocket/shard/layer/linear.hpp>

auto up(const vector_on_tp<invariant>& x, const matrix_on_tp<shard<1>>& w) {
  return column_parallel_linear<"tp">::forward(compute, x, w);
}
