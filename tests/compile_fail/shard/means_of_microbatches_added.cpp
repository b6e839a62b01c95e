// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: partial means and maxima can't be added element by element
//
// The sum of losses averaged over each microbatch's tokens gives short and long microbatches equal weight.
#include "setting.hpp"

void add(vector_on_tp<partial<mean>>& total, const vector_on_tp<partial<mean>>& of_microbatch) {
  accumulate(total, of_microbatch);
}
