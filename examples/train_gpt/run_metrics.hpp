// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// What a rank shows of a training while it runs: a log of JSON lines, events for TensorBoard, an endpoint for Prometheus.
#pragma once

#include "training.hpp"

#include <hocket/observe/registry.hpp>

#include <memory>
#include <string>

namespace gpt {

struct metric_options {
  std::string log;          ///< folder for a log of each rank; empty: none
  std::string tensorboard;  ///< folder of rank 0's events; empty: none
  std::string prometheus;   ///< "HOST:PORT" of the endpoint of each host; empty: none
};

/// Throws if an endpoint is wanted, and the program was built without prometheus-cpp.
void check(const metric_options& options);

class run_metrics {
 public:
  /// @param local_rank number of the rank among those of its host
  /// @param taken number of steps taken before
  /// @param steps number of the last step
  /// @param bytes_per_step number of bytes that all ranks together predict in a step
  /// @param schedule a drawing of the pipeline's schedule, as text
  run_metrics(const metric_options& options, int rank, int ranks, int local_rank, int taken, int steps,
              double bytes_per_step, const std::string& schedule);
  ~run_metrics();

  /// Null if nothing is shown.
  hocket::observe::registry* registry() noexcept;

  /// Shows a step.
  void add(const step_record& step);
  /// Shows the traffic of this rank.
  void add(const traffic_by_use& moved);
  /// States that the training has ended.
  void end(const std::string& status);

 private:
  struct parts;
  std::unique_ptr<parts> parts_;  ///< null if nothing is shown
};

}  // namespace gpt
