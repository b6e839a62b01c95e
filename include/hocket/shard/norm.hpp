// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The norm of tensors that are spread in different ways, as gradient clipping needs it: copies count once, slices are
/// added, and summands must be added up before. Which is which is in the types, so that it can't be got wrong when
/// another axis of parallelism comes in.
#pragma once

#include <hocket/collective/all_reduce.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/options.hpp>
#include <hocket/shard/agreed_extents.hpp>
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

template <class Placed>
constexpr bool any_partial() noexcept {
  for (const placement& each : Placed::values) {
    if (each.partial()) return true;
  }
  return false;
}

template <class Placed>
constexpr bool any_varying() noexcept {
  for (const placement& each : Placed::values) {
    if (each.kind == placement_kind::varying) return true;
  }
  return false;
}

/// This rank's share of a squared norm: nothing where another rank has the same elements and is first.
template <class Tensor>
double squares_counted_here(const Tensor& tensor) {
  static_assert(!any_partial<typename Tensor::placements_type>(),
                "the norm of partial results is not the norm of what they are parts of: reduce the tensor first");
  static_assert(
      !any_varying<typename Tensor::placements_type>(),
      "whether varying data are copies, slices or summands is not known, and so not their norm: make the tensor "
      "with shard<d>, or convert it");
  for (std::size_t axis = 0; axis < Tensor::axes::all.size(); ++axis) {
    if (Tensor::placements_type::values[axis].whole() && tensor.mesh().coordinates()[axis] != 0) return 0;
  }
  constexpr bool are_numbers = requires(const typename Tensor::element_type& each) { static_cast<double>(each); };
  static_assert(are_numbers,
                "the norm is that of elements which are numbers, and summed as double: hold complex ones as real and "
                "imaginary parts, along a dimension of the tensor");
  double total = 0;
  if constexpr (are_numbers) {
    for (const auto& each : tensor.elements()) total += static_cast<double>(each) * static_cast<double>(each);
  }
  return total;
}

template <class Options, class First, class... Rest>
double squared_norm_of(const Options& options, const std::source_location& site, const First& first,
                       const Rest&... rest) {
  constexpr bool on_one_mesh = (std::is_same_v<typename First::mesh_type, typename Rest::mesh_type> && ...);
  static_assert(on_one_mesh,
                "the tensors are on different meshes: take the norm of those of each mesh, and add the squares");
  static_cast<void>(checked_mesh(first.mesh()));
  (static_cast<void>(checked_mesh(rest.mesh())), ...);
  if constexpr (on_one_mesh) {
    if (!((first.mesh() == rest.mesh()) && ...)) {
      raise(errc::invalid_argument,
            "the tensors are on different meshes: take the norm of those of each mesh, and add the squares",
            {.operation = "norm", .rank = first.mesh().rank(), .ranks = first.mesh().size(), .site = site});
    }
  }
  const double own = (squares_counted_here(first) + ... + squares_counted_here(rest));
  double total = 0;
  all_reduce(first.mesh().all(), std::span(&own, 1), std::span(&total, 1), std::plus<>{},
             with_extents(options, first, rest...), site);
  return total;
}

}  // namespace detail

/// The sum of the squares of all elements of all tensors; every element counts once, however many ranks have a copy.
///
/// Collective over the ranks of the mesh, by one all_reduce of one number; equal on all ranks. All tensors are on one
/// mesh. Accumulated in double precision. Does not compile for partial results. Throws
/// `invalid_argument` if tensors are on two meshes of one type; else errors as for all_reduce.
template <tensor_type First, tensor_type Second, tensor_type... Rest>
double squared_norm(const First& first, const Second& second, const Rest&... rest) {
  return detail::squared_norm_of(options<>(), std::source_location(), first, second, rest...);
}

/// The same of one tensor; errors tell the caller's line.
template <tensor_type Tensor>
double squared_norm(const Tensor& tensor, const std::source_location& site = std::source_location::current()) {
  return detail::squared_norm_of(options<>(), site, tensor);
}

/// The same of the tensors of a tuple, such as `std::tie(weights, bias)`, with options; errors tell the caller's line.
template <tensor_type... Tensors, call_options Options = options<>>
  requires(sizeof...(Tensors) > 0)
double squared_norm(const std::tuple<Tensors&...>& tensors, const Options& options = {},
                    const std::source_location& site = std::source_location::current()) {
  return [&]<std::size_t... Index>(std::index_sequence<Index...>) {  // std::apply would add five lines to every error
    return detail::squared_norm_of(options, site, std::get<Index>(tensors)...);
  }(std::index_sequence_for<Tensors...>());
}

/// Does not compile: see what it says.
template <class... Given>
double squared_norm(const Given&...) {
  constexpr bool are_tensors = sizeof...(Given) > 0 && (tensor_type<Given> && ...);
  static_assert(
      are_tensors,
      "a norm is that of tensors, whose types say which elements are copies: pass the tensors themselves, not "
      "their elements or views, or a tuple of tensors, as std::tie makes, and options");
  return 0;
}

/// The square root of `squared_norm`.
template <tensor_type First, tensor_type Second, tensor_type... Rest>
double norm(const First& first, const Second& second, const Rest&... rest) {
  return std::sqrt(squared_norm(first, second, rest...));
}
template <tensor_type Tensor>
double norm(const Tensor& tensor, const std::source_location& site = std::source_location::current()) {
  return std::sqrt(squared_norm(tensor, site));
}

/// The same of the tensors of a tuple, with options.
template <tensor_type... Tensors, call_options Options = options<>>
  requires(sizeof...(Tensors) > 0)
double norm(const std::tuple<Tensors&...>& tensors, const Options& options = {},
            const std::source_location& site = std::source_location::current()) {
  return std::sqrt(squared_norm(tensors, options, site));
}

/// Does not compile: see what it says.
template <class... Given>
double norm(const Given&... given) {
  return squared_norm(given...);
}

HOCKET_END_NAMESPACE
