// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: this mesh has no axis of that name
//
// The layer was written for a mesh with an axis "sp".
#include <shard/setting_with_domains.hpp>

#include <hocket/shard/layer/linear.hpp>

auto up(const matrix_on_tp<invariant>& x, const matrix_on_tp<shard<1>>& w) {
  return column_parallel_linear<"sp">::forward(compute, x, w);
}
