// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the targets of a vocabulary-parallel cross entropy must be invariant
//
// The activations are sharded by tokens, but the logits are not.
#include <shard/setting_with_domains.hpp>

#include <hocket/shard/layer/cross_entropy.hpp>

auto loss(const matrix_on_tp<shard<1>>& logits,
          const tensor<int, extents<dynamic>, ranks, on<"dp", replicated>, on<"tp", shard<0>>>& targets) {
  return vocabulary_parallel_cross_entropy<"tp">().forward(logits, targets);
}
