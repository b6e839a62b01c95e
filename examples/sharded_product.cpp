// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Four threads, each a rank, multiply two sharded matrices: each rank has columns of the left one and rows of the right
// one. The product of the parts is a partial sum, as its type states, and converting it does the communication.
// needs: eigen
// expect: element \(2, 1\) of the product is 4375
#include <hocket/parallel.hpp>

#include <Eigen/Core>

#include <cstdio>
#include <type_traits>
#include <utility>

using hocket::on, hocket::shard, hocket::replicated;

/// Returns this rank's part of a tensor as an Eigen map, without a copy.
auto matrix(auto part) {
  using element = typename decltype(part)::element_type;
  using dense = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  using mapped = std::conditional_t<std::is_const_v<element>, const dense, dense>;
  return Eigen::Map<mapped>(part.data_handle(), Eigen::Index(part.extent(0)), Eigen::Index(part.extent(1)));
}

int main() {
  hocket::local::run(4, [](auto comm) {
    const auto ranks = hocket::mesh<"tp">(comm, {4});  // four ranks along one axis, named "tp"
    using mesh = std::remove_const_t<decltype(ranks)>;

    // 3 x 50 times 50 x 2. The 50 are cut into 13, 13, 13 and 11: sizes need not be divisible by the number of ranks.
    hocket::tensor<double, hocket::extents<3, 50>, mesh, on<"tp", shard<1>>> a(ranks);
    hocket::tensor<double, hocket::extents<50, 2>, mesh, on<"tp", shard<0>>> b(ranks);
    // Each rank fills its part; the indices are those of the whole matrix.
    hocket::fill(a, [](auto at) { return static_cast<double>(at[0] + at[1] + 1); });
    hocket::fill(b, [](auto at) { return at[0] < 25 ? 1.0 : 4.0 * static_cast<double>(at[1]); });

    // The rule describes the function: it is linear in both, and sums over k. So its result is partial<sum> along tp.
    const auto multiply = [](auto x, auto y, auto to) { matrix(to) = matrix(x) * matrix(y); };
    auto summands = hocket::apply(hocket::multilinear<"mk,kn->mn">(), multiply, a, b);
    const auto product = hocket::convert<"tp", replicated>(std::move(summands));  // one all_reduce
    if (comm.rank() == 0) std::printf("element (2, 1) of the product is %g\n", product.local()(2, 1));
  });
}
