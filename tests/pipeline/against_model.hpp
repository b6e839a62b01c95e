// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Compares a step of a schedule, run by several ranks, with the whole model on one rank: gradients, loss, and the
/// order of tasks that the stages recorded.
#pragma once

#include "pipeline/model.hpp"
#include "pipeline/noting.hpp"

#include <hocket/collective/all_reduce.hpp>
#include <hocket/communicator/communicator.hpp>
#include <hocket/operation/exact_sum.hpp>
#include <hocket/pipeline/executor.hpp>
#include <hocket/schedule/schedule.hpp>

#include <cmath>
#include <cstddef>
#include <deque>
#include <functional>
#include <string>
#include <vector>

namespace pipeline_test {

/// Runs `plan` on this rank's stages, which record tasks in `notes`, and compares with `expected`, the layers of the
/// whole model. Returns a description of the differences, or an empty string. All ranks must call it.
template <class Domain, class Layer>
std::string differs_from_model(const hocket::communicator<Domain>& comm, const hocket::plan::pipeline::schedule& plan,
                               std::deque<Layer>& own, const std::vector<task>& notes,
                               const std::vector<layer>& expected) {
  hocket::pipeline::executor run(comm, plan, std::vector<hocket::pipeline::any_stage>(own.begin(), own.end()));
  run.run();
  std::string wrong;
  // In a schedule in two directions, two ranks have a copy of each stage: their gradients are added.
  std::size_t next = 0;
  double loss = 0;
  for (int stage = 0; stage < plan.stages(); ++stage) {
    const auto& right = expected[static_cast<std::size_t>(stage)];
    std::vector<double> sums(right.gradient().size());
    std::vector<hocket::exact_sum<double>> exact(sums.size());
    if (plan.placement.holds(comm.rank(), stage)) {
      sums = own[next].gradient();
      exact = own[next].exact();
      loss += own[next++].loss();
    }
    hocket::all_reduce(comm, hocket::in_place(sums), std::plus<>{});
    hocket::all_reduce(comm, hocket::in_place(exact), std::plus<>{});
    const std::string found = difference(sums, exact, right);
    if (!found.empty()) wrong += "stage " + std::to_string(stage) + ": " + found + "; ";
  }
  std::vector<double> losses{loss};
  hocket::all_reduce(comm, hocket::in_place(losses), std::plus<>{});
  if (!(std::abs(losses[0] - expected.back().loss()) <= 1e-12 * losses[0])) wrong += "the loss differs; ";
  if (notes != computations(plan.of(comm.rank()))) wrong += "the tasks of the stages differ from the plan; ";
  if (notes != computations(run.measured())) {
    wrong += "the tasks that the executor reports differ from the tasks of the stages; ";
  }
  return wrong;
}

/// Like the function above, with `noting_layer`s.
template <class Domain>
std::string differs_from_model(const hocket::communicator<Domain>& comm, const hocket::plan::pipeline::schedule& plan,
                               const std::vector<layer>& expected) {
  std::vector<task> notes;
  std::deque<noting_layer> own = noting_layers_of(plan, comm.rank(), notes);
  return differs_from_model(comm, plan, own, notes, expected);
}

}  // namespace pipeline_test
