// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Gradients whose types say how they are placed, on their way into an accumulator. It adds up over the data axes, so
/// there a gradient has to be a partial sum still: one that was reduced before would be added once per rank. And along
/// all others it has to be reduced: nobody does that later. Both is said by the compiler, and so is whose copies count
/// in a norm.
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

/// What is wrong with a gradient's placements for an accumulator over some axes.
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
                "add it as it comes from the backward pass, where it is partial<sum>");
  static_assert(found != misplaced::cut_on_data,
                "this gradient is sharded along a data axis: the accumulator adds up whole gradients of different data "
                "there, not slices of one");
  static_assert(
      found != misplaced::no_sum_on_data,
      "this gradient is a mean, or another partial result, along a data axis, and the accumulator adds: a sum of "
      "means weighs ranks with fewer tokens too much; give it partial<sum>, and the count to end_microbatch");
  static_assert(found != misplaced::partial_elsewhere,
                "this gradient is a partial result along an axis that is no data axis, and nobody adds it up later: "
                "reduce it along that axis first, or name the axis among the data axes");
  static_assert(found != misplaced::unknown_elsewhere,
                "this gradient is varying along an axis that is no data axis: whether its ranks hold copies, slices or "
                "summands is not known, and so neither whether it is complete nor whose elements count in a norm: make "
                "the tensor with shard<d>, or convert it");
  static constexpr bool value = found == misplaced::nowhere;
};

/// Whether it is known along all axes but `DataAxes` what a tensor's ranks hold.
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
      "this parameter is varying along an axis that is no data axis: whether its ranks hold copies or slices "
      "is not known, and so not whose elements count in a norm: make the tensor with shard<d>, or convert it");
};

/// How many ranks along the axes other than `DataAxes` have slices or copies of `tensor`, with this one.
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

/// Refuses a gradient of another mesh's axes than those that an accumulator adds up over.
template <axis_name... DataAxes, class Accumulator, class Tensor>
void check_group(const Accumulator& accumulator, std::size_t i, const Tensor& gradient) {
  const auto& along = gradient.mesh().template along<DataAxes...>();
  if (accumulator.adds_over(along)) return;
  std::string names;
  ((names += (names.empty() ? "\"" : ", \"") + std::string(DataAxes.view()) + '"'), ...);
  raise(errc::invalid_argument,
        concat({"parameter ", i, ": the accumulator does not add up over the ", along.size(), " ranks along ", names,
                " of this gradient's mesh: make it with gradients(mesh.along<", names,
                ">(), ...), or name the axes that it was made with"}),
        {.operation = "add_gradient", .rank = accumulator.rank(), .ranks = accumulator.ranks()});
}

}  // namespace detail

/// Whether this rank has the first copy of its elements of `tensor`, along the axes other than `DataAxes`: where ranks
/// have copies, the first one's count in norms.
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

/// The entry of a typed parameter in a layout: this rank's part of it. Where other axes than `DataAxes` have several
/// ranks, `norm` is taken with their communicator, too.
template <axis_name... DataAxes, tensor_type Tensor>
parameter parameter_of(std::string name, const Tensor& tensor) {
  return {.name = std::move(name),
          .elements = tensor.elements().size(),
          .counts_in_norm = holds_first_copy<DataAxes...>(tensor),
          .model_ranks = detail::ranks_of_model<DataAxes...>(tensor)};
}

/// Adds this rank's part of `gradient` to that of parameter `i` in `accumulator`, whose group are the ranks along
/// `DataAxes`. Along these the gradient is partial<sum> or varying, along all others replicated, invariant or shard<d>.
/// Raises `invalid_argument` if the group is another one.
template <axis_name... DataAxes, class Accumulator, tensor_type Tensor>
void add_gradient(Accumulator& accumulator, std::size_t i, const Tensor& gradient) {
  if constexpr (detail::checked_gradient<Tensor, DataAxes...>::value) {
    detail::check_group<DataAxes...>(accumulator, i, gradient);
    accumulator.add(i, gradient.elements());
  }
}

/// Does not compile: only of a tensor it is known how it is placed.
template <axis_name... DataAxes, class Accumulator, class Given>
  requires(!tensor_type<Given>)
auto add_gradient(Accumulator&, std::size_t, const Given&) {
  constexpr bool is_tensor = tensor_type<Given>;
  static_assert(is_tensor,
                "add_gradient<\"dp\">(gradients, i, gradient): the gradient is a tensor, whose type says how it is "
                "placed; what is none is added by gradients.add(i, gradient)");
  return detail::not_understood();
}

HOCKET_END_NAMESPACE
