// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Norm and clipping of a model on data-, pipeline- and tensor-parallel ranks, with numbers that other implementations
// got wrong. If a gradient is not finite on one of these ranks, all ranks skip the step.
#include <hocket/parallel.hpp>

#include "support/catch.hpp"
#include "support/thread_ranks.hpp"

#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

namespace {

using namespace hocket_test;
using hocket::invariant;
using hocket::on;
using hocket::partial;
using hocket::shard;
using hocket::sum;
using vector = hocket::extents<hocket::dynamic>;

template <class Comm>
auto mesh_of_stage(const Comm& comm, int data, int tensor) {
  return hocket::mesh<"dp", "tp">(comm, {data, tensor});
}

/// Returns the data-parallel rank's summand of a gradient with the sum `value`, without rounding.
float summand(float value, int rank, int ranks) { return rank == 0 ? value - static_cast<float>(ranks - 1) : 1.0F; }

/// Number of elements of a pipeline stage. The stages divide `all` elements without overlap.
std::size_t elements_of(std::size_t all, int stage, int stages) {
  const auto s = static_cast<std::size_t>(stage), n = static_cast<std::size_t>(stages);
  return all * (s + 1) / n - all * s / n;
}

/// A model of two parameters: the elements of one are sliced, and tensor-parallel ranks have copies of the other.
struct model {
  std::size_t sliced = 0;  ///< elements of the whole model, divided among stages, and then among tensor-parallel ranks
  float sliced_value = 0;  ///< each element of their gradient
  std::size_t copied = 0;
  float copied_value = 0;

  double norm() const {
    return std::sqrt(
        static_cast<double>(sliced) * static_cast<double>(sliced_value) * static_cast<double>(sliced_value) +
        static_cast<double>(copied) * static_cast<double>(copied_value) * static_cast<double>(copied_value));
  }
};

template <class Sharding, class When>
void check_clipping(thread_rank& me, const std::array<int, 3>& extents, const model& what, double most, When when,
                    Sharding stage_of_zero) {
  const auto ranks = hocket::mesh<"dp", "pp", "tp">(me.comm(), {extents[0], extents[1], extents[2]});
  const auto stage = mesh_of_stage(ranks.template along<"dp", "tp">(), extents[0], extents[2]);
  using mesh_type = std::remove_const_t<decltype(stage)>;
  using sliced_type = hocket::tensor<float, vector, mesh_type, on<"dp", invariant>, on<"tp", shard<0>>>;
  using copied_type = hocket::tensor<float, vector, mesh_type, on<"dp", invariant>, on<"tp", invariant>>;
  using sliced_gradient = hocket::tensor<float, vector, mesh_type, on<"dp", partial<sum>>, on<"tp", shard<0>>>;
  using copied_gradient = hocket::tensor<float, vector, mesh_type, on<"dp", partial<sum>>, on<"tp", invariant>>;
  const int place = ranks.template coordinate<"pp">(), data = ranks.template coordinate<"dp">();
  const std::size_t sliced = elements_of(what.sliced, place, extents[1]);
  const std::size_t copied = elements_of(what.copied, place, extents[1]);
  const hocket::parameter_layout layout({hocket::parameter_of<"dp">("weights", sliced_type(stage, {sliced})),
                                         hocket::parameter_of<"dp">("gain", copied_type(stage, {copied}))},
                                        {.first_elements = 1, .elements = 1});
  auto gradients = hocket::gradients<float>(ranks.template along<"dp">(), layout, when, stage_of_zero);
  const auto fetching = hocket::split(ranks.template along<"dp">(), hocket::color{0}, hocket::key{data});
  auto parameters = hocket::parameters<float>(fetching, layout, stage_of_zero);
  auto optimizer = hocket::make_optimizer<float>(parameters, hocket::sgd{.momentum = 0});

  sliced_gradient of_sliced(stage, {sliced});
  copied_gradient of_copied(stage, {copied});
  for (float& each : of_sliced.elements()) each = summand(what.sliced_value, data, extents[0]);
  for (float& each : of_copied.elements()) each = summand(what.copied_value, data, extents[0]);
  gradients.begin_microbatch(0, 1);
  hocket::add_gradient<"dp">(gradients, 1, of_copied);
  gradients.ready(1);
  hocket::add_gradient<"dp">(gradients, 0, of_sliced);
  gradients.ready(0);
  gradients.end_microbatch(0, 1);
  gradients.finish();

  const auto found = hocket::norm(gradients, ranks.template along<"pp", "tp">());
  me.check(std::abs(found.value - what.norm()) <= 1e-12 * what.norm(),
           [&] { return "the norm is " + std::to_string(found.value) + ", not " + std::to_string(what.norm()); });
  const double factor = found.step_factor(1, most);
  optimizer.step(gradients, 1, factor);

  // The change of the parameters has the clipped norm, computed here over all ranks with each element once.
  const double expected = what.norm() > most ? most / what.norm() : 1;
  double squares = 0;
  for (const std::size_t i : {0U, 1U}) {
    if (Sharding::shards_parameters) parameters.gather(layout.bucket_of(i));
    for (const float each : parameters.of(i)) {
      const double wanted = -expected * static_cast<double>(i == 0 ? what.sliced_value : what.copied_value);
      me.check(std::abs(static_cast<double>(each) - wanted) <= 1e-6 * std::abs(wanted), "a clipped element");
      const bool first = data == 0 && (i == 0 || ranks.template coordinate<"tp">() == 0);
      if (first) squares += static_cast<double>(each) * static_cast<double>(each);
    }
  }
  hocket::all_reduce(me.comm(), hocket::in_place(std::span(&squares, 1)));
  const double moved = std::min(most, what.norm());
  me.check(std::abs(std::sqrt(squares) - moved) <= 1e-5 * moved,
           [&] { return "moved by " + std::to_string(std::sqrt(squares)) + ", not " + std::to_string(moved); });
}

constexpr std::array<int, 3> meshes[] = {{1, 1, 1}, {1, 1, 2}, {2, 1, 1}, {1, 2, 1}, {2, 1, 2}, {1, 2, 2}, {2, 2, 1},
                                         {3, 1, 2}, {2, 2, 2}, {1, 4, 2}, {2, 4, 1}, {4, 1, 2}, {5, 1, 1}, {7, 1, 1},
                                         {1, 4, 1}, {3, 1, 1}, {3, 2, 1}, {4, 1, 1}, {4, 2, 1}};

void check_everywhere(const model& what, double most) {
  for (const auto& extents : meshes) {
    on_ranks(extents[0] * extents[1] * extents[2], [&](thread_rank& me) {
      me.at([&] {
        return std::to_string(extents[0]) + " x " + std::to_string(extents[1]) + " x " + std::to_string(extents[2]);
      });
      check_clipping(me, extents, what, most, hocket::last_microbatch, hocket::zero<0>);
      check_clipping(me, extents, what, most, hocket::last_microbatch, hocket::zero<1>);
      check_clipping(me, extents, what, most, hocket::every_microbatch, hocket::zero<2>);
      check_clipping(me, extents, what, most, hocket::every_microbatch, hocket::zero<3>);
    });
  }
}

TEST_CASE("copies with a sum of squares of 800 have the norm 28.284, and not 40, on tensor-parallel ranks") {
  const model what{.copied = 8, .copied_value = 10};
  CHECK(what.norm() == Approx(28.284).epsilon(1e-4));
  check_everywhere(what, 10);
  check_everywhere(what, 30);  // more than 28.284, less than 40: nothing is clipped
}

TEST_CASE("gradients with a sum of squares of 120 over stages and slices have the norm 10.954") {
  const model what{.sliced = 26, .sliced_value = 2, .copied = 4, .copied_value = 2};
  CHECK(what.norm() == Approx(10.954).epsilon(1e-4));
  check_everywhere(what, 1);
  check_everywhere(what, 10.96);
}

// ── Steps that are skipped ─────────────────────────────────────────────────────────────────────────────────────────

template <class Sharding, class When>
void check_skipped(thread_rank& me, const std::array<int, 3>& extents, When when, Sharding stage_of_zero) {
  const auto ranks = hocket::mesh<"dp", "pp", "tp">(me.comm(), {extents[0], extents[1], extents[2]});
  const hocket::parameter_layout layout({{"weights", 200}, {"gain", 70, ranks.template coordinate<"tp">() == 0}},
                                        {.first_elements = 1, .elements = 1});
  auto gradients = hocket::gradients<float>(ranks.template along<"dp">(), layout, when, stage_of_zero);
  const auto fetching =
      hocket::split(ranks.template along<"dp">(), hocket::color{0}, hocket::key{ranks.template coordinate<"dp">()});
  auto parameters = hocket::parameters<float>(fetching, layout, stage_of_zero);
  auto optimizer = hocket::make_optimizer<float>(parameters, hocket::adamw{});
  hocket::loss_scale scale({.initial = 1024, .interval = 1});
  double expected_scale = 1024;
  std::uint64_t expected_steps = 0;
  // Each rank in turn has an infinity, possibly in a copy that does not count in the norm; at the end no rank has one.
  for (int culprit = 0; culprit <= me.size(); ++culprit) {
    gradients.begin_microbatch(0, 1);
    for (std::size_t i = 2; i-- > 0;) {
      for (float& each : gradients.of(i)) each = 1;
      if (me.rank() == culprit && i == 1) gradients.of(i)[69] = std::numeric_limits<float>::infinity();
      gradients.ready(i);
    }
    gradients.end_microbatch(0, 1);
    const auto totals = gradients.finish();
    const auto found = hocket::norm(gradients, ranks.template along<"pp", "tp">());
    const double factor = found.step_factor(totals.count * scale.value(), 1);
    const bool taken = scale.update(found.finite);
    if (taken) optimizer.step(gradients, 0.1, factor);
    expected_scale *= culprit == me.size() ? 2 : 0.5;
    if (culprit == me.size()) ++expected_steps;
    me.check(taken == (culprit == me.size()), [&] { return "infinite on rank " + std::to_string(culprit); });
    me.check(scale.value() == expected_scale, "the scale");
    me.check(optimizer.steps() == expected_steps, "the count of steps");
  }
}

TEST_CASE("an infinity on one rank of any axis makes all ranks skip the step, with equal scales and step counts") {
  for (const std::array<int, 3>& extents :
       {std::array{2, 1, 1}, {1, 2, 1}, {1, 1, 2}, {2, 2, 2}, {3, 2, 1}, {1, 4, 2}}) {
    on_ranks(extents[0] * extents[1] * extents[2], [&](thread_rank& me) {
      check_skipped(me, extents, hocket::last_microbatch, hocket::zero<0>);
      check_skipped(me, extents, hocket::last_microbatch, hocket::zero<1>);
      check_skipped(me, extents, hocket::every_microbatch, hocket::zero<2>);
      check_skipped(me, extents, hocket::every_microbatch, hocket::zero<3>);
    });
  }
}

}  // namespace
