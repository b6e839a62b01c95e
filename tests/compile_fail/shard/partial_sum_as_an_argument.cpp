// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: this tensor has another placement than the one required here
//
// A function that takes a reduced gradient is called with one that is not reduced.
#include "setting.hpp"

void step(const vector_on_tp<replicated>& gradient);

void train(const vector_on_tp<partial<sum>>& gradient) { step(gradient); }
