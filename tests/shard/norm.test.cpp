// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The norm of distributed tensors equals the norm of the whole tensors: each element counts once, even if several ranks
// have a copy of it.
#include "support/thread_ranks.hpp"

#include <hocket/parallel.hpp>

#include <cmath>
#include <string>
#include <vector>

using namespace hocket_test;
using hocket::invariant;
using hocket::on;
using hocket::replicated;
using hocket::shard;

namespace {

using any_matrix = hocket::extents<hocket::dynamic, hocket::dynamic>;
using vector = hocket::extents<hocket::dynamic>;

double value(std::size_t i, std::size_t j, int seed) {
  return std::sin(12.9898 * static_cast<double>(1000 * i + j) + 78.233 * seed);
}

double squares(std::size_t rows, std::size_t columns, int seed) {
  double sum = 0;
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t j = 0; j < columns; ++j) sum += value(i, j, seed) * value(i, j, seed);
  }
  return sum;
}

template <class Tensor>
Tensor filled(const typename Tensor::mesh_type& ranks, std::size_t rows, std::size_t columns, int seed) {
  Tensor made(ranks, {rows, columns});
  hocket::fill(made, [&](const auto& where) {
    return static_cast<typename Tensor::element_type>(value(where[0], where[1], seed));
  });
  return made;
}

bool near(double found, double wanted) { return std::abs(found - wanted) <= 1e-13 * wanted; }

/// Returns a tensor with equal elements, whose squares sum to `squares`.
template <class Tensor>
Tensor of_squares(const typename Tensor::mesh_type& ranks, std::size_t size, double squares) {
  Tensor made(ranks, {size});
  hocket::fill(made, [&](const auto&) { return std::sqrt(squares / static_cast<double>(size)); });
  return made;
}

}  // namespace

TEST_CASE("copies count once: the norm of squares that sum to 800 is 28.284, not 40") {
  on_ranks(2, [](thread_rank& me) {
    const auto ranks = hocket::mesh<"tp">(me.comm(), {2});
    using mesh_type = std::remove_const_t<decltype(ranks)>;
    using same = hocket::tensor<double, vector, mesh_type, on<"tp", invariant>>;
    using copies = hocket::tensor<double, vector, mesh_type, on<"tp", replicated>>;
    me.check(near(hocket::norm(of_squares<same>(ranks, 8, 800)), std::sqrt(800.0)), "invariant");
    me.check(near(hocket::norm(of_squares<copies>(ranks, 8, 800)), std::sqrt(800.0)), "replicated");
    me.check(near(hocket::norm(of_squares<same>(ranks, 3, 300), of_squares<copies>(ranks, 5, 500)), std::sqrt(800.0)),
             "both");
  });
}

TEST_CASE("copies and slices together: the norm of squares that sum to 120 is 10.954") {
  on_ranks(2, [](thread_rank& me) {
    const auto ranks = hocket::mesh<"tp">(me.comm(), {2});
    using mesh_type = std::remove_const_t<decltype(ranks)>;
    using same = hocket::tensor<double, vector, mesh_type, on<"tp", invariant>>;
    using cut = hocket::tensor<double, vector, mesh_type, on<"tp", shard<0>>>;
    for (const double share : {0.0, 15.0, 52.36, 67.64, 120.0}) {
      const double found = hocket::norm(of_squares<same>(ranks, 5, share), of_squares<cut>(ranks, 7, 120 - share));
      me.check(near(found, std::sqrt(120.0)), [&] { return std::to_string(found) + " instead of 10.954"; });
    }
  });
}

TEST_CASE("the norm over one axis equals that of the whole tensors, with equal bits on all ranks") {
  for (const int size : {1, 2, 3, 4, 5}) {
    std::vector<double> found(static_cast<std::size_t>(size));
    on_ranks(size, [&](thread_rank& me) {
      const auto ranks = hocket::mesh<"tp">(me.comm(), {size});
      using mesh_type = std::remove_const_t<decltype(ranks)>;
      using rows = hocket::tensor<double, any_matrix, mesh_type, on<"tp", shard<0>>>;
      using columns = hocket::tensor<float, any_matrix, mesh_type, on<"tp", shard<1>>>;
      using same = hocket::tensor<double, any_matrix, mesh_type, on<"tp", invariant>>;
      const auto a = filled<rows>(ranks, 7, 5, 1);
      const auto b = filled<columns>(ranks, 3, 2, 2);  // some ranks have no elements
      const auto c = filled<same>(ranks, 3, 3, 3);
      const auto none = filled<rows>(ranks, 0, 4, 4);
      const double wanted = squares(7, 5, 1) + squares(3, 2, 2) + squares(3, 3, 3);
      const double norm = hocket::norm(a, b, c, none, borrow(a));
      me.check(std::abs(norm - std::sqrt(wanted + squares(7, 5, 1))) < 1e-6, "not the norm of the whole");
      me.check(near(hocket::squared_norm(a, c), squares(7, 5, 1) + squares(3, 3, 3)), "not its square");
      me.check(hocket::norm(none) == 0, "norm of no elements");
      found[static_cast<std::size_t>(me.rank())] = norm;
    });
    for (const double each : found) CHECK(each == found[0]);
  }
}

TEST_CASE("the norm over two axes equals that of the whole tensors for several placements") {
  for (const auto& extents : std::vector<std::vector<int>>{{1, 1}, {2, 2}, {2, 3}, {3, 2}, {1, 4}, {4, 1}}) {
    on_ranks(extents[0] * extents[1], [&](thread_rank& me) {
      const auto ranks = hocket::mesh<"dp", "tp">(me.comm(), extents);
      using mesh_type = std::remove_const_t<decltype(ranks)>;
      const auto check = [&]<class Dp, class Tp>(Dp, Tp) {
        using placed = hocket::tensor<double, any_matrix, mesh_type, on<"dp", Dp>, on<"tp", Tp>>;
        for (const auto& [rows, columns] : std::vector<std::pair<std::size_t, std::size_t>>{{7, 5}, {1, 9}, {3, 1}}) {
          me.check(near(hocket::squared_norm(filled<placed>(ranks, rows, columns, 1)), squares(rows, columns, 1)), [&] {
            return "rows " + std::to_string(rows) + ", kinds " + std::to_string(static_cast<int>(Dp::value.kind)) +
                   std::to_string(static_cast<int>(Tp::value.kind));
          });
        }
      };
      check(invariant(), invariant());
      check(invariant(), replicated());
      check(replicated(), shard<0>());
      check(shard<0>(), invariant());
      check(shard<0>(), shard<1>());
      check(shard<1>(), shard<0>());
      check(shard<0>(), shard<0>());
      using weight = hocket::tensor<double, any_matrix, mesh_type, on<"dp", invariant>, on<"tp", shard<1>>>;
      using norms = hocket::tensor<double, any_matrix, mesh_type, on<"dp", invariant>, on<"tp", invariant>>;
      using state = hocket::tensor<double, any_matrix, mesh_type, on<"dp", shard<0>>, on<"tp", shard<1>>>;
      me.check(near(hocket::squared_norm(filled<weight>(ranks, 6, 7, 1), filled<norms>(ranks, 1, 6, 2),
                                         filled<state>(ranks, 5, 5, 3)),
                    squares(6, 7, 1) + squares(1, 6, 2) + squares(5, 5, 3)),
               "three tensors");
    });
  }
}

TEST_CASE("the norm of partial gradients after their reduction is the norm of their sum") {
  on_ranks(4, [](thread_rank& me) {
    const auto ranks = hocket::mesh<"dp", "tp">(me.comm(), {2, 2});
    using mesh_type = std::remove_const_t<decltype(ranks)>;
    hocket::tensor<double, vector, mesh_type, on<"dp", hocket::partial<hocket::sum>>, on<"tp", shard<0>>> summands(
        ranks, {5});
    const double own = ranks.template coordinate<"dp">() == 0 ? 3 : -1;
    for (double& each : summands.elements()) each = own;
    me.check(near(hocket::norm(hocket::convert<"dp", invariant>(std::move(summands))), std::sqrt(20.0)), "the norm");
  });
}

TEST_CASE("the norm of tensors on different meshes is refused") {
  on_ranks(2, [](thread_rank& me) {
    const auto here = hocket::mesh<"tp">(me.comm(), {2});
    const auto there = hocket::mesh<"tp">(me.comm(), {2});
    using same = hocket::tensor<double, vector, std::remove_const_t<decltype(here)>, on<"tp", invariant>>;
    const auto found = me.expect(hocket::errc::invalid_argument,
                                 [&] { hocket::norm(of_squares<same>(here, 2, 1), of_squares<same>(there, 2, 1)); });
    me.check(found && std::string(found->what()).find("different meshes") != std::string::npos, "no explanation");
  });
}
