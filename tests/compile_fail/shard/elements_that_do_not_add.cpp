// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: elements of the two types can't be added
#include "setting.hpp"

struct money {
  long cents;
};
using accounts = tensor<money, extents<dynamic>, ranks, on<"dp", replicated>, on<"tp", partial<sum>>>;

void collect(accounts& total, const accounts& more) { accumulate(total, more); }
