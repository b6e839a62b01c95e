// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The vocabulary in which every pipeline schedule is written: what one rank does next.
///
/// A model is cut into stages, a batch into microbatches; stages are numbered in the order in which a microbatch passes
/// them. Each rank has a row of actions and runs it in order. The backward pass of a stage has two halves: the gradient
/// of its input, for which the stage before is waiting, and the gradient of its weights, for which nobody is. Schedules
/// that keep them apart fill their idle time with the second. What a stage keeps from its forward pass for its
/// gradients is most of a rank's memory; where that is short, the stage forgets it and forms it again from its input.
///
/// Generators write what is computed (the first four verbs). What is formed again, messages, and when parameters are
/// gathered and gradients reduced, are put in by passes from schedule to schedule: see schedule/lower/.
#pragma once

#include <hocket/core/config.hpp>

#include <cstdint>

HOCKET_BEGIN_NAMESPACE
namespace plan::pipeline {

enum class task_kind : std::uint8_t {
  nothing,
  forward,               ///< the stage's output from its input
  input_gradient,        ///< the gradient of the stage's input
  weight_gradient,       ///< the gradient of the stage's parameters; its input gradient comes before
  backward,              ///< both gradients in one
  recompute,             ///< the forward pass once more, from the stage's input: what its gradients need
  unshard,               ///< gather the stage's parameters
  reshard,               ///< drop what was gathered
  reduce_gradient,       ///< start adding up the stage's gradients over the ranks that share the stage
  wait_reduce_gradient,  ///< until they are added up
  update,                ///< the optimizer's step on the stage's parameters; all its gradients come before
  send_forward,          ///< start sending the stage's output to the next stage
  receive_forward,       ///< the stage's input, from the stage before
  wait_send_forward,     ///< until that output has been sent
  send_backward,         ///< start sending the gradient of the stage's input to the stage before
  receive_backward,      ///< the gradient of the stage's output, from the next stage
  wait_send_backward     ///< until that gradient has been sent
};
inline constexpr int task_kinds = 17;

constexpr bool is_computation(task_kind what) noexcept {
  return what >= task_kind::forward && what <= task_kind::recompute;
}
constexpr bool is_send(task_kind what) noexcept {
  return what == task_kind::send_forward || what == task_kind::send_backward;
}
constexpr bool is_receive(task_kind what) noexcept {
  return what == task_kind::receive_forward || what == task_kind::receive_backward;
}

/// Whether the kind of task is about one microbatch. The others are about a stage alone.
constexpr bool has_microbatch(task_kind what) noexcept {
  return is_computation(what) || what >= task_kind::send_forward;
}

/// One task, of one stage and, where its kind has one, of one microbatch.
struct task {
  task_kind what = task_kind::nothing;
  std::int32_t stage = -1;
  std::int32_t microbatch = -1;

  friend constexpr bool operator==(const task&, const task&) = default;
};

/// What a rank does in one step: one piece of work, or a forward and a backward pass that overlap. A pair begins when
/// the inputs of both are there, and the results of both come at its end.
struct schedule_action {
  task first;
  task second;  ///< `nothing`, if this is no pair

  constexpr bool is_pair() const noexcept { return second.what != task_kind::nothing; }
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
constexpr schedule_action overlapped(const schedule_action& forward, const schedule_action& backward) noexcept {
  return {forward.first, backward.first};
}

/// Calls `visit` with each piece of work of an action.
template <class Visit>
constexpr void for_each_task(const schedule_action& what, Visit visit) {
  visit(what.first);
  if (what.is_pair()) visit(what.second);
}

}  // namespace plan::pipeline
HOCKET_END_NAMESPACE
