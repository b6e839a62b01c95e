// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Placements: how a rank's local data relate to the whole tensor along one axis of a mesh, as a copy, a slice or a
/// summand. Each placement is a type, so that code that mistakes one for another does not compile.
///
/// | placement       | the ranks along the axis hold            | and their gradients are |
/// |-----------------|------------------------------------------|-------------------------|
/// | `replicated`    | the same, each rank uses it differently  | `partial<sum>`          |
/// | `invariant`     | the same, all ranks use it alike         | `invariant`             |
/// | `varying`       | unrelated data                           | `varying`               |
/// | `shard<d>`      | slices of the whole along dimension d    | `shard<d>`              |
/// | `partial<sum>`  | summands of the whole                    | `replicated`            |
///
/// `replicated` and `invariant` are the same in memory and differ in their gradients: each rank's use of a replicated
/// value adds to its gradient, while an invariant value has the same gradient on all ranks. Parameters and optimizer
/// states are invariant; the input of a computation that differs from rank to rank is replicated.
/// Model: the types of spmd_types (Meta), which checks them at run time.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/mesh/axis.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

HOCKET_BEGIN_NAMESPACE

// ── Reductions of partial values ───────────────────────────────────────────────────────────────────────────────────

/// Reduction of `partial`: the whole is the sum of the ranks' data.
struct sum {};

/// Reduction of `partial`: the whole is the mean of the ranks' data, weighted by the elements that each stands for.
struct mean {};

// ── Placements ─────────────────────────────────────────────────────────────────────────────────────────────────────

/// Kinds of placements.
enum class placement_kind : std::uint8_t {
  replicated,
  invariant,
  varying,
  shard,
  undetermined,  ///< after an error that the compiler has reported
  partial_sum,
  partial_mean,
  partial_other
};

/// A placement as a value, with which rules compute.
struct placement {
  placement_kind kind = placement_kind::replicated;  ///< the kind
  int dimension = -1;                                ///< of `shard`

  /// Returns whether all ranks along the axis hold the whole.
  constexpr bool whole() const noexcept {
    return kind == placement_kind::replicated || kind == placement_kind::invariant;
  }
  /// Whether a reduction is left to do.
  constexpr bool partial() const noexcept { return kind >= placement_kind::partial_sum; }
  /// Whether each rank holds a slice.
  constexpr bool sharded() const noexcept { return kind == placement_kind::shard; }
  friend constexpr bool operator==(const placement&, const placement&) = default;
};

/// Every rank holds the whole; gradients along the axis are partial sums.
struct replicated {
  static constexpr placement value{placement_kind::replicated};
};

/// Every rank holds the whole, and every rank computes the same gradient.
struct invariant {
  static constexpr placement value{placement_kind::invariant};
};

/// Every rank holds a different value, unrelated to those of the others.
struct varying {
  static constexpr placement value{placement_kind::varying};
};

/// Dimension `Dimension` is cut into chunks of ceil(n / ranks) elements: the last ranks may have fewer, or none. If two
/// axes shard one dimension, the axis further left in the mesh cuts it first.
template <int Dimension>
struct shard {
  static_assert(Dimension >= 0, "shard<d>: d is the number of a dimension, from 0");
  static constexpr placement value{placement_kind::shard, Dimension};
};

/// `Reduction` is `sum`, `mean`, or a reduction operation such as `maximum`.
template <class Reduction = void>
struct partial {
  /// Whether `Reduction` is a type that can be an operation.
  static constexpr bool is_reduction = !std::is_void_v<Reduction> && !std::is_arithmetic_v<Reduction>;
  static_assert(is_reduction, "partial<...> must name a reduction: sum, mean, or an operation such as maximum");
  static constexpr placement value{is_reduction ? placement_kind::partial_other : placement_kind::undetermined};
};

/// The whole is the sum of what the ranks hold.
template <>
struct partial<sum> {
  static constexpr placement value{placement_kind::partial_sum};
};

/// The whole is the weighted mean of what the ranks hold.
template <>
struct partial<mean> {
  static constexpr placement value{placement_kind::partial_mean};
};

namespace detail {

/// Placement of the result of a misuse. It leads to no further error, so that each misuse leads to one error.
struct undetermined {
  static constexpr placement value{placement_kind::undetermined};
};

}  // namespace detail

/// A placement along one axis.
template <class T>
concept placement_type = requires {
  { T::value } -> std::same_as<const placement&>;
};

// ── Placements of gradients ────────────────────────────────────────────────────────────────────────────────────────

namespace detail {

template <class Placement>
struct gradient_of {
  static_assert(
      !Placement::value.partial(),
      "only partial<sum> can be differentiated: a maximum or a mean over ranks is for the forward pass alone; for the "
      "gradient of a mean, differentiate the sum and divide by the count");
  // invariant, varying, shard
  using type = std::conditional_t<Placement::value.partial(), undetermined, Placement>;
};
template <>
struct gradient_of<replicated> {
  using type = partial<sum>;
};
template <>
struct gradient_of<partial<sum>> {
  using type = replicated;
};

}  // namespace detail

/// The placement of the gradient of a tensor that is placed as `Placement`.
template <placement_type Placement>
using gradient_placement_t = typename detail::gradient_of<Placement>::type;

// ── Placements along the axes of a mesh ────────────────────────────────────────────────────────────────────────────

namespace detail {

/// Replaces a type that is not a placement, for which the compiler reports an error elsewhere.
template <class Given>
using placement_or_undetermined = std::conditional_t<placement_type<Given>, Given, undetermined>;

}  // namespace detail

/// Places a tensor along the axis `Axis`: `on<"tp", shard<1>>`. `IsPlacement` follows from `Placement`.
template <axis_name Axis, class Placement = void, bool IsPlacement = placement_type<Placement>>
struct on {
  static constexpr axis_name axis = Axis;                     ///< the axis
  using type = detail::placement_or_undetermined<Placement>;  ///< the placement
};

/// Places a tensor along all axes that are not named.
template <class Placement = void, bool IsPlacement = placement_type<Placement>>
struct elsewhere {
  using type = detail::placement_or_undetermined<Placement>;  ///< the placement
};

/// One placement for each axis of a mesh, in the order of the axes.
template <placement_type... Placements>
struct placements {
  static constexpr int size = sizeof...(Placements);                               ///< number of axes
  static constexpr placement values[sizeof...(Placements)]{Placements::value...};  ///< the placements as values
};

namespace detail {

template <int Position, class List>
struct placement_at;
template <class First, class... Rest>
struct placement_at<0, placements<First, Rest...>> {
  using type = First;
};
template <int Position, class First, class... Rest>
  requires(Position > 0)
struct placement_at<Position, placements<First, Rest...>> : placement_at<Position - 1, placements<Rest...>> {};

template <int Position, class List>
using placement_at_t = typename placement_at<Position, List>::type;

/// Like `placement_at`, but `undetermined` if the axis is `Missing`.
template <int Position, bool Missing, class List>
struct placement_along : placement_at<Position, List> {};
template <int Position, class List>
struct placement_along<Position, true, List> {
  using type = undetermined;
};

template <class T>
struct is_elsewhere : std::false_type {};
template <class Placement, bool IsPlacement>
struct is_elsewhere<elsewhere<Placement, IsPlacement>> : std::true_type {};

template <class T>
struct is_on : std::false_type {};
template <axis_name Axis, class Placement, bool IsPlacement>
struct is_on<on<Axis, Placement, IsPlacement>> : std::true_type {};

/// Whether `Requested` contains a placement.
template <class Requested>
inline constexpr bool has_placement_type = true;
template <axis_name Axis, class Placement, bool IsPlacement>
inline constexpr bool has_placement_type<on<Axis, Placement, IsPlacement>> = IsPlacement;
template <class Placement, bool IsPlacement>
inline constexpr bool has_placement_type<elsewhere<Placement, IsPlacement>> = IsPlacement;

struct not_placed {};

/// The placement along the axis `Axis` in a list of `on` and `elsewhere`; `Default` if there is none.
template <axis_name Axis, class Default, class... Requested>
struct requested_placement {
  using type = Default;
};
template <axis_name Axis, class Default, class First, class... Rest>
struct requested_placement<Axis, Default, First, Rest...> {
  static constexpr auto find() {
    if constexpr (is_elsewhere<First>::value) {
      return requested_placement<Axis, typename First::type, Rest...>();
    } else if constexpr (!is_on<First>::value) {
      return requested_placement<Axis, undetermined>();
    } else if constexpr (First::axis == Axis) {
      return requested_placement<Axis, typename First::type>();
    } else {
      return requested_placement<Axis, Default, Rest...>();
    }
  }
  using type = typename decltype(find())::type;
};

/// Returns the position of the first axis without a placement; the number of axes if all have one.
template <class... Found>
constexpr std::size_t first_not_placed() noexcept {
  const bool placed[sizeof...(Found) + 1]{!std::is_same_v<Found, not_placed>...};
  std::size_t axis = 0;
  while (placed[axis]) ++axis;
  return axis;
}

template <axis_name Axis, bool Placed>
struct axis_must_be_placed {
  static_assert(
      Placed,
      "this tensor has no placement along an axis of its mesh: add on<\"...\", placement>, or elsewhere<placement> "
      "for all axes that are not named");
};

/// The placements of all axes, some of which may be `not_placed`.
template <class... Found>
struct found_placements {
  static constexpr std::size_t missing = first_not_placed<Found...>();
  static constexpr bool complete = missing == sizeof...(Found);
  using type = placements<std::conditional_t<std::is_same_v<Found, not_placed>, undetermined, Found>...>;
};

/// Returns the name of the axis that `Requested` places; empty for `elsewhere`.
template <class Requested>
constexpr std::string_view requested_axis() noexcept {
  if constexpr (is_on<Requested>::value) {
    return Requested::axis.view();
  } else {
    return {};
  }
}

template <class... Requested>
constexpr bool are_axes_distinct() noexcept {
  const std::string_view names[sizeof...(Requested) + 1]{requested_axis<Requested>()...};
  for (std::size_t i = 0; i < sizeof...(Requested); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (names[i] == names[j]) return false;
    }
  }
  return true;
}

template <class Axes, class Requested>
struct requested_axis_must_exist : std::true_type {};
template <class Axes, axis_name Axis, class Placement, bool IsPlacement>
struct requested_axis_must_exist<Axes, on<Axis, Placement, IsPlacement>>
    : axis_must_exist<(Axes::find(Axis) < Axes::size), Axis, Axes> {};

template <class Axes, class... Requested>
struct checked_placements {
  static constexpr bool by_axis = ((is_on<Requested>::value || is_elsewhere<Requested>::value) && ...);
  static_assert(by_axis,
                "pass a tensor's placements as on<\"axis\", placement>, or as elsewhere<placement> for all others");
  static constexpr bool are_placements = (has_placement_type<Requested> && ...);
  static_assert(are_placements,
                "the axis must be followed by a placement: replicated, invariant, varying, shard<d> or partial<...>");
  static_assert(!by_axis || are_axes_distinct<Requested...>(),
                "the placement along one axis, or elsewhere, is given twice: give it once");
  static constexpr bool value = (requested_axis_must_exist<Axes, Requested>::value && ...);
};

/// The placements of the axes of a mesh by a list of `on` and `elsewhere`. Axes that it does not place keep those of
/// `Current`; if that is void, they are an error.
template <class Axes, class Current, class... Requested>
struct resolved_placements;
template <axis... Axes, class... Current, class... Requested>
struct resolved_placements<axis_list<Axes...>, placements<Current...>, Requested...> {
  static_assert(checked_placements<axis_list<Axes...>, Requested...>::value);
  using type = placements<typename requested_placement<Axes.name, Current, Requested...>::type...>;
};
/// After an error: the argument is not a mesh.
template <class... Requested>
struct resolved_placements<axis_list<axis("no mesh")>, void, Requested...> {
  using type = placements<undetermined>;
};
template <axis... Axes, class... Requested>
struct resolved_placements<axis_list<Axes...>, void, Requested...> {
  static_assert(checked_placements<axis_list<Axes...>, Requested...>::value);
  using found = found_placements<typename requested_placement<Axes.name, not_placed, Requested...>::type...>;
  static_assert(
      sizeof(axis_must_be_placed<axis_list<Axes...>::all[found::complete ? 0 : found::missing].name, found::complete>) >
      0);
  using type = typename found::type;
};

}  // namespace detail
HOCKET_END_NAMESPACE
