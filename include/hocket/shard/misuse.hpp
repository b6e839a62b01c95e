// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The sentences that the compiler prints for what rules forbid. The template arguments that it prints next to them
/// tell the axis and the operands.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/mesh/axis.hpp>
#include <hocket/shard/rules.hpp>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// Does not compile if `Why` is a misuse.
template <misuse Why, axis_name Axis, class Rule, class... Operands>
struct checked_use {
  static_assert(Why != misuse::operand_count, "the rule's subscripts have another number of operands than this call");
  static_assert(Why != misuse::no_such_dimension,
                "an operand is sharded along a dimension that its subscripts do not have");
  static_assert(
      Why != misuse::invariant_with_others,
      "an invariant operand is used beside one that is not: convert it to replicated first, which moves nothing, "
      "and sums its gradients over the ranks in the backward pass");
  static_assert(
      Why != misuse::varying_with_shard,
      "an operand that varies without being a slice is used beside a slice: say which slice it is, or make both "
      "varying");
  static_assert(Why != misuse::different_shards,
                "operands are sharded along different dimensions: redistribute one of them");
  static_assert(
      Why != misuse::whole_with_shard,
      "one operand has a slice of a dimension and another one the whole of it: convert the whole one to the same "
      "slice, or gather the slice");
  static_assert(
      Why != misuse::sharded_but_needed_whole,
      "the function needs this dimension whole, and the operand is sharded along it: gather it first, or shard "
      "another dimension");
  static_assert(Why != misuse::reduced_without_rule,
                "the function reduces a dimension along which its operand is sharded, and no rule says how the ranks' "
                "results combine: use sum_over, maximum_over or mean_over, or gather the operand first");
  static_assert(
      Why != misuse::partial_in_nonlinear,
      "a non-linear function of partial results is not the partial result of the function: reduce the operand "
      "first, by converting it to replicated, invariant or shard<d>");
  static_assert(
      Why != misuse::partial_plus_whole,
      "a partial sum plus something that is not partial would count that once per rank: reduce the partial sum "
      "first, or convert the other operand to partial<sum>");
  static_assert(Why != misuse::partial_times_partial,
                "the product of two partial sums is not a partial sum: reduce one of them first");
  static_assert(
      Why != misuse::partial_times_local,
      "a partial sum times data that differ from rank to rank is not a partial sum: reduce the partial sum first");
  static_assert(Why != misuse::partial_without_rule,
                "a partial mean or maximum can't be computed with: reduce it first, by converting it to replicated or "
                "invariant");
  static constexpr bool value = Why == misuse::none;
};

}  // namespace detail
HOCKET_END_NAMESPACE
