// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The compiler's diagnostics for invalid calls of `mesh`. `why_no_mesh` is the template argument of deleted overloads,
/// and exists only for the mistakes that it explains: see core/explanation.hpp.
#pragma once

#include <hocket/communicator/communicator.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/explanation.hpp>

#include <concepts>
#include <source_location>
#include <type_traits>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace detail {

template <class Given>
concept extents_of_mesh = std::convertible_to<const Given&, const std::vector<int>&>;

/// Whether a mesh can be made of these arguments: a communicator, extents, and the call site.
template <class... Given>
inline constexpr bool makes_mesh = false;
template <class Domain>
inline constexpr bool makes_mesh<communicator<Domain>> = true;
template <class Domain, extents_of_mesh Extents>
inline constexpr bool makes_mesh<communicator<Domain>, Extents> = true;
template <class Domain, extents_of_mesh Extents>
inline constexpr bool makes_mesh<communicator<Domain>, Extents, std::source_location> = true;

/// Whether extents follow the communicator as separate arguments.
template <class... Given>
inline constexpr bool lacks_braces = false;
template <class Domain, class First, class... Rest>
inline constexpr bool lacks_braces<communicator<Domain>, First, Rest...> =
    std::integral<First> && (std::integral<Rest> && ...);

template <class... Given>
consteval sentence explain_mesh() {
  if (lacks_braces<Given...>) return "the extents of a mesh go in braces: mesh<\"dp\", \"tp\">(comm, {2, 3})";
  return "mesh(...) takes a communicator first, and then the number of ranks along each axis in braces: "
         "mesh<\"dp\", \"tp\">(comm, {2, 3})";
}

template <class... Given>
  requires(!makes_mesh<Given...>)
constexpr auto why_no_mesh() {
  return make_explanation([] { return explain_mesh<Given...>(); });
}

}  // namespace detail
HOCKET_END_NAMESPACE
