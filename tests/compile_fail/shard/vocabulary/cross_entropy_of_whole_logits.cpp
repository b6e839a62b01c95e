// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the logits of a vocabulary-parallel cross entropy must be cut by the vocabulary
//
// The logits were gathered before: each loss would be wrong by the logarithm of the number of ranks.
#include <shard/setting_with_domains.hpp>

#include <hocket/shard/layer/cross_entropy.hpp>

auto loss(const matrix_on_tp<replicated>& logits,
          const tensor<int, extents<dynamic>, ranks, on<"dp", replicated>, on<"tp", invariant>>& targets) {
  return vocabulary_parallel_cross_entropy<"tp">().forward(logits, targets);
}
