// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The vocabulary in which every pipeline schedule is written: what one rank does in one step.
///
/// A model is cut into stages, a batch into microbatches; stages are numbered in the order in which a microbatch passes
/// them. Each rank has a row of actions and runs it in order. The backward pass of a stage has two halves: the gradient
/// of its input, which the previous stage waits for, and the gradient of its weights, which no other stage waits for.
/// Schedules that separate the halves fill their idle time with the second. The activations that a stage stores for its
/// gradients take most of a rank's memory; if memory is short, the stage drops them and recomputes them from its input.
///
/// Generators write the computations (the first four kinds). Passes from schedule to schedule insert recomputation,
/// messages, the gathering of parameters and the reduction of gradients: see schedule/lower/.
#pragma once

#include <hocket/core/config.hpp>

#include <cstdint>

HOCKET_BEGIN_NAMESPACE
namespace plan::pipeline {

/// Kinds of tasks.
enum class task_kind : std::uint8_t {
  nothing,
  forward,               ///< the stage's output from its input
  input_gradient,        ///< the gradient of the stage's input
  weight_gradient,       ///< the gradient of the stage's parameters; its input gradient comes before
  backward,              ///< both gradients in one
  recompute,             ///< the forward pass again, from the stage's input, for its gradients
  unshard,               ///< gather the stage's parameters
  reshard,               ///< drop the gathered parameters
  reduce_gradient,       ///< start adding up the stage's gradients over the ranks that share the stage
  wait_reduce_gradient,  ///< wait until they are added up
  update,                ///< the optimizer's step on the stage's parameters; all its gradients come before
  send_forward,          ///< start sending the stage's output to the next stage
  receive_forward,       ///< the stage's input, from the stage before
  wait_send_forward,     ///< wait until that output has been sent
  send_backward,         ///< start sending the gradient of the stage's input to the stage before
  receive_backward,      ///< the gradient of the stage's output, from the next stage
  wait_send_backward     ///< wait until that gradient has been sent
};
inline constexpr int task_kinds = 17;  ///< number of kinds

/// Returns whether a task of this kind computes.
constexpr bool is_computation(task_kind what) noexcept {
  return what >= task_kind::forward && what <= task_kind::recompute;
}
/// Returns whether a task of this kind sends.
constexpr bool is_send(task_kind what) noexcept {
  return what == task_kind::send_forward || what == task_kind::send_backward;
}
/// Returns whether a task of this kind receives.
constexpr bool is_receive(task_kind what) noexcept {
  return what == task_kind::receive_forward || what == task_kind::receive_backward;
}

/// Returns whether tasks of this kind belong to one microbatch. The others belong only to a stage.
constexpr bool has_microbatch(task_kind what) noexcept {
  return is_computation(what) || what >= task_kind::send_forward;
}

/// One task of one stage and, if its kind has one, of one microbatch.
struct task {
  task_kind kind = task_kind::nothing;  ///< the kind
  std::int32_t stage = -1;              ///< the stage
  std::int32_t microbatch = -1;         ///< the microbatch; -1: none

  friend constexpr bool operator==(const task&, const task&) = default;
};

/// One step of a rank: one task, or a forward and a backward pass that overlap. A pair begins when the inputs of both
/// are available, and the results of both are available at its end.
struct schedule_action {
  task first;   ///< the task, or the forward pass of a pair
  task second;  ///< `nothing` if this is not a pair

  /// Whether two tasks overlap.
  constexpr bool is_pair() const noexcept { return second.kind != task_kind::nothing; }
  friend constexpr bool operator==(const schedule_action&, const schedule_action&) = default;
};

constexpr schedule_action forward(int stage, int microbatch) noexcept {
  return {{task_kind::forward, stage, microbatch}, {}};
}
constexpr schedule_action backward(int stage, int microbatch) noexcept {
  return {{task_kind::backward, stage, microbatch}, {}};
}
constexpr schedule_action input_gradient(int stage, int microbatch) noexcept {
  return {{task_kind::input_gradient, stage, microbatch}, {}};
}
constexpr schedule_action weight_gradient(int stage, int microbatch) noexcept {
  return {{task_kind::weight_gradient, stage, microbatch}, {}};
}
constexpr schedule_action recompute(int stage, int microbatch) noexcept {
  return {{task_kind::recompute, stage, microbatch}, {}};
}
/// A forward and a backward pass that overlap.
constexpr schedule_action overlapped(const schedule_action& forward, const schedule_action& backward) noexcept {
  return {forward.first, backward.first};
}

/// Calls `visit` with each task of an action.
template <class Visit>
constexpr void for_each_task(const schedule_action& what, Visit visit) {
  visit(what.first);
  if (what.is_pair()) visit(what.second);
}

}  // namespace plan::pipeline
HOCKET_END_NAMESPACE
