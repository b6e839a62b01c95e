// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the operands of apply must be tensors: the type of a part
//
// local() has no placement.
#include "setting.hpp"

auto computed(const vector_on_tp<shard<0>>& x) { return apply(nonlinear<"b->b">(), compute, x.local()); }
