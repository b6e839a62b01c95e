// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Runs a pipeline schedule: the ranks of a communicator do what their rows say, over any transport.
///
/// Everything is decided before the first step: the schedule is proven, memory is dealt out, and each action of this
/// rank's row becomes a record of what to call on which buffers. A step then walks through the records. Receives are
/// posted where the row says, ahead of their use, and waited for where it is computed with what they bring.
#pragma once

#include <hocket/collective/all_reduce.hpp>
#include <hocket/communicator/communicator.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/request.hpp>
#include <hocket/pipeline/buffers.hpp>
#include <hocket/pipeline/message_slot.hpp>
#include <hocket/pipeline/program.hpp>
#include <hocket/pipeline/stage.hpp>
#include <hocket/pipeline/turn.hpp>
#include <hocket/plan/pipeline/clock.hpp>
#include <hocket/plan/pipeline/lower.hpp>
#include <hocket/plan/pipeline/messages.hpp>
#include <hocket/plan/pipeline/prove.hpp>
#include <hocket/plan/pipeline/prove_messages.hpp>
#include <hocket/plan/pipeline/schedule.hpp>
#include <hocket/plan/pipeline/text.hpp>
#include <hocket/plan/pipeline/timeline.hpp>
#include <hocket/transport/concept.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <source_location>
#include <span>
#include <string>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace pipeline {

using plan::pipeline::schedule;
using plan::pipeline::timeline;

/// Runs one schedule on one rank, again and again. All ranks of `comm` make theirs together, with equal schedules, and
/// call `run` equally often. A step allocates nothing, apart from what its stages do.
///
/// Simulated ranks share a thread, so none may wait there: `start` a step on each, then let the world run; it makes all
/// of them go on. The times of `measured` are virtual then.
///
/// **Threads.** As the communicator: one at a time. **Lifetime.** Stages and communicator must outlive it.
template <class Wire>
class executor {
 public:
  /// `stages`: those of this rank, in the order of their numbers. `plan` lists what is computed, or is lowered already.
  ///
  /// Raises `errc::invalid_argument` on all ranks where the schedule does not hold its proof or has not as many ranks
  /// as `comm`, where stages are missing or cannot do what their rank's row asks, and where what one stage gives is not as
  /// large as what the next one takes; of simulated ranks, their first step raises what needs the others to be known.
  /// Cost: one all_reduce of two numbers per stage.
  executor(const communicator<Wire>& comm, schedule plan, std::vector<any_stage> stages)
      : comm_(comm), plan_(std::move(plan)), stages_(std::move(stages)) {
    check_schedule();
    gather_sizes();
    if constexpr (virtual_time) {
      agreement_ = all_reduce_async(comm_, in_place(sizes_), std::plus<>{});
    } else {
      all_reduce(comm_, in_place(sizes_), std::plus<>{});
      prepare();
    }
  }
  executor(const executor&) = delete;
  executor& operator=(const executor&) = delete;

  /// One step: all microbatches, forward and backward. Returns when this rank's row is done.
  ///
  /// What a stage throws ends the step on all ranks: here with the exception itself, on the others with an `error` that
  /// says which stage and microbatch it was, and what it said.
  void run() {
    start();
    if constexpr (virtual_time) {
      auto& state = hocket::detail::communicator_access::state(comm_);
      for (failure fail; !advance();) {
        if (state.port().broken(fail)) raise(std::move(fail));
      }
    } else {
      static_cast<void>(guarded([&] { return go_on([](message& each) { return each.wait(), true; }); }));
    }
  }

  /// Begins a step that `advance` goes on with. Of simulated ranks, it goes at once as far as it can, and then with the
  /// world, whose `run` raises what a step fails with.
  void start() {
    measured_.clear();
    position_ = 0;
    begin_ = seconds();
    if constexpr (virtual_time) {
      turn_.emplace(comm_, this, [](void* self) { return static_cast<executor*>(self)->go_on_without_waiting(); });
      turn_->poll();
    }
  }

  /// Goes on with the step as far as that is possible without waiting for another rank; true when this rank's row is
  /// done. Raises what `run` raises.
  bool advance() {
    if constexpr (virtual_time) {
      turn_->poll();
      if (turn_->thrown()) std::rethrow_exception(turn_->thrown());
      return turn_->over();
    } else {
      return go_on_without_waiting();
    }
  }

  /// When each computation of the last step began and ended, in seconds from the begin of `run`.
  const timeline& measured() const noexcept { return measured_; }
  /// The schedule as it is run, with its messages.
  const schedule& plan() const noexcept { return plan_; }
  /// What activations and gradients between stages take on this rank.
  std::size_t buffer_bytes() const noexcept { return buffers_.total_bytes(); }

 private:
  static constexpr bool virtual_time = transport::keeps_virtual_time<typename Wire::port_type>;
  using message = detail::message_slot<Wire>;
  using verb = hocket::plan::pipeline::verb;
  using work = hocket::plan::pipeline::work;

  [[noreturn]] static void refuse(const std::string& why) { raise(errc::invalid_argument, "pipeline: " + why); }

  // ---- before the first step ----

  void check_schedule() {
    namespace schedules = hocket::plan::pipeline;
    if (plan_.ranks() != comm_.size()) {
      refuse("the schedule is for " + std::to_string(plan_.ranks()) + " ranks, the communicator has " +
             std::to_string(comm_.size()));
    }
    if (const schedules::proof found = schedules::prove(plan_); !found) refuse(found.message());
    if (!schedules::has_messages(plan_)) plan_ = schedules::lower(plan_);
    if (const schedules::proof found = schedules::prove_messages(plan_, schedules::unbounded); !found) {
      refuse(found.message());
    }
  }

  /// What is wrong with the stages of this rank, in words; nothing, if they fit the schedule.
  std::string judge_stages() {
    for (int stage = 0; stage < plan_.stages(); ++stage) {
      if (plan_.placement.holds(comm_.rank(), stage)) numbers_.push_back(stage);
    }
    if (numbers_.size() != stages_.size()) {
      return "rank " + std::to_string(comm_.rank()) + " was given " + std::to_string(stages_.size()) +
             " stages; the schedule puts " + std::to_string(numbers_.size()) + " on it";
    }
    std::string wrong;
    for (const auto& each : plan_.of(comm_.rank())) {
      hocket::plan::pipeline::for_each_work(each, [&](const work& what) {
        if (what.what != verb::weight_gradient || stage_of(what.stage).has_gradients_apart()) return;
        wrong = "stage " + std::to_string(what.stage) +
                " has backward alone; this schedule needs input_gradient and weight_gradient";
      });
    }
    return wrong;
  }

  /// So that all ranks learn of stages that do not fit, before any message is cut: by stage the bytes of its input and
  /// output, then how many ranks have found something wrong.
  void gather_sizes() {
    wrong_ = judge_stages();
    sizes_.assign(2 * static_cast<std::size_t>(plan_.stages()) + 1, 0);
    sizes_.back() = wrong_.empty() ? 0 : 1;
    for (std::size_t i = 0; i < numbers_.size() && wrong_.empty(); ++i) {
      const int stage = numbers_[i];
      if (plan_.placement.rank_of(stage, 0) != comm_.rank()) continue;  // the copy for the other direction
      sizes_[2 * static_cast<std::size_t>(stage)] = stages_[i].input_bytes();
      sizes_[2 * static_cast<std::size_t>(stage) + 1] = stages_[i].output_bytes();
    }
  }

  /// When all ranks have told their sizes.
  void prepare() {
    check_sizes();
    program_ = detail::compiler(plan_, comm_.rank(), numbers_, sizes_of_boundaries()).compile();
    buffers_ = buffers(program_.lifetimes);
    messages_ = std::vector<message>(program_.requests);
    measured_.reserve(plan_.of(comm_.rank()).size());
    auto& state = hocket::detail::communicator_access::state(comm_);
    state.active().reserve(state.active().size() + messages_.size());
    state.messages().reserve(state.messages().size() + messages_.size());
  }

  /// Whether the step can begin.
  bool prepared() {
    if constexpr (virtual_time) {
      if (agreed_) return true;
      if (!agreement_.test()) return false;
      agreement_.wait();
      agreed_ = true;  // the request is kept: the world is just looking through those that are under way
      prepare();
      begin_ = seconds();
    }
    return true;
  }

  void check_sizes() {
    if (!wrong_.empty()) refuse(wrong_);
    if (sizes_.back() != 0) refuse("another rank has stages that do not fit the schedule; its error says which");
    sizes_.pop_back();
    for (int stage = 0; stage <= plan_.stages(); ++stage) {
      const std::uint64_t given = stage == 0 ? 0 : sizes_[2 * static_cast<std::size_t>(stage) - 1];
      const std::uint64_t taken = stage == plan_.stages() ? 0 : sizes_[2 * static_cast<std::size_t>(stage)];
      if (given == taken) continue;
      if (stage == 0) refuse("the first stage fetches its microbatches itself: its input_size() must be 0");
      if (stage == plan_.stages()) refuse("the last stage computes the loss itself: its output_size() must be 0");
      refuse("stage " + std::to_string(stage - 1) + " gives " + std::to_string(given) +
             " bytes per microbatch, stage " + std::to_string(stage) + " takes " + std::to_string(taken));
    }
  }

  const any_stage& stage_of(int stage) const {
    const auto found = std::lower_bound(numbers_.begin(), numbers_.end(), stage);
    return stages_[static_cast<std::size_t>(found - numbers_.begin())];
  }

  std::vector<std::size_t> sizes_of_boundaries() const {
    std::vector<std::size_t> bytes;
    for (std::size_t stage = 0; stage + 1 < sizes_.size() / 2; ++stage) bytes.push_back(sizes_[2 * stage + 1]);
    return bytes;
  }

  // ---- a step ----

  /// Calls `step`, which goes on with a step. Of a failure, its first cause comes out.
  template <class Step>
  bool guarded(Step step) {
#if HOCKET_HAS_EXCEPTIONS
    try {
      return step();
    } catch (const error& problem) {
      if (problem.code() == errc::revoked) throw_first_cause();
      throw;
    }
#else
    return step();
#endif
  }

  bool go_on_without_waiting() {
    return guarded([&] { return prepared() && go_on([](message& each) { return each.test(); }); });
  }

  /// Does what is left of the step, up to a message for which `arrived` says that it is not there.
  template <class Arrived>
  bool go_on(Arrived arrived) {
    for (; position_ < program_.instructions.size(); ++position_) {
      const detail::instruction& each = program_.instructions[position_];
      if (is_send(each.what.what) || is_receive(each.what.what)) {
        start_message(each);
      } else {
        if (each.request != detail::none && !arrived(messages_[each.request])) return false;
        compute(each);
      }
    }
    return true;
  }

#if HOCKET_HAS_EXCEPTIONS
  /// A failure is told once: it may have ended a message that nobody has waited for yet, and what begins after that only
  /// hears that there was one.
  void throw_first_cause() {
    for (message& each : messages_) {
      try {
        each.wait();
      } catch (const error& problem) {
        if (problem.code() != errc::revoked) throw;
      }
    }
  }
#endif

  /// Where tags come round again, the order of messages keeps them apart. In virtual time a message is asked for late.
  void start_message(const detail::instruction& each) {
    hocket::detail::message_job job;
    job.tag = virtual_time ? each.tag : each.in_order ? 0 : each.tag & 0xffffU;
    if (is_send(each.what.what)) {
      job.name = "send of a pipeline";
      job.out = buffers_.of(each.message);
      job.to = each.peer;
    } else {
      job.name = "receive of a pipeline";
      job.in = buffers_.of(each.message);
      job.from = each.peer;
    }
    messages_[each.request].start(comm_, job, std::source_location::current());
  }

  void compute(const detail::instruction& each) {
    if (each.what.what == verb::wait_send_forward || each.what.what == verb::wait_send_backward) return;
    const double begin = now();
    call_stage(each);
    if (hocket::plan::pipeline::is_computation(each.what.what)) note(each, begin, now());
  }

  void call_stage(const detail::instruction& each) {
#if HOCKET_HAS_EXCEPTIONS
    try {
      call_stage_now(each);
    } catch (const std::exception& problem) {
      tell_others(each, problem.what());
      throw;
    } catch (...) {
      tell_others(each, "an exception of another type than std::exception");
      throw;
    }
#else
    call_stage_now(each);
#endif
  }

  void call_stage_now(const detail::instruction& each) {
    const int m = each.what.microbatch;
    switch (each.what.what) {
      case verb::forward: stages_[each.stage].forward(m, memory(each.in), memory(each.out)); break;
      case verb::backward:
        stages_[each.stage].backward(m, memory(each.in), memory(each.out_gradient), memory(each.in_gradient));
        break;
      case verb::input_gradient:
        stages_[each.stage].input_gradient(m, memory(each.in), memory(each.out_gradient), memory(each.in_gradient));
        break;
      case verb::weight_gradient:
        stages_[each.stage].weight_gradient(m, memory(each.in), memory(each.out_gradient));
        break;
      default: stages_[each.stage].on(each.what.what); break;
    }
  }

  void tell_others(const detail::instruction& each, const std::string& what) {
    hocket::detail::communicator_access::state(comm_).revoke(
        make_failure(errc::aborted, "stage " + std::to_string(each.what.stage) + " failed in " +
                                        hocket::plan::pipeline::to_string(each.what) + ", microbatch " +
                                        std::to_string(each.what.microbatch) + ": " + what));
  }

  std::span<std::byte> memory(std::size_t number) const {
    return number == detail::none ? std::span<std::byte>() : buffers_.of(number);
  }

  double now() const { return seconds() - begin_; }

  /// Since some moment that lies in the past.
  double seconds() const {
    if constexpr (virtual_time) {
      return hocket::detail::communicator_access::state(comm_).port().now();
    } else {
      return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
    }
  }

  void note(const detail::instruction& each, double begin, double end) {
    const auto& what = plan_.of(comm_.rank())[each.step];
    if (!measured_.empty() && measured_.back().index == each.step) {
      measured_.back().end = end;  // the second half of a pair
      return;
    }
    measured_.push_back({comm_.rank(), each.step, what, begin, end});
  }

  const communicator<Wire>& comm_;
  schedule plan_;
  std::vector<any_stage> stages_;     ///< of this rank
  std::vector<int> numbers_;          ///< of these stages
  std::vector<std::uint64_t> sizes_;  ///< by stage: bytes of input and output per microbatch
  std::string wrong_;                 ///< with the stages of this rank, in words
  request agreement_;                 ///< of simulated ranks: on the sizes of all
  bool agreed_ = false;
  detail::program program_;
  buffers buffers_;
  std::vector<message> messages_;
  timeline measured_;
  std::size_t position_ = 0;  ///< of the next instruction
  double begin_ = 0;
  std::optional<detail::turn<Wire>> turn_;  ///< of simulated ranks: the step under way
};

}  // namespace pipeline
HOCKET_END_NAMESPACE
