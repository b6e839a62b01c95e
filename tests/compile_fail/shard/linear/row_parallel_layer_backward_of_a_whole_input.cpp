// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the input of a row-parallel layer must be cut by its features
//
// The activation was gathered for another purpose.
#include <shard/setting_with_domains.hpp>

#include <hocket/shard/layer/linear.hpp>

auto backward(const matrix_on_tp<replicated>& x, const matrix_on_tp<shard<0>>& w, const matrix_on_tp<invariant>& g) {
  return row_parallel_linear<"tp">::backward(compute, x, w, g);
}
