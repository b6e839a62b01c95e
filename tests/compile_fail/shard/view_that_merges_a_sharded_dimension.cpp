// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the function needs this dimension whole, and the operand is sharded along it
//
// [b, t, h] is viewed as [b t, h]: the slices of t of all b are not contiguous, and so not a slice of the rows.
#include "setting.hpp"

auto flattened(const tensor<float, extents<dynamic, dynamic, 64>, ranks, on<"dp", replicated>, on<"tp", shard<1>>>& x) {
  return apply(nonlinear<"bTh->bTh">(), compute, x);
}
