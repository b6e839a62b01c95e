// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Layers of bfloat16 accumulate sums in float and round once, so that long sums are correct.
#include "support/thread_ranks.hpp"

#include <hocket/mesh/mesh.hpp>
#include <hocket/scalar/bfloat16.hpp>
#include <hocket/shard/layer/cross_entropy.hpp>
#include <hocket/shard/layer/embedding.hpp>
#include <hocket/shard/layer/linear.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <type_traits>

using namespace hocket_test;
using hocket::bfloat16;
using hocket::extents;
using hocket::invariant;
using hocket::on;
using hocket::shard;

namespace {

/// The products of linear layers, accumulated in float.
struct products {
  template <class X, class W, class Y>
  void operator()(hocket::multilinear<"tk,kn->tn">, X x, W w, Y to) const {
    each(to, x.extent(1), [&](auto t, auto n, auto k) { return x(t, k) * w(k, n); });
  }
  template <class D, class W, class G>
  void operator()(hocket::multilinear<"tn,kn->tk">, D d, W w, G to) const {
    each(to, d.extent(1), [&](auto t, auto k, auto n) { return d(t, n) * w(k, n); });
  }
  template <class X, class D, class G>
  void operator()(hocket::multilinear<"tk,tn->kn">, X x, D d, G to) const {
    each(to, x.extent(0), [&](auto k, auto n, auto t) { return x(t, k) * d(t, n); });
  }

 private:
  template <class To, class Product>
  static void each(To to, std::size_t summed, Product product) {
    for (std::size_t i = 0; i < to.extent(0); ++i) {
      for (std::size_t j = 0; j < to.extent(1); ++j) {
        float total = 0;
        for (std::size_t k = 0; k < summed; ++k) total += product(i, j, k);
        to(i, j) = static_cast<bfloat16>(total);
      }
    }
  }
};

constexpr std::size_t many_tokens = 600;  // in bfloat16, a sum of ones would stop at 256

}  // namespace

TEST_CASE("layers of bfloat16 accumulate sums in float") {
  on_ranks(2, [](thread_rank& me) {
    const auto ranks = hocket::mesh<"tp">(me.comm(), {2});
    using mesh_type = std::remove_const_t<decltype(ranks)>;
    const auto one = [](const auto&) { return static_cast<bfloat16>(1.F); };
    const auto all_are = [&](const auto& tensor, float wanted, const char* what) {
      const auto found = tensor.elements();
      me.check(!found.empty() && std::all_of(found.begin(), found.end(), [&](float each) { return each == wanted; }),
               [&] { return std::string(what) + ": " + std::to_string(static_cast<float>(found.front())); });
    };

    hocket::tensor<bfloat16, extents<many_tokens, 4>, mesh_type, on<"tp", invariant>> x(ranks);
    hocket::tensor<bfloat16, extents<4, 6>, mesh_type, on<"tp", shard<1>>> w(ranks);
    hocket::tensor<bfloat16, extents<6>, mesh_type, on<"tp", shard<0>>> bias(ranks);
    hocket::fill(x, one);
    hocket::fill(w, one);
    hocket::fill(bias, one);
    using column = hocket::column_parallel_linear<"tp">;
    auto [product, saved] = column::forward(products(), x, w);
    const auto y = hocket::plus_bias(product, bias);
    all_are(y, 5, "four ones and the bias");
    const auto gradients = column::backward(products(), saved, w, y);
    all_are(gradients.input, 30, "5 for each of six outputs");
    hocket::fill(product, one);
    all_are(hocket::bias_gradient(product), many_tokens, "one for each token");

    hocket::tensor<int, extents<many_tokens>, mesh_type, on<"tp", invariant>> ids(ranks);
    hocket::tensor<bfloat16, extents<2, 4>, mesh_type, on<"tp", shard<0>>> table(ranks);
    hocket::fill(ids, [](const auto& at) { return static_cast<int>(at[0] < many_tokens / 3); });
    hocket::fill(table, one);
    using embedding = hocket::vocabulary_parallel_embedding<"tp">;
    const auto embedded = embedding::forward(ids, table);
    all_are(embedded, 1, "rows of ones");
    all_are(embedding::backward(ids, table, embedded), me.rank() == 0 ? 400 : 200, "one for each use of the row");

    hocket::accumulate(table, table);
    all_are(table, 2, "twice the table");

    // If all logits are equal, the loss is the logarithm of the size of the vocabulary.
    hocket::tensor<bfloat16, extents<2, 1000>, mesh_type, on<"tp", shard<1>>> logits(ranks);
    hocket::tensor<int, extents<2>, mesh_type, on<"tp", invariant>> targets(ranks);
    const hocket::vocabulary_parallel_cross_entropy<"tp"> cross_entropy;
    const auto result = cross_entropy.forward(logits, targets);
    static_assert(std::is_same_v<std::remove_cvref_t<decltype(result.output.elements()[0])>, float>);
    me.check(std::abs(result.output.elements()[1] - std::log(1000.F)) < 1e-5F, "the loss");
    const auto of_logits = cross_entropy.backward(result.saved, result.output);
    static_assert(std::is_same_v<std::remove_cvref_t<decltype(of_logits.elements()[0])>, bfloat16>);
    me.check(std::abs(of_logits.local()(1, 9) - std::log(1000.F) / 1000) < 1e-4F, "the gradient of another logit");
  });
}
