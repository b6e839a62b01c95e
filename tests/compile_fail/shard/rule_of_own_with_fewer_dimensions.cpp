// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: an operand is sharded along a dimension that its subscripts do not have
//
// The labels have two dimensions, the rule of the verdict has one.
#include "setting.hpp"

struct activation {
  static constexpr subscripts labels = "th->th";
  static constexpr rule_result result(std::span<const placement> operands) {
    return nonlinear<"t->t">::result(operands);
  }
};

auto activate(const matrix_on_tp<shard<1>>& x) { return apply(activation(), compute, x); }
