// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the gradient of a row-parallel layer's output must be placed like the output
//
// The gradient of an invariant output is invariant; here a replicated use of it was not converted back.
#include <shard/setting_with_domains.hpp>

#include <hocket/shard/layer/linear.hpp>

auto backward(const matrix_on_tp<shard<1>>& x, const matrix_on_tp<shard<0>>& w, const matrix_on_tp<partial<sum>>& g) {
  return row_parallel_linear<"tp">::backward(compute, x, w, g);
}
