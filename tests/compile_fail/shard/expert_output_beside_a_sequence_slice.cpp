// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a varying operand is used beside a slice
//
// The output of an expert is not a slice of the sequence until it is sent back.
#include "setting.hpp"

auto combine(const matrix_on_tp<varying>& of_expert, const vector_on_tp<shard<0>>& gates) {
  return apply(multilinear<"th,t->th">(), compute, of_expert, gates);
}
