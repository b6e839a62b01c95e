// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// What the compiler says of a conversion along one axis that is none: the first thing that is wrong with it, in words.
/// Each `why_...` is the template argument of a deleted overload: see shard/tensor_diagnostics.hpp.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/explanation.hpp>
#include <hocket/mesh/axis.hpp>
#include <hocket/mesh/axis_diagnostics.hpp>
#include <hocket/operation/traits.hpp>
#include <hocket/shard/conversion_rules.hpp>
#include <hocket/shard/placement.hpp>
#include <hocket/shard/tensor.hpp>
#include <hocket/shard/tensor_call.hpp>

#include <cstddef>
#include <type_traits>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// Takes any argument, and is taken only where nothing else fits.
struct any_argument {
  template <class Given>
  constexpr any_argument(const Given&) noexcept {}  // NOLINT: implicit, that is its purpose
};

/// Whether the mesh of a tensor has the axis `Axis`.
template <axis_name Axis, class Tensor>
inline constexpr bool is_along = has_axes<typename Tensor::axes, Axis>;

/// Why there is no tensor of `Rank` dimensions that is placed so.
template <std::size_t Rank, class Placed>
consteval sentence explain_placed() {
  if (!dimensions_exist<Rank>(Placed::values)) {
    return "the tensor has no dimension d to cut for shard<d>: dimensions are counted from 0";
  }
  if (!one_reduction(Placed())) {
    return "partial results of two reductions, along two axes, have no order in which they combine: reduce the tensor "
           "along one of the axes first";
  }
  return {};
}

/// Whether means can be of type T.
template <class T>
consteval sentence explain_mean() {
  if (std::is_integral_v<T>) {
    return "the mean of integers is no integer, and each rank's share of it even less: keep means in a floating type, "
           "or sums and counts in integers";
  }
  if (!is_floating<T>) {
    return "means are of a floating type, as they are weighed by numbers: of complex numbers and structures, keep sums "
           "and counts";
  }
  return {};
}

/// Whether partial results of type T can be combined, where `Partial` is not void.
template <class Partial, class T>
consteval sentence explain_elements_to_combine() {
  if constexpr (std::is_same_v<Partial, partial<mean>>) {
    return explain_mean<T>();
  } else if constexpr (!std::is_void_v<Partial>) {
    if (!reduction_for<typename reduction_of<Partial>::type, T>) {
      return "the reduction of this partial placement can't combine such elements: maxima are of numbers, which have "
             "an order, sums of what has +, and an operation of one's own is called with two elements";
    }
  }
  return {};
}

consteval sentence explain_kind(conversion_kind kind) {
  switch (kind) {
    case conversion_kind::already:
      return "the tensor is placed so already; reducing it once more would count it once per rank";
    case conversion_kind::replicated_to_invariant:
      return "replicated data can't become invariant: the gradients of a replicated value are summands, and nobody "
             "would add them; convert to invariant where the value is made, from partial<sum> or shard<d>";
    case conversion_kind::invariant_needs_replicated:
      return "invariant data must become replicated first, so that the gradients of the ranks are added: convert to "
             "replicated, and then to this";
    case conversion_kind::varying_is_no_part:
      return "varying data are no parts of a whole: only a partial sum can be made of them; make the tensor with "
             "shard<d> if its parts are slices";
    case conversion_kind::to_varying:
      return "slices and partial sums can't become varying, as nobody could tell any more what the whole is: convert "
             "to replicated first";
    case conversion_kind::to_other_partial:
      return "only partial<sum> can be made of what is not partial, and partial results stay those of their own "
             "reduction: reduce them first";
    default: return {};
  }
}

/// What is wrong with the conversion of a tensor that is placed as `From` along an axis of its mesh.
template <axis_name Axis, class From, class To, class Tensor>
consteval sentence explain_conversion_along() {
  using placed = typename Tensor::placements_type;
  constexpr int position = Tensor::axes::find(Axis);
  constexpr conversion_kind kind = kind_of_conversion<From, To>;
  constexpr bool reduces = kind == conversion_kind::reduce || kind == conversion_kind::reduce_to_slices;
  if (constexpr sentence wrong = explain_kind(kind); wrong) return wrong;
  if ((From::value.sharded() && cut_further<position, placed>(From::value.dimension)) ||
      (To::value.sharded() && cut_further<position, placed>(To::value.dimension))) {
    return "an axis further right in the mesh cuts this dimension too, within the slices of this one: convert along "
           "that axis first, or use redistribute";
  }
  return first_of({explain_placed<Tensor::rank, typename with_placement<position, To, placed>::type>(),
                   explain_elements_to_combine<std::conditional_t<reduces, From, void>,
                                               std::remove_const_t<typename Tensor::element_type>>()});
}

/// The same of `convert<Axis, To>`, which reads in the tensor's type how it is placed.
template <axis_name Axis, class To, class Tensor>
consteval sentence explain_convert() {
  if constexpr (!is_along<Axis, Tensor>) {
    return explain_missing_axis();
  } else {
    return explain_conversion_along<Axis, typename Tensor::template placement_on<Axis>, To, Tensor>();
  }
}

/// The same of a `conversion`, which says it.
template <axis_name Axis, class From, class To, class Tensor>
consteval sentence explain_conversion() {
  if constexpr (!is_along<Axis, Tensor>) {
    return explain_missing_axis();
  } else if constexpr (!std::is_same_v<From, typename Tensor::template placement_on<Axis>> &&
                       To::value.kind != placement_kind::undetermined) {
    return "this tensor is not placed as the conversion's first placement says: use convert<axis, to>, which reads it "
           "from the tensor, or give the conversion what it was made for";
  } else {
    return explain_conversion_along<Axis, From, To, Tensor>();
  }
}

template <axis_name Axis, class To, class Tensor>
inline constexpr bool is_converted = !explain_convert<Axis, To, std::remove_cvref_t<Tensor>>();

template <axis_name Axis, class From, class To, class Tensor>
inline constexpr bool is_converted_from = !explain_conversion<Axis, From, To, std::remove_cvref_t<Tensor>>();

/// A call of the conversion from `From`, which is void where the tensor's type tells it.
template <axis_name Axis, class From, class To, class Given, class... Rest>
consteval sentence explain_converting_call() {
  using given = std::remove_cvref_t<Given>;
  if constexpr (!tensor_type<Given>) {
    return "what is converted is a tensor, whose type says how it is placed: make one over the data that you have, as "
           "in tensor<float, extents<dynamic>, mesh_type, on<\"tp\", shard<0>>>(mesh, {size}, span)";
  } else if constexpr (!ends_tensor_call<Rest...>) {
    return "what follows the tensor are options, as in with(timeout(1s)); an operation is not among them, as a partial "
           "placement says which one combines it";
  } else if constexpr (std::is_void_v<From>) {
    return explain_convert<Axis, To, given>();
  } else {
    return explain_conversion<Axis, From, To, given>();
  }
}

template <axis_name Axis, class From, class To, class Given, class... Rest>
  requires placement_type<To> && (static_cast<bool>(explain_converting_call<Axis, From, To, Given, Rest...>()))
constexpr auto why_not_converted() {
  return in_words([] { return explain_converting_call<Axis, From, To, Given, Rest...>(); });
}

// ── What convert is told in another form ───────────────────────────────────────────────────────────────────────────

/// Of what follows the name of an axis.
template <class... Named>
  requires(!(sizeof...(Named) == 1 && (placement_type<Named> && ...)))
constexpr auto why_no_placement() {
  return in_words([]() -> sentence {
    return "a conversion names the axis, and then how the tensor is to be placed along it, as in convert<\"tp\", "
           "invariant>(x)";
  });
}

template <class First>
constexpr auto why_not_placement_first() {
  return in_words([]() -> sentence {
    return "a conversion names the axis first, and then how the tensor is to be placed along it, as in convert<\"tp\", "
           "invariant>(x)";
  });
}

/// `Along` is what names axes and placements in a way that only redistributions are told.
template <class... Along>
constexpr auto why_not_along_these() {
  return in_words([]() -> sentence {
    return "a conversion goes along one axis, which it names without `on`, as in convert<\"tp\", shard<0>>(x); what "
           "goes along several is redistribute<on<\"tp\", shard<0>>, on<\"dp\", replicated>>(x)";
  });
}

template <class First>
  requires(!std::is_same_v<First, axis_name>)
constexpr auto why_not_along_a_number() {
  return in_words([]() -> sentence {
    return "a conversion begins with the name of an axis, a text in quotes, as in convert<\"tp\", invariant>(x)";
  });
}

template <template <auto...> class To>
constexpr auto why_no_dimension() {
  return in_words(
      []() -> sentence { return "shard is no placement without the dimension that is cut, as in shard<0>"; });
}

template <template <class...> class To>
constexpr auto why_no_reduction() {
  return in_words([]() -> sentence {
    return "partial is no placement without the reduction that is left to do, as in partial<sum>";
  });
}

}  // namespace detail
HOCKET_END_NAMESPACE
