// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Names for the axes of a mesh of ranks, as template arguments: `mesh<"dp", axis("tp", 4)>`. The compiler finds the
/// position of "tp", and reports a name that the mesh does not have with an explanation.
#pragma once

#include <hocket/core/config.hpp>

#include <array>
#include <cstddef>
#include <limits>
#include <string_view>

HOCKET_BEGIN_NAMESPACE

/// The name of an axis: a string literal of at most 15 characters, as a template argument.
struct axis_name {
  char text[16]{};  ///< the name, ended by a zero

  /// From a literal.
  template <std::size_t Size>
  consteval axis_name(const char (&literal)[Size]) {  // NOLINT: implicit, so that a literal is a name
    static_assert(Size > 1 && Size <= 16, "the name of an axis must have 1 to 15 characters");
    for (std::size_t i = 0; i < Size && i < 15; ++i) text[i] = literal[i];
  }

  constexpr std::string_view view() const noexcept { return text; }  ///< the name as text
  friend constexpr bool operator==(const axis_name&, const axis_name&) = default;
};

/// An extent that is passed when the mesh is made. Neither 0 nor -1, to distinguish it from a wrongly computed extent
/// and from `inferred`.
inline constexpr int run_time_extent = std::numeric_limits<int>::min();

/// An axis of a mesh: its name, and its number of ranks if that is known at compile time.
struct axis {
  axis_name name;                ///< its name
  int extent = run_time_extent;  ///< number of ranks along it

  /// From a literal, and the number of ranks if it is known at compile time.
  template <std::size_t Size>
  consteval axis(const char (&literal)[Size], int ranks = run_time_extent)  // NOLINT: implicit
      : name(literal), extent(ranks) {}

  friend constexpr bool operator==(const axis&, const axis&) = default;
};

namespace detail {

/// A set of axes of one mesh: bit i is axis i.
using axis_set = unsigned;

/// The axes of a mesh, in order: neighbours along the last axis are neighbouring ranks.
template <axis... Axes>
struct axis_list {
  static constexpr int size = sizeof...(Axes);
  static constexpr std::array<axis, sizeof...(Axes)> all{Axes...};
  static constexpr axis_set whole = (1U << size) - 1;

  static constexpr bool distinct() noexcept {
    for (std::size_t i = 0; i < all.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        if (all[i].name == all[j].name) return false;
      }
    }
    return true;
  }

  static constexpr bool extents_are_positive() noexcept {
    for (const axis& each : all) {
      if (each.extent <= 0 && each.extent != run_time_extent) return false;
    }
    return true;
  }

  /// Returns the position of an axis, or `size` if the mesh has no axis of that name.
  static constexpr int find(const axis_name& name) noexcept {
    int position = 0;
    while (position < size && !(all[static_cast<std::size_t>(position)].name == name)) ++position;
    return position;
  }
};

template <bool HasIt, axis_name Name, class Axes>
struct axis_must_exist {
  static_assert(HasIt, "this mesh has no axis of that name; the template arguments show the name and the axes");
  static constexpr bool value = true;
};

/// Returns the position of the axis `Name`. If it does not exist, the compiler reports only that: the result is then 0.
template <class Axes, axis_name Name>
constexpr int position_of() noexcept {
  constexpr int position = Axes::find(Name);
  constexpr bool exists = position < Axes::size;
  static_cast<void>(axis_must_exist<exists, Name, Axes>{});
  return exists ? position : 0;
}

template <class Axes, axis_name... Names>
constexpr axis_set set_of() noexcept {
  return ((1U << position_of<Axes, Names>()) | ... | 0U);
}

/// Calls `visit` with the coordinates of all ranks of a mesh of these extents that differ from `at` only along `set`,
/// in rank order, until it returns false. Returns whether it always returned true.
template <std::size_t Axes, class Visit>
constexpr bool for_all_along(const std::array<int, Axes>& extents, std::array<int, Axes> at, axis_set set,
                             const Visit& visit) {
  for (std::size_t a = 0; a < Axes; ++a) {
    if ((set >> a & 1U) != 0) at[a] = 0;
  }
  for (;;) {
    if (!visit(static_cast<const std::array<int, Axes>&>(at))) return false;
    std::size_t a = Axes;
    for (; a > 0; --a) {
      if ((set >> (a - 1) & 1U) == 0) continue;
      if (++at[a - 1] < extents[a - 1]) break;
      at[a - 1] = 0;
    }
    if (a == 0) return true;
  }
}

/// Returns whether two ranks have equal coordinates along the axes of `set`.
template <std::size_t Axes>
constexpr bool same_along(axis_set set, const std::array<int, Axes>& a, const std::array<int, Axes>& b) noexcept {
  for (std::size_t axis = 0; axis < Axes; ++axis) {
    if ((set >> axis & 1U) != 0 && a[axis] != b[axis]) return false;
  }
  return true;
}

}  // namespace detail
HOCKET_END_NAMESPACE
