// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: this tensor has another placement than the one required here
//
// Like partial_sum_moved_into_a_whole, with braces.
#include "setting.hpp"

#include <utility>

void reduce(vector_on_tp<partial<sum>> x) { const vector_on_tp<replicated> reduced{std::move(x)}; }
