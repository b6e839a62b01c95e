// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// What a type needs to be the update rule of an optimizer: see optimizer/rule/ for the rules of this library.
#pragma once

#include <hocket/core/config.hpp>

#include <array>
#include <cstdint>

HOCKET_BEGIN_NAMESPACE

/// A rule has `states` values per element. `at<F>(t, learning_rate)` returns the constants of step t, from 1; `update`
/// changes one element and its states `*state[k]`. If a rule has a member `weight_decay`, the optimizer uses 0 for
/// parameters that do not decay. Checkpoints name states by its `state_names`; otherwise "state 0", "state 1", …
template <class Rule, class F>
concept update_rule = requires(const Rule& rule, F& parameter, F gradient, const std::array<F*, Rule::states>& state) {
  rule.template at<F>(std::uint64_t{1}, 0.1);
  Rule::template update<F>(rule.template at<F>(std::uint64_t{1}, 0.1), parameter, gradient, state);
};

HOCKET_END_NAMESPACE
