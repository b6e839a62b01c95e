// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Names of the algorithms that a collective has, in the compiler's diagnostics. They follow from the table of plans in
/// selection/algorithm.hpp, and are composed only for a call that is refused.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/plan/plan.hpp>
#include <hocket/selection/algorithm.hpp>

#include <array>
#include <cstddef>
#include <initializer_list>
#include <string_view>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// A text that is composed at compile time. One that is too long does not compile.
struct composed_text {
  std::array<char, 400> characters{};  ///< ends with 0
  std::size_t size = 0;

  constexpr void append(std::initializer_list<std::string_view> all) {
    for (const std::string_view each : all) {
      for (const char character : each) characters[size++] = character;
    }
    characters[size] = 0;
  }
};

template <class Algorithm>
struct algorithm_name {
  const char* name;
};

/// Whether a collective has the algorithm, and it combines in at most the order `Weakest`.
template <plan::collective_kind Kind, plan::combination_order Weakest, class Algorithm>
consteval bool is_choice() {
  if constexpr (has_algorithm<Kind, Algorithm>) {
    return order_of<Kind, Algorithm>() <= Weakest;
  } else {
    return false;
  }
}

/// Appends those of `all` that a collective has, and that combine in at most the order `Weakest`: "ring, push and direct"
/// if `last` is " and ". Returns whether there are any.
template <plan::collective_kind Kind, plan::combination_order Weakest, class... Algorithms>
constexpr bool append_those_of(composed_text& text, const char* last, algorithm_name<Algorithms>... all) {
  std::array<const char*, sizeof...(all)> names{};
  std::size_t count = 0;
  ((is_choice<Kind, Weakest, Algorithms>() ? static_cast<void>(names[count++] = all.name) : void()), ...);
  for (std::size_t i = 0; i < count; ++i) text.append({i == 0 ? "" : i + 1 < count ? ", " : last, names[i]});
  return count > 0;
}

template <plan::collective_kind Kind, plan::combination_order Weakest = plan::combination_order::any_order>
constexpr bool append_algorithms(composed_text& text, const char* last) {
  return append_those_of<Kind, Weakest>(
      text, last, algorithm_name<ring_t>{"ring"}, algorithm_name<recursive_doubling_t>{"recursive_doubling"},
      algorithm_name<halving_doubling_t>{"halving_doubling"}, algorithm_name<recursive_halving_t>{"recursive_halving"},
      algorithm_name<double_tree_t>{"double_tree"}, algorithm_name<one_shot_t>{"one_shot"},
      algorithm_name<two_shot_t>{"two_shot"}, algorithm_name<push_t>{"push"}, algorithm_name<flat_t>{"flat"},
      algorithm_name<binomial_t>{"binomial"}, algorithm_name<pairwise_t>{"pairwise"},
      algorithm_name<direct_t>{"direct"}, algorithm_name<dissemination_t>{"dissemination"});
}

template <plan::collective_kind Kind>
consteval composed_text compose_no_such_algorithm() {
  composed_text text;
  text.append({"with(...): ", plan::to_string(Kind), " has no such algorithm: it has "});
  append_algorithms<Kind>(text, " and ");
  text.append({", and takes algorithm(your_plan)"});
  return text;
}

template <plan::collective_kind Kind>
consteval composed_text compose_not_in_fixed_tree() {
  composed_text text, names;
  text.append({"require(fixed_tree): this algorithm combines in another order than the fixed tree: "});
  const bool any = append_algorithms<Kind, plan::combination_order::fixed_tree>(names, " or ");
  if (any) text.append({"use ", names.characters.data(), ", or "});
  text.append({"pass no algorithm"});
  return text;
}

template <plan::collective_kind Kind>
consteval composed_text compose_not_in_rank_order() {
  composed_text text, names;
  text.append(
      {"with(...): this algorithm combines operands in another order than that of the ranks, and the operation is not "
       "known to be commutative: give it `static constexpr bool commutative = true`, or use "});
  const bool any = append_algorithms<Kind, plan::combination_order::rank_order>(names, " or ");
  text.append({any ? names.characters.data() : "no algorithm", any ? ", which keeps rank order" : ""});
  return text;
}

/// The diagnosis of an algorithm that the collective does not have.
template <plan::collective_kind Kind>
inline constexpr composed_text no_such_algorithm = compose_no_such_algorithm<Kind>();
/// The diagnosis of an algorithm that combines in another order than the fixed tree.
template <plan::collective_kind Kind>
inline constexpr composed_text not_in_fixed_tree = compose_not_in_fixed_tree<Kind>();
/// The diagnosis of an algorithm that combines in another order than that of the ranks.
template <plan::collective_kind Kind>
inline constexpr composed_text not_in_rank_order = compose_not_in_rank_order<Kind>();

}  // namespace detail
HOCKET_END_NAMESPACE
