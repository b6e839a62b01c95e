// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Shared by misuses of local mathematics. The mesh is only a type, because to include a real one takes seconds.
#pragma once

#include <hocket/shard/apply.hpp>

#include <array>

template <hocket::axis... Axes>
struct mesh_in_types {
  using axes = hocket::detail::axis_list<Axes...>;
  static constexpr int dimensions = axes::size;
  using extents_type = std::array<int, sizeof...(Axes)>;

  const extents_type& extents() const;
  const extents_type& coordinates() const;
  int rank() const;
  int size() const;
  bool moved_from() const;
  bool operator==(const mesh_in_types&) const;
};
using ranks = mesh_in_types<"dp", "tp">;

#include "tensors.hpp"
