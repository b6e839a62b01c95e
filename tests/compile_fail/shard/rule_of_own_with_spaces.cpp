// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: subscripts must look like "mk,kn->mn"
//
// A rule with invalid labels would forbid nothing.
#include "setting.hpp"

struct own_rule {
  static constexpr subscripts labels = "b -> b";
  static constexpr rule_result result(std::span<const placement>) { return {{placement_kind::varying}}; }
};
auto computed(const vector_on_tp<partial<sum>>& x) { return apply(own_rule(), compute, x); }
