// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: partial results of two different reductions along two axes
//
// The sum of maxima is not the maximum of sums.
#include "setting.hpp"

auto size(const vector_of<on<"dp", partial<sum>>, on<"tp", partial<maximum>>>& x) { return x.elements().size(); }
