// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the tokens of an embedding must be integers
//
// The tokens were normalised.
#include <shard/setting_with_domains.hpp>

#include <hocket/shard/layer/embedding.hpp>

auto embedded(const vector_on_tp<invariant>& tokens, const matrix_on_tp<shard<0>>& table) {
  return vocabulary_parallel_embedding<"tp">::forward(tokens, table);
}
