// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Error messages of the compiler for extents of a tensor that are too few, too many, or not integers. Each `why_...`
/// is the template argument of a deleted constructor: see shard/tensor_diagnostics.hpp.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/explanation.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <type_traits>

HOCKET_BEGIN_NAMESPACE
namespace detail {

template <class T>
concept extent_like = std::convertible_to<T, std::size_t> && !std::is_floating_point_v<std::remove_cvref_t<T>>;

/// Whether all arguments are numbers, and some of these are floating-point numbers.
template <class... Given>
inline constexpr bool some_are_fractions =
    (std::is_arithmetic_v<Given> && ...) && (std::is_floating_point_v<Given> || ...);

template <class Given>
inline constexpr bool is_extent_array = false;
template <std::size_t Count>
inline constexpr bool is_extent_array<std::array<std::size_t, Count>> = true;

/// A type that `given_extents` accepts, or rejects with an explanation.
template <class Given>
concept explained_by_extents = extent_like<Given> || some_are_fractions<Given> || is_extent_array<Given>;

consteval sentence explain_extent_count(std::size_t given, std::size_t wanted) {
  if (given < wanted) {
    return "an extent is missing: pass one for each dynamic extent of the tensor's type, in order";
  }
  return "too many extents: pass one for each dynamic extent of the tensor's type";
}

template <std::size_t Given, std::size_t Wanted>
  requires(Given != Wanted)
constexpr auto why_not_as_many() {
  return make_explanation([] { return explain_extent_count(Given, Wanted); });
}

template <class... Given>
  requires some_are_fractions<Given...>
constexpr auto why_no_whole_numbers() {
  return make_explanation(
      []() -> sentence { return "an extent must be an integer: a floating-point number would lose its fraction"; });
}

}  // namespace detail
HOCKET_END_NAMESPACE
