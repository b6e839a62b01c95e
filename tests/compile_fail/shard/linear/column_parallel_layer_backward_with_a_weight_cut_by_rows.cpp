// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the weight of a column-parallel layer must be cut by its outputs
//
// Other libraries store the transposed weight.
#include <shard/setting_with_domains.hpp>

#include <hocket/shard/layer/linear.hpp>

auto backward(
    const forward_result<matrix_on_tp<shard<1>>,
                         column_parallel_linear<"tp">::saved_values<invariant, matrix_on_tp<replicated>>>& result,
    const matrix_on_tp<shard<0>>& w, const matrix_on_tp<shard<1>>& g) {
  return column_parallel_linear<"tp">::backward(compute, result.saved, w, g);
}
