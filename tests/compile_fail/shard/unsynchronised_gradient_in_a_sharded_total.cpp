// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a gradient with another placement can't be added
//
// Without the reduce_scatter of each microbatch, there is no slice of the gradient to add:
// sharded gradients can't skip it.
#include "setting.hpp"

void add(vector_of<on<"dp", shard<0>>, on<"tp", replicated>>& total,
         const vector_of<on<"dp", partial<sum>>, on<"tp", replicated>>& gradient) {
  accumulate(total, gradient);
}
