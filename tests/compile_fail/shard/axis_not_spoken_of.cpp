// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: this tensor has no placement along an axis of its mesh
//
// What the ranks along tp have is not said.
#include "setting.hpp"

void train(const matrix_of<on<"dp", shard<0>>>& x);
