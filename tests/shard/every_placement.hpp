// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// All placements along the axes of a mesh, the legal redistributions between them, and their names.
#pragma once

#include <hocket/shard/conversion_rules.hpp>
#include <hocket/shard/placement.hpp>

#include <array>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace hocket_test {

inline std::string to_text(const hocket::placement& placed) {
  if (placed.sharded()) return "S" + std::to_string(placed.dimension);
  return placed.partial() ? "P" : "R";
}

template <std::size_t Axes>
std::string to_text(const std::array<hocket::placement, Axes>& placed) {
  std::string text;
  for (const hocket::placement& each : placed) text += to_text(each);
  return text;
}

template <std::size_t Rank, std::size_t Axes>
std::string text_of(const std::array<std::size_t, Rank>& sizes, const std::array<int, Axes>& mesh_extents) {
  std::string text;
  for (const std::size_t each : sizes) text += (text.empty() ? "" : "x") + std::to_string(each);
  text += " over";
  for (const int each : mesh_extents) text += " " + std::to_string(each);
  return text;
}

/// All combinations of replicated, partial<sum> and shard<d> for each of `Rank` dimensions.
template <std::size_t Axes, std::size_t Rank>
std::vector<std::array<hocket::placement, Axes>> placements_over() {
  using enum hocket::placement_kind;
  std::vector<hocket::placement> each{{replicated}, {partial_sum}};
  for (int d = 0; d < static_cast<int>(Rank); ++d) each.push_back({shard, d});
  std::vector<std::array<hocket::placement, Axes>> all(1);
  for (std::size_t a = 0; a < Axes; ++a) {
    std::vector<std::array<hocket::placement, Axes>> longer;
    for (auto so_far : all) {
      for (const hocket::placement& next : each) {
        so_far[a] = next;
        longer.push_back(so_far);
      }
    }
    all = std::move(longer);
  }
  return all;
}

template <std::size_t Axes>
bool legal(const std::array<hocket::placement, Axes>& from, const std::array<hocket::placement, Axes>& to) {
  for (std::size_t a = 0; a < Axes; ++a) {
    if (hocket::detail::redistribution_between(from[a], to[a]) != hocket::detail::redistribution_kind::possible) {
      return false;
    }
  }
  return true;
}

}  // namespace hocket_test
