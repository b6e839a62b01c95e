// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the logits of a cross entropy must be of a floating type
//
// Complex numbers have no maximum.
#include <shard/setting_with_domains.hpp>

#include <hocket/shard/layer/cross_entropy.hpp>

#include <complex>

template <class T, class Extents, class Placement>
using of_type = tensor<T, Extents, ranks, on<"dp", replicated>, on<"tp", Placement>>;

auto loss(const of_type<std::complex<float>, extents<dynamic, dynamic>, shard<1>>& logits,
          const of_type<int, extents<dynamic>, invariant>& targets) {
  return vocabulary_parallel_cross_entropy<"tp">().forward(logits, targets);
}
