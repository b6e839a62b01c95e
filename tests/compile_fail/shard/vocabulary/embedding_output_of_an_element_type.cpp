// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the output of a layer must have the placement
//
// The template argument after the axis is the placement of the output.
#include <shard/setting_with_domains.hpp>

#include <hocket/shard/layer/embedding.hpp>

using tokens =
    hocket::tensor<int, hocket::extents<4>, ranks, hocket::on<"tp", invariant>, hocket::elsewhere<replicated>>;

auto output(const tokens& x, const matrix_on_tp<shard<0>>& table) {
  return hocket::vocabulary_parallel_embedding<"tp", float>::forward(x, table);
}
