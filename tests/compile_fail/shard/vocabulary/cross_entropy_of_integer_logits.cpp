// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the logits of a cross entropy must be of a floating type
//
// Quantised logits must be scaled back first.
#include <shard/setting_with_domains.hpp>

#include <hocket/shard/layer/cross_entropy.hpp>

template <class Extents, class Placement>
using integers = tensor<int, Extents, ranks, on<"dp", replicated>, on<"tp", Placement>>;

auto loss(const integers<extents<dynamic, dynamic>, shard<1>>& logits,
          const integers<extents<dynamic>, invariant>& targets) {
  return vocabulary_parallel_cross_entropy<"tp">().forward(logits, targets);
}
