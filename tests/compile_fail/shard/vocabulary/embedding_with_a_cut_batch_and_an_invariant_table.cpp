// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: an invariant operand is used beside one that is not
//
// Each dp rank looks up its own tokens, so that the gradient of the table must be summed over dp.
#include <shard/setting_with_domains.hpp>

#include <hocket/shard/layer/embedding.hpp>

auto embedded(const tensor<int, extents<dynamic>, ranks, on<"dp", shard<0>>, on<"tp", replicated>>& tokens,
              const matrix_of<on<"dp", invariant>, on<"tp", shard<0>>>& table) {
  return vocabulary_parallel_embedding<"tp">::forward(tokens, table);
}
