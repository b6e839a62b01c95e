// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: this tensor has another placement than the one required here
//
// As by reference.
#include "setting.hpp"

#include <utility>

void step(vector_on_tp<replicated> gradient);

void train(vector_on_tp<partial<sum>> gradient) { step(std::move(gradient)); }
