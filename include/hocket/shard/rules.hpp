// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Rules for local computations on placed data: whether they are valid, and how the result is placed. A matrix product
/// of slices along the reduced dimension is a partial sum; a non-linear function of a partial sum is wrong. A rule
/// states this for one axis of the mesh at a time, from the operands' placements alone.
///
/// Rules are types. Those here are named after the kind of function, and take subscripts:
///
/// @code
/// nonlinear<"bh->bh">        gelu, or the product of gates; nonlinear<"bH->bH"> a softmax over h
/// linear<"bh,h->bh">         a sum of its operands, with factors that do not depend on them
/// multilinear<"bk,kn->bn">   products, such as matrix products: linear in each operand
/// sum_over<"bv->b">          the sum of some function along each row; also maximum_over, mean_over
/// @endcode
///
/// A user-defined rule is a type with `labels` and `result`:
///
/// @code
/// struct causal_attention {  // each head alone, time whole
///   static constexpr hocket::subscripts labels = "hTd,hTd,hTd->hTd";
///   static constexpr hocket::rule_result result(std::span<const hocket::placement> operands) {
///     return hocket::nonlinear<"hTd,hTd,hTd->hTd">::result(operands);
///   }
/// };
/// @endcode
///
/// A rule whose result is partial by another operation than a sum or a mean (`placement_kind::partial_other`) names
/// this operation, and an initial value for results. Ranks with empty parts contribute the initial value to the
/// reduction, so it must be neutral there:
///
/// @code
/// struct minimum_of_rows {
///   static constexpr hocket::subscripts labels = "bv->b";
///   using reduction = hocket::minimum;
///   template <class T> static constexpr T initial() { return std::numeric_limits<T>::max(); }   // infinity, if T has it
///   static constexpr hocket::rule_result result(std::span<const hocket::placement> operands) {
///     return hocket::maximum_over<"bv->b">::result(operands);
///   }
/// };
/// @endcode
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/operation/operations.hpp>
#include <hocket/shard/placement.hpp>
#include <hocket/shard/subscripts.hpp>

#include <cstddef>
#include <limits>
#include <span>
#include <string_view>

HOCKET_BEGIN_NAMESPACE

/// The reason why operands can't be used together. The error messages are in shard/misuse.hpp.
enum class misuse {
  none,
  operand_count,
  no_such_dimension,
  invariant_with_others,
  varying_with_shard,
  different_shards,
  whole_with_shard,
  sharded_but_needed_whole,
  reduced_without_rule,
  partial_in_nonlinear,
  partial_plus_whole,
  partial_times_partial,
  partial_times_local,
  partial_without_rule
};

/// The placement of a result, or the reason why it can't be computed.
struct rule_result {
  placement result{};         ///< placement of the result, if allowed
  misuse why = misuse::none;  ///< why it is not allowed

  constexpr bool allowed() const noexcept { return why == misuse::none; }  ///< whether the result can be computed
};

/// A rule that states how a result is placed.
template <class T>
concept placement_rule = requires(std::span<const placement> operands) {
  { T::labels } -> std::convertible_to<subscripts>;
  { T::result(operands) } -> std::same_as<rule_result>;
};

namespace detail {

constexpr std::size_t count(std::span<const placement> operands, placement_kind kind) noexcept {
  std::size_t found = 0;
  for (const placement& each : operands) found += each.kind == kind ? 1U : 0U;
  return found;
}

constexpr std::size_t count_partial(std::span<const placement> operands) noexcept {
  std::size_t found = 0;
  for (const placement& each : operands) found += each.partial() ? 1U : 0U;
  return found;
}

/// The letter along which operands are sharded.
struct common_letter {
  char letter = 0;  ///< 0 if no operand is sharded
  misuse why = misuse::none;
};

constexpr common_letter sharded_letter(const subscripts& labels, std::span<const placement> operands) noexcept {
  char letter = 0;
  for (std::size_t k = 0; k < operands.size(); ++k) {
    if (!operands[k].sharded()) continue;
    const std::string_view own = labels.operand(k);
    const auto dimension = static_cast<std::size_t>(operands[k].dimension);
    if (dimension >= own.size()) return {0, misuse::no_such_dimension};
    if (letter != 0 && letter != own[dimension]) return {0, misuse::different_shards};
    letter = own[dimension];
  }
  return {letter, misuse::none};
}

/// Returns the verdict on operands of which none is partial; `reduced` if the result lacks the sharded dimension.
constexpr rule_result result_of_whole_operands(const subscripts& labels, std::span<const placement> operands,
                                               rule_result reduced) noexcept {
  if (const std::size_t invariants = count(operands, placement_kind::invariant); invariants > 0) {
    if (invariants == operands.size()) return {{placement_kind::invariant}};
    return {{}, misuse::invariant_with_others};
  }
  const auto [letter, why] = sharded_letter(labels, operands);
  if (why != misuse::none) return {{}, why};
  if (count(operands, placement_kind::varying) > 0) {
    if (letter != 0) return {{}, misuse::varying_with_shard};
    return {{placement_kind::varying}};
  }
  if (letter == 0) return {{placement_kind::replicated}};
  if (letter >= 'A' && letter <= 'Z') return {{}, misuse::sharded_but_needed_whole};
  const std::size_t position = position_in(labels.result(), letter);
  for (std::size_t k = 0; k < operands.size(); ++k) {
    if (operands[k].sharded()) continue;
    if (position_in(labels.operand(k), letter) != std::string_view::npos) return {{}, misuse::whole_with_shard};
  }
  if (position == std::string_view::npos) return reduced;
  return {{placement_kind::shard, static_cast<int>(position)}};
}

constexpr bool right_count(const subscripts& labels, std::span<const placement> operands) noexcept {
  return labels.operands() == operands.size();
}

/// Returns the verdict on a reduction, along the letters that the result lacks, of a function of operands.
constexpr rule_result result_of_reduction(const subscripts& labels, std::span<const placement> operands,
                                          placement_kind reduced) noexcept {
  if (!right_count(labels, operands)) return {{}, misuse::operand_count};
  if (count_partial(operands) > 0) return {{}, misuse::partial_in_nonlinear};
  return result_of_whole_operands(labels, operands, {{reduced}});
}

template <subscripts Labels>
struct labelled {
  static_assert(
      Labels.well_formed(),
      "subscripts must look like \"mk,kn->mn\": one letter for each dimension of each operand, no letter twice in one "
      "operand, then the letters of the result, each of which an operand must have");
  static constexpr subscripts labels = Labels;
};

}  // namespace detail

/// Any function that mixes no dimensions except those in capital letters.
template <subscripts Labels>
struct nonlinear : detail::labelled<Labels> {
  static constexpr rule_result result(std::span<const placement> operands) noexcept {
    if (!detail::right_count(Labels, operands)) return {{}, misuse::operand_count};
    if (detail::count_partial(operands) > 0) return {{}, misuse::partial_in_nonlinear};
    return detail::result_of_whole_operands(Labels, operands, {{}, misuse::reduced_without_rule});
  }
};

/// A sum of its operands, with factors that do not depend on them. A letter that the result lacks is summed.
template <subscripts Labels>
struct linear : detail::labelled<Labels> {
  static constexpr rule_result result(std::span<const placement> operands) noexcept {
    if (!detail::right_count(Labels, operands)) return {{}, misuse::operand_count};
    const std::size_t partials = detail::count_partial(operands);
    if (partials == 0) {
      const rule_result computed = detail::result_of_whole_operands(Labels, operands, {{placement_kind::partial_sum}});
      const bool some_are_whole = detail::count(operands, placement_kind::shard) < operands.size();
      if (computed.result.kind == placement_kind::partial_sum && some_are_whole)
        return {{}, misuse::partial_plus_whole};
      return computed;
    }
    if (partials < operands.size()) return {{}, misuse::partial_plus_whole};
    if (detail::count(operands, placement_kind::partial_sum) < partials) return {{}, misuse::partial_without_rule};
    return {{placement_kind::partial_sum}};
  }
};

/// A sum of products of one element of each operand. A letter that the result lacks is summed.
template <subscripts Labels>
struct multilinear : detail::labelled<Labels> {
  static constexpr rule_result result(std::span<const placement> operands) noexcept {
    if (!detail::right_count(Labels, operands)) return {{}, misuse::operand_count};
    const std::size_t partials = detail::count_partial(operands);
    if (partials == 0) {
      return detail::result_of_whole_operands(Labels, operands, {{placement_kind::partial_sum}});
    }
    if (detail::count(operands, placement_kind::partial_sum) < partials) return {{}, misuse::partial_without_rule};
    if (partials > 1) return {{}, misuse::partial_times_partial};
    if (detail::count(operands, placement_kind::invariant) > 0) return {{}, misuse::invariant_with_others};
    if (detail::count(operands, placement_kind::replicated) + 1 < operands.size()) {
      return {{}, misuse::partial_times_local};
    }
    return {{placement_kind::partial_sum}};
  }
};

/// A sum along the letters that the result lacks, of any function of the operands' elements.
template <subscripts Labels>
struct sum_over : detail::labelled<Labels> {
  static constexpr rule_result result(std::span<const placement> operands) noexcept {
    return detail::result_of_reduction(Labels, operands, placement_kind::partial_sum);
  }
};

/// The maximum along the letters that the result lacks, of any function of the operands' elements.
template <subscripts Labels>
struct maximum_over : detail::labelled<Labels> {
  using reduction = maximum;  ///< what combines the results of ranks

  /// Initial value of the local result, so that ranks without elements do not affect the maximum.
  template <class T>
  static constexpr T initial() noexcept {
    using limits = std::numeric_limits<T>;
    return limits::has_infinity ? static_cast<T>(-limits::infinity()) : limits::lowest();
  }

  static constexpr rule_result result(std::span<const placement> operands) noexcept {
    return detail::result_of_reduction(Labels, operands, placement_kind::partial_other);
  }
};

/// The mean along the letters that the result lacks. Each rank's partial result carries the number of elements that it
/// stands for, so that slices of unequal lengths give the mean of the whole.
template <subscripts Labels>
struct mean_over : detail::labelled<Labels> {
  static constexpr rule_result result(std::span<const placement> operands) noexcept {
    return detail::result_of_reduction(Labels, operands, placement_kind::partial_mean);
  }
};

HOCKET_END_NAMESPACE
