// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a gradient with another placement can't be added
//
// In a tied embedding, the table is sharded by rows, but the projection to logits by columns.
#include "setting.hpp"

void add(matrix_on_tp<shard<0>>& of_table, const matrix_on_tp<shard<1>>& of_projection) {
  accumulate(of_table, of_projection);
}
