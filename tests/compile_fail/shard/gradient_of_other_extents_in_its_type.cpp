// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the gradient and the total have different extents
//
// The gradients belong to two different weights.
#include "setting.hpp"

template <std::size_t Columns>
using weight = tensor<float, extents<3, Columns>, ranks, on<"dp", replicated>, on<"tp", shard<0>>>;

void add(weight<5>& total, const weight<4>& gradient) { accumulate(total, gradient); }
