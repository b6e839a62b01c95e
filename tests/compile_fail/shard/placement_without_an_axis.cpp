// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: pass a tensor's placements as on<
//
// A list of placements in the order of the axes, as other libraries have it.
#include "setting.hpp"

void train(const matrix_of<replicated, shard<0>>& x);
