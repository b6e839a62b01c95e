// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Errors of meshes, norms and layers name the caller's source file, not one of the library.
#include "support/thread_ranks.hpp"

#include <hocket/mesh/mesh.hpp>
#include <hocket/shard/change_mesh.hpp>
#include <hocket/shard/layer/embedding.hpp>
#include <hocket/shard/layer/linear.hpp>
#include <hocket/shard/norm.hpp>
#include <hocket/shard/redistribute.hpp>

#include <chrono>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>

using namespace hocket_test;
using hocket::extents;
using hocket::invariant;
using hocket::on;
using hocket::shard;

TEST_CASE("errors of meshes, norms and layers name the caller's source file") {
  on_ranks(2, [](thread_rank& me) {
    const auto is_here = [&](const auto& found, const char* what) {
      const std::string file = found ? found->context().site.file_name() : "nothing";
      me.check(file.find("call_sites.test.cpp") != std::string::npos, [&] { return what + (": called at " + file); });
    };
    is_here(me.expect(hocket::errc::invalid_argument, [&] { hocket::mesh<"tp">(me.comm(), {3}); }), "too many ranks");
    is_here(me.expect(hocket::errc::invalid_argument, [&] { hocket::mesh<"tp">(me.comm(), {1, 2}); }), "two extents");

    const auto ranks = hocket::mesh<"tp">(me.comm(), {2});
    const auto other = hocket::mesh<"tp">(me.comm(), {2});
    using mesh_type = std::remove_const_t<decltype(ranks)>;
    using vector = hocket::tensor<double, extents<4>, mesh_type, on<"tp", invariant>>;
    const vector x(ranks);
    const vector y(other);
    is_here(me.expect(hocket::errc::invalid_argument, [&] { hocket::norm(std::tie(x, y)); }), "two meshes");

    hocket::tensor<int, extents<2>, mesh_type, on<"tp", invariant>> ids(ranks);
    const hocket::tensor<double, extents<3, 2>, mesh_type, on<"tp", shard<0>>> table(ranks);
    hocket::fill(ids, [](const auto&) { return 3; });
    using embedding = hocket::vocabulary_parallel_embedding<"tp">;
    is_here(me.expect(hocket::errc::invalid_argument, [&] { embedding::forward(ids, table); }), "no such token");

    using rows = hocket::tensor<double, extents<hocket::dynamic>, mesh_type, on<"tp", invariant>>;
    is_here(me.expect(hocket::errc::invalid_argument, [&] { rows(ranks, {-1}); }), "a negative extent");
    is_here(me.expect(hocket::errc::invalid_argument, [&] { rows(ranks, {4}, std::span<double>()); }), "no storage");
    rows few(ranks, {2});
    const rows many(ranks, {3});
    is_here(me.expect(hocket::errc::invalid_argument, [&] { hocket::accumulate(few, many); }), "other extents");
    is_here(me.expect(hocket::errc::invalid_argument, [&] { ranks.along(8U); }), "no such axis");
    const auto reversed = hocket::mesh<"fs">(hocket::split(me.comm(), hocket::color{0}, hocket::key{-me.rank()}), {2});
    using reversed_mesh = std::remove_const_t<decltype(reversed)>;
    using moved = hocket::tensor<double, extents<2>, reversed_mesh, on<"fs", shard<0>>>;
    const auto move_to = [&](const auto& mesh) { return [&] { hocket::redistribute<moved>(many, mesh); }; };
    is_here(me.expect(hocket::errc::invalid_argument, move_to(reversed)), "other ranks");
    const auto same = hocket::mesh<"fs">(me.comm(), {2});
    is_here(me.expect(hocket::errc::invalid_argument, move_to(same)), "extents of the type");

    // The collective within a layer times out, because the other rank does not call it.
    const auto soon = hocket::with(hocket::timeout(std::chrono::milliseconds(50)));
    hocket::fill(ids, [](const auto&) { return 1; });
    if (me.rank() == 0)
      is_here(me.expect(hocket::errc::timeout, [&] { embedding::forward(ids, table, soon); }), "layer");
  });
}
