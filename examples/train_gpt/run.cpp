// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "agreement.hpp"
#include "bigram.hpp"
#include "checkpoint.hpp"
#include "curve.hpp"
#include "learned.hpp"
#include "program.hpp"
#include "progress.hpp"
#include "report.hpp"

#include <hocket/bootstrap/process_identity.hpp>
#include <hocket/collective/all_gather.hpp>
#include <hocket/collective/barrier.hpp>
#include <hocket/draw/schedule_comparison.hpp>
#include <hocket/draw/schedule_text.hpp>
#include <hocket/schedule/gpipe.hpp>
#include <hocket/schedule/interleaved.hpp>
#include <hocket/schedule/measured_costs.hpp>
#include <hocket/schedule/one_forward_one_backward.hpp>
#include <hocket/schedule/schedule_trace.hpp>
#include <hocket/ucx.hpp>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cinttypes>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <numbers>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace gpt {
namespace {

namespace schedules = hocket::plan::pipeline;

[[noreturn]] void refuse(const std::string& why) { throw std::invalid_argument(why); }

template <class... Values>
std::string formatted(const char* format, Values... values) {
  char text[400];
  std::snprintf(text, sizeof text, format, values...);
  return text;
}

/// Returns the text with characters replaced that a terminal can't show.
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

/// Returns the texts with commas between them.
std::string joined(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& each : texts) all += (all.empty() ? "" : ", ") + each;
  return all;
}

/// Returns the configuration of the training as names and values.
std::vector<std::pair<std::string, std::string>> facts_of(const program_options& options, std::size_t text_bytes,
                                                          const schedules::schedule& plan) {
  const training_options& training = options.training;
  const parallelism& spread = training.spread;
  static constexpr const char* kept[] = {"everything", "a part of the optimizer's states",
                                         "a part of states and gradients",
                                         "a part of states, gradients and parameters"};
  const double bubble = schedules::run_clock(plan).bubble_share();
  return {
      {"text", formatted("%s, %.1f KB, the last twentieth held out", options.text.c_str(),
                         static_cast<double>(text_bytes) / 1000)},
      {"data", training.data.empty() ? "drawn from the text at random" : joined(training.data)},
      {"model",
       formatted("%zu parameters: %d layers, width %d, %d heads, context of %d bytes", parameters_of(training.shape),
                 training.shape.layers, training.shape.width, training.shape.heads, training.shape.context)},
      {"mesh",
       formatted("%d ranks: dp %d x pp %d x tp %d", spread.ranks(), spread.data, spread.pipeline, spread.tensor)},
      {"sharding",
       formatted("zero %d: each dp rank stores %s%s", spread.zero, kept[spread.zero],
                 spread.replicas() > 1 && spread.zero > 0
                     ? formatted(", sharded over %d of them; %d copies", spread.shards(), spread.replicas()).c_str()
                     : "")},
      {"batch", formatted("%d sequences: %d passes of %d microbatches on each dp rank, %s sums", training.sequences,
                          spread.passes, spread.microbatches, training.exact ? "exact" : "floating-point")},
      {"numbers",
       formatted("parameters in %s, gradients sent as %s%s%s", options.precision.c_str(),
                 training.exact ? "exact sums" : options.wire.c_str(), training.on_device ? ", from GPU memory" : "",
                 spread.spread_rows && spread.tensor > 1 ? "; rows between blocks sharded over tp" : "")},
      {"schedule", formatted("%s, bubble %.0f %% if all stages take equally long", std::string(plan.name()).c_str(),
                             100 * bubble)}};
}

void print(const std::vector<std::pair<std::string, std::string>>& facts) {
  for (const auto& [name, value] : facts)
    std::printf("%-10s %s\n", (name + (name.empty() ? "" : ":")).c_str(), value.c_str());
}

/// Returns the placement of the parts of the model along each axis.
std::vector<std::pair<std::string, std::string>> placements_of(const training_options& training) {
  const int zero = training.spread.zero;
  const std::string copies = "dp replicated";
  const std::string spread =
      training.spread.replicas() == 1
          ? "dp shard"
          : formatted("dp shard over %d, replicated over %d", training.spread.shards(), training.spread.replicas());
  const std::string own = ", pp by stage, tp by block";
  // Up to stage 1 a rank stores the whole gradient of its data, and then the sum of all of it or of its shard.
  const std::string gradients = zero >= 2 ? spread : "dp partial sum, then " + (zero == 1 ? spread : copies);
  return {{"placement", "heads, hidden units: parameters " + (zero >= 3 ? spread : copies) + ", gradients " +
                            gradients + ", states " + (zero >= 1 ? spread : copies) + own},
          {"", "embedding, gains, scores: the same along dp and pp, tp replicated"},
          {"", std::string("activations: dp by sequence, pp by stage, between blocks tp ") +
                   (training.spread.spread_rows ? "shard of rows" : "replicated") + ", inside partial sums"}};
}

/// Formats the traffic per step.
std::string make_explanation(const traffic_by_use& moved, double steps) {
  const double unit = 1e6 * steps;
  return formatted("%.3f MB (gradients and parameters %.3f, pipeline %.3f, tensor-parallel sums %.3f)",
                   moved.total() / unit, moved.gradients / unit, moved.pipeline / unit, moved.tensor / unit);
}

std::vector<rank_memory> gather_memory(const hocket::ucx::communicator& comm, const trainer& training) {
  const std::uint64_t own[3] = {training.predicted_bytes(), training.bytes(), training.peak_bytes()};
  std::vector<std::uint64_t> all(3 * static_cast<std::size_t>(comm.size()));
  hocket::all_gather(comm, std::span<const std::uint64_t>(own), all);
  std::vector<rank_memory> ranks;
  for (std::size_t i = 0; i < all.size(); i += 3) ranks.push_back({all[i], all[i + 1], all[i + 2]});
  return ranks;
}

/// Returns the predicted memory of each rank, with one line for consecutive ranks if all printed digits are equal.
std::vector<std::pair<std::string, std::string>> memory_of(const std::vector<rank_memory>& ranks) {
  std::vector<std::pair<std::string, std::string>> lines{
      {"memory", "parameters, gradients and states of each rank, by the formula:"}};
  const auto megabytes = [&](std::size_t rank) {
    return formatted("%.2f MB", static_cast<double>(ranks[rank].predicted) / 1e6);
  };
  for (std::size_t first = 0, end = 0; first < ranks.size(); first = end) {
    while (end < ranks.size() && megabytes(end) == megabytes(first)) ++end;
    const std::string which =
        end - first == 1 ? formatted("rank %zu", first) : formatted("each of ranks %zu to %zu", first, end - 1);
    lines.emplace_back("", which + ": " + megabytes(first));
  }
  return lines;
}

/// Prints the memory of rank 0, and of every rank that differs from the formula.
void print_differences(const std::vector<rank_memory>& ranks) {
  std::size_t right = 0;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const rank_memory& each = ranks[rank];
    right += each.counted == each.predicted ? 1 : 0;
    if (rank > 0 && each.counted == each.predicted) continue;
    std::printf("rank %zu stores %zu bytes, the formula gives %zu\n", rank, each.counted, each.predicted);
  }
  std::printf("%zu of %zu ranks store what the formula gives\n", right, ranks.size());
}

/// Returns a line per step: its number, the loss and the gradient's norm as decimals, and the bits of both.
std::string losses_of(const std::vector<step_record>& steps, int first) {
  std::string text = "step loss gradient_norm loss_bits gradient_norm_bits\n";
  int number = first;
  for (const step_record& step : steps) {
    text += formatted("%d %.9g %.9g %016" PRIx64 " %016" PRIx64 "\n", ++number, step.loss, step.gradient_norm,
                      std::bit_cast<std::uint64_t>(step.loss), std::bit_cast<std::uint64_t>(step.gradient_norm));
  }
  return text;
}

/// Draws the last step as it ran on the pipeline ranks of the first copy, beside its plan at measured costs; in ms.
std::string draw_step(const schedules::schedule& plan, schedules::timeline run) {
  for (auto& each : run) {
    each.begin *= 1e3;
    each.end *= 1e3;
  }
  const auto planned = schedules::timeline_of(plan, schedules::measured_costs(plan, run));
  return schedules::draw_comparison_svg(plan, planned, run, {.unit = "ms"});
}

/// Returns the share of the last step's time in which ranks of the pipeline did not compute.
double bubble_of(const schedules::timeline& run, int ranks) {
  double busy = 0, begin = run.empty() ? 0 : run.front().begin, end = begin;
  for (const auto& each : run) {
    busy += each.end - each.begin;
    begin = std::min(begin, each.begin);
    end = std::max(end, each.end);
  }
  return end > begin ? 1 - busy / (ranks * (end - begin)) : 0;
}

/// Returns the median wait for gradients of the steps that overlapped them with the backward pass, or of the others.
double exposed_seconds(const std::vector<step_record>& steps, bool overlapped) {
  std::vector<double> seconds;
  for (const step_record& step : steps) {
    if (step.overlapped == overlapped) seconds.push_back(step.gradient_seconds);
  }
  if (seconds.empty()) return -1;
  const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
  std::nth_element(seconds.begin(), middle, seconds.end());
  return *middle;
}

/// Returns measured values of the quantities that were predicted.
std::vector<std::pair<std::string, std::string>> found_of(const program_options& options,
                                                          const std::vector<step_record>& steps, double planned_bubble,
                                                          double bubble, const trainer& training,
                                                          long long skipped_before) {
  std::vector<std::pair<std::string, std::string>> found;
  found.emplace_back("bubble",
                     formatted("%.0f %% of the last pass, with waits for messages between stages; %.0f %% by the plan",
                               100 * bubble, 100 * planned_bubble));
  const double with = exposed_seconds(steps, true), without = exposed_seconds(steps, false);
  if (without > 0) {
    const double hidden = 100 * (1 - with / without);
    found.emplace_back(
        "overlap",
        formatted("a step waits %.2f ms for gradients, and %.2f ms if they are sent after the backward "
                  "pass, as in every eighth step: %s",
                  1e3 * with, 1e3 * without, hidden > 0 ? formatted("%.0f %% hidden", hidden).c_str() : "no gain"));
  }
  if (options.training.loss_scale > 0 || training.skipped() > 0) {
    found.emplace_back("loss scale",
                       formatted("%g in the last step; %lld of %zu steps skipped because a gradient was not finite",
                                 steps.back().loss_scale, training.skipped() - skipped_before, steps.size()));
  }
  return found;
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
  std::printf("\nGenerated text:\n----\n%s\n----\n\n", found.sample.c_str());
}

/// Returns whether the program must stop after this step. A gradient that a loss scale made infinite is no reason.
bool ends_badly(const program_options& options, const step_record& last) {
  return options.stop_on_nan && !last.finite && (options.training.loss_scale == 0 || !std::isfinite(last.loss));
}

std::vector<step_record> train(trainer& training, const program_options& options, const split_text& text, int first,
                               progress_line* progress, run_metrics& metrics) {
  std::vector<step_record> steps;
  const auto begin = std::chrono::steady_clock::now();
  // Some steps send gradients only after the backward pass, to compare.
  const auto overlaps = [&](int step) { return options.training.spread.data == 1 || step % 8 != 7; };
  int saved = first;
  const auto save = [&](int taken) {
    if (!options.checkpoint.empty() && taken != saved) training.save(options.checkpoint, saved = taken);
  };
  for (int step = first; step < options.training.steps; ++step) {
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    steps.push_back(training.step(text.train, step, seconds > options.seconds, overlaps(step)));
    if (progress != nullptr) (*progress)(steps.back());
    metrics.add(steps.back());
    if (ends_badly(options, steps.back())) break;
    if ((step + 1) % options.checkpoint_every == 0) save(step + 1);
    if (steps.back().stop) break;
  }
  if (!ends_badly(options, steps.back())) save(first + static_cast<int>(steps.size()));
  return steps;
}

void check_text(const program_options& options, const split_text& text) {
  const auto needed = static_cast<std::size_t>(options.training.shape.context) + 1;
  if (text.held_out.size() >= needed) return;
  refuse("the text '" + options.text + "' is too short: its held-out twentieth must have more bytes than --context " +
         std::to_string(options.training.shape.context));
}

/// Rejects a training that resumes after `taken` steps and has no further steps to take.
void check_steps(const program_options& options, int taken) {
  if (taken < options.training.steps) return;
  refuse("the checkpoint in '" + options.resume + "' has " + std::to_string(taken) +
         " steps already: pass a larger --steps");
}

}  // namespace

void check_files(const program_options& options) {
  if (!options.resume.empty()) {
    const training_identity own = identity_of(options.training, options.training.loss_scale);
    check_steps(options, steps_of_newest(options.resume, own));
  }
  if (std::filesystem::is_directory(options.losses)) {
    refuse("--losses '" + options.losses + "' is a folder: pass the name of a file");
  }
}

std::vector<std::uint8_t> text_of(const program_options& options) {
  std::vector<std::uint8_t> text = read_text(options.text);
  check_text(options, split(text));
  return text;
}

hocket::plan::pipeline::schedule schedule_of(const program_options& options) {
  const parallelism& spread = options.training.spread;
  const int v = options.stages_per_rank;
  if (options.schedule == "gpipe") return schedules::gpipe(spread.pipeline, spread.microbatches);
  if (options.schedule == "breadth_first") return schedules::breadth_first(spread.pipeline, spread.microbatches, v);
  if (options.schedule == "interleaved") return schedules::interleaved(spread.pipeline, spread.microbatches, v);
  return schedules::one_forward_one_backward(spread.pipeline, spread.microbatches);
}

namespace {

constexpr const char* curve_file = "loss.svg";
constexpr const char* report_file = "report.html";

std::string path_in(const std::string& folder, const char* name) {
  return (std::filesystem::path(folder) / name).string();
}

/// Makes the C library keep the memory of freed matrices for the next ones. Otherwise it returns it to the kernel, which
/// zeroes each page again: a fifth of the time.
void keep_freed_memory() {
#if defined(__GLIBC__)
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
#endif
}

/// Checks that all ranks have the same input: each has read the text and a file of options for itself.
void check_input(const program_options& options, const std::vector<std::uint8_t>& text, const std::string& computation,
                 const hocket::ucx::communicator& comm) {
  check_equal(comm, reading_of(std::as_bytes(std::span(computation))), "the list of options", "characters",
              "pass the same options to all ranks, and do not change the file of --config while they start");
  check_equal(comm, reading_of(std::as_bytes(std::span(text))), "the text '" + options.text + '\'', "bytes",
              "the file must be the same on all hosts, and must not change while the ranks start");
}

/// Returns the number of this rank among those of its host. Collective.
int local_rank_in(const hocket::ucx::communicator& comm) {
  const hocket::bootstrap::process_identity own = hocket::bootstrap::own_identity();
  std::vector<hocket::bootstrap::process_identity> all(static_cast<std::size_t>(comm.size()));
  hocket::all_gather(comm, std::span(&own, 1), std::span(all));
  return static_cast<int>(
      std::count_if(all.begin(), all.begin() + comm.rank(), [&](const auto& each) { return each.same_host(own); }));
}

int run_rank(const program_options& options, const std::vector<std::uint8_t>& bytes, const std::string& computation,
             const hocket::ucx::communicator& comm) {
  const bool speaks = comm.rank() == 0;
  if (comm.size() != options.training.spread.ranks()) {
    refuse("there are " + std::to_string(comm.size()) + " ranks, but --dp times --pp times --tp is " +
           std::to_string(options.training.spread.ranks()));
  }
  check_input(options, bytes, computation, comm);
  const split_text text = split(bytes);
  const schedules::schedule plan = schedule_of(options);
  auto facts = facts_of(options, bytes.size(), plan);
  for (auto& each : placements_of(options.training)) facts.push_back(std::move(each));
  if (speaks) make_folder(options.out);
  if (!options.checkpoint.empty()) make_folder(options.checkpoint);
  if (speaks && !options.losses.empty()) make_folder(std::filesystem::absolute(options.losses).parent_path().string());
  hocket::barrier(comm);  // no rank trains if results can't be written
  trainer training(comm, options.training, plan);
  const std::vector<rank_memory> predicted = gather_memory(comm, training);
  if (speaks) {
    const traffic_by_use sent = training.predicted_traffic();
    for (auto& each : memory_of(predicted)) facts.push_back(std::move(each));
    facts.emplace_back("traffic", "rank 0 moves " + make_explanation(sent, 1) + " per step by the formulas");
    print(facts);
    std::printf("\n%s\n", schedules::draw_text(plan).c_str());
    std::fflush(stdout);
  }

  const resumed before_this = options.resume.empty() ? resumed() : training.resume(options.resume);
  const int first = before_this.steps;
  check_steps(options, first);
  if (speaks) {
    for (const std::string& each : before_this.refused) std::fprintf(stderr, "train_gpt: not used: %s\n", each.c_str());
    if (first > 0) std::printf("continues after step %d of %s\n", first, options.resume.c_str());
  }

  const double bytes_per_step = static_cast<double>(options.training.sequences) * options.training.shape.context;
  progress_line progress(options.training.steps, first, bytes_per_step);
  run_metrics metrics(options.metrics, comm.rank(), comm.size(), local_rank_in(comm), first, options.training.steps,
                      bytes_per_step, schedules::draw_text(plan));
  if (hocket::observe::registry* const shown = metrics.registry()) training.watch(*shown);
  const traffic_by_use before = training.moved();
  const long long skipped_before = training.skipped();
  const std::vector<step_record> steps = train(training, options, text, first, speaks ? &progress : nullptr, metrics);
  if (ends_badly(options, steps.back())) {  // all ranks know, and exit regularly
    metrics.end("the gradient is not finite");
    std::fprintf(stderr,
                 "train_gpt: step %zu: the gradient is not finite, the loss is %g; a smaller --learning-rate may "
                 "help\n",
                 steps.size() + static_cast<std::size_t>(first), steps.back().loss);
    return 1;
  }
  const traffic_by_use moved = training.moved() - before;
  metrics.add(moved);
  metrics.end("trained");
  double of_all[] = {moved.total() / static_cast<double>(steps.size()), training.predicted_traffic().total()};
  hocket::all_reduce(comm, hocket::in_place(std::span(of_all)));
  const schedules::timeline run = training.measured();
  const std::vector<rank_memory> memory = gather_memory(comm, training);
  auto parameters = training.all_parameters();
  bool learned = true;
  if (speaks) {
    const result found = look_at(options, text, std::move(parameters));
    learned = found.held_out < found.bigram;
    std::printf("\n%zu steps in %.1f s, %.0f %% of it in communication\n", steps.size(), progress.seconds(),
                100 * progress.communication_share());
    print_differences(memory);
    std::printf("rank 0 moved %s per step; all ranks %.3f MB, by the formulas %.3f MB\n",
                make_explanation(moved, static_cast<double>(steps.size())).c_str(), of_all[0] / 1e6, of_all[1] / 1e6);
    const auto measured = found_of(options, steps, schedules::run_clock(plan).bubble_share(),
                                   bubble_of(run, options.training.spread.pipeline), training, skipped_before);
    print(measured);
    print(found);
    facts.insert(facts.end(), measured.begin(), measured.end());
    facts.emplace_back("moved",
                       "by rank 0 " + make_explanation(moved, static_cast<double>(steps.size())) + " per step");
    facts.emplace_back("training", formatted("%zu steps in %.1f s, %.0f %% of it in communication", steps.size(),
                                             progress.seconds(), 100 * progress.communication_share()));
    facts.emplace_back("held-out loss",
                       formatted("%.4f nats per byte; of a bigram model: %.4f", found.held_out, found.bigram));
    const std::string curve = draw_loss_curve(steps, first, found.held_out, found.bigram);
    const auto path = [&](const char* name) { return path_in(options.out, name); };
    write_file(path(curve_file), curve);
    write_file(path(report_file), html({facts, curve, draw_run_curves(steps, first, bytes_per_step),
                                        draw_step(training.plan(), run), memory, found.sample}));
    if (!options.losses.empty()) write_file(options.losses, losses_of(steps, first));
    std::printf("loss curve: %s\nreport:     %s\n%s\n", path(curve_file).c_str(), path(report_file).c_str(),
                learned ? "The model beats the bigram model." : "The bigram model is still better.");
  }
  // Rank 0 may evaluate for a long time. The other ranks notice its end or its failure immediately.
  hocket::barrier(comm, hocket::with(hocket::timeout(std::chrono::hours(24))));
  return learned || !options.must_learn ? 0 : 1;
}

}  // namespace

void remove_unfinished_files(const program_options& options) {
  if (!options.losses.empty()) remove_unfinished_file(options.losses);
  for (const char* const name : {curve_file, report_file}) remove_unfinished_file(path_in(options.out, name));
}

int run_rank(const program_options& options, const std::vector<std::uint8_t>& text, const std::string& computation) {
  keep_freed_memory();
  const auto comm = hocket::ucx::connect();
  try {
    return run_rank(options, text, computation, comm);
  } catch (const hocket::error& problem) {
    comm.revoke(problem.reason());
    throw;
  } catch (const std::exception& problem) {
    comm.revoke(problem.what());  // the others may wait for this rank
    throw;
  }
}

}  // namespace gpt
