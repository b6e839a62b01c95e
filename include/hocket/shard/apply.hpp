// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Local mathematics on parts of tensors: the caller's function computes, a rule says what it is, and the result's type
/// follows. What would be wrong somewhere else than on one rank does not compile.
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
#include <hocket/shard/misuse.hpp>
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

template <class Rule, class = void>
inline constexpr bool names_reduction = false;
template <class Rule>
inline constexpr bool names_reduction<Rule, std::void_t<typename Rule::reduction>> = true;

/// What `partial_other` means as the result of a rule.
template <class Rule, bool Named = names_reduction<Rule>>
struct reduction_by_rule {
  static_assert(Named,
                "this rule's results are partial, and it does not say of which reduction: add `using reduction = ...` "
                "to the rule, an operation such as maximum; sums are placement_kind::partial_sum");
  using type = undetermined;
};
template <class Rule>
struct reduction_by_rule<Rule, true> {
  using type = partial<typename Rule::reduction>;
};

/// A rank whose part is empty leaves its result as it was at first, and that is reduced with the others'.
template <class Rule, class Element>
struct checked_initial {
  static constexpr bool value = !names_reduction<Rule> || requires { Rule::template initial<Element>(); };
  static_assert(value,
                "this rule names a reduction, and not what a result is before anything is reduced to it, as on ranks "
                "whose parts are empty: add `template <class T> static constexpr T initial()` to the rule, as in "
                "maximum_over");
};

/// The type of a placement that a rule of type Rule gave as a value.
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
    return typename reduction_by_rule<Rule>::type();
  }
}

/// What a rule says of operands along the axis at `axis`.
template <class Rule, class... Placed>
constexpr verdict judge(int axis) noexcept {
  const placement values[]{Placed::values[axis]...};
  if (count(values, placement_kind::undetermined) > 0) return {{placement_kind::undetermined}};
  const verdict judged = Rule::result(values);
  return judged.allowed() ? judged : verdict{{placement_kind::undetermined}, judged.why};
}

/// The first axis along which a rule forbids its operands, and why.
struct found_misuse {
  misuse why = misuse::none;
  int axis = 0;
};

template <class Rule, class First, class... Rest>
constexpr found_misuse find_misuse() noexcept {
  for (int axis = 0; axis < First::size; ++axis) {
    const verdict judged = judge<Rule, First, Rest...>(axis);
    if (!judged.allowed()) return {judged.why, axis};
  }
  return {};
}

/// The extent of a letter, as far as the operands' types tell.
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

/// Whether the operands' types agree on the extents of all letters.
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

/// Where a letter stands first among a rule's operands. There its extent is read, unless a type tells it.
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
        concat({"dimension '", letter, "' has ", one, " elements in one operand and ", other, " in another"}),
        {.operation = "apply"});
}

template <class Mesh>
[[noreturn]] HOCKET_COLD void refuse_meshes(const Mesh& mesh) {
  static_cast<void>(checked_mesh(mesh));
  raise(errc::invalid_argument, "operands are on different meshes: redistribute one of them to the mesh of the other",
        {.operation = "apply", .rank = mesh.rank(), .ranks = mesh.size()});
}

/// The operands of one rule, whose subscripts fit them: extents by letter. What types tell is not looked at again.
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

  /// How many elements of this rank's parts the letters have together that the result lacks: what each element of the
  /// result stands for.
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

/// Whether the compiler can ask a rule about operands.
template <class Rule, class... Placed>
constexpr bool judges_when_compiling() noexcept {
  return requires { typename std::bool_constant<(judge<Rule, Placed...>(0).allowed(), true)>; };
}

/// What `apply` needs to know of one rule and its operands.
template <class T, class Rule, class First, class... Rest>
struct application {
  static constexpr subscripts labels = Rule::labels;
  static constexpr std::string_view letters = labels.result();
  using mesh_type = typename First::mesh_type;
  using axes = typename mesh_type::axes;

  static constexpr bool on_one_mesh = (std::is_same_v<mesh_type, typename Rest::mesh_type> && ...);
  static constexpr bool labelled = ranks_agree<First, Rest...>(labels);
  static constexpr bool understood = on_one_mesh && labelled && labels.well_formed();

  static constexpr bool can_judge() noexcept {
    if constexpr (understood) {
      return judges_when_compiling<Rule, typename First::placements_type, typename Rest::placements_type...>();
    } else {
      return true;
    }
  }
  static constexpr bool judges = can_judge();
  /// Whether the rule can be asked: where it can't, one error is enough.
  static constexpr bool fits = understood && judges;

  static constexpr found_misuse find() noexcept {
    if constexpr (fits) {
      return find_misuse<Rule, typename First::placements_type, typename Rest::placements_type...>();
    } else {
      return {};
    }
  }
  static constexpr found_misuse found = find();

  template <std::size_t Axis>
  static constexpr auto result_placement() noexcept {
    if constexpr (fits) {
      constexpr int axis = static_cast<int>(Axis);
      return type_of_placement<
          judge<Rule, typename First::placements_type, typename Rest::placements_type...>(axis).result, Rule>();
    } else {
      return undetermined();
    }
  }

  template <std::size_t... Dimension>
  static auto make_extents(std::index_sequence<Dimension...>)
      -> extents<extent_of_letter<First, Rest...>(labels, letters[Dimension])...>;
  using extents_type = decltype(make_extents(std::make_index_sequence<letters.size()>()));

  template <std::size_t... Axis>
  static auto make_placements(std::index_sequence<Axis...>) -> placements<decltype(result_placement<Axis>())...>;
  using placements_type = decltype(make_placements(std::make_index_sequence<static_cast<std::size_t>(axes::size)>()));

  using result_type = sharded_tensor<T, extents_type, mesh_type, placements_type>;

  /// The extents of the result. After a misuse, anything.
  HOCKET_ALWAYS_INLINE static typename result_type::sizes_type result_sizes(const First& first, const Rest&... rest) {
    if constexpr (fits) {
      const labelled_operands<labels, First, Rest...> operands{{first, rest...}};
      operands.check();
      return [&]<std::size_t... Dimension>(std::index_sequence<Dimension...>) {
        return typename result_type::sizes_type{operands.template extent<letters[Dimension]>()...};
      }(std::make_index_sequence<letters.size()>());
    } else {
      return {};
    }
  }

  static constexpr bool means() noexcept {
    for (const placement& each : placements_type::values) {
      if (each.kind == placement_kind::partial_mean) return true;
    }
    return false;
  }
};

constexpr bool after_a_misuse(std::span<const placement> placed) noexcept {
  return count(placed, placement_kind::undetermined) > 0;
}

/// Whether the sum of two tensors that are placed so is placed so.
constexpr bool can_be_added(std::span<const placement> placed) noexcept {
  return count_partial(placed) == count(placed, placement_kind::partial_sum);
}

}  // namespace detail

/// Calls `function(operands' local parts..., result's local part)` and gives back the result, whose type follows from
/// the operands' placements by `Rule`. Parts are `array_view`s, of the operands const; that of the result is zero
/// before, or what the rule says is `initial`: the smallest number there is for `maximum_over`.
///
/// Local: nothing is communicated. Parts may be empty. `Element` is the result's element type, that of the operands
/// unless it is given; operands of several types need it. Throws `invalid_argument` if extents of equal letters differ, or if operands are on two
/// meshes of one type; and what `function` throws.
template <class Element = void, placement_rule Rule, class Function, tensor_type First, tensor_type... Rest>
HOCKET_ALWAYS_INLINE auto apply(const Rule&, Function&& function, const First& first, const Rest&... rest) {
  using element =
      std::conditional_t<std::is_void_v<Element>, std::remove_const_t<typename First::element_type>, Element>;
  using application = detail::application<element, Rule, First, Rest...>;
  static_assert(
      !std::is_void_v<Element> || (std::is_same_v<element, std::remove_const_t<typename Rest::element_type>> && ...),
      "the operands have several element types, and nobody has said which the result has: say it, as in "
      "apply<double>(rule, function, operands...)");
  static_assert(application::on_one_mesh,
                "operands are on different meshes: redistribute one of them to the mesh of the other");
  static_cast<void>(detail::labelled<application::labels>());
  static_assert(
      application::labelled || !application::labels.well_formed(),
      "the rule's subscripts have another number of operands, or of dimensions of an operand, than this call");
  static_assert(!application::labelled || detail::extents_agree<First, Rest...>(application::labels),
                "dimensions with the same letter in the rule's subscripts have different extents");
  static_assert(application::judges,
                "the rule can't be asked when compiling: its static function `result` must be constexpr, and look at "
                "no more operands than its subscripts have");
  constexpr detail::found_misuse found = application::found;
  static_cast<void>(detail::checked_use<found.why, First::axes::all[found.axis].name, Rule,
                                        detail::placement_at_t<found.axis, typename First::placements_type>,
                                        detail::placement_at_t<found.axis, typename Rest::placements_type>...>());
  static_cast<void>(detail::checked_initial<Rule, element>());
  if constexpr (application::on_one_mesh) {
    if (!((first.mesh() == rest.mesh()) && ...)) detail::refuse_meshes(first.mesh());
  }
  auto result = application::result_type::of_sizes(first.mesh(), application::result_sizes(first, rest...));
  if constexpr (application::means()) {
    result.set_count(detail::labelled_operands<application::labels, First, Rest...>{{first, rest...}}.local_volume());
  }
  if constexpr (requires { Rule::template initial<element>(); }) {
    std::fill(result.elements().begin(), result.elements().end(), Rule::template initial<element>());
  }
  if constexpr (application::fits) std::forward<Function>(function)(first.local(), rest.local()..., result.local());
  return result;
}

/// Does not compile: a rule comes first.
template <class Element = void, class First, class... Rest>
  requires(!placement_rule<First>)
auto apply(const First&, const Rest&...) {
  constexpr bool is_rule = placement_rule<First>;
  static_assert(is_rule,
                "the first argument of apply is a rule that says what the function is, as in "
                "apply(nonlinear<\"bh->bh\">(), function, x)");
  return detail::not_understood();
}

/// Does not compile: tensors come last.
template <class Element = void, placement_rule Rule, class Function, class... Operands>
  requires(!(tensor_type<Operands> && ... && (sizeof...(Operands) > 0)))
auto apply(const Rule&, Function&&, const Operands&...) {
  constexpr bool are_tensors = (tensor_type<Operands> && ... && (sizeof...(Operands) > 0));
  static_assert(are_tensors,
                "the operands of apply are tensors: of a part alone, such as x.local() or x.elements(), nobody knows "
                "how it is placed");
  return detail::not_understood();
}

/// Adds `addend` to `total`, element by element: for gradients of several uses of one value, or of several
/// microbatches. Both must be placed alike; a summand that is placed in another way is counted wrongly, and does not
/// compile.
template <tensor_type Total, tensor_type Addend>
void accumulate(Total& total, const Addend& addend,
                const std::source_location& site = std::source_location::current()) {
  constexpr bool on_one_mesh = std::is_same_v<typename Total::mesh_type, typename Addend::mesh_type>;
  static_assert(on_one_mesh, "a gradient on another mesh can't be added: redistribute it to this mesh first");
  static_assert(Total::rank == Addend::rank, "the gradient has another number of dimensions than the total");
  static_assert(Total::rank != Addend::rank ||
                    detail::may_have_same_extents<typename Total::extents_type, typename Addend::extents_type>(),
                "the gradient has other extents than the total");
  static_assert(
      !on_one_mesh || std::is_same_v<typename Total::placements_type, typename Addend::placements_type> ||
          detail::after_a_misuse(Addend::placements_type::values),
      "a gradient that is placed in another way can't be added, as its elements would be counted once too often or "
      "not at all: convert one of the two first");
  static_assert(
      detail::can_be_added(Total::placements_type::values),
      "partial means and maxima can't be added element by element: reduce them first, or keep sums and counts");
  static_assert(
      !std::is_integral_v<typename Total::element_type> || std::is_integral_v<typename Addend::element_type>,
      "a total of integers would lose the fractions of what is added to it: give the total a floating-point type");
  constexpr bool adds = requires(const typename Total::element_type& a, const typename Addend::element_type& b) {
    static_cast<typename Total::element_type>(a + b);
  };
  static_assert(
      adds, "elements of the two types can't be added: give them an operator+ whose result is an element of the total");
  constexpr bool writable = detail::is_written_to<Total>;
  static_assert(writable,
                "what is written to is a tensor that has a name, and elements that are not constant: neither a "
                "temporary nor a const tensor, nor what borrow makes");
  if constexpr (adds && writable && on_one_mesh && Total::rank == Addend::rank) {
    static_cast<void>(detail::checked_mesh(total.mesh()));
    static_cast<void>(detail::checked_mesh(addend.mesh()));
    if (total.sizes() != addend.sizes() || !(total.mesh() == addend.mesh())) {
      raise(errc::invalid_argument, "the tensors have different extents, or are on different meshes",
            {.operation = "accumulate", .rank = total.mesh().rank(), .ranks = total.mesh().size(), .site = site});
    }
    const auto to = total.elements();
    const auto from = addend.elements();
    for (std::size_t i = 0; i < to.size(); ++i) {
      to[i] = static_cast<typename Total::element_type>(to[i] + from[i]);
    }
  }
}

/// Deleted: see what it says.
template <tensor_type Total, tensor_type Addend, auto Why = detail::why_not_written_to<Total>()>
void accumulate(const Total&&, const Addend&, const auto&...) = delete;
/// Does not compile: see what it says.
template <class Total, class Addend>
  requires(tensor_type<Total> != tensor_type<Addend>)
void accumulate(Total&&, const Addend&, const auto&...) {
  constexpr bool are_tensors = tensor_type<Total> && tensor_type<Addend>;
  static_assert(are_tensors,
                "what is added to a tensor is a tensor, whose type says how it is placed: of a number or a range, "
                "nobody knows whether it would be counted once");
}

HOCKET_END_NAMESPACE
