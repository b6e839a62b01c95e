// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: pass a tensor's placements as on<
//
// Other libraries take a list of placements in the order of the axes.
#include "setting.hpp"

void train(const matrix_of<replicated, shard<0>>& x);
