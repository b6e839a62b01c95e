// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: this tensor has another placement than the one required here
//
// Like partial_sum_as_an_argument, by value.
#include "setting.hpp"

#include <utility>

void step(vector_on_tp<replicated> gradient);

void train(vector_on_tp<partial<sum>> gradient) { step(std::move(gradient)); }
