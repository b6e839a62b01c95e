// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the operands have several element types: pass the element type of the result
//
// A mask of integers is multiplied by floats: an integer result would be zero.
#include "setting.hpp"

using mask = tensor<int, extents<dynamic>, ranks, on<"dp", replicated>, on<"tp", shard<0>>>;

auto masked(const mask& m, const vector_on_tp<shard<0>>& x) { return apply(multilinear<"h,h->h">(), compute, m, x); }
