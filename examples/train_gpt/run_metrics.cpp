// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "run_metrics.hpp"

#include <hocket/observe/job_records.hpp>

#if defined(GPT_HAS_PROMETHEUS)
#include <hocket/observe/prometheus.hpp>
#endif

#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

#include <unistd.h>

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

namespace {

#if defined(GPT_HAS_PROMETHEUS)
/// Returns a folder in memory for the metrics of the ranks of a host. Jobs that use one port can't run at the same time,
/// and another user may have made a folder without the number of the user in its name.
std::string folder_for(const std::string& address) {
  return "/dev/shm/train_gpt-" + std::to_string(::geteuid()) + '-' + address.substr(address.rfind(':') + 1);
}
#endif

}  // namespace

struct run_metrics::parts {
  parts(const metric_options& options, const observe::job_description& described, int local_rank, double bytes_per_step)
      : step(described.taken), bytes_of_step(bytes_per_step),
        records({.log = options.log, .tensorboard = options.tensorboard}, described) {
#if defined(GPT_HAS_PROMETHEUS)
    if (!options.prometheus.empty()) {
      endpoint.emplace(options.prometheus, metrics,
                       observe::prometheus_options{.local_rank = local_rank,
                                                   .constant = {{"rank", std::to_string(described.rank)}},
                                                   .folder = folder_for(options.prometheus)});
    }
#else
    static_cast<void>(local_rank);
#endif
  }

  observe::counter& seconds_of(const char* use) {
    return metrics.counter("communication_seconds", "time in which this rank waited for others", {{"use", use}});
  }
  observe::counter& bytes_of(const char* use) {
    return metrics.counter("communication_bytes", "bytes that this rank has moved", {{"use", use}});
  }

  std::int64_t step;
  double bytes_of_step;
  observe::job_records records;
  observe::registry& metrics = records.metrics();
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
#if defined(GPT_HAS_PROMETHEUS)
  std::optional<observe::prometheus_endpoint> endpoint;
#endif
};

run_metrics::run_metrics(const metric_options& options, int rank, int ranks, int local_rank, int taken, int steps,
                         double bytes_per_step, const std::string& schedule) {
  if (options.log.empty() && options.tensorboard.empty() && options.prometheus.empty()) return;
  const observe::job_description described{
      .program = "train_gpt", .name = "train_gpt", .rank = rank, .ranks = ranks, .taken = taken, .steps = steps};
  parts_ = std::make_unique<parts>(options, described, local_rank, bytes_per_step);
  parts_->records.drawing("schedule", schedule);
}
run_metrics::~run_metrics() = default;

observe::registry* run_metrics::registry() noexcept { return parts_ ? &parts_->metrics : nullptr; }

void run_metrics::add(const step_record& step) {
  if (!parts_) return;
  parts& at = *parts_;
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
  at.records.step(++at.step, step.stop);
}

void run_metrics::add(const traffic_by_use& moved) {
  if (!parts_) return;
  parts_->gradient_bytes.add(moved.gradients);
  parts_->tensor_bytes.add(moved.tensor);
  parts_->pipeline_bytes.add(moved.pipeline);
}

void run_metrics::end(const std::string& status) {
  if (parts_) parts_->records.end(status, {{"step", parts_->step}});
}

}  // namespace gpt
