// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The norm of tensors with different placements, as gradient clipping needs it: copies count once, slices are added,
/// and partial sums must be reduced first. The types state which case applies, also when a program adds an axis.
#pragma once

#include <hocket/collective/all_reduce.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/options.hpp>
#include <hocket/shard/agreed_extents.hpp>
#include <hocket/shard/norm_diagnostics.hpp>
#include <hocket/shard/placement.hpp>
#include <hocket/shard/tensor.hpp>

#include <cmath>
#include <cstddef>
#include <functional>
#include <source_location>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// Returns this rank's share of a squared norm: 0 if a rank with smaller coordinates has copies of the elements.
template <class Tensor>
double squares_counted_here(const Tensor& tensor) {
  for (std::size_t axis = 0; axis < Tensor::axes::all.size(); ++axis) {
    if (Tensor::placements_type::values[axis].whole() && tensor.mesh().coordinates()[axis] != 0) return 0;
  }
  double total = 0;
  for (const auto& each : tensor.elements()) total += static_cast<double>(each) * static_cast<double>(each);
  return total;
}

template <class Options, class First, class... Rest>
double squared_norm_of(const Options& options, const std::source_location& site, const First& first,
                       const Rest&... rest) {
  static_cast<void>(checked_mesh(first.mesh()));
  (static_cast<void>(checked_mesh(rest.mesh())), ...);
  if (!((first.mesh() == rest.mesh()) && ...)) {
    raise(errc::invalid_argument,
          "the tensors are on different meshes: call squared_norm for each mesh, and add the results",
          {.operation = "norm", .rank = first.mesh().rank(), .ranks = first.mesh().size(), .site = site});
  }
  const double own = (squares_counted_here(first) + ... + squares_counted_here(rest));
  double total = 0;
  all_reduce(first.mesh().all(), std::span(&own, 1), std::span(&total, 1), std::plus<>{},
             with_extents(options, first, rest...), site);
  return total;
}

}  // namespace detail

/// Returns the sum of the squares of all elements of all tensors; every element counts once, however many ranks have a
/// copy.
///
/// Collective over the ranks of the mesh, by one all_reduce of one number; equal on all ranks. All tensors must be on
/// one mesh. Accumulates in double precision. Does not compile for partial results. Throws `invalid_argument` if
/// tensors are on two meshes of one type; otherwise, errors as for all_reduce.
template <tensor_type First, tensor_type Second, tensor_type... Rest>
  requires detail::have_norm<First, Second, Rest...>
double squared_norm(const First& first, const Second& second, const Rest&... rest) {
  return detail::squared_norm_of(options<>(), std::source_location(), first, second, rest...);
}

/// Like the above, for one tensor; errors name the caller's line.
template <tensor_type Tensor>
  requires detail::have_norm<Tensor>
double squared_norm(const Tensor& tensor, const std::source_location& site = std::source_location::current()) {
  return detail::squared_norm_of(options<>(), site, tensor);
}

/// Like the above, for the tensors of a tuple, such as `std::tie(weights, bias)`; errors name the caller's line.
template <tensor_type... Tensors, call_options Options = options<>>
  requires(sizeof...(Tensors) > 0 && detail::have_norm<Tensors...> &&
           detail::accepted_with<Options, detail::norm_options, void>)
double squared_norm(const std::tuple<Tensors&...>& tensors, const Options& options = {},
                    const std::source_location& site = std::source_location::current()) {
  return [&]<std::size_t... Index>(std::index_sequence<Index...>) {  // std::apply would add five lines to every error
    return detail::squared_norm_of(options, site, std::get<Index>(tensors)...);
  }(std::index_sequence_for<Tensors...>());
}

/// Deleted: the template argument `Why` is the reason.
template <class... Given, auto Why = detail::why_no_norm<Given...>()>
double squared_norm(const Given&...) = delete;

/// Returns the square root of `squared_norm`.
template <tensor_type First, tensor_type Second, tensor_type... Rest>
  requires detail::have_norm<First, Second, Rest...>
double norm(const First& first, const Second& second, const Rest&... rest) {
  return std::sqrt(squared_norm(first, second, rest...));
}
template <tensor_type Tensor>
  requires detail::have_norm<Tensor>
double norm(const Tensor& tensor, const std::source_location& site = std::source_location::current()) {
  return std::sqrt(squared_norm(tensor, site));
}

/// Like the above, for the tensors of a tuple, with options.
template <tensor_type... Tensors, call_options Options = options<>>
  requires(sizeof...(Tensors) > 0 && detail::have_norm<Tensors...> &&
           detail::accepted_with<Options, detail::norm_options, void>)
double norm(const std::tuple<Tensors&...>& tensors, const Options& options = {},
            const std::source_location& site = std::source_location::current()) {
  return std::sqrt(squared_norm(tensors, options, site));
}

/// Deleted: the template argument `Why` is the reason.
template <class... Given, auto Why = detail::why_no_norm<Given...>()>
double norm(const Given&...) = delete;

HOCKET_END_NAMESPACE
