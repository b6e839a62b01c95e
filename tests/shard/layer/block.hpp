// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// A small language model that uses every layer: embedding, column-parallel, gelu, row-parallel, column-parallel to the
/// vocabulary, cross entropy; and the same on whole matrices.
#pragma once

#include "shard/layer/reference.hpp"

#include <hocket/parallel.hpp>

#include <cmath>
#include <cstddef>
#include <type_traits>
#include <utility>
#include <vector>

namespace hocket_test {

struct block_shape {
  std::size_t tokens, vocabulary, features, hidden;
};

inline double gelu(double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); }
inline double gelu_slope(double x) {
  const double pi = std::acos(-1.0);
  return 0.5 * (1 + std::erf(x / std::sqrt(2.0))) + x * std::exp(-x * x / 2) / std::sqrt(2 * pi);
}

inline int block_token(const block_shape& shape, std::size_t t) {
  return static_cast<int>((3 * t + 1) % shape.vocabulary);
}
inline int block_target(const block_shape& shape, std::size_t t) {
  return t % 5 == 3 ? -1 : static_cast<int>((5 * t + 2) % shape.vocabulary);
}
inline constexpr double block_smoothing = 0.1;

/// All parameters, or their gradients.
struct block_parameters {
  whole_matrix table, up, up_bias, down, down_bias, out;

  explicit block_parameters(const block_shape& shape)
      : table(whole_matrix::wave(shape.vocabulary, shape.features, 1)),
        up(whole_matrix::wave(shape.features, shape.hidden, 2)), up_bias(whole_matrix::wave(1, shape.hidden, 3)),
        down(whole_matrix::wave(shape.hidden, shape.features, 4)), down_bias(whole_matrix::wave(1, shape.features, 5)),
        out(whole_matrix::wave(shape.features, shape.vocabulary, 6)) {}
};

/// Returns the sum of the losses of all tokens, computed on whole matrices.
inline double whole_loss(const block_shape& shape, const block_parameters& with) {
  whole_matrix x(shape.tokens, shape.features);
  std::vector<int> targets;
  for (std::size_t t = 0; t < shape.tokens; ++t) {
    const auto row = static_cast<std::size_t>(block_token(shape, t));
    for (std::size_t h = 0; h < shape.features; ++h) x(t, h) = with.table(row, h);
    targets.push_back(block_target(shape, t));
  }
  whole_matrix hidden = plus_row(product(x, with.up), with.up_bias);
  for (double& each : hidden.elements) each = gelu(each);
  const whole_matrix between = plus_row(product(hidden, with.down), with.down_bias);
  double sum = 0;
  for (const double each : cross_entropy(product(between, with.out), targets, block_smoothing).elements) sum += each;
  return sum;
}

/// Returns the gradient of `whole_loss`, computed by central differences.
inline block_parameters whole_gradient(const block_shape& shape) {
  block_parameters at(shape), gradient(shape);
  const double step = 1e-5;
  const auto differentiate = [&](whole_matrix& parameter, whole_matrix& result) {
    for (std::size_t i = 0; i < parameter.elements.size(); ++i) {
      const double before = std::exchange(parameter.elements[i], parameter.elements[i] + step);
      const double above = whole_loss(shape, at);
      parameter.elements[i] = before - step;
      result.elements[i] = (above - whole_loss(shape, at)) / (2 * step);
      parameter.elements[i] = before;
    }
  };
  differentiate(at.table, gradient.table);
  differentiate(at.up, gradient.up);
  differentiate(at.up_bias, gradient.up_bias);
  differentiate(at.down, gradient.down);
  differentiate(at.down_bias, gradient.down_bias);
  differentiate(at.out, gradient.out);
  return gradient;
}

/// The model on a mesh with an axis "tp" that shards the weights, and optionally an axis "dp" that shards the tokens.
/// Between layers, the placement of activations along tp is `Activation`.
template <class Mesh, class Activation>
class parallel_block {
  static constexpr bool has_dp = Mesh::dimensions == 2;
  using matrix = hocket::extents<hocket::dynamic, hocket::dynamic>;
  using vector = hocket::extents<hocket::dynamic>;

  template <class T, class Extents, class AlongDp, class AlongTp>
  static auto placed() {
    using hocket::on;
    if constexpr (has_dp) {
      return std::type_identity<hocket::tensor<T, Extents, Mesh, on<"dp", AlongDp>, on<"tp", AlongTp>>>();
    } else {
      return std::type_identity<hocket::tensor<T, Extents, Mesh, on<"tp", AlongTp>>>();
    }
  }
  template <class Extents, class AlongTp>
  using parameter = typename decltype(placed<double, Extents, hocket::invariant, AlongTp>())::type;
  using numbers = typename decltype(placed<int, vector, hocket::shard<0>, hocket::invariant>())::type;

  using embedding = hocket::vocabulary_parallel_embedding<"tp", Activation>;
  using column = hocket::column_parallel_linear<"tp">;
  using row = hocket::row_parallel_linear<"tp", Activation>;

 public:
  using table_type = parameter<matrix, hocket::shard<0>>;
  using columns_type = parameter<matrix, hocket::shard<1>>;
  using rows_type = parameter<matrix, hocket::shard<0>>;
  using cut_bias = parameter<vector, hocket::shard<0>>;
  using same_bias = parameter<vector, hocket::invariant>;

  struct gradients {
    table_type table;
    columns_type up;
    cut_bias up_bias;
    rows_type down;
    same_bias down_bias;
    columns_type out;
  };

  parallel_block(const Mesh& ranks, const block_shape& shape)
      : tokens_(ranks, {shape.tokens}), targets_(ranks, {shape.tokens}),
        table_(ranks, {shape.vocabulary, shape.features}), up_(ranks, {shape.features, shape.hidden}),
        up_bias_(ranks, {shape.hidden}), down_(ranks, {shape.hidden, shape.features}),
        down_bias_(ranks, {shape.features}), out_(ranks, {shape.features, shape.vocabulary}) {
    hocket::fill(tokens_, [&](const auto& where) { return block_token(shape, where[0]); });
    hocket::fill(targets_, [&](const auto& where) { return block_target(shape, where[0]); });
    const block_parameters whole(shape);
    fill_from(table_, whole.table);
    fill_from(up_, whole.up);
    fill_from(up_bias_, whole.up_bias);
    fill_from(down_, whole.down);
    fill_from(down_bias_, whole.down_bias);
    fill_from(out_, whole.out);
  }

  /// Runs both passes. Calls `done("stage")` after each stage, and `losses` with the losses of the tokens.
  template <class Done, class Losses>
  gradients run(const Done& done, const Losses& losses) const {
    const eigen_products math;
    const auto table = used(table_);
    const auto up = used(up_), out = used(out_);
    const auto down = used(down_);
    const hocket::vocabulary_parallel_cross_entropy<"tp"> criterion{block_smoothing};
    done("start");

    const auto x = embedding::forward(tokens_, table);
    done("embedding");
    const auto first = column::forward(math, x, up);
    const auto before = hocket::plus_bias(first.output, used(up_bias_));
    const auto hidden = hocket::apply(hocket::nonlinear<"tn->tn">(), each_gelu, before);
    const auto second = row::forward(math, hidden, down);
    const auto between = hocket::plus_bias(second.output, bias_between());
    done("pair");
    const auto third = column::forward(math, between, out);
    done("last linear");
    const auto loss = criterion.forward(third.output, targets_);
    done("cross entropy");
    losses(loss.output);

    hocket::gradient_t<decltype(loss.output)> of_loss(tokens_.mesh(), loss.output.sizes());
    for (double& each : of_loss.elements()) each = 1;
    const auto of_logits = criterion.backward(loss.saved, of_loss);
    done("cross entropy backward");
    auto of_third = column::backward(math, third.saved, out, of_logits);
    done("last linear backward");
    auto of_down_bias = hocket::bias_gradient(of_third.input);
    auto of_second = row::backward(math, second.saved, down, of_third.input);
    const auto of_before = hocket::apply(hocket::nonlinear<"tn,tn->tn">(), each_slope, before, of_second.input);
    auto of_up_bias = hocket::bias_gradient(of_before);
    auto of_first = column::backward(math, first.saved, up, of_before);
    done("pair backward");
    auto of_table = embedding::backward(tokens_, table, of_first.input);
    done("embedding backward");

    auto whole_down_bias = hocket::detail::left_backwards<"tp", hocket::invariant, bias_use>(std::move(of_down_bias));
    gradients found{of_used(std::move(of_table)),        of_used(std::move(of_first.weight)),
                    of_used(std::move(of_up_bias)),      of_used(std::move(of_second.weight)),
                    of_used(std::move(whole_down_bias)), of_used(std::move(of_third.weight))};
    done("gradients");
    return found;
  }

 private:
  /// If activations differ along tp, each rank uses the bias for its own activations.
  using bias_use =
      std::conditional_t<std::is_same_v<Activation, hocket::invariant>, hocket::invariant, hocket::replicated>;

  template <class Parameter>
  static auto used(const Parameter& parameter) {
    if constexpr (has_dp) {
      return hocket::convert<"dp", hocket::replicated>(borrow(parameter));
    } else {
      return borrow(parameter);
    }
  }
  template <class Gradient>
  static auto of_used(Gradient gradient) {
    if constexpr (has_dp) {
      return hocket::backward_t<hocket::conversion<"dp", hocket::invariant, hocket::replicated>>()(std::move(gradient));
    } else {
      return gradient;
    }
  }
  auto bias_between() const { return hocket::detail::entered<"tp", bias_use>(used(down_bias_)); }

  static constexpr auto each_gelu = [](auto x, auto to) {
    for (std::size_t i = 0; i < x.size(); ++i) to.elements()[i] = gelu(x.elements()[i]);
  };
  static constexpr auto each_slope = [](auto x, auto gradient, auto to) {
    for (std::size_t i = 0; i < x.size(); ++i) to.elements()[i] = gelu_slope(x.elements()[i]) * gradient.elements()[i];
  };

  numbers tokens_, targets_;
  table_type table_;
  columns_type up_;
  cut_bias up_bias_;
  rows_type down_;
  same_bias down_bias_;
  columns_type out_;
};

}  // namespace hocket_test
