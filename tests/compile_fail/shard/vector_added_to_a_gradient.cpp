// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: accumulate takes two tensors
//
// A vector has no placement.
#include "setting.hpp"

#include <vector>

void add(vector_on_tp<shard<0>>& total, const std::vector<float>& gradient) { accumulate(total, gradient); }
