// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// How layers check that what they are given is placed as their documentation says: a conversion or a product in their
/// middle may well accept other placements, and would then communicate more, or compute something else.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/mesh/axis.hpp>
#include <hocket/shard/placement.hpp>
#include <hocket/shard/tensor.hpp>

#include <cstddef>
#include <type_traits>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// A tensor of `Rank` dimensions over a mesh that has the axis `Axis`: what layers can look at.
template <class Tensor, axis_name Axis, std::size_t Rank>
concept tensor_along = tensor_type<Tensor> && std::remove_cvref_t<Tensor>::rank == Rank &&
                       std::remove_cvref_t<Tensor>::axes::find(Axis) < std::remove_cvref_t<Tensor>::axes::size;

/// Whether a tensor is placed along `Axis` in one of the ways of `Allowed`. After an error, which the compiler has
/// reported, it is.
template <axis_name Axis, class Tensor, class... Allowed>
constexpr bool is_placed_along() noexcept {
  using placed = typename std::remove_cvref_t<Tensor>::template placement_on<Axis>;
  return std::is_same_v<placed, undetermined> || (std::is_same_v<placed, Allowed> || ...);
}

}  // namespace detail
HOCKET_END_NAMESPACE
