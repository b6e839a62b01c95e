// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the table of a vocabulary-parallel embedding must be cut by its rows
//
// The gradient would be placed like the table, and each rank would fill in rows of other ranks.
#include <shard/setting_with_domains.hpp>

#include <hocket/shard/layer/embedding.hpp>

auto gradient_of(const tensor<int, extents<dynamic>, ranks, on<"dp", replicated>, on<"tp", invariant>>& tokens,
                 const matrix_on_tp<shard<1>>& table, const matrix_on_tp<invariant>& g) {
  return vocabulary_parallel_embedding<"tp">::backward(tokens, table, g);
}
