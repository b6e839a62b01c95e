// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: whether varying data are copies, slices or summands is not known
//
// Whose elements count, and how often?
#include <shard/setting_with_domains.hpp>

#include <hocket/shard/norm.hpp>

double clip(const vector_on_tp<invariant>& dense, const vector_on_tp<varying>& of_expert) {
  return norm(dense, of_expert);
}
