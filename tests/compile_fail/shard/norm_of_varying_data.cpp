// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: varying data may be copies, slices or summands
//
// The type does not specify which elements count, and how often.
#include <shard/setting_with_domains.hpp>

#include <hocket/shard/norm.hpp>

double clip(const vector_on_tp<invariant>& dense, const vector_on_tp<varying>& of_expert) {
  return norm(dense, of_expert);
}
