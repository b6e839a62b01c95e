// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: one operand has a slice of a dimension and another one the whole of it
//
// The weight of a row-parallel layer.
#include <shard/setting_with_wires.hpp>

#include <hocket/shard/layer/linear.hpp>

auto up(const matrix_on_tp<invariant>& x, const matrix_on_tp<shard<0>>& w) {
  return column_parallel_linear<"tp">::forward(compute, x, w);
}
