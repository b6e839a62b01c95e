// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the gradient of a column-parallel layer's output must be placed like the output
//
// The next layer gathered the output, but its gradient was not sharded again.
#include <shard/setting_with_domains.hpp>

#include <hocket/shard/layer/linear.hpp>

auto backward(
    const forward_result<matrix_on_tp<shard<1>>,
                         column_parallel_linear<"tp">::saved_values<invariant, matrix_on_tp<replicated>>>& result,
    const matrix_on_tp<shard<1>>& w, const matrix_on_tp<replicated>& g) {
  return column_parallel_linear<"tp">::backward(compute, result.saved, w, g);
}
