// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a cross entropy accepts only an algorithm, timeout
//
// The maxima would be exact, but not the sums of exponentials.
#include <shard/setting_with_domains.hpp>

#include <hocket/shard/layer/cross_entropy.hpp>

auto losses(const matrix_on_tp<shard<1>>& logits,
            const tensor<int, extents<dynamic>, ranks, on<"dp", replicated>, on<"tp", invariant>>& targets) {
  return vocabulary_parallel_cross_entropy<"tp">().forward(logits, targets, with(require(rank_count_invariant)));
}
