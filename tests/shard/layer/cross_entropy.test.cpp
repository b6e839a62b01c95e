// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// needs: eigen
//
// The cross entropy of logits that are sharded by the vocabulary equals that of the whole logits, forward and backward,
// for several label smoothings and numbers of ranks. Invalid arguments are refused.
#include "shard/layer/reference.hpp"
#include "support/text.hpp"

#include <hocket/parallel.hpp>

#include <cmath>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

using namespace hocket_test;
using hocket::invariant;
using hocket::on;
using hocket::shard;

namespace {

using matrix_extents = hocket::extents<hocket::dynamic, hocket::dynamic>;
using vector_extents = hocket::extents<hocket::dynamic>;

struct logits_shape {
  std::size_t tokens, vocabulary;
};

/// Returns targets, of which every fourth is ignored.
std::vector<int> targets_of(const logits_shape& shape) {
  std::vector<int> all(shape.tokens);
  for (std::size_t t = 0; t < shape.tokens; ++t) {
    all[t] = t % 4 == 2 ? -100 : static_cast<int>((5 * t + 1) % shape.vocabulary);
  }
  return all;
}

template <class T, class Mesh>
void check_cross_entropy(thread_rank& me, const Mesh& ranks, const logits_shape& shape, double smoothing,
                         double offset) {
  const std::vector<int> wanted_targets = targets_of(shape);
  whole_matrix whole = whole_matrix::wave(shape.tokens, shape.vocabulary, 1);
  for (double& each : whole.elements) each *= 5;
  const whole_matrix of_loss = whole_matrix::wave(1, shape.tokens, 2);
  const whole_matrix wanted = cross_entropy(whole, wanted_targets, smoothing);
  const whole_matrix wanted_gradient = cross_entropy_gradient(whole, wanted_targets, smoothing, of_loss);

  hocket::tensor<T, matrix_extents, Mesh, on<"dp", shard<0>>, on<"tp", shard<1>>> logits(
      ranks, {shape.tokens, shape.vocabulary});
  // The loss does not change if a large number is added to all logits of a token.
  hocket::fill(logits, [&](const auto& where) { return static_cast<T>(whole.at(where) + offset); });
  hocket::tensor<int, vector_extents, Mesh, on<"dp", shard<0>>, on<"tp", invariant>> targets(ranks, {shape.tokens});
  hocket::fill(targets, [&](const auto& where) { return wanted_targets[where[0]]; });

  const hocket::vocabulary_parallel_cross_entropy<"tp"> layer{smoothing};
  const auto result = layer.forward(logits, targets);
  const double allowed = offset == 0 ? tolerance<T> : 1e-12 * offset;
  check_part(me, result.output, wanted, "the loss", allowed);
  hocket::gradient_t<decltype(result.output)> gradient(ranks, {shape.tokens});
  fill_from(gradient, of_loss);
  const auto found = layer.backward(result.saved, gradient);
  static_assert(std::is_same_v<std::remove_const_t<decltype(found)>, hocket::gradient_t<decltype(logits)>>);
  check_part(me, found, wanted_gradient, "the gradient of the logits", allowed);
}

/// Includes vocabularies that are not multiples of the number of ranks, smaller than it, and of one entry.
const std::vector<logits_shape> logits_shapes = {{6, 12}, {7, 11}, {5, 3}, {9, 2}, {3, 1}, {0, 5}, {1, 257}};

template <class T>
void check_cross_entropies() {
  for (const auto& extents : layer_meshes) {
    on_ranks(extents[0] * extents[1], [&](thread_rank& me) {
      const auto ranks = hocket::mesh<"dp", "tp">(me.comm(), extents);
      for (const logits_shape& shape : logits_shapes) {
        for (const double smoothing : {0.0, 0.1, 0.9}) {
          me.at([&] {
            return "tp " + std::to_string(extents[1]) + ", " + std::to_string(shape.tokens) + " tokens, vocabulary " +
                   std::to_string(shape.vocabulary) + ", smoothing " + std::to_string(smoothing);
          });
          check_cross_entropy<T>(me, ranks, shape, smoothing, 0);
          if constexpr (std::is_same_v<T, double>) check_cross_entropy<T>(me, ranks, shape, smoothing, 1000);
        }
      }
    });
  }
}

/// Returns the error text of `forward` on two ranks with this target and a vocabulary of 7.
std::string refusal(double smoothing, int target) {
  std::string text;
  on_ranks(2, [&](thread_rank& me) {
    const auto ranks = hocket::mesh<"tp">(me.comm(), {2});
    using mesh_type = std::remove_const_t<decltype(ranks)>;
    hocket::tensor<double, matrix_extents, mesh_type, on<"tp", shard<1>>> logits(ranks, {3, 7});
    hocket::tensor<int, vector_extents, mesh_type, on<"tp", invariant>> targets(ranks, {3});
    targets.local()(1) = target;
    const auto found = me.expect(hocket::errc::invalid_argument, [&] {
      hocket::vocabulary_parallel_cross_entropy<"tp">{smoothing}.forward(logits, targets);
    });
    if (me.rank() == 0 && found) text = found->what();
  });
  return text;
}

}  // namespace

TEST_CASE("vocabulary-parallel cross entropy equals that of the whole logits") {
  check_cross_entropies<double>();
  check_cross_entropies<float>();
}

TEST_CASE("entries of the vocabulary that are masked by minus infinity do not change loss and gradient") {
  on_ranks(3, [](thread_rank& me) {
    const auto ranks = hocket::mesh<"tp">(me.comm(), {3});
    using mesh_type = std::remove_const_t<decltype(ranks)>;
    constexpr std::size_t used = 5, padded = 9;  // the last rank has only masked entries
    const whole_matrix whole = whole_matrix::wave(4, used, 1);
    hocket::tensor<double, matrix_extents, mesh_type, on<"tp", shard<1>>> logits(ranks, {4, padded});
    hocket::fill(logits, [&](const auto& where) {
      return where[1] < used ? whole.at(where) : -std::numeric_limits<double>::infinity();
    });
    hocket::tensor<int, vector_extents, mesh_type, on<"tp", invariant>> targets(ranks, {4});
    hocket::fill(targets, [](const auto& where) { return static_cast<int>(where[0]); });
    const hocket::vocabulary_parallel_cross_entropy<"tp"> layer;
    const auto result = layer.forward(logits, targets);
    check_part(me, result.output, cross_entropy(whole, {0, 1, 2, 3}, 0), "the loss");
    hocket::gradient_t<decltype(result.output)> gradient(ranks, {4});
    for (double& each : gradient.elements()) each = 1;
    const auto found = layer.backward(result.saved, gradient);
    const auto first = found.part().begin[1];
    for (std::size_t t = 0; t < 4; ++t) {
      for (std::size_t v = 0; v < found.local().extent(1); ++v) {
        if (first + v >= used) me.check(found.local()(t, v) == 0, "a masked entry has a gradient");
      }
    }
  });
}

TEST_CASE("the smoothed loss does not depend on the number of ranks") {
  std::vector<std::vector<double>> losses;
  for (const int size : {1, 2, 3, 4, 5}) {
    std::vector<double> found(6);
    on_ranks(size, [&](thread_rank& me) {
      const auto ranks = hocket::mesh<"tp">(me.comm(), {size});
      using mesh_type = std::remove_const_t<decltype(ranks)>;
      const whole_matrix whole = whole_matrix::wave(6, 13, 3);
      hocket::tensor<double, matrix_extents, mesh_type, on<"tp", shard<1>>> logits(ranks, {6, 13});
      fill_from(logits, whole);
      hocket::tensor<long, vector_extents, mesh_type, on<"tp", invariant>> targets(ranks, {6});
      hocket::fill(targets, [](const auto& where) { return static_cast<long>(2 * where[0]); });
      const auto result = hocket::vocabulary_parallel_cross_entropy<"tp">{0.25}.forward(logits, targets);
      if (me.rank() == size - 1) found.assign(result.output.elements().begin(), result.output.elements().end());
    });
    losses.push_back(found);
  }
  for (const auto& each : losses) {
    for (std::size_t t = 0; t < 6; ++t) CHECK(std::abs(each[t] - losses[0][t]) <= 1e-14 * losses[0][t]);
  }
}

TEST_CASE("the loss of floats equals that of doubles for a large vocabulary of nearly equal logits") {
  for (const int size : {1, 3}) {
    on_ranks(size, [&](thread_rank& me) {
      const auto ranks = hocket::mesh<"tp">(me.comm(), {size});
      using mesh_type = std::remove_const_t<decltype(ranks)>;
      const auto loss = [&]<class T>(std::type_identity<T>, double smoothing) {
        hocket::tensor<T, matrix_extents, mesh_type, on<"tp", shard<1>>> logits(ranks, {1, 131072});
        hocket::fill(logits, [](const auto& where) { return where[1] == 5 ? T(0.1F) : T(0); });
        const hocket::tensor<int, vector_extents, mesh_type, on<"tp", invariant>> targets(ranks, {1});
        const hocket::vocabulary_parallel_cross_entropy<"tp"> layer{smoothing};
        return static_cast<double>(layer.forward(logits, targets).output.local()(0));
      };
      for (const double smoothing : {0.0, 0.1}) {
        const double wanted = loss(std::type_identity<double>(), smoothing);
        const double found = loss(std::type_identity<float>(), smoothing);
        me.check(std::abs(found - wanted) < 1e-5 * wanted, "the sum has lost digits");
      }
    });
  }
}

TEST_CASE("logits and targets that are moved into forward are valid in the backward pass") {
  on_ranks(2, [](thread_rank& me) {
    const auto ranks = hocket::mesh<"tp">(me.comm(), {2});
    using mesh_type = std::remove_const_t<decltype(ranks)>;
    const whole_matrix whole = whole_matrix::wave(3, 5, 1);
    hocket::tensor<double, matrix_extents, mesh_type, on<"tp", shard<1>>> logits(ranks, {3, 5});
    fill_from(logits, whole);
    hocket::tensor<int, vector_extents, mesh_type, on<"tp", invariant>> targets(ranks, {3});
    hocket::fill(targets, [](const auto& where) { return static_cast<int>(where[0]); });
    const hocket::vocabulary_parallel_cross_entropy<"tp"> layer;
    const auto result = layer.forward(copy(logits), std::move(targets));
    whole_matrix ones(1, 3);
    for (double& each : ones.elements) each = 1;
    hocket::gradient_t<decltype(result.output)> gradient(ranks, {3});
    fill_from(gradient, ones);
    check_part(me, layer.backward(result.saved, gradient), cross_entropy_gradient(whole, {0, 1, 2}, 0, ones),
               "the gradient of the logits");
  });
}

TEST_CASE("targets beyond the vocabulary and invalid label smoothing are refused") {
  CHECK(contains(refusal(0, 7), "target 1 of this rank is 7, and the vocabulary has 7 entries"));
  CHECK(contains(refusal(0, 100), "target 1 of this rank is 100"));
  for (const double smoothing : {-0.1, 1.0, 2.0, std::numeric_limits<double>::quiet_NaN()}) {
    const std::string text = refusal(smoothing, 0);
    INFO(text);
    CHECK(contains(text, "label_smoothing is "));
    CHECK(contains(text, "must be in [0, 1)"));
  }
}
