// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Training over a mesh of data-, pipeline- and tensor-parallel ranks.
///
/// First parameters are a function of the seed and of which parameter it is; the sequences of a step are one of the seed
/// and of the step. Neither knows of the mesh. With `exact`, losses and parameters have the same bits on every mesh, at
/// every ZeRO stage, and for any number of microbatches.
#pragma once

#include "../train_language_model/text.hpp"
#include "layer.hpp"
#include "memory.hpp"
#include "shape.hpp"
#include "stage.hpp"

#include <hocket/mesh/mesh.hpp>
#include <hocket/pipeline/executor.hpp>
#include <hocket/ucx.hpp>

#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace gpt {

using language_model::byte_span;
using language_model::mix;
using language_model::uniform;

/// How ranks share the work. All of it must be equal on all ranks.
struct parallelism {
  int data = 1;
  int pipeline = 1;
  int tensor = 1;
  int zero = 0;
  int microbatches = 1;  ///< that each data-parallel rank cuts its sequences into
  int ranks() const noexcept { return data * pipeline * tensor; }
};

struct training_options {
  model_shape shape;
  parallelism spread;
  int steps = 300;
  int sequences = 24;  ///< of a step, over all ranks
  double learning_rate = 3e-3;
  double clip = 1;
  double weight_decay = 0.1;
  std::uint64_t seed = 1;
  bool exact = false;
};

/// One step, as all ranks know it; the seconds are this rank's.
struct step_record {
  double loss = 0;  ///< mean over all predicted bytes, in nats
  double gradient_norm = 0;
  double exposed_seconds = 0;
  double seconds = 0;
};

/// Rises over the first steps, then falls to a tenth as half a cosine does.
inline double learning_rate_at(int step, int steps, double peak) {
  constexpr int warm_up = 20;
  if (step < warm_up) return peak * (step + 1) / warm_up;
  const double done = static_cast<double>(step - warm_up) / std::max(1, steps - warm_up);
  return peak * (0.55 + 0.45 * std::cos(std::numbers::pi * done));
}

/// First values of a parameter: a function of the seed and of what it is. Gains are 1; weights are so scaled that
/// activations neither vanish nor explode.
inline std::vector<float> first_values(const entry& what, const model_shape& shape, std::uint64_t seed) {
  std::vector<float> values(what.elements(), 1.0F);
  if (what.is_gain()) return values;
  const bool leads_out = what.what == kind::attention_out || what.what == kind::hidden_out;
  double fan_in = what.what == kind::embedding ? 1 : what.rows;
  if (leads_out) fan_in *= shape.heads * 2.0 * shape.layers;  // so many of them add up
  const double half_width = std::sqrt(3 / fan_in) * (what.what == kind::embedding ? 0.5 : 1);
  const std::uint64_t own = mix(mix(seed) ^ what.identity());
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>((2 * uniform(mix(own + i)) - 1) * half_width);
  return values;
}

/// A rank's part of the training.
class trainer {
 public:
  using mesh_type = hocket::rank_mesh<hocket::ucx::wire, "dp", "pp", "tp">;

  trainer(const hocket::ucx::communicator& comm, const training_options& options,
          const hocket::plan::pipeline::schedule& schedule)
      : options_(options),
        ranks_(comm, {options.spread.data, options.spread.pipeline, options.spread.tensor}),
        sum_(ranks_.along<"tp">(), options.exact) {
    make_products_repeatable();
    const range blocks = part_of(options.shape.heads, ranks_.coordinate<"tp">(), options.spread.tensor);
    std::vector<entry> all;
    std::vector<std::pair<range, std::size_t>> stages;  // its layers, and where its parameters begin
    for (int s = 0; s < schedule.stages(); ++s) {
      if (!schedule.placement.holds(ranks_.coordinate<"pp">(), s)) continue;
      const range layers = part_of(options.shape.layers, s, schedule.stages());
      stages.emplace_back(layers, all.size());
      for (const entry& each : entries_of(options.shape, layers, blocks)) all.push_back(each);
    }
    memory_ = make_memory(ranks_.along<"dp">(), ranks_.along<"pp", "tp">(), all, ranks_.coordinate<"tp">() == 0,
                          {.zero = options.spread.zero, .exact = options.exact, .clip = options.clip,
                           .weight_decay = options.weight_decay});
    for (std::size_t i = 0; i < all.size(); ++i) memory_->set(i, first_values(all[i], options.shape, options.seed));
    std::vector<hocket::pipeline::any_stage> erased;
    stages_.reserve(stages.size());
    for (const auto& [layers, first] : stages) {
      stages_.emplace_back(options.shape, layers, blocks, first, *memory_, sum_, sequences_per_microbatch(),
                           options.exact);
      erased.emplace_back(stages_.back());
    }
    executor_.emplace(ranks_.along<"pp">(), schedule, erased);
  }

  const mesh_type& ranks() const noexcept { return ranks_; }
  training_memory& memory() noexcept { return *memory_; }
  auto& executor() noexcept { return *executor_; }
  std::vector<stage>& stages() noexcept { return stages_; }

  int sequences_per_microbatch() const noexcept {
    return options_.sequences / (options_.spread.data * options_.spread.microbatches);
  }

  /// Takes one step. Collective over all ranks.
  step_record step(byte_span text, int number) {
    const auto begin = std::chrono::steady_clock::now();
    std::vector<microbatch> batch = draw(text, number);
    memory_->begin_step();
    for (stage& each : stages_) each.begin_step(batch);
    executor_->run();
    const double tokens = static_cast<double>(options_.sequences / options_.spread.data) * options_.shape.context;
    const step_found found =
        memory_->end_step(tokens, learning_rate_at(number, options_.steps, options_.learning_rate));
    const double loss = sum_of_losses() / found.tokens;
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return {loss, found.gradient_norm, found.exposed_seconds, seconds};
  }

 private:
  /// This data-parallel rank's part of the sequences of a step.
  std::vector<microbatch> draw(byte_span text, int number) const {
    const int per_microbatch = sequences_per_microbatch();
    int next = ranks_.coordinate<"dp">() * options_.spread.microbatches * per_microbatch;
    std::vector<microbatch> batch(static_cast<std::size_t>(options_.spread.microbatches));
    for (microbatch& each : batch) {
      for (int i = 0; i < per_microbatch; ++i) {
        each.push_back(language_model::draw_sequence(text, 1, static_cast<std::size_t>(options_.shape.context),
                                                     options_.seed, static_cast<std::uint64_t>(number),
                                                     static_cast<std::uint64_t>(next++)));
      }
    }
    return batch;
  }

  /// Of all ranks, each predicted byte once.
  double sum_of_losses() {
    hocket::exact_sum<double> loss;
    for (const stage& each : stages_) {
      if (each.is_last() && ranks_.coordinate<"tp">() == 0) loss += each.loss();
    }
    hocket::all_reduce(ranks_.all(), hocket::in_place(std::span(&loss, 1)), std::plus<>{});
    return loss.value();
  }

  training_options options_;
  mesh_type ranks_;
  block_sum sum_;
  std::unique_ptr<training_memory> memory_;
  std::vector<stage> stages_;
  std::optional<hocket::pipeline::executor<hocket::ucx::wire>> executor_;
};

}  // namespace gpt
