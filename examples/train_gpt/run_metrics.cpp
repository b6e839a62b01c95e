// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "run_metrics.hpp"

#include <hocket/observe/job_counters.hpp>
#include <hocket/observe/json_lines.hpp>
#include <hocket/observe/resources.hpp>
#include <hocket/observe/tensorboard.hpp>

#if defined(GPT_HAS_PROMETHEUS)
#include <hocket/observe/prometheus.hpp>
#endif

#include <chrono>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>

namespace gpt {

namespace observe = hocket::observe;

void check(const metric_options& options) {
#if !defined(GPT_HAS_PROMETHEUS)
  if (!options.prometheus.empty()) {
    throw std::invalid_argument(
        "--prometheus: this program was built without prometheus-cpp: install prometheus-cpp-dev and build it again");
  }
#else
  static_cast<void>(options);
#endif
}

struct run_metrics::parts {
  parts(const metric_options& options, int rank, int ranks_of_job, int taken, int steps_of_job, double bytes_per_step)
      : ranks(ranks_of_job), last(steps_of_job), step(taken), bytes_of_step(bytes_per_step), used(metrics) {
    if (!options.log.empty())
      log.emplace(options.log + "/rank-" + std::to_string(rank) + ".jsonl", metrics,
                  observe::json_lines_options{.rank = rank});
    if (!options.tensorboard.empty() && rank == 0) board.emplace(options.tensorboard, metrics);
#if defined(GPT_HAS_PROMETHEUS)
    if (!options.prometheus.empty()) {
      endpoint.emplace(options.prometheus, metrics,
                       observe::prometheus_options{.local_rank = rank, .constant = {{"rank", std::to_string(rank)}}});
    }
#endif
  }

  observe::counter& seconds_of(const char* use) {
    return metrics.counter("communication_seconds", "time in which this rank waited for others", {{"use", use}});
  }
  observe::counter& bytes_of(const char* use) {
    return metrics.counter("communication_bytes", "bytes that this rank has moved", {{"use", use}});
  }

  int ranks, last, step;
  double bytes_of_step;
  observe::registry metrics;
  observe::job_counters counters{metrics};
  observe::counter& skipped = metrics.counter("skipped_steps", "steps whose gradient was not finite");
  observe::gauge& loss = metrics.gauge("loss", "training loss, in nats per byte");
  observe::gauge& norm = metrics.gauge("gradient_norm", "norm of the mean gradient, before clipping");
  observe::gauge& rate = metrics.gauge("learning_rate", "learning rate of the last step");
  observe::gauge& scale = metrics.gauge("loss_scale", "factor of the loss");
  observe::gauge& speed = metrics.gauge("text_bytes_per_second", "predicted bytes of all ranks per second");
  observe::histogram& times =
      metrics.histogram("step_seconds", "duration of a step", observe::exponential_bounds(0.001, 2, 20));
  observe::counter& gradient_seconds = seconds_of("gradients");
  observe::counter& tensor_seconds = seconds_of("tensor-parallel sums");
  observe::counter& pipeline_seconds = seconds_of("pipeline");
  observe::counter& gradient_bytes = bytes_of("gradients");
  observe::counter& tensor_bytes = bytes_of("tensor-parallel sums");
  observe::counter& pipeline_bytes = bytes_of("pipeline");
  observe::resources used;
  std::optional<observe::json_lines> log;
  std::optional<observe::tensorboard> board;
#if defined(GPT_HAS_PROMETHEUS)
  std::optional<observe::prometheus_endpoint> endpoint;
#endif
  std::chrono::steady_clock::time_point next_record{};
};

run_metrics::run_metrics(const metric_options& options, int rank, int ranks, int taken, int steps,
                         double bytes_per_step, const std::string& schedule) {
  if (options.log.empty() && options.tensorboard.empty() && options.prometheus.empty()) return;
  parts_ = std::make_unique<parts>(options, rank, ranks, taken, steps, bytes_per_step);
  if (taken > 0) parts_->counters.restart();
  if (parts_->log) parts_->log->start("train_gpt", ranks, {{"step", taken}, {"steps", steps}});
  if (parts_->board) {
    // Also without a checkpoint: the folder may have steps of a training that ended before its first one.
    parts_->board->restart(taken + 1);
    parts_->board->drawing(taken + 1, "schedule", schedule);
  }
}
run_metrics::~run_metrics() = default;

observe::registry* run_metrics::registry() noexcept { return parts_ ? &parts_->metrics : nullptr; }

void run_metrics::add(const step_record& step) {
  if (!parts_) return;
  parts& at = *parts_;
  ++at.step;
  at.counters.step();
  if (!step.finite) at.skipped.add();
  at.loss.set(step.loss);
  at.norm.set(step.gradient_norm);
  at.rate.set(step.learning_rate);
  at.scale.set(step.loss_scale);
  at.speed.set(step.seconds > 0 ? at.bytes_of_step / step.seconds : 0);
  at.times.record(step.seconds);
  at.gradient_seconds.add(step.gradient_seconds);
  at.tensor_seconds.add(step.tensor_seconds);
  at.pipeline_seconds.add(step.pipeline_seconds);
  const auto now = std::chrono::steady_clock::now();
  const bool is_due = now >= at.next_record || step.stop || at.step == at.last;
  if (is_due) {  // once a second: a record has all metrics
    at.next_record = now + std::chrono::seconds(1);
    at.used.update();
    if (at.log) at.log->progress(at.step, at.last);
  }
  if (at.board) at.board->write(at.step);
}

void run_metrics::add(const traffic_by_use& moved) {
  if (!parts_) return;
  parts_->gradient_bytes.add(moved.gradients);
  parts_->tensor_bytes.add(moved.tensor);
  parts_->pipeline_bytes.add(moved.pipeline);
}

void run_metrics::end(const std::string& status) {
  if (!parts_) return;
  parts_->used.update();
  if (parts_->log) parts_->log->end(status, parts_->ranks, {{"step", parts_->step}});
}

}  // namespace gpt
