// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Rules for which placement can become which, by a conversion along one axis or by a redistribution. The error
/// messages for the others are in shard/conversion_diagnostics.hpp and shard/redistribution_diagnostics.hpp; the code
/// that moves the data is in shard/convert.hpp and shard/redistribute.hpp.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/shard/placement.hpp>

#include <cstddef>
#include <functional>
#include <type_traits>
#include <utility>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// The effect of a conversion along one axis.
enum class conversion_kind {
  nothing,
  slice,
  keep_on_first,
  pad_with_zeros,
  gather_to_all,
  exchange,
  reduce_to_all,
  reduce_to_slices,
  // Invalid conversions:
  already,
  replicated_to_invariant,
  invariant_needs_replicated,
  varying_is_no_part,
  to_varying,
  to_other_partial
};

constexpr conversion_kind conversion_between(placement from, placement to) noexcept {
  using enum placement_kind;
  using kind = conversion_kind;
  if (from.kind == undetermined || to.kind == undetermined) return kind::nothing;
  if (from == to && from.kind != partial_other) return kind::already;
  const bool to_slice = to.kind == shard;
  switch (from.kind) {
    case replicated:
      if (to_slice) return kind::slice;
      if (to.kind == invariant) return kind::replicated_to_invariant;
      if (to.kind == varying) return kind::nothing;
      return to.kind == partial_sum ? kind::keep_on_first : kind::to_other_partial;
    case invariant:
      if (to_slice) return kind::slice;
      return to.kind == replicated ? kind::nothing : kind::invariant_needs_replicated;
    case shard:
      if (to.whole()) return kind::gather_to_all;
      if (to_slice) return kind::exchange;
      if (to.kind == varying) return kind::to_varying;
      return to.kind == partial_sum ? kind::pad_with_zeros : kind::to_other_partial;
    case varying: return to.kind == partial_sum ? kind::nothing : kind::varying_is_no_part;
    default:
      if (to.whole()) return kind::reduce_to_all;
      if (to_slice) return kind::reduce_to_slices;
      return to.kind == varying ? kind::to_varying : kind::to_other_partial;
  }
}

/// Like `conversion_between`, for two types.
template <class From, class To>
inline constexpr conversion_kind kind_of_conversion =
    std::is_same_v<From, To> && From::value.kind != placement_kind::undetermined
        ? conversion_kind::already
        : conversion_between(From::value, To::value);

/// Returns whether an axis further right in the mesh cuts dimension `dimension` too.
template <int Axis, class Placed>
constexpr bool cut_further(int dimension) noexcept {
  for (int later = Axis + 1; later < Placed::size; ++later) {
    if (Placed::values[later] == placement{placement_kind::shard, dimension}) return true;
  }
  return false;
}

/// `Placed` with another placement at position `Axis`.
template <int Axis, class To, class Placed>
struct with_placement;
template <int Axis, class To, class... Placements>
struct with_placement<Axis, To, placements<Placements...>> {
  template <std::size_t... Positions>
  static auto make(std::index_sequence<Positions...>)
      -> placements<std::conditional_t<static_cast<int>(Positions) == Axis, To, Placements>...>;
  using type = decltype(make(std::make_index_sequence<sizeof...(Placements)>()));
};

/// The operation that combines partial results.
template <class Placement>
struct reduction_of;
template <class Operation>
struct reduction_of<partial<Operation>> {
  using type = Operation;
};
template <>
struct reduction_of<partial<sum>> {
  using type = std::plus<>;
};
template <>
struct reduction_of<partial<mean>> {
  using type = std::plus<>;  // the means are weighted first
};

/// The reason why no sequence of moves leads from one placement to another, or `possible`.
enum class redistribution_kind { possible, varying, replicated_to_invariant, other_reduction, made_partial };

constexpr redistribution_kind redistribution_between(placement from, placement to) noexcept {
  using kind = redistribution_kind;
  if (from == to && from.kind != placement_kind::partial_other) return kind::possible;
  if (from.kind == placement_kind::undetermined) return kind::possible;
  if (from.kind == placement_kind::varying || to.kind == placement_kind::varying) return kind::varying;
  if (from.kind == placement_kind::replicated && to.kind == placement_kind::invariant)
    return kind::replicated_to_invariant;
  if (from.partial() && to.partial()) return kind::other_reduction;
  if (to.partial() && (from.kind == placement_kind::invariant || to.kind != placement_kind::partial_sum)) {
    return kind::made_partial;
  }
  return kind::possible;
}

}  // namespace detail
HOCKET_END_NAMESPACE
