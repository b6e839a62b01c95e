// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// needs: ucx eigen cli11
// arguments: --help
// expect: ranks that hold whole copies of the model
/// @file
/// Trains a byte-level transformer on a text, data-, pipeline- and tensor-parallel over processes, its optimizer
/// sharded.
///
///     train_gpt --text FILE --dp 2 --pp 2 --zero 1
///
/// Started by hand, the program starts itself once more for every rank; started by a launcher, it is one of the ranks.
#include "device_sums.hpp"
#include "program.hpp"

#include <hocket/bootstrap/launch.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace gpt;

constexpr int most_sequences = 1 << 20, most_microbatches = 1024;

/// Empty, or why `text` is no seed: CLI11 takes negative numbers for large ones.
std::string whole_number(std::string& text) {
  const bool digits = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
  return digits ? "" : "'" + text + "' is not a whole number from 0 on";
}

void declare(CLI::App& app, program_options& options) {
  app.option_defaults()->always_capture_default();
  training_options& training = options.training;
  app.add_option("--text", options.text, "the text to learn; ./dev demo unpacks the default one");
  app.add_option("--dp", training.spread.data,
                 "ranks that hold whole copies of the model, and learn from different data")
      ->check(CLI::Range(1, 64));
  app.add_option("--pp", training.spread.pipeline, "ranks that a copy's layers are spread over")
      ->check(CLI::Range(1, 64));
  app.add_option("--tp", training.spread.tensor, "ranks that each layer's heads and hidden units are spread over")
      ->check(CLI::Range(1, 64));
  app.add_option("--zero", training.spread.zero,
                 "what dp ranks keep once: 1 optimizer states, 2 and gradients, 3 and parameters")
      ->check(CLI::Range(0, 3));
  app.add_option(
         "--hybrid", training.spread.hybrid,
         "dp ranks, next to each other, that keep it once, as those of a host; others keep copies; 0: all ranks")
      ->check(CLI::Range(0, 64));
  app.add_flag("--sequence-parallel", training.spread.spread_rows,
               "tp ranks keep some rows each of what lies between heads and hidden units");
  app.add_option("--schedule", options.schedule, "of the pipeline")
      ->check(CLI::IsMember({"gpipe", "1f1b", "breadth_first", "interleaved"}));
  app.add_option("--stages-per-rank", options.stages_per_rank, "of the pipeline; breadth_first and interleaved alone")
      ->check(CLI::Range(1, 64));
  app.add_option("--microbatches", training.spread.microbatches, "of each pass of the pipeline")
      ->check(CLI::Range(1, most_microbatches));
  app.add_option(
         "--accumulate", training.spread.passes,
         "passes of the pipeline whose gradients make one step; from 2 on, --zero 2 and 3 add them up in another "
         "order than 0 and 1, and have other bits unless --exact")
      ->check(CLI::Range(1, 1024));
  app.add_option("--sequences", training.sequences, "of a step, over all ranks")->check(CLI::Range(1, most_sequences));
  app.add_option("--steps", training.steps, "optimizer steps")->check(CLI::Range(1, 10'000'000));
  app.add_option("--learning-rate", training.learning_rate, "the highest one")->check(CLI::PositiveNumber);
  app.add_option("--layers", training.shape.layers, "of the model")->check(CLI::Range(1, most_layers));
  app.add_option("--width", training.shape.width, "numbers per position")->check(CLI::Range(2, most_width));
  app.add_option("--heads", training.shape.heads, "attention heads of a layer, and slices of its hidden units")
      ->check(CLI::Range(1, 1024));
  app.add_option("--context", training.shape.context, "bytes that the model sees at once")->check(CLI::Range(1, 4096));
  app.add_option("--seed", training.seed, "of first parameters and of which sequences come when")
      ->check(CLI::Validator(whole_number, "UINT"));
  app.add_flag("--exact", training.exact,
               "the same bits for every --dp, --pp, --tp, --zero and --microbatches: sums are rounded once");
  app.add_option("--precision", options.precision, "of the parameters that are computed with")
      ->check(CLI::IsMember({"float", "bfloat16"}));
  app.add_option("--wire", options.wire, "what gradients travel as")->check(CLI::IsMember({"float", "bfloat16"}));
  app.add_option("--device", options.device, "in whose memory gradients are added up over ranks; cuda: a GPU's")
      ->check(CLI::IsMember({"cpu", "cuda"}));
  app.add_option("--loss-scale", training.loss_scale,
                 "what the loss is multiplied with at first; follows what gradients allow; 0: nothing")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--seconds", options.seconds, "stop training after so long")->check(CLI::PositiveNumber);
  app.add_flag("--stop-on-nan", options.stop_on_nan,
               "fail at the first gradient that is not finite, instead of skipping the step");
  app.add_option("--fail-in-step", training.fail_in_step,
                 "throw in a layer of one rank, to see how a training ends; 0: never")
      ->check(CLI::Range(0, 10'000'000));
  app.add_flag("--must-learn", options.must_learn, "fail unless the model beats the bigram model in the end");
  app.add_option("--out", options.out, "folder for the loss curve and the report, made if it is missing");
  app.allow_config_extras(CLI::config_extras_mode::error);
  app.set_config("--config", "", "a file with any of these options, as name=value lines");
  app.add_option("--checkpoint", options.checkpoint,
                 "folder for what it takes to go on: written every --checkpoint-every steps, and at the end");
  app.add_option("--checkpoint-every", options.checkpoint_every, "steps")->check(CLI::Range(1, 10'000'000));
  app.add_option("--resume", options.resume, "go on from the latest checkpoint in this folder, of any mesh");
  app.add_option("--losses", options.losses, "file for the loss and gradient norm of each step");
}

[[noreturn]] void refuse(const std::string& why) { throw std::invalid_argument(why); }

/// Older checkpoints in a folder are removed when there is a newer one: not those of another training.
void check_checkpoint(const program_options& options) {
  namespace fs = std::filesystem;
  if (options.checkpoint.empty() || !fs::exists(fs::path(options.checkpoint) / "latest")) return;
  if (!options.resume.empty() && fs::weakly_canonical(options.resume) == fs::weakly_canonical(options.checkpoint))
    return;
  refuse("--checkpoint " + options.checkpoint + ": there is a checkpoint in it already: add --resume " +
         options.checkpoint + " to go on from it, or name another folder");
}

/// Whether --schedule interleaved can have so many microbatches: on each rank, stages take turns in rounds of as many.
bool can_interleave(const program_options& options, int microbatches) {
  const int ranks = options.training.spread.pipeline;
  return microbatches >= ranks && (options.stages_per_rank == 1 || microbatches % (microbatches / ranks) == 0);
}

/// Refuses with the nearest number of microbatches, those that the sequences can be cut into first.
void check_interleaved(const program_options& options) {
  const parallelism& spread = options.training.spread;
  if (options.schedule != "interleaved" || can_interleave(options, spread.microbatches)) return;
  const int others = spread.data * spread.passes, sequences = options.training.sequences;
  const auto distance = [&](int microbatches) { return std::abs(microbatches - spread.microbatches); };
  int nearest = 0;
  for (int m = spread.pipeline; m <= most_microbatches; ++m) {
    const bool fits = can_interleave(options, m) && sequences % (others * m) == 0;
    if (fits && (nearest == 0 || distance(m) < distance(nearest))) nearest = m;
  }
  std::string instead = "the nearest that can is --microbatches " + std::to_string(nearest);
  if (nearest == 0) {
    const int parts = others * spread.pipeline;
    instead = parts > most_sequences ? "fewer --pp, or a smaller --accumulate"
                                     : "--microbatches " + std::to_string(spread.pipeline) + " and --sequences " +
                                           std::to_string(nearest_multiple(sequences, parts, most_sequences));
  }
  const std::string rounds =
      options.stages_per_rank > 1 ? ", in rounds of equally many, each with one for every pipeline rank: " : ": ";
  refuse("--schedule interleaved can't have --microbatches " + std::to_string(spread.microbatches) + " with --pp " +
         std::to_string(spread.pipeline) + ", but at least as many microbatches as pipeline ranks" + rounds + instead);
}

/// Refuses more stages than layers, with as many ranks or stages on each as there can be.
void check_stages(const program_options& options) {
  const int layers = options.training.shape.layers, each = options.stages_per_rank;
  const int ranks = options.training.spread.pipeline, stages = ranks * each;
  if (stages <= layers) return;
  const std::string with_each = each > 1 ? " with --stages-per-rank " + std::to_string(each) : "";
  const std::string instead = each <= layers    ? "--pp " + std::to_string(layers / each) + with_each
                              : ranks <= layers ? "--stages-per-rank " + std::to_string(layers / ranks)
                                                : "--pp " + std::to_string(layers) + " and --stages-per-rank 1";
  refuse("--pp " + std::to_string(ranks) + with_each + " makes more stages than the model has layers: at most " +
         instead + (stages <= most_layers ? ", or at least --layers " + std::to_string(stages) : ""));
}

/// Refuses groups that are not equally large, with the nearest size that goes.
void check_hybrid(const parallelism& spread) {
  if (spread.hybrid == 0) return;
  const std::string asked = "--hybrid " + std::to_string(spread.hybrid);
  if (spread.zero == 0) refuse(asked + " groups ranks for what --zero shards, and --zero 0 is nothing: --zero 1");
  if (spread.data % spread.hybrid == 0) return;
  int nearest = 1;
  for (int size = 1; size <= spread.data; ++size) {
    const bool nearer = std::abs(size - spread.hybrid) < std::abs(nearest - spread.hybrid);
    if (spread.data % size == 0 && nearer) nearest = size;
  }
  refuse(asked + " can't cut --dp " + std::to_string(spread.data) +
         " into equal groups: the nearest that can is --hybrid " + std::to_string(nearest));
}

/// Refuses more processes than one machine should start.
void check_processes(const parallelism& spread) {
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  const int most = std::max(64, 4 * cores);
  if (hocket::launch::is_rank() || spread.ranks() <= most) return;
  refuse("--dp times --pp times --tp is " + std::to_string(spread.ranks()) + " processes, and this machine has " +
         std::to_string(cores) + " cores: at most " + std::to_string(most) +
         " are started here; more are for a launcher, as mpirun, srun or torchrun, on several machines");
}

/// Refuses what can't be, with the nearest that can.
void check(const program_options& options) {
  const training_options& training = options.training;
  const parallelism& spread = training.spread;
  gpt::check(training.shape);
  check_processes(spread);
  const bool cuts = options.schedule == "breadth_first" || options.schedule == "interleaved";
  if (options.stages_per_rank > 1 && !cuts) {
    refuse("--schedule " + options.schedule + " has one stage per rank: --stages-per-rank 1, or --schedule " +
           (can_interleave(options, spread.microbatches) ? "interleaved" : "breadth_first"));
  }
  check_stages(options);
  check_interleaved(options);
  check_hybrid(spread);
  if (spread.tensor > training.shape.heads) {
    refuse("--tp " + std::to_string(spread.tensor) + " is more than a layer has heads: at most --tp " +
           std::to_string(training.shape.heads) + ", or more --heads");
  }
  const std::string keeps_no_bits = " adds up in an order that depends on the mesh, so --exact can't keep every bit: ";
  if (training.exact && training.spread.spread_rows) refuse("--sequence-parallel" + keeps_no_bits + "leave out one");
  if (training.exact && options.wire != "float") {
    refuse("--wire " + options.wire + " rounds on the way, so --exact can't keep every bit: --wire float");
  }
  if (options.device == "cuda") {
    const std::string adds = "--device cuda adds gradients up as floats: leave out ";
    if (training.exact) refuse(adds + "--exact");
    if (options.wire != "float") refuse(adds + "--wire " + options.wire);
    require_device();
  }
  const int parts = spread.parts();
  if (training.sequences % parts != 0) {
    if (parts > most_sequences) {
      refuse("--dp times --microbatches times --accumulate is " + std::to_string(parts) + ", and --sequences at most " +
             std::to_string(most_sequences) + ": fewer --microbatches, or a smaller --accumulate");
    }
    const std::string passes = spread.passes > 1 ? " times --accumulate " + std::to_string(spread.passes) : "";
    refuse("--sequences " + std::to_string(training.sequences) + " can't be cut into --dp " +
           std::to_string(spread.data) + " times --microbatches " + std::to_string(spread.microbatches) + passes +
           " equal parts: the nearest that can is --sequences " +
           std::to_string(nearest_multiple(training.sequences, parts, most_sequences)));
  }
  if (!(std::isfinite(training.learning_rate))) refuse("--learning-rate is a number above 0, as 0.003");
  if (!(options.seconds > 0)) refuse("--seconds is a number above 0, as 100");
  if (training.loss_scale != 0 && !(training.loss_scale >= 1 && std::isfinite(training.loss_scale))) {
    refuse("--loss-scale is 0, for none, or a number from 1 on, as 65536");
  }
  check_checkpoint(options);
  schedule_of(options);  // knows more rules
  check_files(options);
}

}  // namespace

int main(int argument_count, char** arguments) {
  program_options options;
  CLI::App app("Trains a byte-level transformer, data-, pipeline- and tensor-parallel.");
  declare(app, options);
  CLI11_PARSE(app, argument_count, arguments);
  options.training.narrow = options.precision == "bfloat16";
  options.training.narrow_wire = options.wire == "bfloat16";
  options.training.on_device = options.device == "cuda";
  try {
    check(options);
    const int ranks = options.training.spread.ranks();
    if (ranks > 1 && !hocket::launch::is_rank()) {
      const int code = hocket::launch::spawn(ranks, std::vector<std::string>(arguments, arguments + argument_count));
      remove_unfinished_files(options);
      return code;
    }
    return run_rank(options);
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "train_gpt: not enough memory for a model of these sizes on so few ranks\n");
    return 1;
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "train_gpt: %s\n", problem.what());
    return 1;
  }
}
