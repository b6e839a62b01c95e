// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Error messages of the compiler for an invalid conversion along one axis: each describes the first error of the call.
/// Each `why_...` is the template argument of a deleted overload: see shard/tensor_diagnostics.hpp.
#pragma once

#include <hocket/core/call_end.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/explanation.hpp>
#include <hocket/mesh/axis.hpp>
#include <hocket/mesh/axis_diagnostics.hpp>
#include <hocket/operation/traits.hpp>
#include <hocket/shard/conversion_rules.hpp>
#include <hocket/shard/option_diagnostics.hpp>
#include <hocket/shard/placement.hpp>
#include <hocket/shard/tensor.hpp>

#include <cstddef>
#include <type_traits>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// Parameter type that accepts any argument, in overloads that are chosen only if no other overload is viable.
struct any_argument {
  template <class Given>
  constexpr any_argument(const Given&) noexcept {}  // NOLINT: implicit, that is its purpose
};

/// Whether the mesh of a tensor has the axis `Axis`.
template <axis_name Axis, class Tensor>
inline constexpr bool is_along = has_axes<typename Tensor::axes, Axis>;

/// Returns the reason why no tensor of `Rank` dimensions can have these placements.
template <std::size_t Rank, class Placed>
consteval sentence explain_placements() {
  if (!dimensions_exist<Rank>(Placed::values)) {
    return "the tensor has no dimension d to cut for shard<d>: d must be less than its number of dimensions";
  }
  if (!one_reduction(Placed())) {
    return "partial results of two different reductions along two axes combine in no defined order: reduce the tensor "
           "along one of the axes first";
  }
  return {};
}

/// Returns the reason why means can't have elements of type T.
template <class T>
consteval sentence explain_mean() {
  if (std::is_integral_v<T>) {
    return "the mean of integers is not an integer: use a floating-point element type for means, or store sums and "
           "counts as integers";
  }
  if (!is_floating<T>) {
    return "means need a floating-point element type, because they are weighted by numbers: for complex numbers and "
           "structures, store sums and counts";
  }
  return {};
}

/// Returns the reason why partial results of type T can't be combined; none if `Partial` is void.
template <class Partial, class T>
consteval sentence explain_elements_to_combine() {
  if constexpr (std::is_same_v<Partial, partial<mean>>) {
    return explain_mean<T>();
  } else if constexpr (!std::is_void_v<Partial>) {
    if (!reduction_for<typename reduction_of<Partial>::type, T>) {
      return "the reduction of this partial placement can't combine such elements: a maximum needs ordered numbers, a "
             "sum needs operator+, and a user-defined operation must be callable with two elements";
    }
  }
  return {};
}

consteval sentence explain_kind(conversion_kind kind) {
  switch (kind) {
    case conversion_kind::already:
      return "the tensor already has this placement; reducing it again would count it once per rank";
    case conversion_kind::replicated_to_invariant:
      return "replicated data can't become invariant: the gradients of a replicated value are summands, and no rank "
             "would add them; convert to invariant where the value is made, from partial<sum> or shard<d>";
    case conversion_kind::invariant_needs_replicated:
      return "invariant data must become replicated first, so that the gradients of the ranks are added: convert to "
             "replicated, and then to this placement";
    case conversion_kind::varying_is_no_part:
      return "varying data are not parts of a whole: they can only become a partial sum; make the tensor with "
             "shard<d> if its parts are slices";
    case conversion_kind::to_varying:
      return "slices and partial sums can't become varying, because the type would not state how to recover the "
             "whole: convert to replicated first";
    case conversion_kind::to_other_partial:
      return "data that are not partial can only become partial<sum>, and partial results can't change their "
             "reduction: reduce them first";
    default: return {};
  }
}

/// Returns the error in the conversion of a tensor that is placed as `From` along an axis of its mesh.
template <axis_name Axis, class From, class To, class Tensor>
consteval sentence explain_conversion_along() {
  using placed = typename Tensor::placements_type;
  constexpr int position = Tensor::axes::find(Axis);
  constexpr conversion_kind kind = kind_of_conversion<From, To>;
  constexpr bool reduces = kind == conversion_kind::reduce_to_all || kind == conversion_kind::reduce_to_slices;
  if (constexpr sentence wrong = explain_kind(kind); wrong) return wrong;
  if ((From::value.sharded() && cut_further<position, placed>(From::value.dimension)) ||
      (To::value.sharded() && cut_further<position, placed>(To::value.dimension))) {
    return "an axis further right in the mesh cuts this dimension too, within the slices of this axis: convert along "
           "that axis first, or use redistribute";
  }
  return first_of({explain_placements<Tensor::rank, typename with_placement<position, To, placed>::type>(),
                   explain_elements_to_combine<std::conditional_t<reduces, From, void>,
                                               std::remove_const_t<typename Tensor::element_type>>()});
}

/// Returns the error in `convert<Axis, To>`, which reads the placement from the tensor's type.
template <axis_name Axis, class To, class Tensor>
consteval sentence explain_convert() {
  if constexpr (!is_along<Axis, Tensor>) {
    return explain_missing_axis();
  } else {
    return explain_conversion_along<Axis, typename Tensor::template placement_on<Axis>, To, Tensor>();
  }
}

/// Returns the error in a `conversion`, which names the placement itself.
template <axis_name Axis, class From, class To, class Tensor>
consteval sentence explain_conversion() {
  if constexpr (!is_along<Axis, Tensor>) {
    return explain_missing_axis();
  } else if constexpr (!std::is_same_v<From, typename Tensor::template placement_on<Axis>> &&
                       To::value.kind != placement_kind::undetermined) {
    return "this tensor does not have the placement that the conversion starts from: use convert<axis, to>, which "
           "reads it from the tensor's type, or pass a tensor with that placement";
  } else {
    return explain_conversion_along<Axis, From, To, Tensor>();
  }
}

/// The options of a call of the conversion from `From`; void means the placement in the tensor's type.
template <axis_name Axis, class From, class To, class Tensor>
struct options_of_conversion {
  using type = conversion_options<From, To, std::remove_const_t<typename Tensor::element_type>>;
};
template <axis_name Axis, class To, class Tensor>
struct options_of_conversion<Axis, void, To, Tensor>
    : options_of_conversion<Axis, typename Tensor::template placement_on<Axis>, To, Tensor> {};

/// Returns the error in the arguments of a conversion before the options.
template <axis_name Axis, class From, class To, class Given, class... Rest>
consteval sentence explain_converted() {
  using given = std::remove_cvref_t<Given>;
  if constexpr (!tensor_type<Given>) {
    return "only a tensor can be converted, because its type states its placement: make one over your data, as in "
           "tensor<float, extents<dynamic>, mesh_type, on<\"tp\", shard<0>>>(mesh, {size}, span)";
  } else if constexpr (!ends_call<Rest...>) {
    return "after the tensor, a conversion takes only options, as in with(timeout(1s)); the operation is part of the "
           "partial placement and is not passed";
  } else if constexpr (std::is_void_v<From>) {
    return explain_convert<Axis, To, given>();
  } else {
    return explain_conversion<Axis, From, To, given>();
  }
}

/// Returns the error in a call of the conversion from `From`; void means the placement in the tensor's type.
template <axis_name Axis, class From, class To, class Given, class... Rest>
consteval sentence explain_converting_call() {
  constexpr sentence wrong = explain_converted<Axis, From, To, Given, Rest...>();
  if constexpr (wrong) {
    return wrong;
  } else {
    using family = typename options_of_conversion<Axis, From, To, std::remove_cvref_t<Given>>::type;
    return explain_options_at_end<family, Rest...>();
  }
}

template <axis_name Axis, class From, class To, class Given, class... Rest>
inline constexpr bool is_converted = !explain_converting_call<Axis, From, To, Given, Rest...>();

template <axis_name Axis, class From, class To, class Given, class... Rest>
  requires placement_type<To> && (!is_converted<Axis, From, To, Given, Rest...>)
constexpr auto why_not_converted() {
  return make_explanation([] { return explain_converting_call<Axis, From, To, Given, Rest...>(); });
}

// ── Wrong template arguments of convert ────────────────────────────────────────────────────────────────────────────

/// Explains template arguments after the axis that are not one placement.
template <class... Named>
  requires(!(sizeof...(Named) == 1 && (placement_type<Named> && ...)))
constexpr auto why_no_placement() {
  return make_explanation([]() -> sentence {
    return "a conversion needs the name of an axis and one new placement along it, as in convert<\"tp\", "
           "invariant>(x)";
  });
}

template <class First>
constexpr auto why_not_placement_first() {
  return make_explanation([]() -> sentence {
    return "a conversion needs the name of the axis first, and then the new placement along it, as in convert<\"tp\", "
           "invariant>(x)";
  });
}

/// Explains `Along`, axes and placements in the form that only redistributions take.
template <class... Along>
constexpr auto why_not_along_these() {
  return make_explanation([]() -> sentence {
    return "a conversion changes the placement along one axis, which is named without `on`, as in convert<\"tp\", "
           "shard<0>>(x); for several axes, use redistribute<on<\"tp\", shard<0>>, on<\"dp\", replicated>>(x)";
  });
}

template <class First>
  requires(!std::is_same_v<First, axis_name>)
constexpr auto why_not_along_a_number() {
  return make_explanation([]() -> sentence {
    return "the first template argument of a conversion must be the name of an axis in quotes, as in convert<\"tp\", "
           "invariant>(x)";
  });
}

template <template <auto...> class To>
constexpr auto why_no_dimension() {
  return make_explanation(
      []() -> sentence { return "the placement shard needs the dimension that is cut, as in shard<0>"; });
}

template <template <class...> class To>
constexpr auto why_no_reduction() {
  return make_explanation([]() -> sentence { return "the placement partial needs a reduction, as in partial<sum>"; });
}

}  // namespace detail
HOCKET_END_NAMESPACE
