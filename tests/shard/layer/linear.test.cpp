// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// needs: eigen
//
// Column- and row-parallel linear layers equal the layer on whole matrices, forward and backward, for all placements of
// their activations. Tokens are sharded along dp, weights are invariant along it.
#include "shard/layer/reference.hpp"

#include <hocket/parallel.hpp>

#include <string>
#include <vector>

using namespace hocket_test;
using hocket::convert;
using hocket::invariant;
using hocket::on;
using hocket::replicated;
using hocket::shard;

namespace {

struct linear_shape {
  std::size_t tokens, inputs, outputs;
};

/// One linear layer on whole matrices.
struct whole_linear {
  whole_matrix x, w, bias, output, gradient, of_input, of_weight, of_bias;

  explicit whole_linear(const linear_shape& shape)
      : x(whole_matrix::wave(shape.tokens, shape.inputs, 1)), w(whole_matrix::wave(shape.inputs, shape.outputs, 2)),
        bias(whole_matrix::wave(1, shape.outputs, 3)), output(product(x, w)),
        gradient(whole_matrix::wave(shape.tokens, shape.outputs, 4)), of_input(product(gradient, transposed(w))),
        of_weight(product(transposed(x), gradient)), of_bias(row_sum(gradient)) {}
};

template <class T, class Mesh>
struct kinds {
  using matrix = hocket::extents<hocket::dynamic, hocket::dynamic>;
  using vector = hocket::extents<hocket::dynamic>;
  template <class AlongTp>
  using activation = hocket::tensor<T, matrix, Mesh, on<"dp", shard<0>>, on<"tp", AlongTp>>;
  template <class AlongTp>
  using weight = hocket::tensor<T, matrix, Mesh, on<"dp", invariant>, on<"tp", AlongTp>>;
  template <class AlongTp>
  using bias = hocket::tensor<T, vector, Mesh, on<"dp", invariant>, on<"tp", AlongTp>>;
};

/// Converts a parameter for use with tokens that are sharded along dp; `gradient_of_used` converts its gradient back.
template <class Parameter>
auto used(const Parameter& parameter) {
  return convert<"dp", replicated>(borrow(parameter));
}
template <class Gradient>
auto gradient_of_used(Gradient gradient) {
  return hocket::backward_t<hocket::conversion<"dp", invariant, replicated>>()(std::move(gradient));
}

/// Reduces a tensor that is partial along tp, so that its elements can be compared.
template <class Tensor>
auto looked_at(Tensor tensor) {
  if constexpr (Tensor::template placement_on<"tp">::value.partial()) {
    return convert<"tp", replicated>(std::move(tensor));
  } else {
    return tensor;
  }
}

/// Fills a gradient. If it is a partial sum along tp, the ranks have unequal shares.
template <class Gradient>
void fill_gradient(Gradient& gradient, const whole_matrix& whole) {
  fill_from(gradient, whole);
  if constexpr (Gradient::template placement_on<"tp">::value.partial()) {
    const int ranks = gradient.mesh().template extent<"tp">();
    const int own = gradient.mesh().template coordinate<"tp">() + 1;
    const double share = 2.0 * own / (static_cast<double>(ranks) * (ranks + 1));
    using element = typename Gradient::element_type;
    for (auto& each : gradient.elements()) each = static_cast<element>(static_cast<double>(each) * share);
  }
}

template <class T, class Activation, class Mesh>
void check_column(thread_rank& me, const Mesh& ranks, const linear_shape& shape, const whole_linear& whole) {
  using layer = hocket::column_parallel_linear<"tp">;
  using kind = kinds<T, Mesh>;
  typename kind::template activation<Activation> x(ranks, {shape.tokens, shape.inputs});
  typename kind::template weight<shard<1>> w(ranks, {shape.inputs, shape.outputs});
  typename kind::template bias<shard<0>> bias(ranks, {shape.outputs});
  fill_from(x, whole.x);
  fill_from(w, whole.w);
  fill_from(bias, whole.bias);

  const auto result = layer::forward(eigen_products(), x, used(w));
  check_part(me, result.output, whole.output, "the column-parallel output");
  const auto biased = hocket::plus_bias(result.output, used(bias));
  check_part(me, biased, plus_row(whole.output, whole.bias), "the column-parallel output with bias");

  hocket::gradient_t<decltype(biased)> gradient(ranks, {shape.tokens, shape.outputs});
  fill_gradient(gradient, whole.gradient);
  auto found = layer::backward(eigen_products(), result.saved, used(w), gradient);
  static_assert(std::is_same_v<decltype(found.input), hocket::gradient_t<decltype(x)>>);
  check_part(me, looked_at(std::move(found.input)), whole.of_input, "the gradient of the column-parallel input");
  check_part(me, gradient_of_used(std::move(found.weight)), whole.of_weight, "the column-parallel weight's gradient");
  check_part(me, gradient_of_used(hocket::bias_gradient(gradient)), whole.of_bias,
             "the column-parallel bias' gradient");
}

template <class T, class Activation, class Mesh>
void check_row(thread_rank& me, const Mesh& ranks, const linear_shape& shape, const whole_linear& whole) {
  using layer = hocket::row_parallel_linear<"tp", Activation>;
  using kind = kinds<T, Mesh>;
  typename kind::template activation<shard<1>> x(ranks, {shape.tokens, shape.inputs});
  typename kind::template weight<shard<0>> w(ranks, {shape.inputs, shape.outputs});
  typename kind::template bias<invariant> bias(ranks, {shape.outputs});
  fill_from(x, whole.x);
  fill_from(w, whole.w);
  fill_from(bias, whole.bias);
  // If activations differ along tp, each rank uses the bias for its own activations.
  constexpr bool equal_along_tp = std::is_same_v<Activation, invariant>;
  using bias_use = std::conditional_t<equal_along_tp, invariant, replicated>;

  const auto result = layer::forward(eigen_products(), x, used(w));
  check_part(me, result.output, whole.output, "the row-parallel output");
  const auto biased = hocket::plus_bias(result.output, hocket::detail::entered<"tp", bias_use>(used(bias)));
  check_part(me, biased, plus_row(whole.output, whole.bias), "the row-parallel output with bias");

  hocket::gradient_t<decltype(biased)> gradient(ranks, {shape.tokens, shape.outputs});
  fill_gradient(gradient, whole.gradient);
  auto found = layer::backward(eigen_products(), result.saved, used(w), gradient);
  static_assert(std::is_same_v<decltype(found.input), hocket::gradient_t<decltype(x)>>);
  check_part(me, found.input, whole.of_input, "the gradient of the row-parallel input");
  check_part(me, gradient_of_used(std::move(found.weight)), whole.of_weight, "the row-parallel weight's gradient");
  auto of_bias = hocket::detail::left_backwards<"tp", invariant, bias_use>(hocket::bias_gradient(gradient));
  check_part(me, gradient_of_used(std::move(of_bias)), whole.of_bias, "the row-parallel bias' gradient");
}

/// Includes odd sizes, sizes that are not multiples of the number of ranks or below it, and no tokens.
const std::vector<linear_shape> linear_shapes = {{5, 7, 9}, {12, 12, 12}, {1, 2, 3},
                                                 {3, 1, 1}, {0, 3, 5},    {17, 33, 10}};

template <class T, class Activation>
void check_linear() {
  for (const auto& extents : layer_meshes) {
    on_ranks(extents[0] * extents[1], [&](thread_rank& me) {
      const auto ranks = hocket::mesh<"dp", "tp">(me.comm(), extents);
      for (const linear_shape& shape : linear_shapes) {
        me.at([&] {
          return "tp " + std::to_string(extents[1]) + ", " + std::to_string(shape.tokens) + " tokens, " +
                 std::to_string(shape.inputs) + " x " + std::to_string(shape.outputs);
        });
        const whole_linear whole(shape);
        check_column<T, Activation>(me, ranks, shape, whole);
        check_row<T, Activation>(me, ranks, shape, whole);
      }
    });
  }
}

}  // namespace

TEST_CASE("parallel linear layers equal the whole layer: invariant activations") {
  check_linear<double, invariant>();
  check_linear<float, invariant>();
}

TEST_CASE("parallel linear layers equal the whole layer: activations sharded by sequence") {
  check_linear<double, shard<0>>();
  check_linear<float, shard<0>>();
}

TEST_CASE("parallel linear layers equal the whole layer: replicated activations") {
  check_linear<double, replicated>();
}

TEST_CASE("an input that is moved into forward is saved for the backward pass without a copy") {
  on_ranks(2, [](thread_rank& me) {
    const auto ranks = hocket::mesh<"dp", "tp">(me.comm(), {1, 2});
    using kind = kinds<double, std::remove_const_t<decltype(ranks)>>;
    const whole_linear whole({5, 6, 7});
    const auto check = [&]<class Activation, class Cut, class Layer>(Activation, Cut, Layer) {
      typename kind::template activation<Activation> x(ranks, {5, 6});
      typename kind::template weight<Cut> w(ranks, {6, 7});
      fill_from(x, whole.x);
      fill_from(w, whole.w);
      const auto* const before = x.elements().data();
      const auto result = Layer::forward(eigen_products(), std::move(x), used(w));
      hocket::gradient_t<decltype(result.output)> gradient(ranks, {5, 7});
      fill_gradient(gradient, whole.gradient);
      const auto found = Layer::backward(eigen_products(), result.saved, used(w), gradient);
      check_part(me, convert<"dp", invariant>(copy(found.weight)), whole.of_weight, "the weight's gradient");
      if constexpr (requires { result.saved.elements(); }) {
        me.check(result.saved.elements().data() == before, "the input was copied");
      } else {
        me.check(result.saved.input.elements().data() == before, "the input was copied");
      }
    };
    check(invariant(), shard<1>(), hocket::column_parallel_linear<"tp">());
    check(replicated(), shard<1>(), hocket::column_parallel_linear<"tp">());
    check(shard<1>(), shard<0>(), hocket::row_parallel_linear<"tp">());
  });
}
