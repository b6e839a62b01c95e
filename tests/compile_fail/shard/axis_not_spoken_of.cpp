// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: this tensor has no placement along an axis of its mesh
//
// The placement along tp is missing.
#include "setting.hpp"

void train(const matrix_of<on<"dp", shard<0>>>& x);
