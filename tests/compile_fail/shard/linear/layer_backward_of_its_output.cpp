// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a layer takes the function object of local products first if it has any
//
// The backward pass needs .saved instead of .output.
#include <shard/setting_with_domains.hpp>

#include <hocket/shard/layer/linear.hpp>

auto backward(const forward_result<matrix_on_tp<shard<1>>,
                                   column_parallel_linear<"tp">::saved_values<invariant, matrix_on_tp<replicated>>>& up,
              const matrix_on_tp<shard<1>>& w, const matrix_on_tp<shard<1>>& g) {
  return column_parallel_linear<"tp">::backward(compute, up.output, w, g);
}
