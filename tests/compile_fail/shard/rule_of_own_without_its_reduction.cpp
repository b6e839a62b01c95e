// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: this rule's results are partial, but it names no reduction: add `using reduction = ...` to the rule
//
// The ranks' minima of each row are not summands.
#include "setting.hpp"

struct minimum_of_rows {
  static constexpr subscripts labels = "bh->b";
  static constexpr rule_result result(std::span<const placement> operands) {
    return maximum_over<"bh->b">::result(operands);
  }
};

auto smallest(const matrix_on_tp<shard<1>>& x) { return apply(minimum_of_rows(), compute, x); }
