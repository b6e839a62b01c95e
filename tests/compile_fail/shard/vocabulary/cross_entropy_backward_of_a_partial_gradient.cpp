// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the gradient of a vocabulary-parallel cross entropy's losses must be placed like the losses
//
// The losses of all ranks were added to one total, whose gradient was counted once per rank.
#include <shard/setting_with_domains.hpp>

#include <hocket/shard/layer/cross_entropy.hpp>

auto gradient_of(const matrix_on_tp<shard<1>>& logits,
                 const tensor<int, extents<dynamic>, ranks, on<"dp", replicated>, on<"tp", invariant>>& targets,
                 const vector_on_tp<partial<sum>>& g) {
  const vocabulary_parallel_cross_entropy<"tp"> layer;
  return layer.backward(layer.forward(logits, targets).saved, g);
}
