// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Error messages of the compiler for an invalid call of `apply` or `accumulate`: each describes the first error of the
/// call. Each `why_...` is the template argument of a deleted overload: see shard/tensor_diagnostics.hpp.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/explanation.hpp>
#include <hocket/mesh/axis.hpp>
#include <hocket/shard/extents.hpp>
#include <hocket/shard/misuse.hpp>
#include <hocket/shard/placement.hpp>
#include <hocket/shard/rules.hpp>
#include <hocket/shard/subscripts.hpp>
#include <hocket/shard/tensor.hpp>

#include <cstddef>
#include <span>
#include <string_view>
#include <type_traits>

HOCKET_BEGIN_NAMESPACE
namespace detail {

// ── Rules ──────────────────────────────────────────────────────────────────────────────────────────────────────────

/// Whether a rule names the reduction of its partial results.
template <class Rule>
inline constexpr bool names_reduction = requires { typename Rule::reduction; };

/// Whether a rule that names a reduction also has an initial value for results: a rank with an empty part contributes
/// this value to the reduction.
template <class Rule, class Element>
inline constexpr bool names_initial = !names_reduction<Rule> || requires { Rule::template initial<Element>(); };

/// Returns the rule's verdict on operands along the axis at position `axis`.
template <class Rule, class... Placed>
constexpr rule_result result_along(int axis) noexcept {
  const placement values[]{Placed::values[axis]...};
  if (count(values, placement_kind::undetermined) > 0) return {{placement_kind::undetermined}};
  return Rule::result(values);
}

/// The first axis along which a rule forbids its operands, and the reason.
struct found_misuse {
  misuse why = misuse::none;
  int axis = 0;
};

template <class Rule, class First, class... Rest>
constexpr found_misuse find_misuse() noexcept {
  for (int axis = 0; axis < First::size; ++axis) {
    const rule_result computed = result_along<Rule, First, Rest...>(axis);
    if (!computed.allowed()) return {computed.why, axis};
  }
  return {};
}

/// Returns whether a rule can be evaluated for these operands at compile time.
template <class Rule, class... Placed>
constexpr bool is_rule_constexpr() noexcept {
  return requires { typename std::bool_constant<(result_along<Rule, Placed...>(0).allowed(), true)>; };
}

/// Returns the extent of a letter if it is in an operand's type, else `dynamic`.
template <class... Operands>
constexpr std::size_t extent_of_letter(const subscripts& labels, char letter) noexcept {
  std::size_t found = dynamic;
  std::size_t k = 0;
  const auto look = [&](const auto& sizes) {
    const std::size_t position = position_in(labels.operand(k++), letter);
    if (position < sizes.size() && sizes[position] != dynamic) found = sizes[position];
  };
  (look(Operands::extents_type::sizes), ...);
  return found;
}

/// Returns whether the operands' types agree on the extents of all letters.
template <class... Operands>
constexpr bool extents_agree(const subscripts& labels) noexcept {
  bool agree = true;
  std::size_t k = 0;
  const auto look = [&](const auto& sizes) {
    const std::string_view letters = labels.operand(k++);
    for (std::size_t d = 0; d < sizes.size() && d < letters.size(); ++d) {
      agree = agree && (sizes[d] == dynamic || sizes[d] == extent_of_letter<Operands...>(labels, letters[d]));
    }
  };
  (look(Operands::extents_type::sizes), ...);
  return agree;
}

template <class... Operands>
constexpr bool ranks_agree(const subscripts& labels) noexcept {
  std::size_t k = 0;
  return sizeof...(Operands) == labels.operands() && ((labels.operand(k++).size() == Operands::rank) && ...);
}

/// The element type of the result: `Element`, or if that is void, the element type of the first operand.
template <class Element, class First>
using element_of_result =
    std::conditional_t<std::is_void_v<Element>, std::remove_const_t<typename First::element_type>, Element>;

// ── apply ──────────────────────────────────────────────────────────────────────────────────────────────────────────

/// Returns the error in operands that is found without their rule.
template <class Element, class Rule, class First, class... Rest>
consteval sentence explain_operands() {
  constexpr subscripts labels = Rule::labels;
  using element = element_of_result<Element, First>;
  if (std::is_void_v<Element> && !(std::is_same_v<element, std::remove_const_t<typename Rest::element_type>> && ...)) {
    return "the operands have several element types: pass the element type of the result, as in apply<double>(rule, "
           "function, operands...)";
  }
  if (!(std::is_same_v<typename First::mesh_type, typename Rest::mesh_type> && ...)) {
    return "operands are on different meshes: redistribute one of them to the mesh of the other";
  }
  if (!labels.well_formed()) {
    return "subscripts must look like \"mk,kn->mn\": one letter for each dimension of each operand, no letter twice "
           "in one operand, then the letters of the result, each of which an operand must have";
  }
  if (!ranks_agree<First, Rest...>(labels)) {
    return "the rule's subscripts and this call differ in the number of operands, or in the number of dimensions of "
           "an operand: pass an operand for each group of letters, and write a letter for each of its dimensions";
  }
  if (!extents_agree<First, Rest...>(labels)) {
    return "dimensions with the same letter in the rule's subscripts have different extents: they must be equal";
  }
  return {};
}

/// Returns the error in a rule that allows its operands.
template <class Element, class Rule, class First, class... Rest>
consteval sentence explain_result() {
  for (int axis = 0; axis < First::size; ++axis) {
    if (result_along<Rule, First, Rest...>(axis).result.kind == placement_kind::partial_other &&
        !names_reduction<Rule>) {
      return "this rule's results are partial, but it names no reduction: add `using reduction = ...` to the rule, "
             "with an operation such as maximum; for sums, use placement_kind::partial_sum";
    }
  }
  if (!names_initial<Rule, Element>) {
    return "this rule names a reduction, but not the initial value of a result, which ranks with empty parts "
           "contribute: add `template <class T> static constexpr T initial()` to the rule, as in maximum_over";
  }
  return {};
}

/// Returns the error in operands, except that their rule forbids them.
template <class Element, class Rule, class First, class... Rest>
consteval sentence explain_applied() {
  constexpr sentence wrong = explain_operands<Element, Rule, First, Rest...>();
  if constexpr (wrong) {
    return wrong;
  } else if constexpr (!is_rule_constexpr<Rule, typename First::placements_type, typename Rest::placements_type...>()) {
    return "the rule can't be evaluated at compile time: its static function `result` must be constexpr, and must not "
           "read more operands than its subscripts have";
  } else if constexpr (find_misuse<Rule, typename First::placements_type, typename Rest::placements_type...>().why !=
                       misuse::none) {
    return {};
  } else {
    return explain_result<element_of_result<Element, First>, Rule, typename First::placements_type,
                          typename Rest::placements_type...>();
  }
}

/// Returns the reason for which a rule forbids its operands.
template <class Element, class Rule, class First, class... Rest>
consteval misuse misuse_of() {
  if constexpr (!explain_applied<Element, Rule, First, Rest...>()) {
    return find_misuse<Rule, typename First::placements_type, typename Rest::placements_type...>().why;
  } else {
    return misuse::none;
  }
}

/// Returns the first error in operands.
template <class Element, class Rule, class... Operands>
consteval sentence explain_application() {
  return first_of(
      {explain_applied<Element, Rule, Operands...>(), explain_use(misuse_of<Element, Rule, Operands...>())});
}

template <class Element, class Rule, class... Operands>
inline constexpr bool is_applied =
    !explain_applied<Element, Rule, Operands...>() && misuse_of<Element, Rule, Operands...>() == misuse::none;

template <class Element, class Rule, class First, class... Rest>
struct application;

/// Whether `Function` can be called with the local parts of the operands and of the result.
template <class Element, class Rule, class Function, class First, class... Rest>
inline constexpr bool takes_parts = std::is_invocable_v<
    Function, decltype(std::declval<const First&>().local()), decltype(std::declval<const Rest&>().local())...,
    decltype(std::declval<typename application<element_of_result<Element, First>, Rule, First, Rest...>::result_type&>()
                 .local())>;

/// Returns the error in a function of operands that are valid.
template <class Element, class Rule, class Function, class... Operands>
consteval sentence explain_function() {
  if constexpr (is_applied<Element, Rule, Operands...>) {
    if (!takes_parts<Element, Rule, Function&, Operands...>) {
      return "the function of apply must be callable with the local parts of the operands and of the result, which are "
             "array_views: [](const auto& x, const auto& result) { ... }";
    }
  }
  return {};
}

/// Whether the compiler has already rejected the rule's type for its subscripts: then a call reports no other error.
template <class Rule>
inline constexpr bool refused_for_subscripts = false;
template <placement_rule Rule>
inline constexpr bool refused_for_subscripts<Rule> =
    !subscripts(Rule::labels).well_formed() && std::is_base_of_v<labelled<Rule::labels>, Rule>;

template <class... Operands>
concept are_tensors = sizeof...(Operands) > 0 && (tensor_type<Operands> && ...);

/// Returns the error in the arguments of a call, except that the rule forbids them.
template <class Element, class Rule, class Function = void, class... Operands>
consteval sentence explain_apply() {
  if constexpr (!placement_rule<Rule>) {
    return "the first argument of apply must be a rule that describes the function, as in "
           "apply(nonlinear<\"bh->bh\">(), function, x)";
  } else if constexpr (!are_tensors<Operands...>) {
    return "the operands of apply must be tensors: the type of a part, such as x.local() or x.elements(), does not "
           "state its placement";
  } else if constexpr (refused_for_subscripts<Rule>) {
    return {};
  } else {
    return first_of(
        {explain_applied<Element, Rule, Operands...>(), explain_function<Element, Rule, Function, Operands...>()});
  }
}

template <class Element, class First, class... Rest>
  requires(static_cast<bool>(explain_apply<Element, First, Rest...>()))
constexpr auto why_not_applied() {
  return make_explanation([] { return explain_apply<Element, First, Rest...>(); });
}

template <class Element, class Rule, class... Operands>
concept forbidden =
    placement_rule<Rule> && are_tensors<Operands...> && (misuse_of<Element, Rule, Operands...>() != misuse::none);

template <class Element, class Rule, class... Operands>
  requires forbidden<Element, Rule, Operands...>
constexpr auto why_forbidden() {
  return make_explanation([] { return explain_use(misuse_of<Element, Rule, Operands...>()); });
}

template <class Element, class Rule, class First, class... Rest>
  requires forbidden<Element, Rule, First, Rest...>
constexpr axis_name axis_of_misuse() {
  constexpr int axis = find_misuse<Rule, typename First::placements_type, typename Rest::placements_type...>().axis;
  return First::axes::all[axis].name;
}

// ── accumulate ─────────────────────────────────────────────────────────────────────────────────────────────────────

/// Returns whether the sum of two tensors with these placements has the same placements.
constexpr bool can_be_added(std::span<const placement> placed) noexcept {
  return count_partial(placed) == count(placed, placement_kind::partial_sum);
}

template <class To, class From>
concept can_add = requires(const To& a, const From& b) { static_cast<To>(a + b); };

template <class Total, class Addend>
consteval sentence explain_sum_of_tensors() {
  using to = typename Total::element_type;
  using from = typename Addend::element_type;
  if (!std::is_same_v<typename Total::mesh_type, typename Addend::mesh_type>) {
    return "a gradient on another mesh can't be added: redistribute it to this mesh first";
  }
  if (Total::rank != Addend::rank)
    return "the gradient and the total have different numbers of dimensions: make the total with as many as the "
           "gradient";
  if (!may_have_same_extents<typename Total::extents_type, typename Addend::extents_type>()) {
    return "the gradient and the total have different extents: make the total with the extents of the gradient";
  }
  if (!std::is_same_v<typename Total::placements_type, typename Addend::placements_type> &&
      determined<typename Addend::placements_type>) {
    return "a gradient with another placement can't be added, because its elements would be counted too often or not "
           "at all: first convert one of the two to the placement of the other";
  }
  if (!can_be_added(Total::placements_type::values)) {
    return "partial means and maxima can't be added element by element: reduce them first, or store sums and counts";
  }
  if (std::is_integral_v<to> && !std::is_integral_v<from>) {
    return "a total of integers would lose the fractions of what is added to it: give the total a floating-point type";
  }
  if (!can_add<to, from>) {
    return "elements of the two types can't be added: define an operator+ whose result can be converted to an element "
           "of the total";
  }
  return {};
}

/// Returns the error in a call of `accumulate`. `Total` is a reference unless the total is a temporary.
template <class Total, class Addend>
consteval sentence explain_accumulation() {
  if constexpr (tensor_type<Total> && tensor_type<Addend>) {
    using total = std::remove_reference_t<Total>;
    if (!std::is_lvalue_reference_v<Total>) return explain_not_written_to();
    if (constexpr sentence wrong = explain_sum_of_tensors<std::remove_const_t<total>, Addend>(); wrong) return wrong;
    if (!is_written_to<total>) return explain_not_written_to();
    return {};
  } else if constexpr (tensor_type<Total> || tensor_type<Addend>) {
    return "accumulate takes two tensors: pass both as tensors, because without a placement in the type it is unknown "
           "how often an element would be counted";
  } else {
    return {};
  }
}

template <class Total, class Addend>
inline constexpr bool is_accumulated = !explain_accumulation<Total, Addend>();

template <class Total, class Addend>
  requires(!is_accumulated<Total, Addend>)
constexpr auto why_not_accumulated() {
  return make_explanation([] { return explain_accumulation<Total, Addend>(); });
}

}  // namespace detail
HOCKET_END_NAMESPACE
