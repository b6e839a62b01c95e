// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a partial sum plus something that is not partial would count that once per rank
//
// plus_bias takes the output of the layer, not the partial sums before.
#include <shard/setting_with_domains.hpp>

#include <hocket/shard/layer/linear.hpp>

auto biased(const matrix_on_tp<partial<sum>>& sums, const vector_on_tp<replicated>& bias) {
  return plus_bias(sums, bias);
}
