// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Adds typed tensors to a gradient accumulator, and checks their placements at compile time. The accumulator sums over
/// the data axes, so along these a gradient must be `partial<sum>` or `varying`: a reduced one would be added once per
/// rank. Along all other axes the gradient must be neither, because nothing reduces it later. The type also determines
/// which copies count in a norm.
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
#include <hocket/gradient/typed_diagnostics.hpp>
#include <hocket/mesh/axis.hpp>
#include <hocket/shard/placement.hpp>
#include <hocket/shard/tensor.hpp>

#include <cstddef>
#include <string>
#include <utility>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// Returns the number of ranks along the mesh axes other than `DataAxes`, including this rank. Together they store a
/// whole parameter.
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

/// Returns whether this rank's part of `tensor` counts in norms. If several ranks along axes other than `DataAxes` hold
/// copies of it, only the copy of the rank with coordinate 0 along these axes counts.
template <axis_name... DataAxes, tensor_type Tensor>
  requires detail::has_known_copies<Tensor, DataAxes...>
bool holds_first_copy(const Tensor& tensor) {
  using axes = typename Tensor::axes;
  const detail::axis_set data = detail::set_of<axes, DataAxes...>();
  for (std::size_t i = 0; i < axes::all.size(); ++i) {
    const bool copies = Tensor::placements_type::values[i].whole();
    if ((data >> i & 1U) == 0 && copies && tensor.mesh().coordinates()[i] != 0) return false;
  }
  return true;
}

/// Deleted: the template argument `Why` is the reason.
template <axis_name... DataAxes, class Given, auto Why = detail::why_unknown_copies<Given, DataAxes...>()>
detail::not_understood holds_first_copy(const Given&) = delete;

/// Returns the layout entry of this rank's part of a typed parameter. If axes other than `DataAxes` have several ranks,
/// `norm` also needs a communicator of these ranks.
template <axis_name... DataAxes, tensor_type Tensor>
  requires detail::has_known_copies<Tensor, DataAxes...>
parameter parameter_of(std::string name, const Tensor& tensor) {
  return {.name = std::move(name),
          .elements = tensor.elements().size(),
          .counts_in_norm = holds_first_copy<DataAxes...>(tensor),
          .model_ranks = detail::ranks_of_model<DataAxes...>(tensor)};
}

/// Deleted: the template argument `Why` is the reason.
template <axis_name... DataAxes, class Given, auto Why = detail::why_unknown_copies<Given, DataAxes...>()>
detail::not_understood parameter_of(const std::string&, const Given&) = delete;

/// Adds this rank's part of `gradient` to the gradient of parameter `i` in `accumulator`, whose group must be the ranks
/// along `DataAxes`. Along these, the gradient must be partial<sum> or varying; along all other axes replicated,
/// invariant or shard<d>. Raises `invalid_argument` if the accumulator has another group.
template <axis_name... DataAxes, class Accumulator, tensor_type Tensor>
  requires detail::is_gradient<Accumulator, Tensor, DataAxes...>
void add_gradient(Accumulator& accumulator, std::size_t i, const Tensor& gradient) {
  detail::check_group<DataAxes...>(accumulator, i, gradient);
  accumulator.add(i, gradient.elements());
}

/// Deleted: the template argument `Why` is the reason.
template <axis_name... DataAxes, class Accumulator, class Given,
          auto Why = detail::why_no_gradient<Accumulator, Given, DataAxes...>()>
detail::not_understood add_gradient(Accumulator&, std::size_t, const Given&) = delete;

HOCKET_END_NAMESPACE
