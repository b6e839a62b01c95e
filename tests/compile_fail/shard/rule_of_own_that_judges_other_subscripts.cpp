// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the rule's subscripts and this call have different numbers of operands
//
// The labels have two operands, the verdict has one.
#include "setting.hpp"

struct gated {
  static constexpr subscripts labels = "th,th->th";
  static constexpr rule_result result(std::span<const placement> operands) {
    return nonlinear<"th->th">::result(operands);
  }
};

auto activate(const matrix_on_tp<shard<1>>& gate, const matrix_on_tp<shard<1>>& up) {
  return apply(gated(), compute, gate, up);
}
