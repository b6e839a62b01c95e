// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the function needs this dimension whole, and the operand is sharded along it
//
// With this user-defined rule, heads may be sharded, but time may not.
#include "setting.hpp"

struct causal_attention {
  static constexpr subscripts labels = "hTd,hTd,hTd->hTd";
  static constexpr rule_result result(std::span<const placement> operands) {
    return nonlinear<"hTd,hTd,hTd->hTd">::result(operands);
  }
};

auto attend(
    const tensor<float, extents<dynamic, dynamic, dynamic>, ranks, on<"dp", replicated>, on<"tp", shard<1>>>& x) {
  return apply(causal_attention(), compute, x, x, x);
}
