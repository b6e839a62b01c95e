// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// needs: ucx eigen cli11
// arguments: --help
// expect: ranks that hold whole copies of the model
/// @file
/// Trains a byte-level transformer on a text over processes, with data, pipeline and tensor parallelism and a sharded
/// optimizer.
///
///     train_gpt --text FILE --dp 2 --pp 2 --zero 1
///
/// Started by hand, the program starts itself once more for every rank; started by a launcher, it runs as one rank.
#include "device_sums.hpp"
#include "program.hpp"

#include <hocket/bootstrap/launch.hpp>
#include <hocket/core/platform/input_file.hpp>
#include <hocket/gradient/loss_scale.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <new>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace gpt;

constexpr int most_sequences = 1 << 20, most_microbatches = 1024;

/// Returns why `text` is not a seed, or an empty string. Needed because CLI11 converts negative numbers to large ones.
std::string whole_number(std::string& text) {
  const bool digits = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
  return digits ? "" : "'" + text + "' is not an integer of at least 0";
}

/// Returns why options can't be read from the file `name`, or an empty string. Every rank reads it.
std::string file_of_options(std::string& name) {
  const hocket::platform::input_file file(name, hocket::platform::file_kinds::regular);
  const std::string problem = file && file.size() == 0 ? "it is empty" : file.problem();
  if (problem.empty()) return "";
  return "cannot read the options '" + name + "': " + problem + "; pass a regular file of name=value lines";
}

void declare(CLI::App& app, program_options& options) {
  app.option_defaults()->always_capture_default();
  training_options& training = options.training;
  app.add_option("--text", options.text, "the text to train on; ./dev demo unpacks the default one");
  app.add_option("--dp", training.spread.data, "ranks that hold whole copies of the model and train on different data")
      ->check(CLI::Range(1, 64));
  app.add_option("--pp", training.spread.pipeline, "ranks over which the layers of a copy are divided")
      ->check(CLI::Range(1, 64));
  app.add_option("--tp", training.spread.tensor,
                 "ranks over which the heads and hidden units of each layer are divided")
      ->check(CLI::Range(1, 64));
  app.add_option("--zero", training.spread.zero,
                 "what dp ranks shard: 1 optimizer states, 2 also gradients, 3 also parameters")
      ->check(CLI::Range(0, 3));
  app.add_option("--hybrid", training.spread.hybrid,
                 "adjacent dp ranks that share one sharded copy, such as those of a host; other groups have copies; 0: "
                 "all ranks")
      ->check(CLI::Range(0, 64));
  app.add_flag("--sequence-parallel", training.spread.spread_rows,
               "each tp rank stores some of the rows between heads and hidden units");
  app.add_option("--schedule", options.schedule, "pipeline schedule")
      ->check(CLI::IsMember({"gpipe", "1f1b", "breadth_first", "interleaved"}));
  app.add_option("--stages-per-rank", options.stages_per_rank,
                 "pipeline stages per rank, for breadth_first and interleaved")
      ->check(CLI::Range(1, 64));
  app.add_option("--microbatches", training.spread.microbatches, "microbatches of each pass of the pipeline")
      ->check(CLI::Range(1, most_microbatches));
  app.add_option(
         "--accumulate", training.spread.passes,
         "passes of the pipeline per optimizer step; from 2 on, --zero 2 and 3 add gradients in another order than "
         "0 and 1, so without --exact the bits differ")
      ->check(CLI::Range(1, 1024));
  app.add_option("--sequences", training.sequences, "sequences per step, over all ranks")
      ->check(CLI::Range(1, most_sequences));
  app.add_option("--steps", training.steps, "optimizer steps")->check(CLI::Range(1, 10'000'000));
  app.add_option("--learning-rate", training.learning_rate, "maximum learning rate")->check(CLI::PositiveNumber);
  app.add_option("--layers", training.shape.layers, "layers of the model")->check(CLI::Range(1, most_layers));
  app.add_option("--width", training.shape.width, "numbers per position")->check(CLI::Range(2, most_width));
  app.add_option("--heads", training.shape.heads, "attention heads of a layer, and slices of its hidden units")
      ->check(CLI::Range(1, 1024));
  app.add_option("--context", training.shape.context, "bytes in the context of a prediction")
      ->check(CLI::Range(1, 4096));
  app.add_option("--seed", training.seed, "seed of the initial parameters and of the choice of sequences")
      ->check(CLI::Validator(whole_number, "UINT"));
  app.add_flag("--exact", training.exact,
               "the same bits for every --dp, --pp, --tp, --zero and --microbatches: sums are rounded only once");
  app.add_option("--precision", options.precision, "type of the parameters in computations")
      ->check(CLI::IsMember({"float", "bfloat16"}));
  app.add_option("--wire", options.wire, "type in which gradients are sent")
      ->check(CLI::IsMember({"float", "bfloat16"}));
  app.add_option("--device", options.device, "memory in which gradients are added over ranks; cuda: GPU memory")
      ->check(CLI::IsMember({"cpu", "cuda"}));
  app.add_option("--loss-scale", training.loss_scale,
                 "initial factor of the loss, which adapts to the range of the gradients; 0: none")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--seconds", options.seconds, "stop training after this time")->check(CLI::PositiveNumber);
  app.add_flag("--stop-on-nan", options.stop_on_nan,
               "fail at the first gradient that is not finite, instead of skipping the step");
  app.add_option("--fail-in-step", training.fail_in_step,
                 "throw in a layer of one rank in this step, to test how the training ends; 0: never")
      ->check(CLI::Range(0, 10'000'000));
  app.add_flag("--must-learn", options.must_learn, "fail unless the trained model beats the bigram model");
  app.add_option("--out", options.out, "folder for the loss curve and the report, created if missing");
  app.allow_config_extras(CLI::config_extras_mode::error);
  app.set_config("--config", "", "a file with any of these options, as name=value lines")
      ->check(CLI::Validator(file_of_options, "FILE"));
  app.add_option("--checkpoint", options.checkpoint,
                 "folder for checkpoints: written every --checkpoint-every steps, and at the end");
  app.add_option("--checkpoint-every", options.checkpoint_every, "steps between checkpoints")
      ->check(CLI::Range(1, 10'000'000));
  app.add_option("--resume", options.resume, "continue from the latest checkpoint in this folder, written on any mesh");
  app.add_option("--data", training.data,
                 "files of 16-bit tokens to train on instead of the first part of --text, each used once per epoch; "
                 "FILE=3 has three times the weight of others")
      ->type_name("FILE[=WEIGHT] ...");
  app.add_option("--log", options.metrics.log, "folder for a log of each rank, of JSON lines: rank-0.jsonl");
  app.add_option("--tensorboard", options.metrics.tensorboard, "folder for events that TensorBoard shows");
  app.add_option("--prometheus", options.metrics.prometheus,
                 "HOST:PORT at which Prometheus reads the metrics of all ranks of a host, with the label rank");
  app.add_option("--losses", options.losses, "file for the loss and gradient norm of each step");
}

[[noreturn]] void refuse(const std::string& why) { throw std::invalid_argument(why); }

/// Rejects a folder with a checkpoint of another training, because new checkpoints replace older ones.
void check_checkpoint(const program_options& options) {
  namespace fs = std::filesystem;
  if (options.checkpoint.empty() || !has_checkpoint(options.checkpoint)) return;
  if (!options.resume.empty() && fs::weakly_canonical(options.resume) == fs::weakly_canonical(options.checkpoint))
    return;
  refuse("--checkpoint " + options.checkpoint + ": the folder contains a checkpoint already: add --resume " +
         options.checkpoint + " to continue from it, or pass another folder");
}

/// Returns whether --schedule interleaved supports this number: the stages of a rank alternate in rounds of equal size.
bool can_interleave(const program_options& options, int microbatches) {
  const int ranks = options.training.spread.pipeline;
  return microbatches >= ranks && (options.stages_per_rank == 1 || microbatches % (microbatches / ranks) == 0);
}

/// Rejects unsupported numbers of microbatches; suggests the nearest one that divides the sequences, if there is one.
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
  std::string instead = "the nearest valid value is --microbatches " + std::to_string(nearest);
  if (nearest == 0) {
    const int parts = others * spread.pipeline;
    instead = parts > most_sequences ? "use fewer --pp, or a smaller --accumulate"
                                     : "use --microbatches " + std::to_string(spread.pipeline) + " and --sequences " +
                                           std::to_string(nearest_multiple(sequences, parts, most_sequences));
  }
  const std::string rounds =
      options.stages_per_rank > 1 ? ", in rounds of equal size with at least one for each pipeline rank: " : ": ";
  refuse("--schedule interleaved with --microbatches " + std::to_string(spread.microbatches) + " and --pp " +
         std::to_string(spread.pipeline) + " needs at least as many microbatches as pipeline ranks" + rounds + instead);
}

/// Rejects more stages than layers; suggests the maximum number of ranks or of stages per rank.
void check_stages(const program_options& options) {
  const int layers = options.training.shape.layers, each = options.stages_per_rank;
  const int ranks = options.training.spread.pipeline, stages = ranks * each;
  if (stages <= layers) return;
  const std::string with_each = each > 1 ? " with --stages-per-rank " + std::to_string(each) : "";
  const std::string instead = each <= layers    ? "--pp " + std::to_string(layers / each) + with_each
                              : ranks <= layers ? "--stages-per-rank " + std::to_string(layers / ranks)
                                                : "--pp " + std::to_string(layers) + " and --stages-per-rank 1";
  refuse("--pp " + std::to_string(ranks) + with_each + " makes more stages than the model has layers: use at most " +
         instead + (stages <= most_layers ? ", or at least --layers " + std::to_string(stages) : ""));
}

/// Rejects groups of unequal size; suggests the nearest valid size.
void check_hybrid(const parallelism& spread) {
  if (spread.hybrid == 0) return;
  const std::string asked = "--hybrid " + std::to_string(spread.hybrid);
  if (spread.zero == 0) refuse(asked + " groups ranks for the shards of --zero, but --zero 0 has none: use --zero 1");
  if (spread.data % spread.hybrid == 0) return;
  int nearest = 1;
  for (int size = 1; size <= spread.data; ++size) {
    const bool nearer = std::abs(size - spread.hybrid) < std::abs(nearest - spread.hybrid);
    if (spread.data % size == 0 && nearer) nearest = size;
  }
  refuse(asked + " can't divide --dp " + std::to_string(spread.data) +
         " into equal groups: the nearest valid value is --hybrid " + std::to_string(nearest));
}

/// Rejects more processes than one machine should start.
void check_processes(const parallelism& spread) {
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  const int most = std::max(64, 4 * cores);
  if (hocket::launch::is_rank() || spread.ranks() <= most) return;
  refuse("--dp times --pp times --tp is " + std::to_string(spread.ranks()) + " processes, but this machine has " +
         std::to_string(cores) + " cores and starts at most " + std::to_string(most) +
         "; use a launcher such as mpirun, srun or torchrun to start more on several machines");
}

/// Returns all options as lines, except for the names of files, which may differ between ranks.
std::string computation_of(const CLI::App& app) {
  std::string kept;
  std::istringstream lines(app.config_to_str(true));
  for (std::string line; std::getline(lines, line);) {
    const std::string name = line.substr(0, line.find('='));
    const auto names = {"checkpoint", "config",     "data",   "log",         "losses",
                        "out",        "prometheus", "resume", "tensorboard", "text"};
    if (std::find(names.begin(), names.end(), name) == names.end()) kept += line + '\n';
  }
  return kept;
}

/// Rejects invalid combinations of options; suggests the nearest valid ones.
void check(const program_options& options) {
  const training_options& training = options.training;
  const parallelism& spread = training.spread;
  gpt::check(training.shape);
  check_processes(spread);
  const bool cuts = options.schedule == "breadth_first" || options.schedule == "interleaved";
  if (options.stages_per_rank > 1 && !cuts) {
    refuse("--schedule " + options.schedule + " has one stage per rank: use --stages-per-rank 1, or --schedule " +
           (can_interleave(options, spread.microbatches) ? "interleaved" : "breadth_first"));
  }
  check_stages(options);
  check_interleaved(options);
  check_hybrid(spread);
  if (spread.tensor > training.shape.heads) {
    refuse("--tp " + std::to_string(spread.tensor) + " is more than the heads of a layer: use at most --tp " +
           std::to_string(training.shape.heads) + ", or more --heads");
  }
  const std::string keeps_no_bits =
      " adds in an order that depends on the mesh, so --exact can't guarantee equal bits: ";
  if (training.exact && training.spread.spread_rows) refuse("--sequence-parallel" + keeps_no_bits + "omit one of them");
  if (training.exact && options.wire != "float") {
    refuse("--wire " + options.wire + " rounds in transit, so --exact can't guarantee equal bits: use --wire float");
  }
  if (options.device == "cuda") {
    const std::string adds = "--device cuda adds gradients as floats: omit ";
    if (training.exact) refuse(adds + "--exact");
    if (options.wire != "float") refuse(adds + "--wire " + options.wire);
    require_device();
  }
  const int parts = spread.parts();
  if (training.sequences % parts != 0) {
    if (parts > most_sequences) {
      refuse("--dp times --microbatches times --accumulate is " + std::to_string(parts) +
             ", but --sequences is at most " + std::to_string(most_sequences) +
             ": use fewer --microbatches, or a smaller --accumulate");
    }
    const std::string passes = spread.passes > 1 ? " times --accumulate " + std::to_string(spread.passes) : "";
    refuse("--sequences " + std::to_string(training.sequences) + " can't be divided into --dp " +
           std::to_string(spread.data) + " times --microbatches " + std::to_string(spread.microbatches) + passes +
           " equal parts: the nearest valid value is --sequences " +
           std::to_string(nearest_multiple(training.sequences, parts, most_sequences)));
  }
  if (!(std::isfinite(training.learning_rate))) refuse("--learning-rate must be a number above 0, such as 0.003");
  if (!(options.seconds > 0)) refuse("--seconds must be a number above 0, such as 100");
  if (training.loss_scale != 0 && !(training.loss_scale >= 1 && training.loss_scale <= hocket::loss_scale::largest)) {
    refuse("--loss-scale must be 0 for none, or at least 1 and at most 2^127, about 1.7e38, such as 65536");
  }
  gpt::check(options.metrics);
  check_checkpoint(options);
  schedule_of(options);  // checks the rules of the schedule
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
    std::vector<std::uint8_t> text = text_of(options);
    const int ranks = options.training.spread.ranks();
    if (ranks > 1 && !hocket::launch::is_rank()) {
      std::vector<std::uint8_t>().swap(text);  // the ranks read it again, and compare what they have read
      const int code = hocket::launch::spawn(ranks, std::vector<std::string>(arguments, arguments + argument_count));
      remove_unfinished_files(options);
      return code;
    }
    return run_rank(options, text, computation_of(app));
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "train_gpt: not enough memory for a model of this size on this number of ranks\n");
    return 1;
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "train_gpt: %s\n", problem.what());
    return 1;
  }
}
