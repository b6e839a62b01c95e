// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a layer takes matrices
//
// Their numbers of dimensions show that the two arguments are swapped.
#include <shard/setting_with_domains.hpp>

#include <hocket/shard/layer/embedding.hpp>

auto rows(const matrix_on_tp<shard<0>>& table,
          const tensor<int, extents<dynamic>, ranks, on<"dp", replicated>, on<"tp", invariant>>& tokens) {
  return vocabulary_parallel_embedding<"tp">::forward(table, tokens);
}
