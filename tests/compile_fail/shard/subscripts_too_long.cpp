// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: subscripts have at most 63 characters
//
// A rule of more operands than anybody reads.
#include "setting.hpp"

struct sum_of_all {
  static constexpr subscripts labels = "ab,ab,ab,ab,ab,ab,ab,ab,ab,ab,ab,ab,ab,ab,ab,ab,ab,ab,ab,ab,ab->ab";
};
