// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// needs: eigen
//
// An embedding whose table is sharded by the vocabulary equals the whole embedding, forward and backward. Tokens that
// are not rows of the table are refused.
#include "shard/layer/reference.hpp"

#include <hocket/parallel.hpp>

#include <string>
#include <utility>
#include <vector>

using namespace hocket_test;
using hocket::convert;
using hocket::invariant;
using hocket::on;
using hocket::replicated;
using hocket::shard;

namespace {

using matrix_extents = hocket::extents<hocket::dynamic, hocket::dynamic>;
using vector_extents = hocket::extents<hocket::dynamic>;

struct embedding_shape {
  std::size_t tokens, vocabulary, features;
};

/// Some tokens occur more than once, and some do not occur.
int token_at(const embedding_shape& shape, std::size_t t) {
  return static_cast<int>((t * t + 3 * t + 1) % shape.vocabulary);
}

/// An embedding on whole matrices.
struct whole_embedding {
  whole_matrix table, output, gradient, of_table;

  explicit whole_embedding(const embedding_shape& shape)
      : table(whole_matrix::wave(shape.vocabulary, shape.features, 1)), output(shape.tokens, shape.features),
        gradient(whole_matrix::wave(shape.tokens, shape.features, 2)), of_table(shape.vocabulary, shape.features) {
    for (std::size_t t = 0; t < shape.tokens; ++t) {
      const auto row = static_cast<std::size_t>(token_at(shape, t));
      for (std::size_t h = 0; h < shape.features; ++h) {
        output(t, h) = table(row, h);
        of_table(row, h) += gradient(t, h);
      }
    }
  }
};

template <class T, class Output, class AlongTp, class Mesh>
void check_embedding(thread_rank& me, const Mesh& ranks, const embedding_shape& shape, const whole_embedding& whole) {
  using layer = hocket::vocabulary_parallel_embedding<"tp", Output>;
  hocket::tensor<int, vector_extents, Mesh, on<"dp", shard<0>>, on<"tp", AlongTp>> tokens(ranks, {shape.tokens});
  hocket::fill(tokens, [&](const auto& where) { return token_at(shape, where[0]); });
  hocket::tensor<T, matrix_extents, Mesh, on<"dp", invariant>, on<"tp", shard<0>>> table(
      ranks, {shape.vocabulary, shape.features});
  fill_from(table, whole.table);

  const auto used = convert<"dp", replicated>(borrow(table));
  const auto output = layer::forward(tokens, used);
  check_part(me, output, whole.output, "the embedding");

  hocket::gradient_t<decltype(output)> gradient(ranks, {shape.tokens, shape.features});
  fill_from(gradient, whole.gradient);
  if constexpr (Output::value == replicated::value) {  // its gradient is a sum over the ranks along tp
    if (ranks.template coordinate<"tp">() > 0) std::fill(gradient.elements().begin(), gradient.elements().end(), T(0));
  }
  auto of_table =
      hocket::backward_t<hocket::conversion<"dp", invariant, replicated>>()(layer::backward(tokens, used, gradient));
  static_assert(std::is_same_v<decltype(of_table), hocket::gradient_t<decltype(table)>>);
  check_part(me, of_table, whole.of_table, "the gradient of the table");
}

/// Includes vocabularies that are not multiples of the number of ranks, smaller than it, and of one entry.
const std::vector<embedding_shape> embedding_shapes = {{6, 8, 4}, {7, 11, 5}, {5, 3, 3},
                                                       {3, 1, 1}, {0, 5, 2},  {40, 50, 3}};

template <class T, class Output, class AlongTp = invariant>
void check_embeddings() {
  for (const auto& extents : layer_meshes) {
    on_ranks(extents[0] * extents[1], [&](thread_rank& me) {
      const auto ranks = hocket::mesh<"dp", "tp">(me.comm(), extents);
      for (const embedding_shape& shape : embedding_shapes) {
        me.at([&] {
          return "tp " + std::to_string(extents[1]) + ", " + std::to_string(shape.tokens) + " tokens of " +
                 std::to_string(shape.vocabulary);
        });
        check_embedding<T, Output, AlongTp>(me, ranks, shape, whole_embedding(shape));
      }
    });
  }
}

}  // namespace

TEST_CASE("a vocabulary-parallel embedding equals the whole embedding") {
  check_embeddings<double, invariant>();
  check_embeddings<double, shard<0>>();
  check_embeddings<double, replicated, replicated>();
  check_embeddings<float, invariant>();
  check_embeddings<float, shard<0>>();
}

TEST_CASE("an embedding copies rows without changing a bit") {
  on_ranks(3, [](thread_rank& me) {
    const auto ranks = hocket::mesh<"tp">(me.comm(), {3});
    using mesh_type = std::remove_const_t<decltype(ranks)>;
    hocket::tensor<int, vector_extents, mesh_type, on<"tp", invariant>> tokens(ranks, {10});
    hocket::fill(tokens, [](const auto& where) { return static_cast<int>(where[0] * 3 % 7); });
    hocket::tensor<float, matrix_extents, mesh_type, on<"tp", shard<0>>> table(ranks, {7, 2});
    const auto value = [](std::size_t row, std::size_t column) {
      return 1.0F / static_cast<float>(3 * row + column + 1);
    };
    hocket::fill(table, [&](const auto& where) { return value(where[0], where[1]); });
    const auto output = hocket::vocabulary_parallel_embedding<"tp">::forward(tokens, table);
    for (std::size_t t = 0; t < 10; ++t) {
      for (std::size_t h = 0; h < 2; ++h) me.check(output.local()(t, h) == value(t * 3 % 7, h), "other bits");
    }
  });
}

TEST_CASE("tokens that are not rows of the table are refused") {
  for (const int wrong : {-1, 7, 1000}) {
    std::string text;
    on_ranks(2, [&](thread_rank& me) {
      const auto ranks = hocket::mesh<"tp">(me.comm(), {2});
      using mesh_type = std::remove_const_t<decltype(ranks)>;
      hocket::tensor<int, vector_extents, mesh_type, on<"tp", invariant>> tokens(ranks, {4});
      tokens.local()(2) = wrong;
      hocket::tensor<double, matrix_extents, mesh_type, on<"tp", shard<0>>> table(ranks, {7, 3});
      const auto found = me.expect(hocket::errc::invalid_argument,
                                   [&] { hocket::vocabulary_parallel_embedding<"tp">::forward(tokens, table); });
      if (me.rank() == 0 && found) text = found->what();
    });
    INFO(text);
    CHECK(text.find("token 2 of this rank is " + std::to_string(wrong)) != std::string::npos);
    CHECK(text.find("the vocabulary has 7 entries") != std::string::npos);
  }
}
