// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the targets of a cross entropy must be integers
//
// The targets are one-hot rows or probabilities.
#include <shard/setting_with_domains.hpp>

#include <hocket/shard/layer/cross_entropy.hpp>

auto loss(const matrix_on_tp<shard<1>>& logits, const vector_on_tp<invariant>& targets) {
  return vocabulary_parallel_cross_entropy<"tp">().forward(logits, targets);
}
