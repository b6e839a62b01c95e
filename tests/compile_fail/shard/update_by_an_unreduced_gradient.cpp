// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a partial sum plus something that is not partial would count that once per rank
//
// The all_reduce of the gradient along dp is missing before the optimizer step.
#include "setting.hpp"

auto step(const vector_of<on<"dp", invariant>, on<"tp", shard<0>>>& parameter,
          const vector_of<on<"dp", partial<sum>>, on<"tp", shard<0>>>& gradient) {
  return apply(linear<"n,n->n">(), compute, parameter, gradient);
}
