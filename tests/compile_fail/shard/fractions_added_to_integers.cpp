// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a total of integers would lose the fractions of what is added to it
//
// Counts were used in place of gradients.
#include "setting.hpp"

using counts = tensor<int, extents<dynamic>, ranks, on<"dp", replicated>, on<"tp", shard<0>>>;

void add(counts& total, const vector_on_tp<shard<0>>& gradient) { accumulate(total, gradient); }
