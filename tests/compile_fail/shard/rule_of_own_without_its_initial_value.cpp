// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: this rule names a reduction, but not the initial value of a result
//
// A rank without elements would contribute zero to the minimum.
#include "setting.hpp"

struct minimum_of_rows {
  static constexpr subscripts labels = "bh->b";
  using reduction = minimum;
  static constexpr rule_result result(std::span<const placement> operands) {
    return maximum_over<"bh->b">::result(operands);
  }
};

auto smallest(const matrix_on_tp<shard<1>>& x) { return apply(minimum_of_rows(), compute, x); }
