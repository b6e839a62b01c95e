// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the placement along one axis, or elsewhere, is given twice
//
// One axis can't shard both dimensions.
#include "setting.hpp"

void train(const matrix_of<on<"tp", shard<0>>, on<"tp", shard<1>>, elsewhere<replicated>>& x);
