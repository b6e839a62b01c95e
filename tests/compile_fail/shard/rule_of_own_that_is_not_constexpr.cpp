// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the rule can't be evaluated at compile time: its static function `result` must be constexpr
//
// The rule can be evaluated only at run time.
#include "setting.hpp"

struct own_rule {
  static constexpr subscripts labels = "b->b";
  static rule_result result(std::span<const placement>) { return {{placement_kind::varying}}; }
};
auto computed(const vector_on_tp<shard<0>>& x) { return apply(own_rule(), compute, x); }
