// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the input of a row-parallel layer must be cut by its features
//
// With a whole input and a weight sharded by columns, the layer would implicitly gather the output.
#include <shard/setting_with_domains.hpp>

#include <hocket/shard/layer/linear.hpp>

auto down(const matrix_on_tp<replicated>& x, const matrix_on_tp<shard<1>>& w) {
  return row_parallel_linear<"tp">::forward(compute, x, w);
}
