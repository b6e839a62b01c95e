// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: partial means and maxima can't be added element by element
//
// The maximum over two microbatches is not the sum of their maxima.
#include <hocket/operation/operations.hpp>

#include "setting.hpp"

void add(vector_on_tp<partial<maximum>>& total, const vector_on_tp<partial<maximum>>& of_microbatch) {
  accumulate(total, of_microbatch);
}
