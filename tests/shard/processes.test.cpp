// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// needs: ucx
//
// Sharding between processes, over shared memory and TCP: conversions and their backward passes, redistributions over
// two axes and to another mesh, a norm; for sizes that are multiples of the number of ranks, others, and 0.
#include "support/catch.hpp"
#include "ucx/ranks.hpp"

#include <hocket/mesh/mesh.hpp>
#include <hocket/shard/change_mesh.hpp>
#include <hocket/shard/convert.hpp>
#include <hocket/shard/norm.hpp>
#include <hocket/shard/redistribute.hpp>

#include <array>
#include <cmath>
#include <cstddef>
#include <string>
#include <type_traits>

namespace {

using namespace ucx_test;
using hocket::dynamic;
using hocket::extents;
using hocket::invariant;
using hocket::mesh;
using hocket::on;
using hocket::partial;
using hocket::replicated;
using hocket::shard;
using hocket::sum;

using sizes_type = std::array<std::size_t, 2>;

constexpr route routes[] = {shared_memory, network};
constexpr sizes_type every_size[] = {{8, 12}, {7, 5}, {1, 3}, {0, 4}, {300, 250}};

double value_at(const sizes_type& at) { return static_cast<double>(at[0] * 1000 + at[1] + 1); }

std::string text_of(const sizes_type& sizes) { return std::to_string(sizes[0]) + "x" + std::to_string(sizes[1]); }

/// Expects that each element of this rank is `factor` times that of the whole.
template <class Tensor>
void expect_whole(findings& found, const Tensor& tensor, double factor, const std::string& what) {
  bool right = true;
  hocket::for_each_index(tensor.part().size, [&](const sizes_type& at) {
    const sizes_type whole{at[0] + tensor.part().begin[0], at[1] + tensor.part().begin[1]};
    right = right && tensor.local()[at] == factor * value_at(whole);
  });
  found.expect(right, what + " of " + text_of(tensor.sizes()));
}

}  // namespace

TEST_CASE("conversions and their backward passes give correct results between processes") {
  for (const route& way : routes) {
    for (const int ranks : {2, 3}) {
      CHECK(run_ranks(ranks, way, [&](communicator& comm, findings& found) {
              const auto axis = mesh<"tp">(comm, {ranks});
              using mesh_type = std::remove_const_t<decltype(axis)>;
              for (const sizes_type& sizes : every_size) {
                hocket::tensor<double, extents<dynamic, dynamic>, mesh_type, on<"tp", invariant>> x(axis, sizes);
                hocket::fill(x, value_at);
                const auto rows = hocket::convert<"tp", shard<0>>(x);
                const auto columns = hocket::convert<"tp", shard<1>>(rows);
                expect_whole(found, columns, 1, "all_to_all");
                expect_whole(found, hocket::convert<"tp", replicated>(columns), 1, "all_gather");
                // Summands of a gradient, which are multiples of the same value.
                using used = hocket::conversion<"tp", invariant, replicated>;
                hocket::gradient_t<decltype(used()(x))> summands(axis, sizes);
                hocket::fill(summands, [&](const sizes_type& at) { return value_at(at) * (comm.rank() + 1); });
                const int total = ranks * (ranks + 1) / 2;
                expect_whole(found, hocket::backward_t<used>()(summands), total, "all_reduce");
                expect_whole(found, hocket::convert<"tp", shard<1>>(summands), total, "reduce_scatter");
              }
            }) == "");
    }
  }
}

TEST_CASE("redistributions over two axes and to another mesh give correct results between processes") {
  for (const route& way : routes) {
    CHECK(run_ranks(4, way, [](communicator& comm, findings& found) {
            const auto square = mesh<"dp", "tp">(comm, {2, 2});
            const auto line = mesh<"fsdp">(comm, {4});
            using square_mesh = std::remove_const_t<decltype(square)>;
            using line_mesh = std::remove_const_t<decltype(line)>;
            for (const sizes_type& sizes : every_size) {
              using matrix = extents<dynamic, dynamic>;
              hocket::tensor<double, matrix, square_mesh, on<"dp", shard<0>>, on<"tp", shard<0>>> x(square, sizes);
              hocket::fill(x, value_at);
              expect_whole(found, hocket::redistribute<on<"dp", shard<1>>>(x), 1, "dp to columns");
              expect_whole(found, hocket::redistribute<on<"dp", replicated>>(x), 1, "dp to copies");
              expect_whole(found, hocket::redistribute<on<"tp", shard<1>>, on<"dp", replicated>>(x), 1, "both");
              using stored = hocket::tensor<double, matrix, line_mesh, on<"fsdp", shard<1>>>;
              expect_whole(found, hocket::redistribute<stored>(x, line), 1, "to the line");
              hocket::tensor<double, matrix, square_mesh, on<"dp", partial<sum>>, on<"tp", shard<1>>> y(square, sizes);
              hocket::fill(y, [&](const sizes_type& at) { return value_at(at) * (square.coordinate<"dp">() + 1); });
              expect_whole(found, hocket::redistribute<on<"dp", shard<0>>>(y), 3, "reduced to slices");
              expect_whole(found, hocket::redistribute<stored>(y, line), 3, "reduced and to the line");
            }
          }) == "");
  }
}

TEST_CASE("a norm over processes counts each element once") {
  CHECK(run_ranks(4, shared_memory, [](communicator& comm, findings& found) {
          const auto ranks = mesh<"dp", "tp">(comm, {2, 2});
          using mesh_type = std::remove_const_t<decltype(ranks)>;
          hocket::tensor<float, extents<2>, mesh_type, on<"dp", invariant>, on<"tp", invariant>> copies(ranks);
          hocket::fill(copies, [](const auto&) { return 20.0F; });
          found.expect(std::abs(hocket::norm(copies) - 28.284271) < 1e-6, "copies are counted more than once");
          hocket::tensor<float, extents<5>, mesh_type, on<"dp", invariant>, on<"tp", shard<0>>> slices(ranks);
          hocket::fill(slices, [](const auto& at) { return static_cast<float>(at[0]); });
          found.expect(std::abs(hocket::squared_norm(copies, slices) - 830) < 1e-9, "slices are not added");
        }) == "");
}
