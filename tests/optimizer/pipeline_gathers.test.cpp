// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// zero<3> in a pipeline: the schedule gathers and releases parameters by `unshard` and `reshard`.
#include <hocket/optimizer/optimizer.hpp>

#include "optimizer/training.hpp"
#include "support/catch.hpp"
#include "support/thread_ranks.hpp"

#include <hocket/core/memory_ledger.hpp>
#include <hocket/gradient/accumulator.hpp>
#include <hocket/gradient/norm.hpp>
#include <hocket/group/split.hpp>
#include <hocket/mesh/mesh.hpp>
#include <hocket/optimizer/memory.hpp>
#include <hocket/optimizer/rule/adamw.hpp>
#include <hocket/pipeline/executor.hpp>
#include <hocket/schedule/interleaved.hpp>
#include <hocket/schedule/lower/lower.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace {

using namespace hocket_test::optimizer;
using hocket_test::on_ranks;
using hocket_test::thread_rank;

constexpr std::size_t width = 150;
constexpr int microbatches = 4, stages_in_all = 4;

/// out = in * weights + bias, element by element. The loss is the sum of the last stage's outputs.
template <class Parameters, class Gradients>
struct scaling_stage {
  using input_type = float;
  using output_type = float;
  int stage;
  std::size_t first;  ///< first of its two parameters
  int data_rank;
  Parameters& parameters;
  Gradients& gradients;
  std::size_t& most_bytes;
  hocket::memory_ledger& ledger;

  std::size_t input_size() const { return stage == 0 ? 0 : width; }
  std::size_t output_size() const { return stage + 1 == stages_in_all ? 0 : width; }

  void unshard() { parameters.hold(first, 2); }
  void reshard() { parameters.end_hold(first, 2); }

  float input(int microbatch, std::size_t i, std::span<const float> in) const {
    if (stage != 0) return in[i];
    const auto which = (static_cast<std::size_t>(data_rank) * 100 + static_cast<std::size_t>(microbatch)) * 1000 + i;
    return static_cast<float>(number(which) / magnitude);
  }

  void forward(int microbatch, std::span<const float> in, std::span<float> out) {
    most_bytes = std::max(most_bytes, ledger.bytes("parameters"));
    for (std::size_t i = 0; i < out.size(); ++i) {
      out[i] = input(microbatch, i, in) * parameters.of(first)[i] + parameters.of(first + 1)[i];
    }
  }
  void backward(int microbatch, std::span<const float> in, std::span<const float> out_gradient,
                std::span<float> in_gradient) {
    most_bytes = std::max(most_bytes, ledger.bytes("parameters"));
    std::vector<float> of_weights(width), of_bias(width);
    for (std::size_t i = 0; i < width; ++i) {
      const float dy = out_gradient.empty() ? 1.0F : out_gradient[i];
      of_weights[i] = dy * input(microbatch, i, in);
      of_bias[i] = dy;
      if (!in_gradient.empty()) in_gradient[i] = dy * parameters.of(first)[i];
    }
    gradients.add(first, of_weights);
    gradients.add(first + 1, of_bias);
  }
};

/// Trains for some steps, checks the bytes of parameters, and returns the parameters. Stages are assigned round robin.
template <class When, class Sharding>
std::vector<float> trained(thread_rank& me, int data_ranks, int pipeline_ranks, When when, Sharding stage_of_zero) {
  const auto ranks = hocket::mesh<"dp", "pp">(me.comm(), {data_ranks, pipeline_ranks});
  const auto& data = ranks.template along<"dp">();
  const auto& pipeline = ranks.template along<"pp">();
  const int per_rank = stages_in_all / pipeline_ranks;
  std::vector<hocket::parameter> list;
  for (int s = pipeline.rank(); s < stages_in_all; s += pipeline_ranks) {
    list.push_back({"weights " + std::to_string(s), width});
    list.push_back({"bias " + std::to_string(s), width});
  }
  const hocket::parameter_layout layout(list, {.first_elements = width, .elements = width});  // one parameter each
  hocket::memory_ledger ledger;
  const auto fetching = hocket::split(data, hocket::color{0}, hocket::key{data.rank()});
  auto parameters =
      hocket::parameters<float>(fetching, layout, stage_of_zero, hocket::options<>{}, ledger.account("parameters"));
  auto gradients = hocket::gradients<hocket::exact_sum<float>>(data, layout, when, stage_of_zero);
  for (std::size_t i = 0; i < layout.parameters(); ++i) {
    const auto which = static_cast<std::size_t>(pipeline.rank()) + i / 2 * static_cast<std::size_t>(pipeline_ranks);
    std::vector<float> values;
    for (std::size_t e = 0; e < width; ++e) {
      values.push_back(static_cast<float>(number(which * 3000 + i % 2 * 1000 + e) / magnitude));
    }
    parameters.set(i, values);
  }
  auto optimizer = hocket::make_optimizer<float>(parameters, hocket::adamw{});

  std::size_t most_bytes = 0;
  using stage_type = scaling_stage<decltype(parameters), decltype(gradients)>;
  std::vector<stage_type> stages;
  std::vector<hocket::pipeline::any_stage> erased;
  stages.reserve(static_cast<std::size_t>(per_rank));
  for (int local = 0; local < per_rank; ++local) {
    stages.push_back({pipeline.rank() + local * pipeline_ranks, static_cast<std::size_t>(local) * 2, data.rank(),
                      parameters, gradients, most_bytes, ledger});
    erased.emplace_back(stages.back());
  }
  namespace plans = hocket::plan::pipeline;
  const auto plan = plans::lower(plans::interleaved(pipeline_ranks, microbatches, per_rank),
                                 {.shard_parameters = Sharding::shards_parameters});
  hocket::pipeline::executor executor(pipeline, plan, erased);
  for (int step = 0; step < 3; ++step) {
    gradients.begin_microbatch(0, 1);
    executor.run();
    for (std::size_t i = layout.parameters(); i-- > 0;) gradients.ready(i);
    gradients.end_microbatch(0, 1);
    const auto totals = gradients.finish();
    const auto found = hocket::norm(gradients, pipeline);
    optimizer.step(gradients, 0.01, found.step_factor(totals.count * microbatches, 1));
  }
  if constexpr (Sharding::shards_parameters) {
    const auto buckets = layout.bucket_elements();
    const std::size_t stays =
        hocket::bytes_of_training<float, float, float, hocket::adamw>(buckets, data.rank(), data.size(), stage_of_zero)
            .parameters;
    me.check(ledger.bytes("parameters") == stays, "gathered parameters remain after a step");
    me.check(most_bytes > stays, "nothing was gathered while stages computed");
  }
  return all_values(parameters);
}

TEST_CASE("a schedule gathers and releases the parameters of zero<3>; the bits are those of zero<0>") {
  for (const auto& [data, pipeline] : {std::pair(1, 1), {2, 1}, {1, 2}, {2, 2}, {3, 2}, {2, 4}, {5, 1}, {4, 2}}) {
    on_ranks(data * pipeline, [&, data = data, pipeline = pipeline](thread_rank& me) {
      me.at([&] { return std::to_string(data) + " x " + std::to_string(pipeline); });
      const auto expected = trained(me, data, pipeline, hocket::last_microbatch, hocket::zero<0>);
      const auto found = trained(me, data, pipeline, hocket::every_microbatch, hocket::zero<3>);
      me.check(same_bits(found, expected), "other bits than with zero<0>");
    });
  }
}

TEST_CASE("a parameter with several holders is released by the last") {
  on_ranks(2, [](thread_rank& me) {
    const hocket::parameter_layout layout({{"a", 100}, {"b", 100}, {"c", 100}}, {.first_elements = 1, .elements = 1});
    hocket::memory_ledger ledger;
    auto parameters = hocket::parameters<float>(me.comm(), layout, hocket::zero<3>, hocket::options<>{},
                                                ledger.account("parameters"));
    const std::size_t own = ledger.bytes(), bucket = 128 * sizeof(float);
    const auto check = [&](std::size_t gathered) {
      me.check(ledger.bytes() == own + gathered * bucket, [&] { return std::to_string(gathered) + " gathered"; });
    };
    parameters.hold(0, 2);
    check(2);
    parameters.hold(1, 2);
    check(3);
    parameters.end_hold(0, 2);
    check(2);
    parameters.hold(1, 0);
    check(2);
    parameters.end_hold(1, 2);
    check(0);
    parameters.end_hold(1, 2);  // without a holder
    check(0);
    me.expect(hocket::errc::invalid_argument, [&] { parameters.hold(2, 2); });
  });
}

}  // namespace
