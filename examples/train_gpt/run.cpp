// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "../train_language_model/bigram.hpp"
#include "learned.hpp"
#include "program.hpp"

#include <hocket/plan/pipeline/gpipe.hpp>
#include <hocket/plan/pipeline/one_forward_one_backward.hpp>
#include <hocket/ucx.hpp>

#include <bit>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <numbers>
#include <stdexcept>
#include <string>
#include <vector>

namespace gpt {
namespace {

[[noreturn]] void refuse(const std::string& why) { throw std::invalid_argument(why); }

hocket::plan::pipeline::schedule schedule_of(const program_options& options) {
  const parallelism& spread = options.training.spread;
  if (options.schedule == "gpipe") return hocket::plan::pipeline::gpipe(spread.pipeline, spread.microbatches);
  return hocket::plan::pipeline::one_forward_one_backward(spread.pipeline, spread.microbatches);
}

/// The text with what a terminal can't show replaced.
std::string printable(std::string text) {
  for (char& each : text) {
    if (each != '\n' && (each < ' ' || each > '~')) each = '?';
  }
  return text;
}

/// Prints what the model has learned. True if it beats a bigram model on text that it has not seen.
bool look_at(const program_options& options, const language_model::split_text& text,
             const std::vector<std::vector<float>>& parameters) {
  learned_model model(options.training.shape, parameters);
  const double found = model.loss(text.held_out, 256);
  const double bigram = language_model::bigram_model(text.train).loss(text.held_out, 1);
  std::printf("held-out loss: %.4f nats/byte (%.3f bits), the bigram model's: %.4f nats/byte (%.3f bits)\n", found,
              found / std::numbers::ln2, bigram, bigram / std::numbers::ln2);
  const auto context = static_cast<std::size_t>(options.training.shape.context);
  const std::string sample = model.write(text.held_out.first(context), 300, 0.7, options.training.seed);
  std::printf("\nWhat it writes:\n----\n%s\n----\n%s\n", printable(sample).c_str(),
              found < bigram ? "The model beats the bigram model." : "The bigram model is still better.");
  return found < bigram;
}

}  // namespace

int run_rank(const program_options& options) {
  auto comm = hocket::ucx::connect();
  if (comm.size() != options.training.spread.ranks()) {
    refuse("there are " + std::to_string(comm.size()) + " ranks, and --dp times --pp times --tp is " +
           std::to_string(options.training.spread.ranks()));
  }
  const std::vector<std::uint8_t> bytes = language_model::read_text(options.text);
  const language_model::split_text text = language_model::split(bytes);
  if (text.train.size() < static_cast<std::size_t>(options.training.shape.context) + 1) {
    refuse("the text '" + options.text + "' is shorter than one sequence of --context " +
           std::to_string(options.training.shape.context) + " bytes and one more");
  }
  trainer training(comm, options.training, schedule_of(options));
  std::FILE* losses = nullptr;
  if (comm.rank() == 0 && !options.losses.empty()) {
    losses = std::fopen(options.losses.c_str(), "w");
    if (losses == nullptr) refuse("cannot write the losses to '" + options.losses + "'");
    std::fprintf(losses, "step loss gradient_norm loss_bits gradient_norm_bits\n");
  }
  double seconds = 0, exposed = 0;
  for (int step = 0; step < options.training.steps; ++step) {
    const step_record found = training.step(text.train, step);
    seconds += found.seconds;
    exposed += found.exposed_seconds;
    if (losses != nullptr) {
      std::fprintf(losses, "%d %.9g %.9g %016" PRIx64 " %016" PRIx64 "\n", step + 1, found.loss, found.gradient_norm,
                   std::bit_cast<std::uint64_t>(found.loss), std::bit_cast<std::uint64_t>(found.gradient_norm));
    }
    if (comm.rank() == 0 && (step % 10 == 9 || step + 1 == options.training.steps)) {
      std::printf("step %d/%d  loss %.4f nats/byte  gradient norm %.3f  %.0f bytes/s  %.0f %% exposed\n", step + 1,
                  options.training.steps, found.loss, found.gradient_norm,
                  (step + 1.0) * options.training.sequences * options.training.shape.context / seconds,
                  100 * exposed / seconds);
      std::fflush(stdout);
    }
  }
  if (losses != nullptr) std::fclose(losses);
  const std::vector<std::vector<float>> parameters = training.all_parameters();
  bool learned = true;
  if (comm.rank() == 0) {
    std::printf("rank 0 keeps %zu bytes, by the formula %zu\n", training.bytes(), training.predicted_bytes());
    learned = look_at(options, text, parameters);
  }
  hocket::barrier(comm);
  return learned || !options.must_learn ? 0 : 1;
}

}  // namespace gpt
