// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: this tensor has another placement than the one required here
//
// The function returns a tensor that it has not reduced.
#include "setting.hpp"

vector_on_tp<replicated> reduced(vector_on_tp<partial<sum>> x) { return x; }
