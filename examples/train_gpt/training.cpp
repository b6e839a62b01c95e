// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "training.hpp"

#include "checkpoint.hpp"
#include "first_values.hpp"
#include "layer.hpp"
#include "memory.hpp"
#include "stage.hpp"
#include "token_data.hpp"

#include <hocket/checkpoint/store.hpp>
#include <hocket/collective/all_gather_v.hpp>
#include <hocket/gradient/loss_scale.hpp>
#include <hocket/mesh/mesh.hpp>
#include <hocket/observe/communication.hpp>
#include <hocket/pipeline/executor.hpp>
#include <hocket/pipeline/measured.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <exception>
#include <map>
#include <numbers>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>

namespace gpt {
namespace {

/// Returns the learning rate: it rises linearly over the first steps, then falls to a tenth along half a cosine.
double learning_rate_at(int step, int steps, double peak) {
  constexpr int warm_up = 20;
  if (step < warm_up) return peak * (step + 1) / warm_up;
  const double done = static_cast<double>(step - warm_up) / std::max(1, steps - warm_up);
  return peak * (0.55 + 0.45 * std::cos(std::numbers::pi * done));
}

}  // namespace

training_identity identity_of(const training_options& options, double loss_scale) {
  return {options.shape, options.seed, options.narrow, loss_scale};
}

struct trainer::parts {
  using mesh_type = hocket::rank_mesh<hocket::ucx::domain, "dp", "pp", "tp">;

  parts(const hocket::ucx::communicator& comm, const training_options& how,
        const hocket::plan::pipeline::schedule& schedule)
      : options(how), ranks(comm, {how.spread.data, how.spread.pipeline, how.spread.tensor}),
        sum(how.spread.tensor > 1 ? &ranks.along<"tp">() : nullptr, how.exact, how.spread.spread_rows) {
    if (!how.data.empty()) data.emplace(how.data, how.shape.context, how.seed);
    if (how.loss_scale > 0) scale.emplace(hocket::loss_scale_options{.initial = how.loss_scale, .interval = 200});
    const range blocks = part_of(how.shape.heads, ranks.coordinate<"tp">(), how.spread.tensor);
    std::vector<std::pair<range, std::size_t>> of_stages;  // layers of a stage, and its first parameter
    for (int s = 0; s < schedule.stages(); ++s) {
      if (!schedule.placement.holds(ranks.coordinate<"pp">(), s)) continue;
      const range layers = part_of(how.shape.layers, s, schedule.stages());
      of_stages.emplace_back(layers, entries.size());
      for (const entry& each : entries_of(how.shape, layers, blocks)) entries.push_back(each);
    }
    memory = make_memory(ranks.along<"dp">(), ranks.along<"pp", "tp">(), entries, ranks.coordinate<"tp">() == 0,
                         {.zero = how.spread.zero,
                          .shards = how.spread.shards(),
                          .exact = how.exact,
                          .narrow = how.narrow,
                          .narrow_wire = how.narrow_wire,
                          .device = how.on_device ? std::make_shared<device_sums>(comm.rank()) : nullptr,
                          .clip = how.clip,
                          .weight_decay = how.weight_decay});
    for (std::size_t i = 0; i < entries.size(); ++i) memory->set(i, first_values(entries[i], how.shape, how.seed));
    std::vector<hocket::pipeline::any_stage> erased;
    stages.reserve(of_stages.size());
    for (const auto& [layers, first] : of_stages) {
      stages.emplace_back(how.shape, layers, blocks, first, *memory, sum, sequences_per_microbatch(), how.exact);
      erased.emplace_back(stages.back());
    }
    executor.emplace(ranks.along<"pp">(), schedule, erased);
  }

  int sequences_per_microbatch() const noexcept { return options.sequences / options.spread.parts(); }

  /// Returns this data-parallel rank's sequences in one pass of a step.
  std::vector<microbatch> draw(byte_span text, int number, int pass) {
    const int per_microbatch = sequences_per_microbatch(), per_pass = options.spread.microbatches * per_microbatch;
    if (data && pass == 0) data->begin_step(number, options.sequences, ranks.coordinate<"dp">(), options.spread.data);
    const int before = ranks.coordinate<"dp">() * options.spread.passes * per_pass;  // sequences of other ranks
    int next = pass * per_pass;
    std::vector<microbatch> batch(static_cast<std::size_t>(options.spread.microbatches));
    for (microbatch& each : batch) {
      for (int i = 0; i < per_microbatch; ++i, ++next) {
        if (data) {
          each.push_back(data->sequence(static_cast<std::size_t>(next)));
        } else {
          each.push_back(draw_sequence(text, 1, static_cast<std::size_t>(options.shape.context), options.seed,
                                       static_cast<std::uint64_t>(number), static_cast<std::uint64_t>(before + next)));
        }
      }
    }
    return batch;
  }

  /// Sums over all ranks: the loss, with each predicted byte counted once, and the requests to stop.
  std::pair<double, bool> agree(bool stop) {
    hocket::exact_sum<double> sums[2];
    for (const stage& each : stages) {
      if (each.is_last() && ranks.coordinate<"tp">() == 0) sums[0] += each.loss();
    }
    if (stop) sums[1].add(1);
    hocket::all_reduce(ranks.all(), hocket::in_place(std::span(sums)), std::plus<>{});
    return {sums[0].value(), sums[1].value() > 0};
  }

  /// Runs one pass of the pipeline. Adds to the times of `record`.
  void run_pass(byte_span text, int number, int pass, step_record& record) {
    const std::vector<microbatch> batch = draw(text, number, pass);
    memory->begin_pass(pass, options.spread.passes);
    for (stage& each : stages) {
      each.begin_pass(batch, static_cast<float>(record.loss_scale));
      const bool first_copy = ranks.coordinate<"dp">() == 0 && ranks.coordinate<"tp">() == 0;
      if (number + 1 == options.fail_in_step && each.is_last() && first_copy)
        each.fail_next("as requested by --fail-in-step");
    }
    const auto begin = std::chrono::steady_clock::now();
    executor->run();
    record.pipeline_seconds +=
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() - computed_seconds();
    memory->end_pass(static_cast<double>(options.spread.microbatches * sequences_per_microbatch()) *
                     options.shape.context);
  }

  /// What a checkpoint saves and loads. Collective.
  hocket::checkpoint::state state() {
    hocket::checkpoint::state now;
    memory->add_to(now);
    now.add("skipped steps", skipped);
    if (scale) {
      scale_state = scale->state();
      now.add("loss scale", scale_state.value);
      now.add("loss scale: patience", scale_state.patience);
      now.add("loss scale: finite steps", scale_state.finite);
      now.add("loss scale: skipped steps", scale_state.skipped);
    }
    now.text = text_of(identity_of(options, scale ? scale->value() : 0));
    now.text["data"] = data ? data->description() : "text";
    return now;
  }

  /// The store of the folder that was used last: after loading, it numbers new checkpoints as later ones. Collective.
  hocket::checkpoint::store& store_in(const std::string& folder) {
    if (!saved || saved_in != folder) saved.emplace(saved_in = folder, ranks.all());
    return *saved;
  }

  /// Revokes all communicators, so that every rank that waits for this one, on any axis, fails with `reason`.
  void revoke(const std::string& reason) {
    ranks.revoke(reason);
    memory->revoke(reason);
  }

  step_record step(byte_span text, int number, bool stop, bool overlaps) {
    const auto begin = std::chrono::steady_clock::now();
    step_record record;
    record.loss_scale = scale ? scale->value() : 1;
    record.overlapped = overlaps;
    memory->set_overlap(overlaps);
    sum.forget_seconds();
    for (stage& each : stages) each.begin_step();
    for (int pass = 0; pass < options.spread.passes; ++pass) run_pass(text, number, pass, record);
    record.tensor_seconds = sum.seconds();
    record.learning_rate = learning_rate_at(number, options.steps, options.learning_rate);
    const step_found found = memory->end_step(record.loss_scale, record.learning_rate);
    if (scale) scale->update(found.finite);
    skipped += found.finite ? 0 : 1;
    const auto [loss, stops] = agree(stop);
    record.loss = loss / found.tokens;
    record.stop = stops;
    record.gradient_norm = found.gradient_norm;
    record.finite = found.finite;
    record.gradient_seconds = found.exposed_seconds;
    record.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return record;
  }

  /// Calls `act`. If it throws, ranks that wait for this rank fail with the same reason.
  template <class Act>
  auto with_error_text(Act act) {
    try {
      return act();
    } catch (const hocket::error& problem) {
      revoke(problem.reason());
      throw;
    } catch (const std::exception& problem) {
      revoke(problem.what());
      throw;
    }
  }

  /// Returns the time that this rank computed in the last pass.
  double computed_seconds() const {
    double seconds = 0;
    for (const auto& each : executor->measured()) seconds += each.end - each.begin;
    return seconds;
  }

  training_options options;
  mesh_type ranks;
  block_sum sum;
  std::optional<token_data> data;  ///< none: the text
  std::optional<hocket::loss_scale> scale;
  std::vector<entry> entries;  ///< the parameters of this rank
  std::unique_ptr<training_memory> memory;
  std::vector<stage> stages;
  long long skipped = 0;
  hocket::loss_scale_state scale_state;  ///< of the last checkpoint
  std::string saved_in;
  std::optional<hocket::checkpoint::store> saved;
  std::optional<hocket::pipeline::executor<hocket::ucx::domain>> executor;
};

trainer::trainer(const hocket::ucx::communicator& comm, const training_options& options,
                 const hocket::plan::pipeline::schedule& schedule)
    : parts_(std::make_unique<parts>(comm, options, schedule)) {}
trainer::~trainer() = default;

step_record trainer::step(byte_span text, int number, bool stop, bool overlaps) {
  return parts_->with_error_text([&] { return parts_->step(text, number, stop, overlaps); });
}

long long trainer::skipped() const noexcept { return parts_->skipped; }

traffic_by_use trainer::predicted_traffic() const {
  const parts& at = *parts_;
  const parallelism& spread = at.options.spread;
  const int microbatches = spread.passes * spread.microbatches;
  const int rounds = microbatches * (at.options.exact ? at.sequences_per_microbatch() : 1);
  std::size_t forward_only = 0;  // the backward pass does not need the embedding
  for (const entry& each : at.entries) forward_only += each.what == kind::embedding ? each.elements() : 0;
  traffic_by_use sent{.gradients = at.memory->predicted_traffic(spread.passes, rounds, forward_only)};
  const hocket::plan::pipeline::placement& where = at.executor->plan().placement;
  const int rank = at.ranks.coordinate<"pp">();
  auto next = at.stages.begin();
  for (int s = 0; s < where.stages(); ++s) {
    if (!where.holds(rank, s)) continue;
    const stage& each = *next++;
    // The output for the next stage, and the gradient of the input; nothing if that stage is on this rank.
    const std::size_t forward = each.is_last() || where.rank_of(s + 1, 0) == rank ? 0 : each.output_size();
    const std::size_t back = each.is_first() || where.rank_of(s - 1, 0) == rank ? 0 : each.input_size();
    sent.pipeline += microbatches * static_cast<double>((forward + back) * sizeof(float));
    if (spread.tensor == 1) continue;
    // Counts gathers and scatters of a microbatch's activations; a sum is one of each. A layer has four sums; with
    // sequence parallelism it has four scatters, four gathers for the inputs of products and two for gradients, and the
    // two ends of the model gather once each.
    const int shares = spread.spread_rows ? 10 * each.layers() + each.is_first() + each.is_last() : 8 * each.layers();
    const double element = at.options.exact ? sizeof(hocket::exact_sum<float>) : sizeof(float);
    const double rows = static_cast<double>(at.sequences_per_microbatch()) * at.options.shape.context;
    const double others = static_cast<double>(spread.tensor - 1) / spread.tensor;
    sent.tensor += shares * microbatches * others * rows * at.options.shape.width * element;
  }
  return sent;
}

traffic_by_use trainer::moved() {
  parts_->memory->settle();
  const auto bytes = [](const hocket::traffic& moved) { return static_cast<double>(moved.total()); };
  const parts& at = *parts_;
  return {.gradients = bytes(at.memory->moved()),
          .pipeline = bytes(at.ranks.along<"pp">().traffic()),
          .tensor = bytes(at.ranks.along<"tp">().traffic())};
}

void trainer::watch(hocket::observe::registry& metrics) const {
  parts_->memory->watch(metrics);
  hocket::observe::watch(metrics, parts_->ranks);
}

void trainer::save(const std::string& folder, int steps) {
  parts_->with_error_text([&] {
    hocket::checkpoint::store& saved = parts_->store_in(folder);
    saved.save(static_cast<std::uint64_t>(steps), parts_->state());
  });
}

resumed trainer::resume(const std::string& folder) {
  return parts_->with_error_text([&] {
    parts& at = *parts_;
    hocket::checkpoint::store& saved = at.store_in(folder);
    hocket::checkpoint::state now = at.state();
    const std::string data = now.text["data"];
    const auto found = saved.load_newest(now);
    if (!found) throw std::runtime_error("--resume: there is no checkpoint in '" + folder + '\'');
    if (now.text["data"] != data) {
      throw std::runtime_error("--resume: the checkpoint is of a training with other data: " + now.text["data"] +
                               " (sequences and weights), not " + data + ": pass the same --data");
    }
    if (at.scale) at.scale->restore(at.scale_state);
    return resumed{static_cast<int>(found->at.step), found->refused};
  });
}

std::size_t trainer::bytes() const { return parts_->memory->bytes(); }
std::size_t trainer::peak_bytes() const { return parts_->memory->peak_bytes(); }
std::size_t trainer::predicted_bytes() const { return parts_->memory->predicted_bytes(); }

hocket::plan::pipeline::timeline trainer::measured() {
  return hocket::pipeline::gather_measured(parts_->ranks.along<"pp">(), *parts_->executor);
}
const hocket::plan::pipeline::schedule& trainer::plan() const { return parts_->executor->plan(); }

std::vector<std::vector<float>> trainer::all_parameters() {
  parts& at = *parts_;
  // The ranks of one copy of the model together have all parameters; each sends its own, and their numbers.
  std::vector<std::size_t> numbers;
  std::vector<float> values;
  for (std::size_t i = 0; i < at.entries.size(); ++i) {
    at.memory->fetch(i, 1);
    const auto weights = at.memory->weights(i);
    numbers.push_back(at.entries[i].identity());
    values.insert(values.end(), weights.begin(), weights.end());
    at.memory->release(i, 1);
  }
  const auto& copy = at.ranks.along<"pp", "tp">();
  const auto gathered = [&](const auto& own) {
    std::vector<std::size_t> lengths(static_cast<std::size_t>(copy.size()));
    const std::size_t length = own.size();
    hocket::all_gather(copy, std::span<const std::size_t>(&length, 1), lengths);
    std::size_t all = 0;
    for (const std::size_t each : lengths) all += each;
    std::remove_cvref_t<decltype(own)> together(all);
    hocket::all_gather_v(copy, own, together, hocket::counts{lengths});
    return together;
  };
  const std::vector<std::size_t> all_numbers = gathered(numbers);
  const std::vector<float> all_values = gathered(values);

  const std::vector<entry> model =
      entries_of(at.options.shape, {0, at.options.shape.layers}, {0, at.options.shape.heads});
  std::map<std::size_t, std::size_t> of_identity;
  for (std::size_t i = 0; i < model.size(); ++i) of_identity[model[i].identity()] = i;
  std::vector<std::vector<float>> result(model.size());
  auto next = all_values.begin();
  for (const std::size_t number : all_numbers) {
    const std::size_t i = of_identity.at(number);
    const auto end = next + static_cast<std::ptrdiff_t>(model[i].elements());
    result[i].assign(next, end);
    next = end;
  }
  return result;
}

}  // namespace gpt
