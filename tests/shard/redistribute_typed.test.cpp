// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// redistribute is exact along two axes for invariant and varying data, and for partial results other than sums.
#include "support/thread_ranks.hpp"

#include <hocket/mesh/mesh.hpp>
#include <hocket/operation/operations.hpp>
#include <hocket/shard/redistribute.hpp>

#include <array>
#include <cmath>
#include <cstddef>
#include <string>
#include <type_traits>
#include <vector>

using namespace hocket_test;
using hocket::dynamic;
using hocket::extents;
using hocket::invariant;
using hocket::maximum;
using hocket::mean;
using hocket::on;
using hocket::partial;
using hocket::placement_kind;
using hocket::replicated;
using hocket::shard;
using hocket::sum;
using hocket::varying;

namespace {

using sizes_type = std::array<std::size_t, 2>;

double whole_at(const sizes_type& at) { return static_cast<double>(1 + at[0] * 100 + at[1]); }

/// Returns the value on the rank at `coordinate`, of `ranks` ranks along an axis, of `whole` with this placement.
double along_axis(const hocket::placement& placed, double whole, int coordinate, int ranks) {
  switch (placed.kind) {
    case placement_kind::varying: return whole + 1000 * coordinate;
    case placement_kind::partial_sum:
      return coordinate > 0 ? whole * coordinate : whole * (1 - ranks * (ranks - 1) / 2);
    // Means of 1, 2, 3 ... elements.
    case placement_kind::partial_mean: return coordinate > 0 ? 2 * whole : whole * (2 - ranks * (ranks + 1) / 2);
    case placement_kind::partial_other: return coordinate == 1 % ranks ? whole : whole - 3 - coordinate;
    default: return whole;
  }
}

/// Returns a tensor of this type that represents `whole_at`.
template <class Tensor, class Mesh>
Tensor made(const Mesh& ranks, const sizes_type& sizes) {
  Tensor x(ranks, sizes);
  double count = 1;
  hocket::fill(x, [&](const sizes_type& at) {
    double value = whole_at(at);
    for (std::size_t a = 0; a < 2; ++a) {
      value = along_axis(Tensor::placements_type::values[a], value, ranks.coordinates()[a], ranks.extents()[a]);
    }
    return value;
  });
  for (std::size_t a = 0; a < 2; ++a) {
    if (Tensor::placements_type::values[a].kind == placement_kind::partial_mean) count *= ranks.coordinates()[a] + 1;
  }
  x.set_count(count);
  return x;
}

template <class Mesh, class Dp, class Tp>
using matrix_on_grid = hocket::tensor<double, extents<dynamic, dynamic>, Mesh, on<"dp", Dp>, on<"tp", Tp>>;

template <class FromDp, class FromTp, class ToDp, class ToTp, class Mesh>
void check(thread_rank& me, const Mesh& ranks, const char* what) {
  using from_type = matrix_on_grid<Mesh, FromDp, FromTp>;
  using to_type = matrix_on_grid<Mesh, ToDp, ToTp>;
  for (const sizes_type& sizes : {sizes_type{12, 24}, sizes_type{7, 5}, sizes_type{1, 3}, sizes_type{0, 5}}) {
    me.at([&] { return std::string(what) + " of " + std::to_string(sizes[0]) + "x" + std::to_string(sizes[1]); });
    const auto y = hocket::redistribute<on<"dp", ToDp>, on<"tp", ToTp>>(made<from_type>(ranks, sizes));
    static_assert(std::is_same_v<std::remove_const_t<decltype(y)>, to_type>);
    const auto expected = made<to_type>(ranks, sizes);
    bool right = y.elements().size() == expected.elements().size();
    for (std::size_t i = 0; right && i < y.elements().size(); ++i) {
      right = std::abs(y.elements()[i] - expected.elements()[i]) <= 1e-12 * std::abs(expected.elements()[i]);
    }
    me.check(right, "wrong elements");
    double count = 1;
    for (std::size_t a = 0; a < 2; ++a) {
      const int ranks_along = ranks.extents()[a];
      if (from_type::placements_type::values[a].kind != placement_kind::partial_mean) continue;
      const bool stays = to_type::placements_type::values[a].kind == placement_kind::partial_mean;
      count *= stays ? ranks.coordinates()[a] + 1 : ranks_along * (ranks_along + 1) / 2;
    }
    me.check(y.count() == count, [&] { return "counts " + std::to_string(y.count()); });
  }
}

}  // namespace

TEST_CASE("invariant and varying data, partial means and partial maxima are redistributed exactly") {
  for (const std::vector<int>& mesh_extents : {std::vector{2, 2}, std::vector{2, 3}, std::vector{3, 2}}) {
    on_ranks(mesh_extents[0] * mesh_extents[1], [&](thread_rank& me) {
      const auto ranks = hocket::mesh<"dp", "tp">(me.comm(), mesh_extents);
      check<invariant, invariant, shard<0>, shard<0>>(me, ranks, "II to S0S0");
      check<invariant, shard<1>, shard<0>, invariant>(me, ranks, "IS1 to S0I");
      check<shard<0>, shard<0>, invariant, shard<1>>(me, ranks, "S0S0 to IS1");
      check<invariant, partial<sum>, invariant, invariant>(me, ranks, "IP to II");
      check<varying, shard<0>, varying, shard<1>>(me, ranks, "VS0 to VS1");
      check<varying, partial<sum>, varying, shard<0>>(me, ranks, "VP to VS0");
      check<shard<1>, varying, replicated, varying>(me, ranks, "S1V to RV");
      check<partial<mean>, shard<1>, invariant, shard<0>>(me, ranks, "MS1 to IS0");
      check<partial<mean>, partial<mean>, shard<0>, replicated>(me, ranks, "MM to S0R");
      check<shard<0>, partial<mean>, shard<1>, partial<mean>>(me, ranks, "S0M to S1M");
      check<partial<mean>, replicated, shard<1>, shard<1>>(me, ranks, "MR to S1S1");
      check<partial<maximum>, shard<0>, replicated, shard<1>>(me, ranks, "XS0 to RS1");
      check<partial<maximum>, partial<maximum>, shard<0>, shard<1>>(me, ranks, "XX to S0S1");
      check<invariant, partial<maximum>, shard<0>, partial<maximum>>(me, ranks, "IX to S0X");
    });
  }
}
