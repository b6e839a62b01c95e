// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// What a rank of a job writes while it runs: its metrics in a log of JSON lines and, on rank 0, for TensorBoard, with
/// steps, restarts, and what the process uses.
///
/// @code
/// hocket::observe::job_records records({.log = "run/logs", .tensorboard = "run/board"},
///                                      {.program = "my_program", .name = "my model", .rank = 2, .ranks = 4, .steps = 800});
/// auto& loss = records.metrics().gauge("loss", "training loss, in nats per byte");
/// for (int step = 1; step <= 800; ++step) { ...; loss.set(...); records.step(step); }
/// records.end("trained");
/// @endcode
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/text.hpp>
#include <hocket/observe/job_counters.hpp>
#include <hocket/observe/json_lines.hpp>
#include <hocket/observe/registry.hpp>
#include <hocket/observe/resources.hpp>
#include <hocket/observe/tensorboard.hpp>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

HOCKET_BEGIN_NAMESPACE
namespace observe {

/// Where a job writes.
struct job_record_folders {
  std::string log{};          ///< for a log of each rank, such as rank-0.jsonl; empty: none
  std::string tensorboard{};  ///< for events of rank 0; empty: none
};

struct job_description {
  std::string program;  ///< begins messages on standard error
  std::string name;     ///< of the job, as the log has it
  int rank = 0, ranks = 1;
  std::int64_t taken = 0;  ///< steps of the checkpoint from which this process continues
  std::int64_t steps = 0;  ///< number of the last step
};

/// The metrics and the records of a rank.
///
/// A failure to write later records, as on a full disk, is no reason to end a job: it is reported once on standard error.
/// **Threads.** One; any may update and read the metrics.
class job_records {
 public:
  /// Begins the records: the log has the start, and the number of steps taken before. **Errors.** `system` if a file
  /// can't be opened.
  job_records(const job_record_folders& where, job_description described) : described_(std::move(described)) {
    if (!where.log.empty())
      log_.emplace(hocket::detail::concat({where.log, "/rank-", described_.rank, ".jsonl"}), metrics_,
                   json_lines_options{.rank = described_.rank});
    if (!where.tensorboard.empty() && described_.rank == 0) board_.emplace(where.tensorboard, metrics_);
    if (described_.taken > 0) counters_.restart();
    if (log_)
      write([&] {
        log_->start(described_.name, described_.ranks, {{"step", described_.taken}, {"steps", described_.steps}});
      });
    // Also without a checkpoint: the folder may have steps of a job that ended before its first one.
    if (board_) write([&] { board_->restart(described_.taken + 1); });
  }
  job_records(const job_records&) = delete;
  job_records& operator=(const job_records&) = delete;

  registry& metrics() noexcept { return metrics_; }
  /// Returns whether this rank writes anything.
  bool has_sinks() const noexcept { return log_ || board_; }

  /// Writes that `step` steps are done: for TensorBoard each step, into the log at most one each second, and the last one.
  /// `is_last`: also if it is not that of the description.
  void step(std::int64_t step, bool is_last = false) {
    counters_.step();
    const auto now = std::chrono::steady_clock::now();
    if (now >= next_record_ || is_last || step == described_.steps) {  // a line has all metrics
      next_record_ = now + std::chrono::seconds(1);
      used_.update();
      if (log_) write([&] { log_->progress(step, described_.steps); });
    }
    if (board_) write([&] { board_->write(step); });
  }

  /// Writes a text whose columns are aligned for TensorBoard, at the first step of this process.
  void drawing(std::string_view tag, std::string_view lines) {
    if (board_) write([&] { board_->drawing(described_.taken + 1, tag, lines); });
  }

  /// States on standard error and in the log what a person should know: an event, and the reason for it.
  void warn(std::string_view event, const std::string& reason) {
    const std::string line = hocket::detail::concat({described_.program, ": ", event, ": ", reason, "\n"});
    std::fputs(line.c_str(), stderr);
    if (log_) write([&] { log_->write(level::warning, event, {{"reason", reason}}); });
  }

  /// Writes that the job has ended.
  void end(std::string_view status, fields with = {}) {
    used_.update();
    if (log_) write([&] { log_->end(status, described_.ranks, with); });
  }

 private:
  template <class Act>
  void write(const Act& act) {
#if HOCKET_HAS_EXCEPTIONS
    try {
      act();
    } catch (const error& cause) {
      if (std::exchange(has_reported_, true)) return;
      std::fprintf(stderr, "%s: rank %d: %s; the training continues, but records are lost\n",
                   described_.program.c_str(), described_.rank, cause.what());
    }
#else
    act();
#endif
  }

  job_description described_;
  bool has_reported_ = false;  ///< that records are lost
  registry metrics_;
  job_counters counters_{metrics_};
  resources used_{metrics_};
  std::optional<json_lines> log_;
  std::optional<tensorboard> board_;
  std::chrono::steady_clock::time_point next_record_{};
};

}  // namespace observe
HOCKET_END_NAMESPACE
