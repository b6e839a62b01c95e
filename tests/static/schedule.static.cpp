// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The compiler makes, proves and prices pipeline schedules.
#include <hocket/schedule/dual_pipe.hpp>
#include <hocket/schedule/gpipe.hpp>
#include <hocket/schedule/interleaved.hpp>
#include <hocket/schedule/lower/lower.hpp>
#include <hocket/schedule/one_forward_one_backward.hpp>
#include <hocket/schedule/prove.hpp>
#include <hocket/schedule/prove_messages.hpp>
#include <hocket/schedule/schedule_trace.hpp>
#include <hocket/schedule/v_half.hpp>
#include <hocket/schedule/zero_bubble_v.hpp>

#include <utility>

namespace pipeline = hocket::plan::pipeline;
using pipeline::prove;

static_assert(prove(pipeline::gpipe(4, 8)));
static_assert(prove(pipeline::one_forward_one_backward(4, 8)));
static_assert(prove(pipeline::breadth_first(4, 8, 2)));
static_assert(prove(pipeline::interleaved(4, 8, 2)));
static_assert(prove(pipeline::zero_bubble(4, 8)));
static_assert(prove(pipeline::interleaved_zero_bubble(4, 8, 2)));
static_assert(prove(pipeline::zero_bubble_v(4, 8)));
static_assert(prove(pipeline::v_half(4, 8)));
static_assert(prove(pipeline::v_min(4, 8)));
static_assert(prove(pipeline::dual_pipe(4, 8)));
static_assert(prove(pipeline::dual_pipe_v(4, 8)));

static_assert(pipeline::run_clock(pipeline::one_forward_one_backward(4, 8)).makespan == 33);
static_assert(pipeline::peak_activations(pipeline::one_forward_one_backward(4, 8), 0) == 4);

// The violations of a schedule are constant expressions too.
constexpr pipeline::schedule_violation without_the_last_backward() {
  pipeline::schedule plan = pipeline::gpipe(2, 2);
  plan.of(1).pop_back();
  return prove(plan).what;
}
static_assert(without_the_last_backward() == pipeline::schedule_violation::missing);

constexpr pipeline::schedule_violation waiting_for_each_other() {
  pipeline::schedule plan = pipeline::gpipe(2, 2);
  std::swap(plan.of(0)[1], plan.of(0)[2]);  // a backward pass before the forward pass that the last stage must do first
  std::swap(plan.of(1)[0], plan.of(1)[1]);
  return prove(plan).what;
}
static_assert(waiting_for_each_other() == pipeline::schedule_violation::deadlock);

// The compiler also proves the messages of a schedule.
static_assert(pipeline::prove_messages(pipeline::lower(pipeline::one_forward_one_backward(4, 8))));
static_assert(pipeline::prove_messages(pipeline::lower(pipeline::zero_bubble_v(4, 8))));
static_assert(pipeline::prove_messages(pipeline::lower(pipeline::dual_pipe_v(2, 4))));
