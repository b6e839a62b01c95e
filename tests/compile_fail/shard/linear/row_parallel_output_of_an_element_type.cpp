// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the output of a layer must have the placement
//
// The template argument after the axis is the placement of the output.
#include <shard/setting_with_domains.hpp>

#include <hocket/shard/layer/linear.hpp>

auto output(const matrix_on_tp<shard<1>>& x, const matrix_on_tp<shard<0>>& weight) {
  return hocket::row_parallel_linear<"tp", double>::forward([](const auto&...) {}, x, weight);
}
