// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a layer got the whole result of a forward pass: pass its .output
//
// The backward pass needs .saved.
#include <shard/setting_with_domains.hpp>

#include <hocket/shard/layer/linear.hpp>

auto back(const matrix_on_tp<invariant>& x, const matrix_on_tp<shard<1>>& w, const matrix_on_tp<shard<1>>& gradient) {
  const auto result = column_parallel_linear<"tp">::forward(compute, x, w);
  return column_parallel_linear<"tp">::backward(compute, result, w, gradient);
}
