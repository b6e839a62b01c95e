// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// needs: ucx eigen cli11
// arguments: --help
// expect: ranks to start
/// @file
/// Trains a small language model on a text, data-parallel over several processes, and shows that it worked: the loss
/// on text it has not seen ends below that of a bigram model, and it writes a sample of its own.
///
///     ./dev demo
///     train_language_model --text FILE --processes 4
///
/// Started by hand, the program starts itself once more for every rank; started by a launcher, it is one of the ranks.
#include "bigram.hpp"
#include "curve.hpp"
#include "gradient_sum.hpp"
#include "model.hpp"
#include "progress.hpp"
#include "sampler.hpp"
#include "text.hpp"
#include "training.hpp"

#include <hocket/bootstrap/launch.hpp>
#include <hocket/ucx.hpp>

#include <CLI/CLI.hpp>

#include <bit>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <numbers>
#include <string>
#include <vector>

namespace {

using namespace language_model;

struct program_options {
  std::string text = "build/text/jargon.txt";
  std::string out = ".";
  std::string losses;
  int processes = 4;
  bool exact = false;
  bool must_learn = false;
  model_shape shape;
  training_options training;
};

void declare(CLI::App& app, program_options& options) {
  app.option_defaults()->always_capture_default();
  app.add_option("--text", options.text, "the text to learn; ./dev demo unpacks the default one");
  app.add_option("--processes", options.processes, "ranks to start")->check(CLI::Range(1, 64));
  app.add_option("--steps", options.training.steps, "optimizer steps")->check(CLI::Range(1, 10'000'000));
  app.add_option("--batch", options.training.batch, "sequences per step, over all ranks")
      ->check(CLI::Range(1, 100'000));
  app.add_option("--accumulate", options.training.microbatches, "microbatches that each rank cuts its sequences into")
      ->check(CLI::Range(1, 100'000));
  app.add_option("--learning-rate", options.training.learning_rate, "the highest one")->check(CLI::PositiveNumber);
  app.add_option("--seed", options.training.seed, "for first parameters, batches and the sample");
  app.add_option("--window", options.shape.window, "bytes that a prediction looks at")->check(CLI::Range(1, 1024));
  app.add_option("--embedding", options.shape.embedding, "numbers per byte")->check(CLI::Range(1, 1024));
  app.add_option("--hidden", options.shape.hidden, "hidden units")->check(CLI::Range(1, 65'536));
  app.add_option("--seconds", options.training.seconds, "stop training after so long")->check(CLI::PositiveNumber);
  app.add_flag("--exact", options.exact,
               "add gradients without rounding: every loss has the same bits for any number of processes");
  app.add_flag("--must-learn", options.must_learn, "fail unless the model beats the bigram model in the end");
  app.add_option("--out", options.out, "folder for the loss curve, made if it is missing");
  app.add_option("--losses", options.losses, "file for the loss and gradient norm of each step");
}

/// One line per step: its number, the loss and the gradient's norm as decimals, and the bits of both.
void write_losses(const std::string& path, const training_record& record) {
  std::FILE* const file = std::fopen(path.c_str(), "w");
  if (file == nullptr) throw std::runtime_error("cannot write the losses to '" + path + "'");
  std::fprintf(file, "step loss gradient_norm loss_bits gradient_norm_bits\n");
  int number = 0;
  for (const step_record& step : record.steps) {
    std::fprintf(file, "%d %.9g %.9g %016" PRIx64 " %016" PRIx64 "\n", ++number, step.loss, step.gradient_norm,
                 std::bit_cast<std::uint64_t>(step.loss), std::bit_cast<std::uint64_t>(step.gradient_norm));
  }
  if (std::fclose(file) != 0) throw std::runtime_error("cannot write the losses to '" + path + "'");
}

void print_heading(const program_options& options, const model& network, std::size_t text_size, int ranks) {
  std::printf("text: %s, %.1f KB, the last twentieth held out\n", options.text.c_str(),
              static_cast<double>(text_size) / 1000);
  std::printf("model: %zu parameters, window %d, embedding %d, hidden %d\n", network.parameters().size(),
              options.shape.window, options.shape.embedding, options.shape.hidden);
  std::printf("training: %d ranks, batch of %d sequences of %zu bytes, %d microbatches per rank, %s sums\n", ranks,
              options.training.batch, targets_per_sequence, options.training.microbatches,
              options.exact ? "exact" : "floating-point");
  std::fflush(stdout);
}

/// True if the model beats the bigram model on text that it has not seen.
bool print_result(const program_options& options, model& network, split_text text, const training_record& record) {
  const double bigram = bigram_model(text.train).loss(text.held_out, network.window());
  const double held_out = record.held_out.back().loss;
  const std::string curve = (std::filesystem::path(options.out) / "loss.svg").string();
  write_loss_curve(curve, record, bigram);
  if (!options.losses.empty()) write_losses(options.losses, record);

  std::printf("\n%zu steps in %.1f s, %.0f %% of it in communication\n", record.steps.size(), record.seconds,
              100 * record.communication_seconds / record.seconds);
  std::printf("held-out loss: %.4f nats/byte (%.3f bits), the bigram model's: %.4f nats/byte (%.3f bits)\n", held_out,
              held_out / std::numbers::ln2, bigram, bigram / std::numbers::ln2);
  const std::string sample =
      write_text(network, text.held_out.first(network.window()), 400, 0.7, options.training.seed);
  std::printf("\nWhat it writes:\n----\n%s\n----\n\nloss curve: %s\n", printable(sample).c_str(), curve.c_str());
  std::printf("%s\n", held_out < bigram ? "The model beats the bigram model." : "The bigram model is still better.");
  return held_out < bigram;
}

training_record train_with(hocket::ucx::communicator& comm, const program_options& options, model& network,
                           split_text text) {
  progress_line progress(options.training.steps);
  const auto report = [&](const training_record& record) {
    if (comm.rank() == 0) progress(record);
  };
  const training_record record =
      options.exact ? train<exact_gradient_sum>(comm, network, text, options.training, report)
                    : train<float_gradient_sum>(comm, network, text, options.training, report);
  if (comm.rank() == 0) progress.finish();
  return record;
}

int run_rank(const program_options& options) {
  auto comm = hocket::ucx::connect();
  const std::vector<std::uint8_t> bytes = read_text(options.text);
  const split_text text = split(bytes);
  model network(options.shape);
  if (text.held_out.size() < network.window() + targets_per_sequence) {
    throw std::runtime_error("the text '" + options.text + "' is too short: a twentieth of it must hold a window and " +
                             std::to_string(targets_per_sequence) + " bytes more");
  }
  network.initialize(options.training.seed);
  if (comm.rank() == 0) {
    std::filesystem::create_directories(options.out);
    print_heading(options, network, bytes.size(), comm.size());
  }
  const training_record record = train_with(comm, options, network, text);
  const bool learned = comm.rank() != 0 || print_result(options, network, text, record);
  hocket::barrier(comm);
  return learned || !options.must_learn ? 0 : 1;
}

}  // namespace

int main(int argument_count, char** arguments) {
  program_options options;
  CLI::App app("Trains a small language model on several processes.");
  declare(app, options);
  CLI11_PARSE(app, argument_count, arguments);
  try {
    if (options.processes > 1 && !hocket::launch::is_rank()) {
      return hocket::launch::spawn(options.processes, std::vector<std::string>(arguments, arguments + argument_count));
    }
    return run_rank(options);
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "train_language_model: %s\n", problem.what());
    return 1;
  }
}
