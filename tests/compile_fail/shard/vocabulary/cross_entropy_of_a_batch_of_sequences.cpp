// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a layer takes matrices
//
// Logits [batch, tokens, vocabulary] must be viewed as [batch x tokens, vocabulary].
#include <shard/setting_with_domains.hpp>

#include <hocket/shard/layer/cross_entropy.hpp>

using logits_type = tensor<float, extents<dynamic, dynamic, dynamic>, ranks, on<"dp", replicated>, on<"tp", shard<2>>>;
using targets_type = tensor<int, extents<dynamic, dynamic>, ranks, on<"dp", replicated>, on<"tp", invariant>>;

auto loss(const logits_type& logits, const targets_type& targets) {
  return vocabulary_parallel_cross_entropy<"tp">().forward(logits, targets);
}
