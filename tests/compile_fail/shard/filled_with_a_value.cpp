// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fill takes a function of the indices
//
// std::fill takes a value.
#include <shard/setting_with_domains.hpp>

void clear(matrix_on_tp<invariant>& x) { fill(x, 0.5F); }
