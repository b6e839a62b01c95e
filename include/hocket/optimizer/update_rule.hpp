// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// What a type needs to be the update rule of an optimizer: see optimizer/rule/ for the rules of this library.
#pragma once

#include <hocket/core/config.hpp>

#include <array>
#include <cstdint>

HOCKET_BEGIN_NAMESPACE

/// An update rule: the number of `states` per element, the constants of a step (`at`), and the `update` of one element.
/// If a rule has a member `weight_decay`, this is set to 0 for parameters that do not decay. If it has `state_names`,
/// checkpoints use these names; otherwise "state 0", "state 1" and so on. See optimizer/rule/.
template <class Rule, class F>
concept update_rule = requires(const Rule& rule, F& parameter, F gradient, const std::array<F*, Rule::states>& state) {
  rule.template at<F>(std::uint64_t{1}, 0.1);
  Rule::template update<F>(rule.template at<F>(std::uint64_t{1}, 0.1), parameter, gradient, state);
};

HOCKET_END_NAMESPACE
