// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Adds typed tensors to a gradient accumulator, and checks their placements at compile time. The accumulator sums over
/// the data axes, so along these a gradient must be a partial sum: a reduced one would be added once per rank. Along
/// all other axes the gradient must be reduced, because nothing reduces it later. The type also determines which copies
/// count in a norm.
///
/// @code
/// layout.push_back(hocket::parameter_of<"dp">("weights", weights));
/// ...
/// hocket::add_gradient<"dp">(gradients, 0, weights_gradient);     // partial<sum> along "dp"
/// @endcode
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/not_understood.hpp>
#include <hocket/core/text.hpp>
#include <hocket/gradient/parameter_layout.hpp>
#include <hocket/mesh/axis.hpp>
#include <hocket/shard/placement.hpp>
#include <hocket/shard/tensor.hpp>

#include <cstddef>
#include <string>
#include <utility>

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

template <class Tensor, axis_name... DataAxes>
struct checked_gradient {
  static constexpr misplaced found = misplacement_of_gradient<Tensor, DataAxes...>();
  static_assert(found != misplaced::reduced_on_data,
                "this gradient has been reduced along a data axis, and the accumulator would add it once per rank: "
                "add the gradient of the backward pass, which is partial<sum>");
  static_assert(
      found != misplaced::cut_on_data,
      "this gradient is sharded along a data axis: along it, the accumulator sums whole gradients of different "
      "data, not slices of one gradient");
  static_assert(
      found != misplaced::no_sum_on_data,
      "this gradient is a mean, or another partial result, along a data axis, but the accumulator computes sums: a sum "
      "of means gives ranks with fewer tokens too much weight; pass a partial<sum>, and the count to end_microbatch");
  static_assert(
      found != misplaced::partial_elsewhere,
      "this gradient is a partial result along an axis that is not a data axis, and nothing reduces it later: "
      "reduce it along that axis first, or name the axis among the data axes");
  static_assert(
      found != misplaced::unknown_elsewhere,
      "this gradient is varying along an axis that is not a data axis: its type does not specify whether ranks "
      "hold copies, slices or summands, so whether it is complete and which elements count in a norm is "
      "unknown: make the tensor with shard<d>, or convert it");
  static constexpr bool value = found == misplaced::nowhere;
};

/// Checks that a tensor's type specifies what its ranks hold along all axes except `DataAxes`.
template <class Tensor, axis_name... DataAxes>
struct checked_parameter {
  static constexpr bool value = [] {
    using axes = typename Tensor::axes;
    for (std::size_t i = 0; i < axes::all.size(); ++i) {
      const bool varies = Tensor::placements_type::values[i].kind == placement_kind::varying;
      if (varies && (set_of<axes, DataAxes...>() >> i & 1U) == 0) return false;
    }
    return true;
  }();
  static_assert(
      value,
      "this parameter is varying along an axis that is not a data axis: its type does not specify whether ranks hold "
      "copies or slices, so which elements count in a norm is unknown: make the tensor with shard<d>, or convert it");
};

/// Returns the number of ranks, this one included, with slices or copies of `tensor` along axes other than `DataAxes`.
template <axis_name... DataAxes, class Tensor>
int ranks_of_model(const Tensor& tensor) {
  using axes = typename Tensor::axes;
  const axis_set data = set_of<axes, DataAxes...>();
  int ranks = 1;
  for (std::size_t i = 0; i < axes::all.size(); ++i) {
    if ((data >> i & 1U) == 0) ranks *= tensor.mesh().extents()[i];
  }
  return ranks;
}

/// Raises `invalid_argument` unless the accumulator sums over the ranks along `DataAxes` of the gradient's mesh.
template <axis_name... DataAxes, class Accumulator, class Tensor>
void check_group(const Accumulator& accumulator, std::size_t i, const Tensor& gradient) {
  const auto& along = gradient.mesh().template along<DataAxes...>();
  if (accumulator.adds_over(along)) return;
  std::string names;
  ((names += (names.empty() ? "\"" : ", \"") + std::string(DataAxes.view()) + '"'), ...);
  raise(errc::invalid_argument,
        concat({"parameter ", i, ": the accumulator does not sum over the ", along.size(), " ranks along ", names,
                " of this gradient's mesh: make the accumulator with gradients(mesh.along<", names,
                ">(), ...), or name the axes that it was made with"}),
        {.operation = "add_gradient", .rank = accumulator.rank(), .ranks = accumulator.ranks()});
}

}  // namespace detail

/// Returns whether this rank holds the first copy of its elements of `tensor` along the axes other than `DataAxes`. If
/// several ranks hold copies, only the first copy counts in norms.
template <axis_name... DataAxes, tensor_type Tensor>
bool holds_first_copy(const Tensor& tensor) {
  static_cast<void>(detail::checked_parameter<Tensor, DataAxes...>{});
  using axes = typename Tensor::axes;
  const detail::axis_set data = detail::set_of<axes, DataAxes...>();
  for (std::size_t i = 0; i < axes::all.size(); ++i) {
    const bool copies = Tensor::placements_type::values[i].whole();
    if ((data >> i & 1U) == 0 && copies && tensor.mesh().coordinates()[i] != 0) return false;
  }
  return true;
}

/// Returns the layout entry of this rank's part of a typed parameter. If axes other than `DataAxes` have several ranks,
/// `norm` also needs their communicator.
template <axis_name... DataAxes, tensor_type Tensor>
parameter parameter_of(std::string name, const Tensor& tensor) {
  return {.name = std::move(name),
          .elements = tensor.elements().size(),
          .counts_in_norm = holds_first_copy<DataAxes...>(tensor),
          .model_ranks = detail::ranks_of_model<DataAxes...>(tensor)};
}

/// Adds this rank's part of `gradient` to the gradient of parameter `i` in `accumulator`, whose group must be the ranks
/// along `DataAxes`. Along these, the gradient must be partial<sum> or varying; along all other axes replicated,
/// invariant or shard<d>. Raises `invalid_argument` if the accumulator has another group.
template <axis_name... DataAxes, class Accumulator, tensor_type Tensor>
void add_gradient(Accumulator& accumulator, std::size_t i, const Tensor& gradient) {
  if constexpr (detail::checked_gradient<Tensor, DataAxes...>::value) {
    detail::check_group<DataAxes...>(accumulator, i, gradient);
    accumulator.add(i, gradient.elements());
  }
}

/// Does not compile: only the type of a tensor specifies its placements.
template <axis_name... DataAxes, class Accumulator, class Given>
  requires(!tensor_type<Given>)
auto add_gradient(Accumulator&, std::size_t, const Given&) {
  constexpr bool is_tensor = tensor_type<Given>;
  static_assert(is_tensor,
                "add_gradient<\"dp\">(gradients, i, gradient): the gradient must be a tensor, whose type specifies its "
                "placements; add any other range with gradients.add(i, gradient)");
  return detail::not_understood();
}

HOCKET_END_NAMESPACE
