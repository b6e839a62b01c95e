// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Error messages of the compiler for an invalid redistribution, on a tensor's own mesh or to another one: each
/// describes the first error of the call. Each `why_...` is the template argument of a deleted overload: see
/// shard/tensor_diagnostics.hpp.
#pragma once

#include <hocket/core/call_end.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/explanation.hpp>
#include <hocket/core/options.hpp>
#include <hocket/mesh/axis.hpp>
#include <hocket/mesh/axis_diagnostics.hpp>
#include <hocket/shard/conversion_diagnostics.hpp>
#include <hocket/shard/conversion_rules.hpp>
#include <hocket/shard/extents.hpp>
#include <hocket/shard/option_diagnostics.hpp>
#include <hocket/shard/placement.hpp>
#include <hocket/shard/tensor.hpp>

#include <source_location>
#include <type_traits>

HOCKET_BEGIN_NAMESPACE
namespace detail {

// ── On the tensor's own mesh ───────────────────────────────────────────────────────────────────────────────────────

/// The template arguments of a call: `on<...>`, `elsewhere<...>`, or a type of a tensor.
template <class... Requested>
struct requested_list {};

template <class Axes, class Requested>
inline constexpr bool axis_exists = true;
template <class Axes, axis_name Axis, class Placement, bool IsPlacement>
inline constexpr bool axis_exists<Axes, on<Axis, Placement, IsPlacement>> = has_axes<Axes, Axis>;

/// Like `checked_placements`, for a redistribution.
template <class Axes, class... Requested>
consteval sentence explain_requested_placements() {
  if (!((is_on<Requested>::value || is_elsewhere<Requested>::value) && ...)) {
    return "pass a tensor's placements as on<\"axis\", placement>, or as elsewhere<placement> for all others";
  }
  if (!(has_placement_type<Requested> && ...)) {
    return "the axis must be followed by a placement: replicated, invariant, varying, shard<d> or partial<...>";
  }
  if (!are_axes_distinct<Requested...>()) {
    return "the placement along one axis, or elsewhere, is given twice: give it once";
  }
  if (!(axis_exists<Axes, Requested> && ...)) return explain_missing_axis();
  return {};
}

consteval sentence explain_kind(redistribution_kind kind) {
  switch (kind) {
    case redistribution_kind::varying:
      return "varying data are not parts of a whole, so they can't be redistributed: make the tensor with shard<d> if "
             "its parts are slices, or convert it to partial<sum>";
    case redistribution_kind::replicated_to_invariant:
      return "replicated data can't become invariant: the gradients of a replicated value are summands, and no rank "
             "would add them; make the value invariant where it is computed, from partial<sum> or shard<d>";
    case redistribution_kind::other_reduction:
      return "a partial result can't become one of another reduction: reduce it first";
    case redistribution_kind::made_partial:
      return "only replicated data and slices can be made partial, and only partial<sum>: make invariant data "
             "replicated first";
    default: return {};
  }
}

template <class From, class To>
struct change_of_placements;
template <class... From, class... To>
struct change_of_placements<placements<From...>, placements<To...>> {
  static consteval sentence explain() {
    return first_of({explain_kind(std::is_same_v<From, To> ? redistribution_kind::possible
                                                           : redistribution_between(From::value, To::value))...});
  }
};

/// Returns whether partial means are combined, for which their numbers of elements must be known.
template <class From, class To>
constexpr bool combines_means() noexcept {
  for (int axis = 0; axis < From::size; ++axis) {
    const bool before = From::values[axis].kind == placement_kind::partial_mean;
    if (before && To::values[axis].kind != placement_kind::partial_mean) return true;
  }
  return false;
}

/// Returns the error in elements of type T, if partial results may be combined on the path.
template <class From, class To, class T>
consteval sentence explain_elements_on_the_way() {
  using reduced = typename first_partial<From>::type;
  if constexpr (!std::is_same_v<reduced, partial<mean>> || combines_means<From, To>()) {
    return explain_elements_to_combine<reduced, T>();
  } else {
    return {};
  }
}

/// Returns the error in the new placements of a tensor.
template <class Tensor, class... Requested>
consteval sentence explain_new_placements() {
  using from = typename Tensor::placements_type;
  constexpr sentence wrong = explain_requested_placements<typename Tensor::axes, Requested...>();
  if constexpr (wrong) {
    return wrong;
  } else {
    using to = typename resolved_placements<typename Tensor::axes, from, Requested...>::type;
    return first_of({change_of_placements<from, to>::explain(), explain_placements<Tensor::rank, to>()});
  }
}

template <class Tensor, class... Requested>
consteval sentence explain_redistributed() {
  using from = typename Tensor::placements_type;
  constexpr sentence wrong = explain_new_placements<Tensor, Requested...>();
  if constexpr (wrong) {
    return wrong;
  } else {
    using to = typename resolved_placements<typename Tensor::axes, from, Requested...>::type;
    return explain_elements_on_the_way<from, to, std::remove_const_t<typename Tensor::element_type>>();
  }
}

/// The type of a redistribution's result.
template <class From, class... Requested>
using redistributed_t =
    placed_as<From,
              typename resolved_placements<typename From::axes, typename From::placements_type, Requested...>::type>;

/// Whether `explain_redistribution<Requested...>` of a tensor is valid.
template <class Tensor, class... Requested>
inline constexpr bool can_explain_moves = !explain_new_placements<std::remove_cvref_t<Tensor>, Requested...>();

// ── To another mesh ────────────────────────────────────────────────────────────────────────────────────────────────

template <class Placed>
constexpr bool any_of_kind(placement_kind kind) noexcept {
  for (const placement& each : Placed::values) {
    if (each.kind == kind) return true;
  }
  return false;
}

template <class From, class To>
consteval sentence explain_other_mesh() {
  using from = typename From::placements_type;
  using to = typename To::placements_type;
  if (!std::is_same_v<std::remove_const_t<typename From::element_type>, typename To::element_type> ||
      !may_have_same_extents<typename From::extents_type, typename To::extents_type>()) {
    return "the tensor on the other mesh must have the same element type and extents as this tensor";
  }
  if (any_of_kind<from>(placement_kind::varying) || any_of_kind<to>(placement_kind::varying)) {
    return "varying data are not parts of a whole, so they can't be moved to another mesh: make both tensors with "
           "shard<d> if the parts are slices";
  }
  if (any_of_kind<to>(placement_kind::partial_sum) || any_of_kind<to>(placement_kind::partial_mean) ||
      any_of_kind<to>(placement_kind::partial_other)) {
    return "a tensor can't become partial on another mesh: make it replicated there, and then partial";
  }
  if (any_of_kind<from>(placement_kind::replicated) && any_of_kind<to>(placement_kind::invariant)) {
    return "replicated data can't become invariant, not even on another mesh: make the tensor replicated there";
  }
  return {};
}

template <class From, class To>
consteval sentence explain_change_of_mesh() {
  using reduced = typename first_partial<typename From::placements_type>::type;
  return first_of({explain_other_mesh<From, To>(), explain_elements_to_combine<reduced, typename To::element_type>()});
}

/// Whether `explain_redistribution` can describe how a tensor moves to another mesh as `To`.
template <class Tensor, class To>
inline constexpr bool can_explain_path = !explain_other_mesh<std::remove_cvref_t<Tensor>, To>();

// ── The calls ──────────────────────────────────────────────────────────────────────────────────────────────────────

/// A call of `redistribute`, or, if `Explains` is true, of `explain_redistribution`.
template <bool Explains, class Given, class Requested, class... Rest>
struct redistributing_call;
template <bool Explains, class Given, class... Requested, class... Rest>
struct redistributing_call<Explains, Given, requested_list<Requested...>, Rest...> {
  using tensor = std::remove_cvref_t<Given>;

  static consteval sentence explain() {
    if constexpr (!tensor_type<Given>) {
      return "only a tensor can be redistributed, because its type states its placement: make one over your data, as "
             "in tensor<float, extents<dynamic>, mesh_type, on<\"tp\", shard<0>>>(mesh, {size}, span)";
    } else if constexpr (sizeof...(Requested) == 1 && (tensor_type<Requested> && ...)) {
      return explain_to_type<Requested...>(requested_list<Rest...>());
    } else if constexpr (Explains && sizeof...(Rest) > 0 && !(std::is_same_v<Rest, std::source_location> && ...)) {
      return "explain_redistribution takes the tensor, and for a whole type the other mesh, but no options: it moves "
             "no data";
    } else if constexpr (Explains) {
      return explain_new_placements<tensor, Requested...>();
    } else if constexpr (!ends_call<Rest...>) {
      return "after the tensor, a redistribution on the tensor's own mesh takes only options, as in "
             "with(timeout(1s)); for another mesh, pass the whole type: redistribute<to_type>(x, other_mesh)";
    } else {
      constexpr sentence wrong = explain_redistributed<tensor, Requested...>();
      if constexpr (wrong) {
        return wrong;
      } else {
        using from = writable_t<tensor>;
        return explain_options_at_end<redistribution_options<from, redistributed_t<from, Requested...>>, Rest...>();
      }
    }
  }

 private:
  template <class To>
  static consteval sentence explain_to_type(requested_list<>) {
    return "a redistribution to a whole type needs the other mesh: pass it, as in redistribute<to_type>(x, mesh); on "
           "the tensor's own mesh, pass placements: redistribute<on<\"tp\", shard<0>>>(x)";
  }
  template <class To, class Next, class... Others>
  static consteval sentence explain_to_type(requested_list<Next, Others...>) {
    if constexpr (call_options<Next>) {
      return explain_to_type<To>(requested_list<>());
    } else if constexpr (!std::is_convertible_v<const Next&, const typename To::mesh_type&> || !ends_call<Others...>) {
      return "after the tensor, a redistribution to another mesh takes that mesh, of the type that the tensor's new "
             "type names, and then options: redistribute<to_type>(x, mesh, with(...))";
    } else if constexpr (Explains) {
      return explain_other_mesh<tensor, To>();
    } else {
      constexpr sentence wrong = explain_change_of_mesh<tensor, To>();
      if constexpr (wrong) {
        return wrong;
      } else {
        return explain_options_at_end<any_redistribution_options<writable_t<tensor>>, Others...>();
      }
    }
  }
};

/// Whether `redistribute` of a tensor is valid: on its own mesh to the placements `Requested`, or to another mesh.
template <class Given, class Requested, class... Rest>
inline constexpr bool is_redistributed = !redistributing_call<false, Given, Requested, Rest...>::explain();

template <bool Explains, class Requested, class Given, class... Rest>
  requires(static_cast<bool>(redistributing_call<Explains, Given, Requested, Rest...>::explain()))
constexpr auto why_not_redistributed() {
  return make_explanation([] { return redistributing_call<Explains, Given, Requested, Rest...>::explain(); });
}

template <axis_name Axis>
constexpr auto why_not_along_an_axis_alone() {
  return make_explanation([]() -> sentence {
    return "a redistribution takes each axis together with its placement, as in redistribute<on<\"tp\", "
           "replicated>>(x); along one axis alone, use convert<\"tp\", replicated>(x)";
  });
}

}  // namespace detail
HOCKET_END_NAMESPACE
