// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a tensor is not converted to other elements or extents implicitly
//
// Elements are not converted one by one.
#include "setting.hpp"

#include <utility>

using counts = tensor<int, extents<dynamic>, ranks, elsewhere<replicated>>;

void count(vector_on_tp<replicated> x) { const counts y(std::move(x)); }
