// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "bigram.hpp"
#include "curve.hpp"
#include "learned.hpp"
#include "program.hpp"
#include "progress.hpp"
#include "report.hpp"

#include <hocket/collective/all_gather.hpp>
#include <hocket/collective/barrier.hpp>
#include <hocket/plan/pipeline/clock.hpp>
#include <hocket/plan/pipeline/draw_comparison.hpp>
#include <hocket/plan/pipeline/draw_text.hpp>
#include <hocket/plan/pipeline/gpipe.hpp>
#include <hocket/plan/pipeline/measured_costs.hpp>
#include <hocket/plan/pipeline/one_forward_one_backward.hpp>
#include <hocket/ucx.hpp>

#include <bit>
#include <chrono>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <numbers>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace gpt {
namespace {

namespace schedules = hocket::plan::pipeline;

[[noreturn]] void refuse(const std::string& why) { throw std::invalid_argument(why); }

schedules::schedule schedule_of(const program_options& options) {
  const parallelism& spread = options.training.spread;
  if (options.schedule == "gpipe") return schedules::gpipe(spread.pipeline, spread.microbatches);
  return schedules::one_forward_one_backward(spread.pipeline, spread.microbatches);
}

template <class... Values>
std::string formatted(const char* format, Values... values) {
  char text[400];
  std::snprintf(text, sizeof text, format, values...);
  return text;
}

/// The text with what a terminal can't show replaced.
std::string printable(std::string text) {
  for (char& each : text) {
    if (each != '\n' && (each < ' ' || each > '~')) each = '?';
  }
  return text;
}

std::size_t parameters_of(const model_shape& shape) {
  std::size_t count = 0;
  for (const entry& each : entries_of(shape, {0, shape.layers}, {0, shape.heads})) count += each.elements();
  return count;
}

/// What is about to happen: names and values.
std::vector<std::pair<std::string, std::string>> facts_of(const program_options& options, std::size_t text_bytes,
                                                          const schedules::schedule& plan) {
  const training_options& training = options.training;
  const parallelism& spread = training.spread;
  static constexpr const char* kept[] = {"everything", "a part of the optimizer's states",
                                         "a part of states and gradients",
                                         "a part of states, gradients and parameters"};
  const double bubble = schedules::run_clock(plan).bubble_share();
  return {{"text", formatted("%s, %.1f KB, the last twentieth held out", options.text.c_str(),
                             static_cast<double>(text_bytes) / 1000)},
          {"model", formatted("%zu parameters: %d layers, width %d, %d heads, context of %d bytes",
                              parameters_of(training.shape), training.shape.layers, training.shape.width,
                              training.shape.heads, training.shape.context)},
          {"mesh",
           formatted("%d ranks: dp %d x pp %d x tp %d", spread.ranks(), spread.data, spread.pipeline, spread.tensor)},
          {"sharding", formatted("zero %d: each dp rank keeps %s", spread.zero, kept[spread.zero])},
          {"batch", formatted("%d sequences: %d microbatches on each dp rank, %s sums", training.sequences,
                              spread.microbatches, training.exact ? "exact" : "floating-point")},
          {"schedule", formatted("%s, bubble %.0f %% if all stages take equally long", std::string(plan.name()).c_str(),
                                 100 * bubble)}};
}

std::vector<rank_memory> gather_memory(const hocket::ucx::communicator& comm, const trainer& training) {
  const std::uint64_t own[3] = {training.predicted_bytes(), training.bytes(), training.peak_bytes()};
  std::vector<std::uint64_t> all(3 * static_cast<std::size_t>(comm.size()));
  hocket::all_gather(comm, std::span<const std::uint64_t>(own), all);
  std::vector<rank_memory> ranks;
  for (std::size_t i = 0; i < all.size(); i += 3) ranks.push_back({all[i], all[i + 1], all[i + 2]});
  return ranks;
}

/// A line per step: its number, the loss and the gradient's norm as decimals, and the bits of both.
std::string losses_of(const std::vector<step_record>& steps) {
  std::string text = "step loss gradient_norm loss_bits gradient_norm_bits\n";
  int number = 0;
  for (const step_record& step : steps) {
    text += formatted("%d %.9g %.9g %016" PRIx64 " %016" PRIx64 "\n", ++number, step.loss, step.gradient_norm,
                      std::bit_cast<std::uint64_t>(step.loss), std::bit_cast<std::uint64_t>(step.gradient_norm));
  }
  return text;
}

/// The last step, as it ran on the pipeline ranks of the first copy, beside its plan at measured costs; in milliseconds.
std::string draw_step(const schedules::schedule& plan, schedules::timeline run) {
  for (auto& each : run) {
    each.begin *= 1e3;
    each.end *= 1e3;
  }
  const auto planned = schedules::timeline_of(plan, schedules::measured_costs(plan, run));
  return schedules::draw_comparison_svg(plan, planned, run, {.unit = "ms"});
}

struct result {
  double held_out = 0;
  double bigram = 0;
  std::string sample;
};

result look_at(const program_options& options, const split_text& text, std::vector<std::vector<float>> parameters) {
  learned_model model(options.training.shape, std::move(parameters));
  const auto context = static_cast<std::size_t>(options.training.shape.context);
  return {model.loss(text.held_out, 256), bigram_model(text.train).loss(text.held_out, 1),
          printable(model.write(text.held_out.first(context), 300, 0.7, options.training.seed))};
}

void print(const result& found) {
  std::printf("held-out loss: %.4f nats/byte (%.3f bits), the bigram model's: %.4f nats/byte (%.3f bits)\n",
              found.held_out, found.held_out / std::numbers::ln2, found.bigram, found.bigram / std::numbers::ln2);
  std::printf("\nWhat it writes:\n----\n%s\n----\n\n", found.sample.c_str());
}

std::vector<step_record> train(trainer& training, const program_options& options, const split_text& text,
                               progress_line* progress) {
  std::vector<step_record> steps;
  const auto begin = std::chrono::steady_clock::now();
  for (int step = 0; step < options.training.steps; ++step) {
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    steps.push_back(training.step(text.train, step, seconds > options.seconds));
    if (progress != nullptr) (*progress)(steps.back());
    if (options.stop_on_nan && !steps.back().finite) break;
    if (steps.back().stop) break;
  }
  return steps;
}

void check_text(const program_options& options, const split_text& text) {
  const auto needed = static_cast<std::size_t>(options.training.shape.context) + 1;
  if (text.held_out.size() >= needed) return;
  refuse("the text '" + options.text +
         "' is too short: the twentieth of it that is held out must have more bytes than "
         "--context " +
         std::to_string(options.training.shape.context));
}

}  // namespace

int run_rank(const program_options& options) {
  auto comm = hocket::ucx::connect();
  const bool speaks = comm.rank() == 0;
  if (comm.size() != options.training.spread.ranks()) {
    refuse("there are " + std::to_string(comm.size()) + " ranks, and --dp times --pp times --tp is " +
           std::to_string(options.training.spread.ranks()));
  }
  const std::vector<std::uint8_t> bytes = read_text(options.text);
  const split_text text = split(bytes);
  check_text(options, text);
  const schedules::schedule plan = schedule_of(options);
  auto facts = facts_of(options, bytes.size(), plan);
  trainer training(comm, options.training, plan);
  const std::vector<rank_memory> predicted = gather_memory(comm, training);
  if (speaks) {
    std::filesystem::create_directories(options.out);
    for (const auto& [name, value] : facts) std::printf("%-9s %s\n", (name + ":").c_str(), value.c_str());
    std::printf("memory:   %.2f MB on rank 0, by the formula\n\n%s\n",
                static_cast<double>(predicted[0].predicted) / 1e6, schedules::draw_text(plan).c_str());
    std::fflush(stdout);
  }

  progress_line progress(options.training.steps,
                         static_cast<double>(options.training.sequences) * options.training.shape.context);
  const std::vector<step_record> steps = train(training, options, text, speaks ? &progress : nullptr);
  if (options.stop_on_nan && !steps.back().finite) {  // all ranks know, and leave in order
    std::fprintf(stderr,
                 "train_gpt: step %zu: the gradient is not finite, the loss is %g; a smaller --learning-rate may "
                 "help\n",
                 steps.size(), steps.back().loss);
    return 1;
  }
  const schedules::timeline run = training.measured();
  const std::vector<rank_memory> memory = gather_memory(comm, training);
  auto parameters = training.all_parameters();
  bool learned = true;
  if (speaks) {
    const result found = look_at(options, text, std::move(parameters));
    learned = found.held_out < found.bigram;
    std::printf("\n%zu steps in %.1f s, %.0f %% of it in communication\n", steps.size(), progress.seconds(),
                100 * progress.communication_share());
    std::printf("rank 0 keeps %zu bytes, by the formula %zu\n", memory[0].counted, memory[0].predicted);
    print(found);
    facts.emplace_back("training", formatted("%zu steps in %.1f s, %.0f %% of it in communication", steps.size(),
                                             progress.seconds(), 100 * progress.communication_share()));
    facts.emplace_back("held-out loss",
                       formatted("%.4f nats per byte; of a bigram model: %.4f", found.held_out, found.bigram));
    const std::string curve = draw_loss_curve(steps, found.held_out, found.bigram);
    const auto path = [&](const char* name) { return (std::filesystem::path(options.out) / name).string(); };
    write_file(path("loss.svg"), curve);
    write_file(path("report.html"), html({facts, curve, draw_step(training.plan(), run), memory, found.sample}));
    if (!options.losses.empty()) write_file(options.losses, losses_of(steps));
    std::printf("loss curve: %s\nreport:     %s\n%s\n", path("loss.svg").c_str(), path("report.html").c_str(),
                learned ? "The model beats the bigram model." : "The bigram model is still better.");
  }
  hocket::barrier(comm);
  return learned || !options.must_learn ? 0 : 1;
}

}  // namespace gpt
