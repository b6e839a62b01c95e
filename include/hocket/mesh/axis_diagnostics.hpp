// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The compiler's diagnostics for axis names that a mesh does not have. Each `why_...` is the template argument of a
/// deleted overload, and exists only for the mistakes that it explains: see core/explanation.hpp.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/explanation.hpp>
#include <hocket/mesh/axis.hpp>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// Whether a mesh of these axes has axes of all `Names`.
template <class Axes, axis_name... Names>
inline constexpr bool has_axes = ((Axes::find(Names) < Axes::size) && ...);

consteval sentence explain_missing_axis() {
  return "this mesh has no axis of that name; the template arguments show the name and the axes";
}

template <class Axes, axis_name Name>
  requires(!has_axes<Axes, Name>)
constexpr auto why_no_axis() {
  return make_explanation([] { return explain_missing_axis(); });
}

template <class Axes, axis_name... Names>
consteval sentence explain_along() {
  if (sizeof...(Names) == 0) return "along<...>() needs the name of at least one axis";
  return explain_missing_axis();
}

template <class Axes, axis_name... Names>
  requires(sizeof...(Names) == 0 || !has_axes<Axes, Names...>)
constexpr auto why_not_along() {
  return make_explanation([] { return explain_along<Axes, Names...>(); });
}

}  // namespace detail
HOCKET_END_NAMESPACE
