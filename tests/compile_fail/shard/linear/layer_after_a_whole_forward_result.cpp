// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a layer got the whole result of a forward pass: pass its .output
//
// The second layer takes the .output of the first one.
#include <shard/setting_with_domains.hpp>

#include <hocket/shard/layer/linear.hpp>

auto pair(const matrix_on_tp<invariant>& x, const matrix_on_tp<shard<1>>& up, const matrix_on_tp<shard<0>>& down) {
  const auto middle = column_parallel_linear<"tp">::forward(compute, x, up);
  return row_parallel_linear<"tp">::forward(compute, middle, down);
}
