// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: subscripts must look like
//
// A diagonal is not a dimension of a tensor.
#include "setting.hpp"

auto diagonal(const matrix_on_tp<replicated>& x) { return apply(linear<"nn->n">(), compute, x); }
