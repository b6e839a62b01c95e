// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Which tensors `add_gradient` and `parameter_of` accept, and the compiler's diagnostics for those that they do not:
/// one sentence about the first mistake. Each `why_...` is the template argument of a deleted overload: see
/// core/explanation.hpp.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/explanation.hpp>
#include <hocket/gradient/accumulator_diagnostics.hpp>
#include <hocket/mesh/axis.hpp>
#include <hocket/mesh/axis_diagnostics.hpp>
#include <hocket/shard/placement.hpp>
#include <hocket/shard/tensor.hpp>

#include <cstddef>
#include <span>
#include <type_traits>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// The reason why an accumulator over some axes does not accept a gradient's placements.
enum class misplaced { nowhere, reduced_on_data, cut_on_data, no_sum_on_data, partial_elsewhere, unknown_elsewhere };

template <class Tensor, axis_name... DataAxes>
constexpr misplaced misplacement_of_gradient() noexcept {
  using axes = typename Tensor::axes;
  const axis_set data = set_of<axes, DataAxes...>();
  for (std::size_t i = 0; i < axes::all.size(); ++i) {
    const placement& found = Tensor::placements_type::values[i];
    if ((data >> i & 1U) == 0) {
      if (found.partial()) return misplaced::partial_elsewhere;
      if (found.kind == placement_kind::varying) return misplaced::unknown_elsewhere;
    } else if (found.kind == placement_kind::shard) {
      return misplaced::cut_on_data;
    } else if (found.whole()) {
      return misplaced::reduced_on_data;
    } else if (found.kind != placement_kind::partial_sum && found.kind != placement_kind::varying) {
      return misplaced::no_sum_on_data;
    }
  }
  return misplaced::nowhere;
}

consteval sentence explain_misplaced(misplaced found) {
  switch (found) {
    case misplaced::reduced_on_data:
      return "this gradient has been reduced along a data axis, and the accumulator would add it once per rank: add "
             "the gradient of the backward pass, which is partial<sum>";
    case misplaced::cut_on_data:
      return "this gradient is sharded along a data axis: along it, the accumulator sums whole gradients of different "
             "data, not slices of one gradient: pass the whole gradient of this rank's data, which is partial<sum>";
    case misplaced::no_sum_on_data:
      return "this gradient is a mean, or another partial result, along a data axis, but the accumulator computes "
             "sums: a sum of means gives ranks with fewer tokens too much weight; pass a partial<sum>, and the count "
             "to end_microbatch";
    case misplaced::partial_elsewhere:
      return "this gradient is a partial result along an axis that is not a data axis, and nothing reduces it later: "
             "reduce it along that axis first, or name the axis among the data axes";
    case misplaced::unknown_elsewhere:
      return "this gradient is varying along an axis that is not a data axis: its type does not specify whether ranks "
             "hold copies, slices or summands, so whether it is complete and which elements count in a norm is "
             "unknown: make the tensor with shard<d> for slices, or with replicated or invariant for copies, and "
             "reduce summands first";
    default: return {};
  }
}

/// What `add_gradient` needs of an accumulator.
template <class Given>
concept accumulates_gradients = !std::is_const_v<Given> && requires(Given& accumulator) {
  typename Given::value_type;
  accumulator.of(std::size_t{});
  accumulator.begin_microbatch(0, 1);
};

/// Returns the mistake in a gradient that `add_gradient` adds to an accumulator over `DataAxes`.
template <class Accumulator, class Given, axis_name... DataAxes>
consteval sentence explain_gradient() {
  if constexpr (!accumulates_gradients<Accumulator>) {
    return "add_gradient<\"dp\">(gradients, i, gradient): the first argument must be a named result of "
           "gradients<T>(...)";
  } else if constexpr (!tensor_type<Given>) {
    return "add_gradient<\"dp\">(gradients, i, gradient): the gradient must be a tensor, whose type specifies its "
           "placements; add any other range with gradients.add(i, gradient)";
  } else if constexpr (!has_axes<typename Given::axes, DataAxes...>) {
    return explain_missing_axis();
  } else {
    return first_of({explain_misplaced(misplacement_of_gradient<Given, DataAxes...>()),
                     explain_added<typename Accumulator::value_type, std::span<const typename Given::element_type>>()});
  }
}

template <class Accumulator, class Given, axis_name... DataAxes>
concept is_gradient = !explain_gradient<Accumulator, Given, DataAxes...>();

template <class Accumulator, class Given, axis_name... DataAxes>
  requires(!is_gradient<Accumulator, Given, DataAxes...>)
constexpr auto why_no_gradient() {
  return make_explanation([] { return explain_gradient<Accumulator, Given, DataAxes...>(); });
}

/// Returns whether a tensor is varying along an axis other than `DataAxes`.
template <class Tensor, axis_name... DataAxes>
constexpr bool varies_in_model() noexcept {
  using axes = typename Tensor::axes;
  for (std::size_t i = 0; i < axes::all.size(); ++i) {
    const bool varies = Tensor::placements_type::values[i].kind == placement_kind::varying;
    if (varies && (set_of<axes, DataAxes...>() >> i & 1U) == 0) return true;
  }
  return false;
}

/// Returns the mistake in a parameter whose type must specify what its ranks hold along all axes except `DataAxes`.
template <class Given, axis_name... DataAxes>
consteval sentence explain_parameter() {
  if constexpr (!tensor_type<Given>) {
    return "a typed parameter must be a tensor, whose type specifies which elements are copies";
  } else if constexpr (!has_axes<typename Given::axes, DataAxes...>) {
    return explain_missing_axis();
  } else if (varies_in_model<Given, DataAxes...>()) {
    return "this parameter is varying along an axis that is not a data axis: its type does not specify whether ranks "
           "hold copies or slices, so which elements count in a norm is unknown: make the tensor with shard<d> for "
           "slices, or with replicated or invariant for copies";
  }
  return {};
}

template <class Given, axis_name... DataAxes>
concept has_known_copies = !explain_parameter<Given, DataAxes...>();

template <class Given, axis_name... DataAxes>
  requires(!has_known_copies<Given, DataAxes...>)
constexpr auto why_unknown_copies() {
  return make_explanation([] { return explain_parameter<Given, DataAxes...>(); });
}

}  // namespace detail
HOCKET_END_NAMESPACE
