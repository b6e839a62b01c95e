// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Local computations on parts of tensors: the caller's function computes, a rule describes the function, and the type
/// of the result follows. A computation that is right on one rank, but wrong on several, does not compile.
///
/// @code
/// // x: rows cut along dp, columns along tp; w: rows cut along tp. The product of the slices is a partial sum along tp.
/// const auto y = hocket::apply(hocket::multilinear<"bk,kn->bn">(), local_product, x, w);
/// const auto z = hocket::convert<"tp", hocket::replicated>(y);          // all_reduce
/// const auto a = hocket::apply(hocket::nonlinear<"bn->bn">(), local_gelu, z);   // of y, this would not compile
/// @endcode
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/not_understood.hpp>
#include <hocket/core/text.hpp>
#include <hocket/mesh/axis.hpp>
#include <hocket/shard/apply_diagnostics.hpp>
#include <hocket/shard/placement.hpp>
#include <hocket/shard/rules.hpp>
#include <hocket/shard/subscripts.hpp>
#include <hocket/shard/tensor.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <source_location>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// Returns the type of a placement that a rule of type Rule returned as a value.
template <placement Value, class Rule>
constexpr auto type_of_placement() noexcept {
  using enum placement_kind;
  if constexpr (Value.kind == replicated) {
    return hocket::replicated();
  } else if constexpr (Value.kind == invariant) {
    return hocket::invariant();
  } else if constexpr (Value.kind == varying) {
    return hocket::varying();
  } else if constexpr (Value.kind == shard) {
    return hocket::shard<Value.dimension>();
  } else if constexpr (Value.kind == undetermined) {
    return detail::undetermined();
  } else if constexpr (Value.kind == partial_sum) {
    return partial<sum>();
  } else if constexpr (Value.kind == partial_mean) {
    return partial<mean>();
  } else {
    return partial<typename Rule::reduction>();
  }
}

/// The first position of a letter in a rule's operands. Its extent is read there, unless it is in a type.
struct letter_place {
  std::size_t operand = 0;
  std::size_t dimension = 0;
};

constexpr letter_place first_place(const subscripts& labels, char letter) noexcept {
  letter_place place;
  for (; place.operand < labels.operands(); ++place.operand) {
    place.dimension = position_in(labels.operand(place.operand), letter);
    if (place.dimension != std::string_view::npos) break;
  }
  return place;
}

[[noreturn]] HOCKET_COLD inline void refuse_extents(char letter, std::size_t one, std::size_t other) {
  raise(errc::invalid_argument,
        concat({"dimension '", letter, "' has ", one, " elements in one operand and ", other,
                " in another: they must be equal"}),
        {.operation = "apply"});
}

template <class Mesh>
[[noreturn]] HOCKET_COLD void refuse_meshes(const Mesh& mesh) {
  static_cast<void>(checked_mesh(mesh));
  raise(errc::invalid_argument, "operands are on different meshes: redistribute one of them to the mesh of the other",
        {.operation = "apply", .rank = mesh.rank(), .ranks = mesh.size()});
}

/// The operands of a rule whose subscripts match them: extents by letter. Extents in types are not read at run time.
template <subscripts Labels, class... Operands>
struct labelled_operands {
  std::tuple<const Operands&...> all;

  template <char Letter>
  constexpr std::size_t extent() const noexcept {
    constexpr std::size_t known = extent_of_letter<Operands...>(Labels, Letter);
    if constexpr (known != dynamic) {
      return known;
    } else {
      constexpr letter_place at = first_place(Labels, Letter);
      return std::get<at.operand>(all).sizes()[at.dimension];
    }
  }

  /// Throws unless the extents of equal letters are equal.
  constexpr void check() const {
    for_each_place([&]<std::size_t K, std::size_t D>() {
      constexpr char letter = Labels.operand(K)[D];
      constexpr bool in_a_type = extent_of_letter<Operands...>(Labels, letter) != dynamic;
      constexpr bool read_here = !in_a_type && first_place(Labels, letter).operand == K;
      if constexpr (operand<K>::extents_type::sizes[D] == dynamic && !read_here) {
        if (const std::size_t own = std::get<K>(all).sizes()[D]; own != extent<letter>()) {
          refuse_extents(letter, extent<letter>(), own);
        }
      }
    });
  }

  /// Number of elements of this rank's parts that each element of the result stands for: the product of the sizes of
  /// all letters that the result lacks.
  constexpr double local_volume() const noexcept {
    double volume = 1;
    for_each_place([&]<std::size_t K, std::size_t D>() {
      constexpr char letter = Labels.operand(K)[D];
      if constexpr (first_place(Labels, letter).operand == K &&
                    position_in(Labels.result(), letter) == std::string_view::npos) {
        volume *= static_cast<double>(std::get<K>(all).part().size[D]);
      }
    });
    return volume;
  }

 private:
  template <std::size_t K>
  using operand = std::tuple_element_t<K, std::tuple<Operands...>>;

  /// Calls `visit` for each dimension of each operand, as template arguments.
  template <class Visit>
  static constexpr void for_each_place(const Visit& visit) {
    const auto of_operand = [&]<std::size_t K, std::size_t... D>(std::index_sequence<D...>) {
      (visit.template operator()<K, D>(), ...);
    };
    [&]<std::size_t... K>(std::index_sequence<K...>) {
      (of_operand.template operator()<K>(std::make_index_sequence<operand<K>::rank>()), ...);
    }(std::index_sequence_for<Operands...>());
  }
};

/// The properties of one rule and its operands that `apply` needs.
template <class T, class Rule, class First, class... Rest>
struct application {
  static constexpr subscripts labels = Rule::labels;
  static constexpr std::string_view letters = labels.result();
  using mesh_type = typename First::mesh_type;
  using axes = typename mesh_type::axes;

  template <std::size_t Axis>
  static constexpr auto result_placement() noexcept {
    constexpr int axis = static_cast<int>(Axis);
    return type_of_placement<
        result_along<Rule, typename First::placements_type, typename Rest::placements_type...>(axis).result, Rule>();
  }

  template <std::size_t Dimension>
  static constexpr std::size_t extent_in_type = extent_of_letter<First, Rest...>(labels, letters[Dimension]);
  template <std::size_t... Dimension>
  static auto make_extents(std::index_sequence<Dimension...>) -> extents<extent_in_type<Dimension>...>;
  using extents_type = decltype(make_extents(std::make_index_sequence<letters.size()>()));

  template <std::size_t... Axis>
  static auto make_placements(std::index_sequence<Axis...>) -> placements<decltype(result_placement<Axis>())...>;
  using placements_type = decltype(make_placements(std::make_index_sequence<static_cast<std::size_t>(axes::size)>()));

  using result_type = sharded_tensor<T, extents_type, mesh_type, placements_type>;

  /// The extents of the result.
  HOCKET_ALWAYS_INLINE static typename result_type::sizes_type result_sizes(const First& first, const Rest&... rest) {
    const labelled_operands<labels, First, Rest...> operands{{first, rest...}};
    operands.check();
    return [&]<std::size_t... Dimension>(std::index_sequence<Dimension...>) {
      return typename result_type::sizes_type{operands.template extent<letters[Dimension]>()...};
    }(std::make_index_sequence<letters.size()>());
  }

  static constexpr bool means() noexcept {
    for (const placement& each : placements_type::values) {
      if (each.kind == placement_kind::partial_mean) return true;
    }
    return false;
  }
};

}  // namespace detail

/// Calls `function(operands' local parts..., result's local part)` and returns the result, whose type follows from the
/// operands' placements by `Rule`. Parts are `array_view`s, const for the operands. Before the call, the elements of
/// the result are zero, or the rule's `initial`: for `maximum_over`, the smallest number of the type.
///
/// Local: no rank communicates. Parts may be empty. `Element` is the element type of the result, by default that of the
/// operands; pass it if the operands have several types. Throws `invalid_argument` if extents of equal letters differ,
/// or if operands are on two meshes of one type; passes on exceptions from `function`.
template <class Element = void, placement_rule Rule, class Function, tensor_type First, tensor_type... Rest>
  requires detail::is_applied<Element, Rule, First, Rest...> &&
           detail::takes_parts<Element, Rule, Function&, First, Rest...>
HOCKET_ALWAYS_INLINE auto apply(const Rule&, Function&& function, const First& first, const Rest&... rest) {
  using element = detail::element_of_result<Element, First>;
  using application = detail::application<element, Rule, First, Rest...>;
  if (!((first.mesh() == rest.mesh()) && ...)) detail::refuse_meshes(first.mesh());
  auto result = application::result_type::of_sizes(first.mesh(), application::result_sizes(first, rest...));
  if constexpr (application::means()) {
    result.set_count(detail::labelled_operands<application::labels, First, Rest...>{{first, rest...}}.local_volume());
  }
  if constexpr (requires { Rule::template initial<element>(); }) {
    std::fill(result.elements().begin(), result.elements().end(), Rule::template initial<element>());
  }
  function(first.local(), rest.local()..., result.local());
  return result;
}

// Deleted: the compiler prints the reason as a template argument, and if a rule forbids the call, also the axis.
template <class Element = void, class First, class... Rest,
          auto Why = detail::why_not_applied<Element, First, Rest...>()>
detail::not_understood apply(const First&, const Rest&...) = delete;
template <class Element = void, class Rule, class Function, class... Operands,
          auto Why = detail::why_forbidden<Element, Rule, Operands...>(),
          axis_name Along = detail::axis_of_misuse<Element, Rule, Operands...>()>
detail::not_understood apply(const Rule&, const Function&, const Operands&...) = delete;

/// Only declared: called after an error in a rule's type, so that no other error follows.
template <class Element = void, class Rule, class Function, tensor_type... Operands>
  requires detail::refused_for_subscripts<Rule>
detail::not_understood apply(const Rule&, const Function&, const Operands&...);

/// Adds `addend` to `total`, element by element, as for gradients of several uses of one value, or of several
/// microbatches. Both must have the same placement: with another one, elements would be counted too often or not at
/// all, so that the call does not compile.
template <tensor_type Total, tensor_type Addend>
  requires detail::is_accumulated<Total&, Addend>
void accumulate(Total& total, const Addend& addend,
                const std::source_location& site = std::source_location::current()) {
  static_cast<void>(detail::checked_mesh(total.mesh()));
  static_cast<void>(detail::checked_mesh(addend.mesh()));
  if (total.sizes() != addend.sizes() || !(total.mesh() == addend.mesh())) {
    raise(errc::invalid_argument,
          "the tensors have different extents, or are on different meshes: the addend must have the extents and the "
          "mesh of the total",
          {.operation = "accumulate", .rank = total.mesh().rank(), .ranks = total.mesh().size(), .site = site});
  }
  const auto to = total.elements();
  const auto from = addend.elements();
  for (std::size_t i = 0; i < to.size(); ++i) {
    to[i] = static_cast<typename Total::element_type>(to[i] + from[i]);
  }
}

/// Deleted: the template argument `Why` is the reason.
template <class Total, class Addend, auto Why = detail::why_not_accumulated<Total, Addend>()>
void accumulate(Total&&, const Addend&, const auto&...) = delete;

HOCKET_END_NAMESPACE
