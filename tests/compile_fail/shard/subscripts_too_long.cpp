// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: subscripts have at most 63 characters
//
// A rule with 21 operands has too many characters.
#include "setting.hpp"

struct sum_of_all {
  static constexpr subscripts labels = "ab,ab,ab,ab,ab,ab,ab,ab,ab,ab,ab,ab,ab,ab,ab,ab,ab,ab,ab,ab,ab->ab";
};
