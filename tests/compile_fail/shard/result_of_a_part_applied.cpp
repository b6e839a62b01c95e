// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the operands of apply must be tensors
//
// local() has no placement.
#include "setting.hpp"

void use(const vector_on_tp<shard<0>>& x) { const auto y = apply(nonlinear<"b->b">(), compute, x.local()); }
