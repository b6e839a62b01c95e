// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// For include_cost: a model of every layer, forward and backward, between threads.
#include <hocket/parallel.hpp>

#include <cstddef>
#include <type_traits>

using hocket::dynamic;
using hocket::extents;
using hocket::invariant;
using hocket::on;
using hocket::shard;

struct products {
  void operator()(hocket::multilinear<"tk,kn->tn">, auto x, auto w, auto to) const {
    for (std::size_t t = 0; t < x.extent(0); ++t) {
      for (std::size_t k = 0; k < x.extent(1); ++k) {
        for (std::size_t n = 0; n < w.extent(1); ++n) to(t, n) += x(t, k) * w(k, n);
      }
    }
  }
  void operator()(hocket::multilinear<"tn,kn->tk">, auto gradient, auto w, auto to) const {
    for (std::size_t t = 0; t < to.extent(0); ++t) {
      for (std::size_t k = 0; k < to.extent(1); ++k) {
        for (std::size_t n = 0; n < w.extent(1); ++n) to(t, k) += gradient(t, n) * w(k, n);
      }
    }
  }
  void operator()(hocket::multilinear<"tk,tn->kn">, auto x, auto gradient, auto to) const {
    for (std::size_t t = 0; t < x.extent(0); ++t) {
      for (std::size_t k = 0; k < x.extent(1); ++k) {
        for (std::size_t n = 0; n < to.extent(1); ++n) to(k, n) += x(t, k) * gradient(t, n);
      }
    }
  }
};

int main() {
  double norm = 0;
  hocket::local::run(4, [&](auto comm) {
    const auto ranks = hocket::mesh<"tp">(comm, {4});
    using mesh = std::remove_const_t<decltype(ranks)>;
    using numbers = hocket::tensor<int, extents<dynamic>, mesh, on<"tp", invariant>>;
    using columns = hocket::tensor<double, extents<dynamic, dynamic>, mesh, on<"tp", shard<1>>>;
    using rows = hocket::tensor<double, extents<dynamic, dynamic>, mesh, on<"tp", shard<0>>>;
    using bias = hocket::tensor<double, extents<dynamic>, mesh, on<"tp", invariant>>;
    using embedding = hocket::vocabulary_parallel_embedding<"tp">;
    using column = hocket::column_parallel_linear<"tp">;
    using row = hocket::row_parallel_linear<"tp">;
    const hocket::vocabulary_parallel_cross_entropy<"tp"> criterion{0.1};
    const products math;

    const numbers tokens(ranks, {7}), targets(ranks, {7});
    rows table(ranks, {11, 5}), down(ranks, {9, 5});
    columns up(ranks, {5, 9}), out(ranks, {5, 11});
    const bias between(ranks, {5});
    const auto value = [](const auto& at) { return 0.1 * static_cast<double>(3 * at[0] + at[1] % 4); };
    hocket::fill(table, value);
    hocket::fill(up, value);
    hocket::fill(down, value);
    hocket::fill(out, value);

    const auto x = embedding::forward(tokens, table);
    const auto first = column::forward(math, x, up);
    const auto second = row::forward(math, first.output, down);
    const auto third = column::forward(math, hocket::plus_bias(second.output, between), out);
    const auto loss = criterion.forward(third.output, targets);

    hocket::gradient_t<decltype(loss.output)> of_loss(ranks, loss.output.sizes());
    hocket::fill(of_loss, [](const auto&) { return 1.0; });
    const auto of_logits = criterion.backward(loss.saved, of_loss);
    const auto of_third = column::backward(math, third.saved, out, of_logits);
    const auto of_second = row::backward(math, second.saved, down, of_third.input);
    const auto of_first = column::backward(math, first.saved, up, of_second.input);
    const auto of_table = embedding::backward(tokens, table, of_first.input);
    const double found = hocket::norm(of_table, of_first.weight, of_second.weight, of_third.weight,
                                      hocket::bias_gradient(of_third.input));
    if (comm.rank() == 0) norm = found;
  });
  return norm > 0 ? 0 : 1;
}
