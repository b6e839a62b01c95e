// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Lowers a schedule of computations to a schedule that can be run, by the passes of schedule/lower/ in order. Each
/// pass is a function from schedule to schedule.
#pragma once

#include <hocket/schedule/lower/add_messages.hpp>
#include <hocket/schedule/lower/defer_receives.hpp>
#include <hocket/schedule/lower/merge_backward.hpp>
#include <hocket/schedule/lower/reduce_gradients.hpp>
#include <hocket/schedule/lower/shard_parameters.hpp>
#include <hocket/schedule/lower/update_parameters.hpp>
#include <hocket/schedule/recompute_activations.hpp>
#include <hocket/schedule/schedule.hpp>
#include <hocket/schedule/wait_for_sends.hpp>

#include <utility>

HOCKET_BEGIN_NAMESPACE
namespace plan::pipeline {

/// Selects the passes. Passes that are not named here always run.
struct lowering {
  bool merge_backward = false;     ///< I and W next to each other become B
  bool shard_parameters = false;   ///< UNSHARD and RESHARD: for parameters that are sharded over other ranks
  bool reduce_gradients = false;   ///< REDUCE_GRAD: for gradients that are shared with other ranks
  bool defer_receives = false;     ///< for receives that block
  bool update_parameters = false;  ///< UPDATE: the optimizer steps on each stage as soon as its gradients are complete
  bool recompute_activations = false;  ///< R: stages recompute their activations from their inputs
};

/// Runs the passes in order and calls `observe(name of the pass, schedule)` with the result of each, for example to
/// print it. `prove(plan)` must hold. In two directions, `update_parameters` needs `reduce_gradients`.
template <class Observer>
constexpr schedule lower(schedule plan, const lowering& which, Observer&& observe) {
  const auto make = [&](const char* name, schedule made) {
    plan = std::move(made);
    observe(name, static_cast<const schedule&>(plan));
  };
  if (which.merge_backward) make("merge_backward", merge_backward(plan));
  if (which.recompute_activations) make("recompute_activations", recompute_activations(plan));
  if (which.shard_parameters) make("shard_parameters", shard_parameters(plan));
  if (which.reduce_gradients) make("reduce_gradients", reduce_gradients(plan));
  if (which.update_parameters) make("update_parameters", update_parameters(plan));
  make("add_messages", add_messages(plan));
  make("wait_for_sends", wait_for_sends(plan));
  if (which.defer_receives) make("defer_receives", defer_receives(plan));
  return plan;
}

constexpr schedule lower(const schedule& plan, const lowering& which = {}) {
  return lower(plan, which, [](const char*, const schedule&) {});
}

}  // namespace plan::pipeline
HOCKET_END_NAMESPACE
