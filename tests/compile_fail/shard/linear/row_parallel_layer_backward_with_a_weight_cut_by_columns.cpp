// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the weight of a row-parallel layer must be cut by its inputs
//
// This is the weight of a column-parallel layer.
#include <shard/setting_with_domains.hpp>

#include <hocket/shard/layer/linear.hpp>

auto backward(const matrix_on_tp<shard<1>>& x, const matrix_on_tp<shard<1>>& w, const matrix_on_tp<invariant>& g) {
  return row_parallel_linear<"tp">::backward(compute, x, w, g);
}
