// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Which placement can become which, by a conversion along one axis or by a redistribution, and the sentences that the
/// compiler prints for the others. What moves the data is in shard/convert.hpp and shard/redistribute.hpp.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/mesh/axis.hpp>
#include <hocket/shard/placement.hpp>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// What a conversion along one axis does.
enum class conversion_kind {
  nothing,
  slice,
  keep_on_first,
  put_among_zeros,
  gather,
  exchange,
  reduce,
  reduce_to_slices,
  // What is refused:
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
      if (to.whole()) return kind::gather;
      if (to_slice) return kind::exchange;
      if (to.kind == varying) return kind::to_varying;
      return to.kind == partial_sum ? kind::put_among_zeros : kind::to_other_partial;
    case varying: return to.kind == partial_sum ? kind::nothing : kind::varying_is_no_part;
    default:
      if (to.whole()) return kind::reduce;
      if (to_slice) return kind::reduce_to_slices;
      return to.kind == varying ? kind::to_varying : kind::to_other_partial;
  }
}

template <conversion_kind Kind, axis_name Axis, class From, class To>
struct checked_conversion {
  static_assert(Kind != conversion_kind::already,
                "the tensor is placed so already; reducing it once more would count it once per rank");
  static_assert(
      Kind != conversion_kind::replicated_to_invariant,
      "replicated data can't become invariant: the gradients of a replicated value are summands, and nobody would "
      "add them; convert to invariant where the value is made, from partial<sum> or shard<d>");
  static_assert(Kind != conversion_kind::invariant_needs_replicated,
                "invariant data must become replicated first, so that the gradients of the ranks are added: convert to "
                "replicated, and then to this");
  static_assert(Kind != conversion_kind::varying_is_no_part,
                "varying data are no parts of a whole: only a partial sum can be made of them; make the tensor with "
                "shard<d> if its parts are slices");
  static_assert(
      Kind != conversion_kind::to_varying,
      "slices and partial sums can't become varying, as nobody could tell any more what the whole is: convert to "
      "replicated first");
  static_assert(Kind != conversion_kind::to_other_partial,
                "only partial<sum> can be made of what is not partial, and partial results stay those of their own "
                "reduction: reduce them first");
  static constexpr bool value = Kind < conversion_kind::already;
};

/// Why one placement can't become another; only for what no sequence of moves does.
enum class redistribution_kind { possible, varying, replicated_to_invariant, other_reduction, made_partial };

constexpr redistribution_kind redistribution_between(placement from, placement to) noexcept {
  using kind = redistribution_kind;
  if (from == to && from.kind != placement_kind::partial_other) return kind::possible;
  if (from.kind == placement_kind::undetermined) return kind::possible;
  if (from.kind == placement_kind::varying || to.kind == placement_kind::varying) return kind::varying;
  if (from.kind == placement_kind::replicated && to.kind == placement_kind::invariant)
    return kind::replicated_to_invariant;
  if (from.partial() && to.partial()) return kind::other_reduction;
  if (to.partial() && !(from.kind == placement_kind::replicated && to.kind == placement_kind::partial_sum)) {
    return kind::made_partial;
  }
  return kind::possible;
}

template <redistribution_kind Kind, class From, class To>
struct checked_redistribution {
  static_assert(
      Kind != redistribution_kind::varying,
      "varying data are no parts of a whole, so they can't be redistributed: make the tensor with shard<d> if its "
      "parts are slices, or convert it to partial<sum>");
  static_assert(
      Kind != redistribution_kind::replicated_to_invariant,
      "replicated data can't become invariant: the gradients of a replicated value are summands, and nobody would "
      "add them; make it invariant where it is made, from partial<sum> or shard<d>");
  static_assert(Kind != redistribution_kind::other_reduction,
                "a partial result can't become one of another reduction: reduce it first");
  static_assert(
      Kind != redistribution_kind::made_partial,
      "only replicated data can be made partial, and only partial<sum>: what is sharded or invariant would have to "
      "be gathered first, and be counted once");
};

}  // namespace detail
HOCKET_END_NAMESPACE
