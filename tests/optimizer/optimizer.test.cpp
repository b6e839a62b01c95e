// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <hocket/optimizer/optimizer.hpp>

#include "gradient/step.hpp"
#include "optimizer/training.hpp"
#include "support/catch.hpp"
#include "support/thread_ranks.hpp"
#include "support/trace.hpp"

#include <hocket/core/memory_ledger.hpp>
#include <hocket/gradient/accumulator.hpp>
#include <hocket/gradient/loss_scale.hpp>
#include <hocket/gradient/norm.hpp>
#include <hocket/group/split.hpp>
#include <hocket/optimizer/memory.hpp>
#include <hocket/optimizer/rule/adamw.hpp>
#include <hocket/optimizer/rule/lion.hpp>
#include <hocket/optimizer/rule/sgd.hpp>
#include <hocket/scalar/bfloat16.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <limits>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace hocket_test::gradient;
using namespace hocket_test::optimizer;
using hocket_test::on_ranks;
using hocket_test::thread_rank;

constexpr int three_steps = 3;
constexpr double clipped_at = 2000;

/// Runs three steps on the same global batch, for any number of ranks. Returns the parameters and all norms.
template <class P, class F, class Rule, class When, class Sharding>
std::pair<std::vector<P>, std::vector<double>> train(thread_rank& me, int microbatches, const Rule& rule, When when,
                                                     Sharding sharding) {
  const auto layout = small_layout();
  auto gradients = hocket::gradients<hocket::exact_sum<float>>(me.comm(), layout, when, sharding);
  auto parameters = hocket::parameters<P>(me.comm(), layout, sharding);
  set_first_values<P>(parameters);
  auto optimizer = hocket::make_optimizer<F>(parameters, rule);
  std::vector<double> norms;
  for (int step = 0; step < three_steps; ++step) {
    take_exact_step(gradients, me.rank(), me.size(), microbatches);
    const hocket::gradient_norm found = hocket::norm(gradients);
    norms.push_back(found.value);
    const double factor = 1.0 / samples;
    optimizer.step(gradients, 0.01, factor * hocket::clip_factor(found.value * factor, clipped_at / (step + 1)));
  }
  return {all_values(parameters), norms};
}

template <class P, class F, class Rule>
void check_stages(const std::string& name, const Rule& rule) {
  std::pair<std::vector<P>, std::vector<double>> expected;
  on_ranks(1, [&](thread_rank& me) { expected = train<P, F>(me, 1, rule, hocket::last_microbatch, hocket::zero<0>); });
  for (const int ranks : {1, 2, 3, 5, 8}) {
    on_ranks(ranks, [&](thread_rank& me) {
      const auto check = [&](int stage, const auto& found) {
        me.at(name + ", stage " + std::to_string(stage));
        me.check(same_bits(found.first, expected.first), "parameters differ from those of one rank");
        me.check(same_bits(found.second, expected.second), "norms differ from those of one rank");
      };
      for (const int microbatches : {1, 4}) {
        check(0, train<P, F>(me, microbatches, rule, hocket::last_microbatch, hocket::zero<0>));
        check(1, train<P, F>(me, microbatches, rule, hocket::last_microbatch, hocket::zero<1>));
        check(2, train<P, F>(me, microbatches, rule, hocket::every_microbatch, hocket::zero<2>));
        check(3, train<P, F>(me, microbatches, rule, hocket::every_microbatch, hocket::zero<3>));
      }
    });
  }
}

TEST_CASE("exact sums train the same bits at every stage, with any number of ranks and microbatches") {
  check_stages<float, float>("adamw", hocket::adamw{});
  check_stages<hocket::bfloat16, float>("adamw, bfloat16", hocket::adamw{});
  check_stages<float, float>("sgd", hocket::sgd{.weight_decay = 0.01, .nesterov = true});
  check_stages<float, float>("lion", hocket::lion{.weight_decay = 0.1});
}

/// Runs three steps of one microbatch over the ranks of `group`, with floats that are rounded at each addition.
template <class Over, class When, class Sharding, class Options>
std::vector<float> train_floats(thread_rank& me, const Over& group, When when, Sharding sharding,
                                const Options& options) {
  const auto layout = small_layout();
  auto gradients = hocket::gradients<float>(group, layout, when, sharding, options, hocket::piecewise_reduction());
  auto parameters = hocket::parameters<float>(group, layout, sharding);
  set_first_values<float>(parameters);
  auto optimizer = hocket::make_optimizer<float>(parameters, hocket::sgd{});
  for (int step = 0; step < three_steps; ++step) {
    take_step(gradients, {me.rank(), me.size(), 1, step});
    optimizer.step(gradients, 0.01, hocket::norm(gradients).step_factor(samples, clipped_at));
  }
  return all_values(parameters);
}

/// Checks that every stage has the same bits, and both times of reduction at stage 0.
template <class Over, class Options>
void check_float_stages(thread_rank& me, const Over& group, const Options& options) {
  const auto train = [&](auto when, auto sharding) { return train_floats(me, group, when, sharding, options); };
  const auto expected = train(hocket::last_microbatch, hocket::zero<0>);
  const auto check = [&](const char* name, const std::vector<float>& found) {
    me.check(same_bits(found, expected), [&] { return std::string(name) + " differs from zero<0>"; });
  };
  check("zero<0>, every", train(hocket::every_microbatch, hocket::zero<0>));
  check("zero<1>", train(hocket::last_microbatch, hocket::zero<1>));
  check("zero<2>", train(hocket::every_microbatch, hocket::zero<2>));
  check("zero<3>", train(hocket::every_microbatch, hocket::zero<3>));
}

TEST_CASE("with piecewise reduction, floats have the same bits at every stage, for each algorithm") {
  for (const int ranks : {1, 2, 3, 5, 7, 8}) {
    on_ranks(ranks, [](thread_rank& me) {
      check_float_stages(me, me.comm(), hocket::options<>{});
      check_float_stages(me, me.comm(), hocket::with(hocket::ring));
      check_float_stages(me, me.comm(), hocket::with(hocket::pairwise));
    });
  }
}

TEST_CASE("with piecewise reduction, floats have the same bits at every stage with replicas") {
  on_ranks(6, [](thread_rank& me) {
    const auto shards = hocket::split(me.comm(), hocket::color{me.rank() / 3}, hocket::key{me.rank()});
    const auto replicas = hocket::split(me.comm(), hocket::color{me.rank() % 3}, hocket::key{me.rank()});
    check_float_stages(me, hocket::hybrid(shards, replicas), hocket::options<>{});
  });
}

TEST_CASE("update rules match their formulas") {
  using state = std::array<double*, 2>;
  double p = 0.5, m = 0, v = 0;
  const double b1 = 0.9, b2 = 0.999, decay = 0.01, rate = 0.1;
  double expected = 0.5, em = 0, ev = 0;
  for (int t = 1; t <= 5; ++t) {
    const double g = 0.3 * t - 1;
    hocket::adamw::update(hocket::adamw{}.at<double>(static_cast<std::uint64_t>(t), rate), p, g, state{&m, &v});
    em = b1 * em + (1 - b1) * g;
    ev = b2 * ev + (1 - b2) * g * g;
    expected -= rate * (em / (1 - std::pow(b1, t)) / (std::sqrt(ev / (1 - std::pow(b2, t))) + 1e-8) + decay * expected);
    CHECK(p == Approx(expected).epsilon(1e-13));
  }
  double q = 0.5, n = 0;
  const std::array<double*, 1> one{&n};
  hocket::sgd::update(hocket::sgd{.momentum = 0.5, .weight_decay = 0.1}.at<double>(1, 0.1), q, 1.0, one);
  CHECK(q == Approx(0.5 - 0.1 * 1.05));
  hocket::sgd::update(hocket::sgd{.momentum = 0.5, .nesterov = true}.at<double>(2, 0.1), q, 1.0, one);
  CHECK(n == Approx(0.5 * 1.05 + 1));
  CHECK(q == Approx(0.395 - 0.1 * (1 + 0.5 * 1.525)));
  double r = 0.5, s = 0;
  const std::array<double*, 1> other{&s};
  hocket::lion::update(hocket::lion{.weight_decay = 0.1}.at<double>(1, 0.1), r, -3.0, other);
  CHECK(r == Approx(0.5 * 0.99 + 0.1));
  CHECK(s == Approx(-0.03));
}

template <class P, class F, class Sharding, class When>
void check_ledger(thread_rank& me, When when, Sharding sharding) {
  const auto layout = small_layout();
  hocket::memory_ledger ledger;
  {
    auto gradients = hocket::gradients<float>(me.comm(), layout, when, sharding, hocket::options<>{}, {},
                                              ledger.account("gradients"));
    auto parameters =
        hocket::parameters<P>(me.comm(), layout, sharding, hocket::options<>{}, ledger.account("parameters"));
    set_first_values<P>(parameters);
    auto optimizer = hocket::make_optimizer<F>(parameters, hocket::adamw{}, ledger.account("states"));
    std::vector<std::size_t> buckets;
    for (std::size_t b = 0; b < layout.buckets(); ++b) buckets.push_back(layout.bucket(b).size);
    const auto expected =
        hocket::bytes_of_training<P, float, F, hocket::adamw, Sharding>(buckets, me.rank(), me.size());
    for (int step = 0; step < 2; ++step) {
      const auto totals = take_step(gradients, {me.rank(), me.size(), 2, step});
      optimizer.step(gradients, 0.01, 1 / totals.count);
      all_values(parameters);
      const hocket::training_bytes found{ledger.bytes("parameters"), ledger.bytes("gradients"), ledger.bytes("states")};
      me.check(found == expected, [&] {
        return "stage " + std::to_string(Sharding::stage) + ": " + std::to_string(found.parameters) + " " +
               std::to_string(found.gradients) + " " + std::to_string(found.states) + " bytes, by the formula " +
               std::to_string(expected.parameters) + " " + std::to_string(expected.gradients) + " " +
               std::to_string(expected.states);
      });
      me.check(ledger.bytes() == expected.total(), "the total");
    }
    const std::size_t most = expected.gradients + hocket::consecutive_bucket_bytes<float>(buckets, buckets.size());
    me.check(ledger.peak_bytes("gradients") <= most, "more gradients than all buckets in flight");
    me.check(ledger.peak_bytes("parameters") <= expected.parameters + layout.size() * sizeof(P),
             "more parameters than all buckets gathered");
  }
  me.check(ledger.bytes() == 0, "bytes are left");
}

TEST_CASE("the allocated memory equals the formulas, to the byte") {
  for (const int ranks : {1, 2, 3, 4, 5, 6, 7, 8}) {
    on_ranks(ranks, [](thread_rank& me) {
      check_ledger<float, float>(me, hocket::last_microbatch, hocket::zero<0>);
      check_ledger<float, float>(me, hocket::last_microbatch, hocket::zero<1>);
      check_ledger<float, float>(me, hocket::every_microbatch, hocket::zero<2>);
      check_ledger<float, float>(me, hocket::every_microbatch, hocket::zero<3>);
      check_ledger<hocket::bfloat16, float>(me, hocket::last_microbatch, hocket::zero<1>);
      check_ledger<hocket::bfloat16, float>(me, hocket::every_microbatch, hocket::zero<3>);
    });
  }
}

// The example of the ZeRO paper: 7.5 billion parameters on 64 ranks, half precision with Adam in float.
constexpr std::size_t billions[] = {7'500'000'000};
template <int Stage>
constexpr double gigabytes() {
  return static_cast<double>(
             hocket::bytes_of_training<hocket::bfloat16, hocket::bfloat16, float, hocket::adamw, hocket::zero_t<Stage>>(
                 billions, 0, 64)
                 .total()) /
         1e9;
}
static_assert(gigabytes<0>() == 120);
static_assert(gigabytes<1>() > 31.40 && gigabytes<1>() < 31.41);
static_assert(gigabytes<2>() > 16.64 && gigabytes<2>() < 16.65);
static_assert(gigabytes<3>() > 1.87 && gigabytes<3>() < 1.88);

// For any sizes, even without a whole number of blocks, all ranks together store all states.
template <int Stage>
constexpr std::size_t states_of_all(int ranks) {
  constexpr std::size_t sizes[] = {100, 0, 1, 64, 4097};
  std::size_t sum = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    sum +=
        hocket::bytes_of_training<float, float, float, hocket::sgd, hocket::zero_t<Stage>>(sizes, rank, ranks).states;
  }
  return sum;
}
static_assert(states_of_all<1>(1) == 4262 * sizeof(float) && states_of_all<1>(2) == states_of_all<1>(1));
static_assert(states_of_all<2>(3) == states_of_all<1>(1) && states_of_all<3>(8) == states_of_all<1>(1));

constexpr std::size_t four_buckets[] = {3, 10, 1, 5};
static_assert(hocket::consecutive_bucket_bytes<float>(four_buckets, 0) == 0);
static_assert(hocket::consecutive_bucket_bytes<float>(four_buckets, 1) == 40);
static_assert(hocket::consecutive_bucket_bytes<float>(four_buckets, 2) == 52);
static_assert(hocket::consecutive_bucket_bytes<float>(four_buckets, 3) == 72);  // 5, 3, 10: from the last to the first
static_assert(hocket::consecutive_bucket_bytes<double>(four_buckets, 9) == 152);

/// Bytes that this rank sends in one step with ring algorithms.
template <class Sharding, class When>
double sent_bytes(thread_rank& me, const hocket::parameter_layout& layout, int microbatches, When when,
                  Sharding sharding) {
  hocket_test::trace trace;
  const auto observed = hocket::with(hocket::ring, hocket::observe_steps(trace.observer()));
  const auto fetching = hocket::split(me.comm(), hocket::color{0}, hocket::key{me.rank()});
  auto gradients = hocket::gradients<float>(me.comm(), layout, when, sharding, observed);
  auto parameters = hocket::parameters<float>(fetching, layout, sharding, observed);
  auto optimizer = hocket::make_optimizer<float>(parameters, hocket::sgd{});
  const auto compute_with = [&](std::size_t i) {  // as each pass does
    if (Sharding::shards_parameters) parameters.gather(layout.bucket_of(i));
    parameters.of(i);
    if (i == layout.members(layout.bucket_of(i)).back()) parameters.release(layout.bucket_of(i));
  };
  for (int m = 0; m < microbatches; ++m) {
    for (std::size_t i = 0; i < layout.parameters(); ++i) compute_with(i);
    gradients.begin_microbatch(m, microbatches);
    for (std::size_t i = layout.parameters(); i-- > 0;) {
      compute_with(i);
      for (float& each : gradients.of(i)) each = 1;
      gradients.ready(i);
    }
    gradients.end_microbatch(0, 1);
  }
  gradients.finish();
  optimizer.step(gradients, 0.1, 1);
  for (std::size_t b = 0; b < layout.buckets(); ++b) parameters.wait(b);
  double bytes = 0;
  for (const hocket::completed_step& each : trace.events()) {
    if (each.what.kind == hocket::plan::action_kind::send) bytes += static_cast<double>(each.bytes);
  }
  return bytes;
}

TEST_CASE("a step of M microbatches sends k (N-1)/N of the parameters: k is 2 at stages 0 and 1, M+1 at 2, 3M at 3") {
  for (const int ranks : {1, 2, 4, 5}) {
    on_ranks(ranks, [&](thread_rank& me) {
      // One bucket per parameter, each of a size that the number of ranks divides.
      const auto blocks = static_cast<std::size_t>(ranks) * hocket::layout_block_elements;
      const hocket::parameter_layout layout({{"a", 3 * blocks}, {"b", 7 * blocks}, {"c", blocks}}, {1, 1});
      const double n = 11.0 * static_cast<double>(blocks) * sizeof(float) * (ranks - 1) / ranks;
      const auto check = [&](int stage, double found, double expected) {
        me.check(found == expected, [&] {
          return "stage " + std::to_string(stage) + ": " + std::to_string(found) + " bytes, not " +
                 std::to_string(expected);
        });
      };
      for (const int m : {1, 2, 3}) {
        check(0, sent_bytes(me, layout, m, hocket::last_microbatch, hocket::zero<0>), 2 * n);
        check(1, sent_bytes(me, layout, m, hocket::last_microbatch, hocket::zero<1>), 2 * n);
        check(2, sent_bytes(me, layout, m, hocket::every_microbatch, hocket::zero<2>), (m + 1) * n);
        check(3, sent_bytes(me, layout, m, hocket::every_microbatch, hocket::zero<3>), 3 * m * n);
      }
      // Sizes that are not divisible: no padding is sent; the sum over all ranks is the same.
      const hocket::parameter_layout uneven({{"a", 100}, {"b", 1}, {"c", 700}}, {1, 1});
      double mine = sent_bytes(me, uneven, 1, hocket::every_microbatch, hocket::zero<2>), all = 0;
      hocket::all_reduce(me.comm(), std::span<const double>(&mine, 1), std::span<double>(&all, 1));
      check(2, all, 2.0 * static_cast<double>(uneven.size() * sizeof(float)) * (ranks - 1));
    });
  }
}

TEST_CASE("a gradient that is not finite on one rank makes all ranks skip the step") {
  for (const int ranks : {2, 3, 5}) {
    on_ranks(ranks, [&](thread_rank& me) {
      const hocket::parameter_layout layout({{"a", 200}, {"b", 100}}, {1, 1});
      auto gradients = hocket::gradients<float>(me.comm(), layout, hocket::every_microbatch, hocket::zero<2>);
      hocket::loss_scale scale({.initial = 1024, .interval = 2});
      std::vector<double> scales;
      for (int step = 0; step < 6; ++step) {
        gradients.begin_microbatch(0, 1);
        for (const std::size_t i : {1U, 0U}) {
          for (float& each : gradients.of(i)) each = 1;
          if (step == 2 && me.rank() == ranks - 1 && i == 0)
            gradients.of(i)[199] = std::numeric_limits<float>::infinity();
          if (step == 3 && me.rank() == 0 && i == 1) gradients.of(i)[0] = std::numeric_limits<float>::quiet_NaN();
          gradients.ready(i);
        }
        gradients.end_microbatch(0, 1);
        gradients.finish();
        const auto found = hocket::norm(gradients);
        const bool taken = scale.update(found.finite);
        me.check(taken == (step != 2 && step != 3), [&] { return "step " + std::to_string(step); });
        if (taken) me.check(std::abs(found.value - ranks * std::sqrt(300)) < 1e-9, "the norm");
        scales.push_back(scale.value());
      }
      me.check(scales == std::vector<double>{1024, 2048, 1024, 512, 512, 1024}, "the scale of each step");
      me.check(scale.skipped() == 2, "steps skipped");
    });
  }
}

TEST_CASE("the norm counts copies on model-parallel ranks once") {
  // Four ranks: two slices of the model (bias on both), two copies of each.
  on_ranks(4, [](thread_rank& me) {
    const int slice = me.rank() % 2;
    const auto data = hocket::split(me.comm(), hocket::color{slice}, hocket::key{me.rank()});
    const auto model = hocket::split(me.comm(), hocket::color{me.rank() / 2}, hocket::key{me.rank()});
    const hocket::parameter_layout layout({{"slice", 50}, {"bias", 30, slice == 0}});
    const auto check = [&](auto& gradients) {
      gradients.begin_microbatch(0, 1);
      for (std::size_t i = 0; i < 2; ++i) {
        for (float& each : gradients.of(i)) each = 2;
        gradients.ready(i);
      }
      gradients.end_microbatch(0, 1);
      gradients.finish();
      const auto found = hocket::norm(gradients, model);
      me.check(found.value == 4 * std::sqrt(130), [&] { return std::to_string(found.value); });
    };
    auto whole = hocket::gradients<float>(data, layout, hocket::last_microbatch, hocket::zero<0>);
    check(whole);
    auto parts = hocket::gradients<float>(data, layout, hocket::every_microbatch, hocket::zero<3>);
    check(parts);
  });
}

TEST_CASE("a copy that is not finite makes the norm not finite, although it does not count in its value") {
  on_ranks(4, [](thread_rank& me) {
    const auto data = hocket::split(me.comm(), hocket::color{me.rank() % 2}, hocket::key{me.rank()});
    const auto model = hocket::split(me.comm(), hocket::color{me.rank() / 2}, hocket::key{me.rank()});
    const hocket::parameter_layout layout({{"bias", 30, me.rank() % 2 == 0}});
    for (const int infinite : {0, 1, 2, 3}) {
      auto gradients = hocket::gradients<float>(data, layout, hocket::every_microbatch, hocket::zero<2>);
      gradients.begin_microbatch(0, 1);
      for (float& each : gradients.of(0)) each = 1;
      if (me.rank() == infinite) gradients.of(0)[29] = -std::numeric_limits<float>::infinity();
      gradients.end_microbatch(0, 1);
      gradients.finish();
      me.check(gradients.was_used(0), "an added gradient is not used, because it was never ready");
      me.check(!hocket::norm(gradients, model).finite, [&] { return "rank " + std::to_string(infinite); });
    }
  });
}

TEST_CASE("a step is rejected before the sums exist, a second time, with other ranks, and without any token") {
  on_ranks(4, [](thread_rank& me) {
    const auto half = hocket::split(me.comm(), hocket::color{me.rank() / 2}, hocket::key{me.rank()});
    const hocket::parameter_layout layout({{"a", 200}});
    auto parameters = hocket::parameters<float>(me.comm(), layout, hocket::zero<1>);
    auto optimizer = hocket::make_optimizer<float>(parameters, hocket::sgd{});
    auto gradients = hocket::gradients<float>(me.comm(), layout, hocket::last_microbatch, hocket::zero<1>);
    const auto refused = [&](const std::string& part, auto call) {
      const auto found = me.expect(hocket::errc::invalid_argument, call);
      me.check(found && std::string(found->what()).find(part) != std::string::npos,
               [&] { return "'" + part + "' is not in: " + (found ? found->what() : ""); });
    };
    refused("call finish first", [&] { optimizer.step(gradients, 0.1, 1); });
    gradients.begin_microbatch(0, 1);
    gradients.end_microbatch(0, 0);
    const auto totals = gradients.finish();
    refused("the count is 0 if no rank had any token", [&] { optimizer.step(gradients, 0.1, 1 / totals.count); });
    optimizer.step(gradients, 0.1, 1);
    refused("this gradient was already used", [&] { optimizer.step(gradients, 0.1, 1); });
    auto of_half = hocket::gradients<float>(half, layout, hocket::last_microbatch, hocket::zero<1>);
    of_half.begin_microbatch(0, 1);
    of_half.end_microbatch(0, 1);
    of_half.finish();
    refused("of 2, the parameters on rank", [&] { optimizer.step(of_half, 0.1, 1); });
    gradients.begin_microbatch(0, 1);
    gradients.end_microbatch(0, 1);
    gradients.finish();
    for (const double rate : {std::nan(""), std::numeric_limits<double>::infinity()}) {
      refused("learning_rate must be finite", [&] { optimizer.step(gradients, rate, 1); });
    }
    // Sizes with the same number of blocks.
    auto other = hocket::gradients<float>(me.comm(), hocket::parameter_layout({{"a", 199}}), hocket::last_microbatch,
                                          hocket::zero<1>);
    refused("differs from that of the parameters", [&] { optimizer.step(other, 0.1, 1); });
  });
}

TEST_CASE(
    "a step is rejected with the gradient of other ranks, even if there are as many, and with that of some replicas") {
  on_ranks(4, [](thread_rank& me) {
    const auto near = hocket::split(me.comm(), hocket::color{me.rank() / 2}, hocket::key{me.rank()});
    const auto far = hocket::split(me.comm(), hocket::color{me.rank() % 2}, hocket::key{me.rank()});
    const auto alone = hocket::split(me.comm(), hocket::color{me.rank()}, hocket::key{0});
    const hocket::parameter_layout layout({{"a", 200}});
    const auto check = [&](const auto& of_gradients, const auto& of_parameters, const std::string& words) {
      auto gradients = hocket::gradients<float>(of_gradients, layout, hocket::every_microbatch, hocket::zero<2>);
      auto parameters = hocket::parameters<float>(of_parameters, layout, hocket::zero<2>);
      auto optimizer = hocket::make_optimizer<float>(parameters, hocket::sgd{.momentum = 0});
      gradients.begin_microbatch(0, 1);
      for (float& each : gradients.of(0)) each = static_cast<float>(me.rank());
      gradients.end_microbatch(0, 1);
      const auto totals = gradients.finish();
      if (!words.empty()) {
        const auto found =
            me.expect(hocket::errc::invalid_argument, [&] { optimizer.step(gradients, 1, 1 / totals.count); });
        me.check(found && std::string(found->what()).find(words) != std::string::npos,
                 [&] { return "'" + words + "' is not in: " + (found ? found->what() : ""); });
        return;
      }
      optimizer.step(gradients, 1, 1 / totals.count);
      for (const float each : parameters.of(0)) me.check(each == -1.5F, [&] { return std::to_string(each); });
    };
    check(near, far, "make both with the same ranks");
    check(hocket::hybrid(near, alone), hocket::hybrid(near, far), "of 2 of the replicas");
    check(hocket::hybrid(near, far), hocket::hybrid(near, far), "");
    check(hocket::hybrid(near, far), near, "");  // copies are equal even without named replicas
  });
}

TEST_CASE("a norm has the precision of double for very large and very small elements") {
  for (const int ranks : {1, 2, 3}) {
    on_ranks(ranks, [&](thread_rank& me) {
      const hocket::parameter_layout layout({{"a", 200}, {"b", 100}, {"copy", 5, false}}, {1, 1});
      const auto check = [&](auto when, auto sharding) {
        auto gradients = hocket::gradients<double>(me.comm(), layout, when, sharding);
        const auto norm_of = [&](double a, double b, double copy) {
          gradients.begin_microbatch(0, 1);
          for (double& each : gradients.of(0)) each = a / ranks;
          for (double& each : gradients.of(1)) each = b / ranks;
          for (double& each : gradients.of(2)) each = copy / ranks;
          gradients.end_microbatch(0, 1);
          gradients.finish();
          return hocket::norm(gradients);
        };
        for (const double a : {1e160, 1e300, 1.0, 1e-145, 1e-170, 1e-300, 1e150, 0.0}) {
          for (const double b : {a, -a / 3, 1.0, 1e-170, 1e144, 0.0}) {
            const double most = std::max(a, std::abs(b)), x = most > 0 ? a / most : 0, y = most > 0 ? b / most : 0;
            const double expected = most * std::sqrt(200 * x * x + 100 * y * y);
            const auto found = norm_of(a, b, 7);
            me.check(found.finite && std::abs(found.value - expected) <= 1e-14 * expected, [&] {
              char text[100];
              std::snprintf(text, sizeof text, "of %g and %g: %.17g, not %.17g", a, b, found.value, expected);
              return std::string(text);
            });
          }
          for (const double bad : {std::numeric_limits<double>::infinity(), std::nan("")}) {
            me.check(!norm_of(a, bad, 7).finite && !norm_of(a, 0, bad).finite, "an element is not finite");
          }
        }
      };
      check(hocket::last_microbatch, hocket::zero<0>);
      check(hocket::every_microbatch, hocket::zero<2>);
    });
  }
}

TEST_CASE("a norm can only be clipped to a number that is not negative") {
  const hocket::gradient_norm found{5, true};
  CHECK(found.step_factor(2, 1) == 0.2);
  CHECK(found.step_factor(2, 10) == 0.5);
  CHECK(found.step_factor(2, 0) == 0);
  CHECK(found.step_factor(2) == 0.5);
  for (const double most : {-1.0, std::nan(""), -std::numeric_limits<double>::infinity()}) {
    CHECK_THROWS_WITH(found.step_factor(1, most), Catch::Matchers::Contains("can't be clipped to"));
    CHECK_THROWS_WITH(hocket::clip_factor(5, most), Catch::Matchers::Contains("must be 0 or more"));
  }
}

TEST_CASE("a loss scale waits for its hysteresis, shrinks to its least value, and rejects invalid options") {
  hocket::loss_scale patient({.initial = 8, .interval = 3, .least = 2, .hysteresis = 2});
  CHECK_FALSE(patient.update(false));
  CHECK(patient.value() == 8);  // the first failure is tolerated
  CHECK_FALSE(patient.update(false));
  CHECK(patient.value() == 4);
  for (int i = 0; i < 3; ++i) CHECK(patient.update(true));
  CHECK(patient.value() == 8);
  CHECK_FALSE(patient.update(false));
  CHECK(patient.value() == 8);
  for (int i = 0; i < 5; ++i) patient.update(false);
  CHECK(patient.value() == 2);
  CHECK_THROWS_WITH(hocket::loss_scale({.backoff = 2}),
                    Catch::Matchers::Contains("backoff must be above 0 and at most 1"));
  CHECK_THROWS_WITH(hocket::loss_scale({.interval = 0}), Catch::Matchers::Contains("interval must be at least 1"));
  for (const double least : {0.0, -1.0, 0x1p-127, std::nan(""), std::numeric_limits<double>::infinity(), 9.0}) {
    CHECK_THROWS_WITH(hocket::loss_scale({.initial = 8, .least = least}),
                      Catch::Matchers::Contains("least must be at least 2^-126 and at most initial"));
  }
  for (const double initial : {0.0, -1.0, 0x1.8p127, 0x1p128, std::nan(""), std::numeric_limits<double>::infinity()}) {
    CHECK_THROWS_WITH(hocket::loss_scale({.initial = initial}),
                      Catch::Matchers::Contains("initial must be positive and at most 2^127"));
  }
}

TEST_CASE("a loss scale stays a normal finite float however often it grows or shrinks") {
  constexpr double largest = 0x1p127, smallest = 0x1p-126, most = std::numeric_limits<double>::max();
  struct motion {
    hocket::loss_scale_options how;
    bool finite;   ///< whether the gradients are, so that the scale grows
    double limit;  ///< where it must arrive
  };
  const motion motions[] = {{{.initial = 2, .growth = 2, .interval = 1, .least = 1}, true, largest},
                            {{.initial = 3, .growth = 2, .interval = 1, .least = 1}, true, largest},
                            {{.initial = 2, .growth = 1.7, .interval = 1, .least = 1}, true, largest},
                            {{.initial = 2, .growth = 1e30, .interval = 1, .least = 1}, true, largest},
                            {{.initial = 2, .growth = most, .interval = 1, .least = 1}, true, largest},
                            {{.initial = largest, .growth = 2, .interval = 1, .least = 1}, true, largest},
                            {{.initial = largest, .backoff = 0.5, .interval = 1, .least = 1}, false, 1},
                            {{.initial = largest, .backoff = 0.5, .interval = 1, .least = smallest}, false, smallest},
                            {{.initial = 3, .backoff = 0.3, .interval = 1, .least = smallest}, false, smallest},
                            {{.initial = 2, .backoff = 1e-30, .interval = 1, .least = smallest}, false, smallest},
                            {{.initial = 2, .backoff = 5e-324, .interval = 1, .least = smallest}, false, smallest},
                            {{.initial = smallest, .backoff = 0.5, .interval = 1, .least = smallest}, false, smallest}};
  for (const motion& each : motions) {
    INFO(each.how.initial << " times " << (each.finite ? each.how.growth : each.how.backoff));
    hocket::loss_scale scale(each.how);
    bool normal = true;
    for (int step = 0; step < 600; ++step) {
      scale.update(each.finite);
      normal = normal && std::isnormal(static_cast<float>(scale.value()));
    }
    CHECK(normal);
    CHECK(scale.value() == each.limit);
    CHECK(scale.value() == static_cast<float>(scale.value()));
    scale.update(!each.finite);  // the way back is open
    const double back = each.finite ? scale.value() * (1 / each.how.backoff) : scale.value() / each.how.growth;
    CHECK(back == each.limit);
  }
}

TEST_CASE("a parameter that is set while it is gathered has the new values, now and when gathered again") {
  on_ranks(3, [](thread_rank& me) {
    auto parameters = hocket::parameters<float>(me.comm(), small_layout(), hocket::zero<3>);
    set_first_values<float>(parameters);
    const std::size_t b = parameters.layout().bucket_of(0);
    const std::vector<float> values(parameters.layout().of(0).size, 7);
    const auto check = [&] {
      const auto found = parameters.of(0);
      me.check(std::equal(found.begin(), found.end(), values.begin(), values.end()), "not what was set");
    };
    parameters.gather(b);
    parameters.set(0, values);
    check();
    parameters.release(b);
    parameters.gather(b);
    check();
  });
}

TEST_CASE("a norm over ranks that the gradient was added over is rejected") {
  on_ranks(2, [](thread_rank& me) {
    auto gradients = hocket::gradients<float>(me.comm(), small_layout(), hocket::last_microbatch, hocket::zero<1>);
    take_step(gradients, {me.rank(), me.size(), 1, 0});
    const auto found =
        me.expect(hocket::errc::invalid_argument, [&] { static_cast<void>(hocket::norm(gradients, me.comm())); });
    me.check(found && std::string(found->what()).find("would count twice") != std::string::npos, "no reason");
  });
}

TEST_CASE("parameters that are not gathered, invalid indices and different layouts are rejected") {
  on_ranks(2, [](thread_rank& me) {
    const hocket::parameter_layout layout({{"a", 200}, {"b", 100}}, {1, 1});
    auto parameters = hocket::parameters<float>(me.comm(), layout, hocket::zero<3>);
    const auto refused = [&](const std::string& part, auto call) {
      const auto found = me.expect(hocket::errc::invalid_argument, call);
      me.check(found && std::string(found->what()).find(part) != std::string::npos,
               [&] { return "'" + part + "' is not in: " + (found ? found->what() : ""); });
    };
    refused("'b' is not gathered: call gather(0)", [&] { parameters.of(1); });
    refused("there are 2 buckets", [&] { parameters.gather(2); });
    refused("'a' has 200 elements, not 3", [&] { parameters.set(0, std::vector<float>(3)); });
    refused("there are 2 parameters", [&] { parameters.set(2, std::vector<float>(3)); });
    auto optimizer = hocket::make_optimizer<float>(parameters, hocket::adamw{});
    auto gradients = hocket::gradients<float>(me.comm(), hocket::parameter_layout({{"a", 200}}),
                                              hocket::every_microbatch, hocket::zero<3>);
    refused("1 parameters with 256 elements in 1 buckets, differs from that of the parameters, 2 parameters with 384",
            [&] { optimizer.step(gradients, 0.1, 1); });
  });
}

}  // namespace
