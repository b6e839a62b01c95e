// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: shard<d>: d is the number of a dimension, from 0
//
// The last dimension, as it is said elsewhere.
#include "setting.hpp"

void train(const matrix_on_tp<shard<-1>>& x);
