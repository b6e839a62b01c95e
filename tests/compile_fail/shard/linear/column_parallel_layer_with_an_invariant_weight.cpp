// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the weight of a column-parallel layer must be cut by its outputs
//
// The weight is not sharded, and its gradient would be that of one rank.
#include <shard/setting_with_domains.hpp>

#include <hocket/shard/layer/linear.hpp>

auto up(const matrix_on_tp<invariant>& x, const matrix_on_tp<invariant>& w) {
  return column_parallel_linear<"tp">::forward(compute, x, w);
}
