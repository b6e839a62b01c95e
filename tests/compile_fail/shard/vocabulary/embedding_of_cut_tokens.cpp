// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the tokens of a vocabulary-parallel embedding must be invariant or replicated
//
// Each rank would look up its own tokens, but has only a few rows of the table.
#include <shard/setting_with_domains.hpp>

#include <hocket/shard/layer/embedding.hpp>

auto embedded(const tensor<int, extents<dynamic>, ranks, on<"dp", replicated>, on<"tp", shard<0>>>& tokens,
              const matrix_on_tp<shard<0>>& table) {
  return vocabulary_parallel_embedding<"tp">::forward(tokens, table);
}
