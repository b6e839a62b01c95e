// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Plans for calls with `in` and `out` in the same memory. Algorithms that differ then have a member `in_place`.
#pragma once

#include <hocket/plan/plan.hpp>

HOCKET_BEGIN_NAMESPACE
namespace plan {

/// Returns the form of `plan` that is correct if `in` and `out` are the same memory. Ranks may mix both forms in one
/// call: they exchange the same messages and signals.
template <algorithm Plan>
constexpr Plan for_in_place(Plan plan) {
  if constexpr (requires { plan.in_place = true; }) plan.in_place = true;
  return plan;
}

}  // namespace plan
HOCKET_END_NAMESPACE
