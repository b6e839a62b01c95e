// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the tokens of an embedding must be integers
//
// Each activation would be truncated to the number of a row.
#include <shard/setting_with_domains.hpp>

#include <hocket/shard/layer/embedding.hpp>

auto gradient(const vector_on_tp<invariant>& tokens, const matrix_on_tp<shard<0>>& table,
              const matrix_on_tp<invariant>& of_output) {
  return vocabulary_parallel_embedding<"tp">::backward(tokens, table, of_output);
}
