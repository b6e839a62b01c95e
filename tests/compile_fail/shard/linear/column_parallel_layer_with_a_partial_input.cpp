// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the input of a column-parallel layer must be invariant, replicated or shard<0>
//
// The layer would implicitly reduce the partial sum of a row-parallel layer.
#include <shard/setting_with_domains.hpp>

#include <hocket/shard/layer/linear.hpp>

auto up(const matrix_on_tp<partial<sum>>& x, const matrix_on_tp<shard<1>>& w) {
  return column_parallel_linear<"tp">::forward(compute, x, w);
}
