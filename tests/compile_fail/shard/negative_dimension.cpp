// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: shard<d>: d is the number of a dimension, from 0
//
// Other libraries use -1 for the last dimension.
#include "setting.hpp"

void train(const matrix_on_tp<shard<-1>>& x);
