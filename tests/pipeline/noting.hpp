// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// A layer that records its tasks, so that a test does not depend on the executor's own report.
#pragma once

#include "pipeline/model.hpp"

#include <hocket/schedule/schedule.hpp>
#include <hocket/schedule/timeline.hpp>

#include <deque>
#include <span>
#include <vector>

namespace pipeline_test {

using hocket::plan::pipeline::task;
using hocket::plan::pipeline::task_kind;

class noting_layer : public layer {
 public:
  noting_layer(int index, int stages, int microbatches, std::vector<task>& notes)
      : layer(index, stages, microbatches), index_(index), notes_(notes) {}

  void forward(int m, std::span<const double> in, std::span<double> out) {
    notes_.push_back({task_kind::forward, index_, m});
    layer::forward(m, in, out);
  }
  void recompute(int m, std::span<const double> in) {
    notes_.push_back({task_kind::recompute, index_, m});
    layer::recompute(m, in);
  }
  void input_gradient(int m, std::span<const double> in, std::span<const double> out_gradient,
                      std::span<double> in_gradient) {
    notes_.push_back({task_kind::input_gradient, index_, m});
    layer::input_gradient(m, in, out_gradient, in_gradient);
  }
  void weight_gradient(int m, std::span<const double> in, std::span<const double> out_gradient) {
    notes_.push_back({task_kind::weight_gradient, index_, m});
    layer::weight_gradient(m, in, out_gradient);
  }
  void backward(int m, std::span<const double> in, std::span<const double> out_gradient,
                std::span<double> in_gradient) {
    notes_.push_back({task_kind::backward, index_, m});
    layer::input_gradient(m, in, out_gradient, in_gradient);
    layer::weight_gradient(m, in, out_gradient);
  }

 private:
  int index_;
  std::vector<task>& notes_;
};

/// The layers that a rank holds.
inline std::deque<noting_layer> noting_layers_of(const hocket::plan::pipeline::schedule& plan, int rank,
                                                 std::vector<task>& notes) {
  std::deque<noting_layer> own;
  for (int stage = 0; stage < plan.stages(); ++stage) {
    if (plan.placement.holds(rank, stage)) own.emplace_back(stage, plan.stages(), plan.microbatches, notes);
  }
  return own;
}

/// The tasks of a row, without messages.
inline std::vector<task> computations(const hocket::plan::pipeline::row& actions) {
  std::vector<task> all;
  for (const auto& each : actions) {
    for_each_task(each, [&](const task& what) {
      if (is_computation(what.kind)) all.push_back(what);
    });
  }
  return all;
}

inline std::vector<task> computations(const hocket::plan::pipeline::timeline& measured) {
  std::vector<task> all;
  for (const auto& each : measured) for_each_task(each.what, [&](const task& what) { all.push_back(what); });
  return all;
}

}  // namespace pipeline_test
