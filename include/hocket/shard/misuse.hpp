// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Error messages of the compiler for operands that a rule forbids. See shard/apply_diagnostics.hpp.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/explanation.hpp>
#include <hocket/shard/rules.hpp>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// Returns the message for a misuse; empty for `misuse::none`.
consteval sentence explain_use(misuse why) {
  switch (why) {
    case misuse::operand_count:
      return "the rule's subscripts and this call have different numbers of operands: pass one for each group of "
             "letters";
    case misuse::no_such_dimension:
      return "an operand is sharded along a dimension that its subscripts do not have: add a letter for that dimension";
    case misuse::invariant_with_others:
      return "an invariant operand is used beside one that is not: convert it to replicated first, which moves "
             "nothing, and sums its gradients over the ranks in the backward pass";
    case misuse::varying_with_shard:
      return "a varying operand is used beside a slice: place it as shard<d> if it is a slice, or make both varying";
    case misuse::different_shards: return "operands are sharded along different dimensions: redistribute one of them";
    case misuse::whole_with_shard:
      return "one operand has a slice of a dimension and another one the whole of it: convert the whole one to the "
             "same slice, or gather the slice";
    case misuse::sharded_but_needed_whole:
      return "the function needs this dimension whole, and the operand is sharded along it: gather it first, or shard "
             "another dimension";
    case misuse::reduced_without_rule:
      return "the function reduces a dimension along which its operand is sharded, and no rule specifies how the "
             "ranks' results combine: use sum_over, maximum_over or mean_over, or gather the operand first";
    case misuse::partial_in_nonlinear:
      return "a non-linear function of partial results is not the partial result of the function: reduce the operand "
             "first, by converting it to replicated, invariant or shard<d>";
    case misuse::partial_plus_whole:
      return "a partial sum plus something that is not partial would count that once per rank: reduce the partial sum "
             "first, or convert the other operand to partial<sum>";
    case misuse::partial_times_partial:
      return "the product of two partial sums is not a partial sum: reduce one of them first";
    case misuse::partial_times_local:
      return "a partial sum times data that differ from rank to rank is not a partial sum: reduce the partial sum "
             "first";
    case misuse::partial_without_rule:
      return "a partial mean or maximum can't be used in a computation: reduce it first, by converting it to "
             "replicated or invariant";
    default: return {};
  }
}

}  // namespace detail
HOCKET_END_NAMESPACE
