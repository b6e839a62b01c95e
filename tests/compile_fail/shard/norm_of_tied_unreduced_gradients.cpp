// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the norm of partial results is not the norm of the whole
//
// Like norm_of_an_unreduced_gradient, for several tensors.
#include <shard/setting_with_domains.hpp>

#include <hocket/shard/norm.hpp>

#include <tuple>

double clip(const vector_on_tp<partial<sum>>& bias, const matrix_on_tp<shard<0>>& weight) {
  return norm(std::tie(bias, weight));
}
