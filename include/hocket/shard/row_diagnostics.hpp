// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Error messages of the compiler for an invalid exchange of rows: each describes the first error of the call. Each
/// `why_...` is the template argument of a deleted overload: see shard/tensor_diagnostics.hpp.
#pragma once

#include <hocket/collective/host/option_diagnostics.hpp>
#include <hocket/core/call_end.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/explanation.hpp>
#include <hocket/mesh/axis.hpp>
#include <hocket/mesh/axis_diagnostics.hpp>
#include <hocket/plan/plan.hpp>
#include <hocket/shard/conversion_diagnostics.hpp>
#include <hocket/shard/extents.hpp>
#include <hocket/shard/placement.hpp>
#include <hocket/shard/tensor.hpp>

#include <cstddef>
#include <type_traits>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace detail {

template <class Placement>
inline constexpr bool has_own_rows = std::is_same_v<Placement, shard<0>> || std::is_same_v<Placement, varying>;

/// Returns whether axes other than the one at `position` cut rows.
template <class Placed>
constexpr bool others_cut_rows(int position) noexcept {
  for (int axis = 0; axis < Placed::size; ++axis) {
    if (axis != position && Placed::values[axis] == shard<0>::value) return true;
  }
  return false;
}

/// Returns the reason why the rows of a tensor can't be exchanged along `Axis`.
template <axis_name Axis, class Tensor>
consteval sentence explain_rows() {
  if constexpr (!is_along<Axis, Tensor>) {
    return explain_missing_axis();
  } else {
    if (!has_own_rows<typename Tensor::template placement_on<Axis>>) {
      return "only ranks that have different rows can exchange them: the tensor must be placed as shard<0> or varying "
             "along this axis";
    }
    if (others_cut_rows<typename Tensor::placements_type>(Tensor::axes::find(Axis))) {
      return "another axis cuts the rows, too, so that their number after an exchange would be unknown: convert along "
             "that axis first, or exchange along the product of both as an axis of another mesh";
    }
    if (Tensor::rank == 0 || Tensor::extents_type::sizes.front() != dynamic) {
      return "ranks receive different numbers of rows: make the first of the tensor's extents dynamic";
    }
    return {};
  }
}

/// Whether rows of such a tensor can be exchanged along `Axis`.
template <axis_name Axis, class Tensor>
inline constexpr bool has_rows = !explain_rows<Axis, std::remove_cvref_t<Tensor>>();

/// The options of an exchange of rows, and of their counts.
using row_options = move_options<plan::collective_kind::all_to_all>;

/// Returns the error in a call of `route_rows<Axis>`, after whose counts come `Rest`: options, or received counts.
template <axis_name Axis, class Given, class Counts, class... Rest>
consteval sentence explain_routing() {
  if constexpr (!tensor_type<Given>) {
    return "route_rows and its exchanges take a tensor that is placed as shard<0> or varying along this axis";
  } else if constexpr (!std::is_convertible_v<Counts, std::vector<std::size_t>>) {
    return "pass the numbers of rows that go to each rank along the axis, or come from it, as a "
           "std::vector<std::size_t>";
  } else if constexpr (constexpr sentence wrong = explain_rows<Axis, Given>(); wrong) {
    return wrong;
  } else if constexpr (ends_call<Rest...>) {
    return explain_options_at_end<row_options, Rest...>();
  } else if constexpr (sizeof...(Rest) == 1 && (std::is_convertible_v<Rest, std::vector<std::size_t>> && ...)) {
    return {};
  } else {
    return "after the counts that go to each rank, route_rows takes the counts that come from each rank, or options, "
           "as in with(timeout(1s))";
  }
}

template <axis_name Axis, class Given, class Counts, class... Rest>
  requires(static_cast<bool>(explain_routing<Axis, Given, Counts, Rest...>()))
constexpr auto why_not_routed() {
  return make_explanation([] { return explain_routing<Axis, Given, Counts, Rest...>(); });
}

template <class... Axes>
constexpr auto why_not_along_no_axis() {
  return make_explanation(
      []() -> sentence { return "route_rows needs the name of an axis, as in route_rows<\"ep\">(x, counts)"; });
}

/// Returns the error in a call of an exchange of rows that are placed as `From`.
template <axis_name Axis, class From, class Given, class... Rest>
consteval sentence explain_exchange() {
  if constexpr (!tensor_type<Given>) {
    return explain_routing<Axis, Given, void>();
  } else {
    constexpr sentence wrong = explain_rows<Axis, Given>();
    if constexpr (wrong) {
      return wrong;
    } else if constexpr (!std::is_same_v<From, typename Given::template placement_on<Axis>>) {
      return "these rows do not have the placement that the exchange was made for: an exchange of shard<0> rows "
             "returns varying rows, and its backward() takes varying rows";
    } else if constexpr (!ends_call<Rest...>) {
      return "after the tensor, an exchange of rows takes only options, as in with(timeout(1s))";
    } else {
      return explain_options_at_end<row_options, Rest...>();
    }
  }
}

template <axis_name Axis, class From, class Given, class... Rest>
inline constexpr bool is_exchanged = !explain_exchange<Axis, From, Given, Rest...>();

template <axis_name Axis, class From, class Given, class... Rest>
  requires(!is_exchanged<Axis, From, Given, Rest...>)
constexpr auto why_not_exchanged() {
  return make_explanation([] { return explain_exchange<Axis, From, Given, Rest...>(); });
}

}  // namespace detail
HOCKET_END_NAMESPACE
