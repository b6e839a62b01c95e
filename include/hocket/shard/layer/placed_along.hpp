// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Checks that the arguments of layers have the documented placements. The conversions and products inside a layer may
/// also accept other placements, and would then communicate more or compute something else.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/mesh/axis.hpp>
#include <hocket/shard/placement.hpp>
#include <hocket/shard/tensor.hpp>

#include <cstddef>
#include <type_traits>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// A tensor of `Rank` dimensions over a mesh that has the axis `Axis`.
template <class Tensor, axis_name Axis, std::size_t Rank>
concept tensor_along = tensor_type<Tensor> && std::remove_cvref_t<Tensor>::rank == Rank &&
                       std::remove_cvref_t<Tensor>::axes::find(Axis) < std::remove_cvref_t<Tensor>::axes::size;

/// Returns whether a tensor has one of the placements `Allowed` along `Axis`. True for a placement with an error that
/// the compiler has already reported.
template <axis_name Axis, class Tensor, class... Allowed>
constexpr bool is_placed_along() noexcept {
  using placed = typename std::remove_cvref_t<Tensor>::template placement_on<Axis>;
  return std::is_same_v<placed, undetermined> || (std::is_same_v<placed, Allowed> || ...);
}

}  // namespace detail
HOCKET_END_NAMESPACE
