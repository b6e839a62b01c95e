// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: this mesh has no axis of that name
//
// The mesh has only the axes "dp" and "tp".
#include "setting.hpp"

void train(const matrix_of<on<"dp", replicated>, on<"pp", shard<0>>, elsewhere<replicated>>& x);
