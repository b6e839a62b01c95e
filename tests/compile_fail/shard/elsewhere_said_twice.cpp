// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the placement along one axis, or elsewhere, is given twice
//
// Only one of the two placements can apply.
#include "setting.hpp"

void train(const matrix_of<on<"tp", shard<0>>, elsewhere<invariant>, elsewhere<replicated>>& x);
