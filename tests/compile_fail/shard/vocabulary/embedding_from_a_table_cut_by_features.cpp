// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the table of a vocabulary-parallel embedding must be cut by its rows
//
// All ranks would look up each token, and gather the features.
#include <shard/setting_with_domains.hpp>

#include <hocket/shard/layer/embedding.hpp>

auto embedded(const tensor<int, extents<dynamic>, ranks, on<"dp", replicated>, on<"tp", invariant>>& tokens,
              const matrix_on_tp<shard<1>>& table) {
  return vocabulary_parallel_embedding<"tp">::forward(tokens, table);
}
