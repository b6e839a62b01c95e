// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Gradients of tensors with different placements along a model axis: their sum over the data axis, and the norm
// of the whole model's gradient, in which each element counts once.
#include <hocket/gradient/norm.hpp>
#include <hocket/gradient/typed.hpp>
#include <hocket/parallel.hpp>

#include "support/catch.hpp"
#include "support/thread_ranks.hpp"

#include <cmath>
#include <cstddef>
#include <string>
#include <tuple>
#include <vector>

namespace {

using namespace hocket_test;
using hocket::invariant;
using hocket::on;
using hocket::partial;
using hocket::replicated;
using hocket::shard;
using hocket::sum;
using vector = hocket::extents<hocket::dynamic>;

template <class Stage, class When>
void check_meshes(When when, Stage stage) {
  for (const auto& [data, model] : {std::pair(1, 1), {2, 1}, {1, 2}, {2, 2}, {3, 2}, {2, 3}, {2, 4}}) {
    on_ranks(data * model, [&, data = data, model = model](thread_rank& me) {
      const auto ranks = hocket::mesh<"dp", "tp">(me.comm(), {data, model});
      using mesh_type = std::remove_const_t<decltype(ranks)>;
      using sliced = hocket::tensor<float, vector, mesh_type, on<"dp", replicated>, on<"tp", shard<0>>>;
      using copied = hocket::tensor<float, vector, mesh_type, on<"dp", replicated>, on<"tp", invariant>>;
      using sliced_gradient = hocket::tensor<float, vector, mesh_type, on<"dp", partial<sum>>, on<"tp", shard<0>>>;
      using copied_gradient = hocket::tensor<float, vector, mesh_type, on<"dp", partial<sum>>, on<"tp", invariant>>;
      constexpr std::size_t cut = 501, whole = 77;  // odd sizes
      const sliced weights(ranks, {cut});
      const copied bias(ranks, {whole});
      const hocket::parameter_layout layout(
          {hocket::parameter_of<"dp">("weights", weights), hocket::parameter_of<"dp">("bias", bias)});
      me.check(layout[0].counts_in_norm && layout[1].counts_in_norm == (ranks.template coordinate<"tp">() == 0),
               "the ranks that count");

      auto gradients = hocket::gradients<float>(ranks.template along<"dp">(), layout, when, stage);
      sliced_gradient of_weights(ranks, {cut});
      copied_gradient of_bias(ranks, {whole});
      for (float& each : of_weights.elements()) each = 2;
      for (float& each : of_bias.elements()) each = 3;
      gradients.begin_microbatch(0, 1);
      hocket::add_gradient<"dp">(gradients, 1, of_bias);
      gradients.ready(1);
      hocket::add_gradient<"dp">(gradients, 0, of_weights);
      gradients.ready(0);
      gradients.end_microbatch(0, 1);
      gradients.finish();
      const auto found = hocket::norm(gradients, ranks.template along<"tp">());
      const double expected = data * std::sqrt(4.0 * cut + 9.0 * whole);
      me.check(std::abs(found.value - expected) <= 1e-12 * expected, [&] {
        return std::to_string(data) + " x " + std::to_string(model) + ": " + std::to_string(found.value) + ", not " +
               std::to_string(expected);
      });
    });
  }
}

TEST_CASE("a norm over data and model axes counts each element once, on every mesh and at every stage") {
  check_meshes(hocket::last_microbatch, hocket::zero<0>);
  check_meshes(hocket::last_microbatch, hocket::zero<1>);
  check_meshes(hocket::every_microbatch, hocket::zero<2>);
  check_meshes(hocket::every_microbatch, hocket::zero<3>);
}

template <class Stage, class When>
void check_norm_without_the_model(When when, Stage stage) {
  for (const auto& [data, model, rows] : {std::tuple(1, 2, 1), {2, 1, 1}, {2, 2, 1}, {1, 1, 3}, {1, 2, 3}}) {
    on_ranks(data * model * rows, [&, data = data, model = model, rows = rows](thread_rank& me) {
      const auto ranks = hocket::mesh<"dp", "tp", "rows">(me.comm(), {data, model, rows});
      using mesh_type = std::remove_const_t<decltype(ranks)>;
      using placed =
          hocket::tensor<float, vector, mesh_type, on<"dp", invariant>, on<"tp", shard<0>>, on<"rows", invariant>>;
      const auto weights = hocket::parameter_of<"dp">("weights", placed(ranks, {7}));
      me.check(weights.model_ranks == model * rows, "the number of ranks with a part of it");
      const auto step = [&](const hocket::parameter_layout& layout, auto use) {
        auto gradients = hocket::gradients<float>(ranks.template along<"dp">(), layout, when, stage);
        gradients.begin_microbatch(0, 1);
        gradients.end_microbatch(0, 1);
        gradients.finish();
        use(gradients);
      };
      step(hocket::parameter_layout({{"gain", 3}, weights}), [&](auto& gradients) {
        const auto check = [&](int taken_over, auto norm_of) {
          if (taken_over == model * rows) {
            norm_of();
            return;
          }
          const auto found = me.expect(hocket::errc::invalid_argument, norm_of);
          const std::string words = "'weights' has slices or copies on " + std::to_string(model * rows) + " ranks";
          me.check(found && std::string(found->what()).find(words) != std::string::npos &&
                       std::string(found->what()).find("norm(gradients, ranks.along<\"tp\">())") != std::string::npos,
                   [&] { return found ? found->what() : ""; });
        };
        check(1, [&] { hocket::norm(gradients); });
        check(model, [&] { hocket::norm(gradients, ranks.template along<"tp">()); });
        check(rows, [&] { hocket::norm(gradients, ranks.template along<"rows">()); });
        check(model * rows, [&] { hocket::norm(gradients, ranks.template along<"tp", "rows">()); });
      });
      step(hocket::parameter_layout({{"weights", 7}}), [](auto& gradients) { hocket::norm(gradients); });
    });
  }
}

TEST_CASE("a norm without the ranks that have other parts of a typed parameter is rejected, at every stage") {
  check_norm_without_the_model(hocket::last_microbatch, hocket::zero<0>);
  check_norm_without_the_model(hocket::last_microbatch, hocket::zero<1>);
  check_norm_without_the_model(hocket::every_microbatch, hocket::zero<2>);
  check_norm_without_the_model(hocket::every_microbatch, hocket::zero<3>);
}

TEST_CASE("a gradient is rejected by an accumulator over other axes, even if these have as many ranks") {
  on_ranks(4, [](thread_rank& me) {
    const auto ranks = hocket::mesh<"dp", "tp">(me.comm(), {2, 2});
    using mesh_type = std::remove_const_t<decltype(ranks)>;
    using gradient_type = hocket::tensor<float, vector, mesh_type, on<"dp", partial<sum>>, on<"tp", invariant>>;
    const gradient_type gradient(ranks, {5});
    const hocket::parameter_layout layout({{"bias", 5}});
    const auto check = [&](const auto& group, bool fits) {
      auto gradients = hocket::gradients<float>(group, layout, hocket::last_microbatch, hocket::zero<0>);
      gradients.begin_microbatch(0, 1);
      if (fits) {
        hocket::add_gradient<"dp">(gradients, 0, gradient);
        return;
      }
      const auto found =
          me.expect(hocket::errc::invalid_argument, [&] { hocket::add_gradient<"dp">(gradients, 0, gradient); });
      me.check(found && std::string(found->what()).find("over the 2 ranks along \"dp\"") != std::string::npos,
               [&] { return found ? found->what() : ""; });
    };
    const auto& data = ranks.template along<"dp">();
    check(data, true);
    check(hocket::split(data, hocket::color{0}, hocket::key{-data.rank()}), true);  // the same ranks in another order
    check(ranks.template along<"tp">(), false);
    check(ranks.all(), false);
    check(hocket::hybrid(data, ranks.template along<"tp">()), false);
  });
}

TEST_CASE("a gradient is accepted by a hybrid group if shards and replicas are its data axes, and rejected otherwise") {
  on_ranks(8, [](thread_rank& me) {
    const auto ranks = hocket::mesh<"replica", "dp", "tp">(me.comm(), {2, 2, 2});
    using mesh_type = std::remove_const_t<decltype(ranks)>;
    using gradient_type = hocket::tensor<float, vector, mesh_type, on<"replica", partial<sum>>, on<"dp", partial<sum>>,
                                         on<"tp", invariant>>;
    const gradient_type gradient(ranks, {5});
    const auto group = hocket::hybrid(ranks.template along<"dp">(), ranks.template along<"replica">());
    auto gradients = hocket::gradients<float>(group, hocket::parameter_layout({{"bias", 5}}), hocket::last_microbatch,
                                              hocket::zero<0>);
    gradients.begin_microbatch(0, 1);
    hocket::add_gradient<"replica", "dp">(gradients, 0, gradient);
    const auto other = hocket::hybrid(ranks.template along<"dp">(), ranks.template along<"tp">());
    auto others = hocket::gradients<float>(other, hocket::parameter_layout({{"bias", 5}}), hocket::last_microbatch,
                                           hocket::zero<0>);
    others.begin_microbatch(0, 1);
    me.expect(hocket::errc::invalid_argument, [&] { hocket::add_gradient<"replica", "dp">(others, 0, gradient); });
  });
}

}  // namespace
