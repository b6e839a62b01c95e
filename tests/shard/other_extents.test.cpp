// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ranks whose extents of a tensor differ detect a mismatch, even if the sizes of their messages are equal.
#include "support/thread_ranks.hpp"

#include <hocket/mesh/mesh.hpp>
#include <hocket/shard/change_mesh.hpp>
#include <hocket/shard/convert.hpp>
#include <hocket/shard/norm.hpp>
#include <hocket/shard/redistribute.hpp>

#include <array>
#include <cstddef>
#include <functional>
#include <type_traits>
#include <utility>

using namespace hocket_test;
using hocket::dynamic;
using hocket::elsewhere;
using hocket::errc;
using hocket::extents;
using hocket::invariant;
using hocket::mean;
using hocket::mesh;
using hocket::on;
using hocket::partial;
using hocket::replicated;
using hocket::shard;
using hocket::sum;

namespace {

using sizes_type = std::array<std::size_t, 2>;

template <class Mesh, class... Said>
using matrix_as_said = hocket::tensor<double, extents<dynamic, dynamic>, Mesh, Said...>;

/// Returns a matrix of 2 x 4 on rank 0, and of 4 x 2 on the others.
template <class Placement, class Mesh>
auto differing(const Mesh& ranks) {
  return matrix_as_said<Mesh, on<"tp", Placement>>(ranks, ranks.rank() == 0 ? sizes_type{2, 4} : sizes_type{4, 2});
}

/// Expects a mismatch of `call(ranks)` on a new mesh of two ranks, because a failure ends its communicator.
template <class Call>
void expect_mismatch(thread_rank& me, const char* what, Call call) {
  const auto ranks = mesh<"tp">(me.comm(), {2});
  me.at(what);
  me.expect(errc::mismatch, [&] { call(ranks); });
}

}  // namespace

TEST_CASE("a conversion reports a mismatch if the ranks' extents differ, but not their sizes") {
  on_ranks(2, [](thread_rank& me) {
    expect_mismatch(me, "partial sum to invariant",
                    [](const auto& ranks) { hocket::convert<"tp", invariant>(differing<partial<sum>>(ranks)); });
    expect_mismatch(me, "partial mean to replicated", [](const auto& ranks) {
      auto means = differing<partial<mean>>(ranks);
      means.set_count(1);
      hocket::convert<"tp", replicated>(std::move(means));
    });
    expect_mismatch(me, "partial mean to slices", [](const auto& ranks) {
      auto means = differing<partial<mean>>(ranks);
      means.set_count(1);
      hocket::convert<"tp", shard<0>>(std::move(means));
    });
    expect_mismatch(me, "partial sum to slices",
                    [](const auto& ranks) { hocket::convert<"tp", shard<0>>(differing<partial<sum>>(ranks)); });
    expect_mismatch(me, "partial sum to slices that are packed",
                    [](const auto& ranks) { hocket::convert<"tp", shard<1>>(differing<partial<sum>>(ranks)); });
    expect_mismatch(me, "slices to replicated",
                    [](const auto& ranks) { hocket::convert<"tp", replicated>(differing<shard<0>>(ranks)); });
    expect_mismatch(me, "slices to replicated, packed",
                    [](const auto& ranks) { hocket::convert<"tp", replicated>(differing<shard<1>>(ranks)); });
    expect_mismatch(me, "slices to other slices",
                    [](const auto& ranks) { hocket::convert<"tp", shard<1>>(differing<shard<0>>(ranks)); });
    expect_mismatch(me, "with options", [](const auto& ranks) {
      hocket::convert<"tp", invariant>(differing<partial<sum>>(ranks), hocket::with(hocket::ring));
    });
  });
}

TEST_CASE("a redistribution reports a mismatch if the ranks' extents differ, but not their sizes") {
  on_ranks(2, [](thread_rank& me) {
    expect_mismatch(me, "along one axis",
                    [](const auto& ranks) { hocket::redistribute<on<"tp", shard<1>>>(differing<shard<0>>(ranks)); });
    expect_mismatch(me, "to another mesh", [&](const auto& ranks) {
      const auto other = mesh<"fs">(me.comm(), {2});
      using other_mesh = std::remove_const_t<decltype(other)>;
      hocket::redistribute<matrix_as_said<other_mesh, on<"fs", shard<1>>>>(differing<shard<0>>(ranks), other);
    });
  });
}

TEST_CASE("a norm reports a mismatch if the ranks' extents differ") {
  on_ranks(2, [](thread_rank& me) {
    expect_mismatch(me, "norm", [](const auto& ranks) { hocket::norm(differing<shard<0>>(ranks)); });
  });
}

TEST_CASE("a conversion reports a mismatch if one rank's batch is longer, but its part is not") {
  on_ranks(4, [](thread_rank& me) {
    const auto ranks = mesh<"dp", "tp">(me.comm(), {2, 2});
    using mesh_type = std::remove_const_t<decltype(ranks)>;
    const std::size_t batch = me.rank() == 3 ? 5 : 4;
    matrix_as_said<mesh_type, on<"dp", shard<0>>, on<"tp", partial<sum>>> x(ranks, {batch, 6});
    const auto convert = [&] { hocket::convert<"tp", invariant>(x); };
    if (me.rank() < 2) return convert();
    me.expect(errc::mismatch, convert);
  });
}
