// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: accumulate takes two tensors
//
// Nobody knows how the elements of a vector are placed.
#include "setting.hpp"

#include <vector>

void add(vector_on_tp<shard<0>>& total, const std::vector<float>& gradient) { accumulate(total, gradient); }
