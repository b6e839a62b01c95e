// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Runs a pipeline schedule: each rank of a communicator executes its row, over any transport.
///
/// All decisions are made before the first step: the schedule is proven, memory is assigned, and each action of this
/// rank's row becomes an instruction with its function and buffers. A step executes the instructions. A receive starts
/// where the row lists it; the computation that uses the received data waits for the receive.
#pragma once

#include <hocket/collective/all_reduce.hpp>
#include <hocket/collective/host/impl/point_to_point.ipp>
#include <hocket/communicator/communicator.hpp>
#include <hocket/communicator/tag_allocator.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/options.hpp>
#include <hocket/core/request.hpp>
#include <hocket/core/text.hpp>
#include <hocket/pipeline/agreement.hpp>
#include <hocket/pipeline/any_stage.hpp>
#include <hocket/pipeline/buffers.hpp>
#include <hocket/pipeline/message_slot.hpp>
#include <hocket/pipeline/program.hpp>
#include <hocket/pipeline/step_operation.hpp>
#include <hocket/pipeline/tags.hpp>
#include <hocket/schedule/lower/lower.hpp>
#include <hocket/schedule/messages.hpp>
#include <hocket/schedule/prove.hpp>
#include <hocket/schedule/prove_messages.hpp>
#include <hocket/schedule/schedule.hpp>
#include <hocket/schedule/schedule_trace.hpp>
#include <hocket/schedule/text.hpp>
#include <hocket/schedule/timeline.hpp>
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

/// Runs one schedule on one rank, any number of times. All ranks of `comm` create their executors together, with equal
/// schedules, and call `run` equally often. A step allocates nothing, except in its stages.
///
/// Several executors may run on one communicator at the same time, beside messages and collectives of the user.
///
/// Simulated ranks share a thread, so none of them may wait: `start` a step on each rank, then run the world, which
/// advances all steps. The times of `measured` are then virtual.
///
/// **Threads.** Use from one thread at a time. **Lifetime.** Stages and communicator must outlive the executor.
template <class Domain>
class executor {
 public:
  /// `stages` are those of this rank, in the order of their numbers. `plan` lists only computations, or is lowered.
  ///
  /// Raises `errc::invalid_argument` on all ranks if schedules differ, can't be proven, or have another number of ranks
  /// than `comm`; if stages are missing or lack a function that their rank's row needs; and if the output of a stage
  /// differs in size or type from the input of the next. On simulated ranks the first step raises the errors that
  /// depend on other ranks. A communicator has 65536 tags, which are assigned in turn: one for each executor, but twice
  /// stages times microbatches if two ranks list their messages in different orders. If the tags would wrap around to
  /// tags of an executor that still exists on a rank, all ranks raise `invalid_argument`, too.
  ///
  /// An exception of a stage that is asked for its sizes or its number is rethrown here and ends the communicator. All
  /// other ranks raise an `error` that names the stage and has the text of the exception. (Simulated ranks share the
  /// thread that gets the exception.)
  ///
  /// A rank with too little memory for the schedule or for the buffers between stages raises `errc::out_of_memory`. All
  /// other ranks raise it too, in their first step at the latest. This failure ends the communicator.
  ///
  /// Cost: two all_reduces, of five numbers per rank and of six per stage.
  executor(const communicator<Domain>& comm, schedule plan, std::vector<any_stage> stages,
           const std::source_location& site = std::source_location::current())
      : comm_(comm), site_(site), plan_(std::move(plan)), stages_(std::move(stages)), schedules_(comm.size()) {
    if constexpr (virtual_time) {
      start_agreement();
    } else {
      agree();
      prepare();
    }
  }
  executor(const executor&) = delete;
  executor& operator=(const executor&) = delete;
  /// If a step is under way, makes it fail on all ranks with `errc::aborted`. Does not wait.
  ~executor() {
    if constexpr (!virtual_time) {
      if (phase_ == phase::running) revoke_unfinished();
    }
  }

  /// Runs one step: all microbatches, forward and backward. Returns when this rank's row is complete.
  ///
  /// An exception of a stage ends the step on all ranks: this rank throws the exception itself; the others throw an
  /// `error` that names the stage and the microbatch and has the text of the exception. A rank whose row is already
  /// complete throws the error in its next call on the communicator: end the training with a barrier.
  void run(const std::source_location& site = std::source_location::current()) {
    start(site);
    if constexpr (virtual_time) {
      for (failure fail; !advance();) {
        if (state().endpoints().broken(fail)) raise(std::move(fail));
      }
    } else {
      static_cast<void>(guarded([&] { return execute([](message& each) { return each.wait(), true; }); }));
    }
  }

  /// Begins a step, which `advance` continues. On simulated ranks the step runs as far as possible in this call, and
  /// then when the world runs; the world's `run` raises its failure. Errors of the step name the line of this call.
  ///
  /// Raises `invalid_argument`, like `run`, while a step is under way; that step can continue.
  void start(const std::source_location& site = std::source_location::current()) {
    if (is_running()) {
      raise(errc::invalid_argument, "a step of this executor is under way: call advance() until it returns true",
            {.operation = "pipeline", .rank = comm_.rank(), .ranks = comm_.size(), .site = site});
    }
    site_ = site;
    phase_ = phase::running;
    measured_.clear();
    position_ = 0;
    begin_ = seconds();
    if constexpr (virtual_time) {
      turn_.emplace(comm_, this, [](void* self) { return static_cast<executor*>(self)->execute_without_waiting(); });
      turn_->poll();
    }
  }

  /// Continues the step as far as possible without waiting for another rank. Returns true when this rank's row is
  /// complete. Raises what `run` raises, and `invalid_argument` if no step was begun or the last one has failed.
  bool advance() {
    if (phase_ == phase::before) refuse("advance: no step has begun: call start() first");
    if constexpr (virtual_time) {
      turn_->poll();
      if (turn_->thrown()) std::rethrow_exception(turn_->thrown());
      return turn_->over();
    } else {
      if (phase_ == phase::failed)
        refuse(
            "advance: the step has failed and has ended the communicator: make a new communicator and a new executor");
      return phase_ == phase::over || execute_without_waiting();
    }
  }

  /// Start and end of each computation of the last step, in seconds from the start of `run`.
  const timeline& measured() const noexcept { return measured_; }
  /// The schedule that runs, including its messages.
  const schedule& plan() const noexcept { return plan_; }
  /// Memory for activations and gradients between stages on this rank, in bytes.
  std::size_t buffer_bytes() const noexcept { return buffers_.total_bytes(); }

 private:
  static constexpr bool virtual_time = transport::keeps_virtual_time<typename Domain::endpoints_type>;
  static constexpr std::uint32_t most_tags = 1U << 16;
  enum class phase : std::uint8_t { before, running, over, failed };
  using message = detail::message_slot<Domain>;
  using task_kind = hocket::plan::pipeline::task_kind;
  using task = hocket::plan::pipeline::task;

  auto& state() const { return hocket::detail::communicator_access::state(comm_); }

  [[noreturn]] void refuse(const std::string& why) const {
    raise(errc::invalid_argument, why,
          {.operation = "pipeline", .rank = comm_.rank(), .ranks = comm_.size(), .site = site_});
  }

  /// Revokes the communicator. Otherwise other ranks would wait for messages of the step until their deadlines.
  HOCKET_COLD void revoke_unfinished() noexcept {
#if HOCKET_HAS_EXCEPTIONS
    try {
      comm_.revoke("an executor was destroyed while a step was under way", site_);
    } catch (const std::exception&) {  // another thread is in a call: the other ranks wait until their deadlines
    }
#else
    comm_.revoke("an executor was destroyed while a step was under way", site_);
#endif
  }

  // ---- before the first step ----

  /// Returns the error in the schedule; empty if it can run. Adds the messages to a schedule that lacks them.
  std::string schedule_error() {
    namespace schedules = hocket::plan::pipeline;
    if (plan_.ranks() != comm_.size()) {
      return hocket::detail::concat(
          {"the schedule is for ", plan_.ranks(), " ranks, the communicator has ", comm_.size()});
    }
    if (const schedules::schedule_proof found = schedules::prove(plan_); !found) return found.message();
    if (!schedules::has_messages(plan_)) plan_ = schedules::lower(plan_);
    const schedules::schedule_proof found = schedules::prove_messages(plan_, schedules::unbounded);
    return found ? "" : found.message();
  }

  /// Returns the error in the stages of this rank; empty if they fit the schedule.
  std::string stages_error() {
    for (int stage = 0; stage < plan_.stages(); ++stage) {
      if (plan_.placement.holds(comm_.rank(), stage)) numbers_.push_back(stage);
    }
    if (numbers_.size() != stages_.size()) {
      return hocket::detail::concat({"rank ", comm_.rank(), " was given ", stages_.size(),
                                     " stages; the schedule puts ", numbers_.size(), " on it"});
    }
    for (std::size_t i = 0; i < stages_.size(); ++i) {
      if (const std::string wrong = number_error(i); !wrong.empty()) return wrong;
    }
    std::string wrong;
    for (const auto& each : plan_.of(comm_.rank())) {
      hocket::plan::pipeline::for_each_task(each, [&](const task& what) {
        if (!wrong.empty()) return;
        if (what.kind == task_kind::weight_gradient && !stage_of(what.stage).has_gradients_apart()) {
          wrong = hocket::detail::concat(
              {"stage ", what.stage, " has only backward; this schedule needs input_gradient and weight_gradient"});
        } else if (what.kind == task_kind::recompute && !stage_of(what.stage).has_recompute()) {
          wrong = hocket::detail::concat(
              {"stage ", what.stage, " lacks forget or recompute; this schedule recomputes its activations"});
        } else if (!has_microbatch(what.kind) && !stage_of(what.stage).has(what.kind)) {
          wrong = hocket::detail::concat({"stage ", what.stage, " lacks ", function_of(what.kind),
                                          "; this schedule has ", hocket::plan::pipeline::to_string(what)});
        }
      });
    }
    return wrong;
  }

  /// Returns the error in the number of the stage at `place`; empty if it has the right number or none.
  std::string number_error(std::size_t place) {
    const int right = numbers_[place];
    const std::optional<int> given = ask(right, "for its number", [&] { return stages_[place].number(); });
    if (!given || *given == right) return "";
    return hocket::detail::concat({"rank ", comm_.rank(), " was given stage ", *given, " in the place of stage ", right,
                                   ": list the stages of a rank in the order of their numbers"});
  }

  /// Returns the result of `question`, which calls a stage. If it throws, the other ranks are informed.
  template <class Question>
  auto ask(int stage, const char* what, Question question) {
    return with_error_text(
        [&] {
          return hocket::detail::concat({"stage ", stage, " failed when it was asked ", what});
        },
        question);
  }

  /// Checks what this rank can check alone, and publishes the result, so that no rank waits for a rank with an error.
  void publish_schedule() {
    while_memory_lasts([&] { wrong_ = schedule_error(); });
    if (wrong_.empty()) wrong_ = stages_error();
    schedules_.describe_own(comm_.rank(), plan_, wrong_.empty(), state().tags().reach());
  }

  void publish_forms() {
    forms_ = detail::form_round(plan_.placement);
    for (std::size_t i = 0; i < numbers_.size() && wrong_.empty(); ++i) {
      ask(numbers_[i], "for its sizes", [&] {
        forms_.describe_own(plan_.placement, comm_.rank(), numbers_[i], stages_[i].input(), stages_[i].output());
      });
    }
  }

  void refuse_if(const std::string& wrong) const {
    if (!wrong.empty()) refuse(wrong);
  }

  void agree() {
    publish_schedule();
    all_reduce(comm_, in_place(schedules_.numbers()), std::plus<>{}, options<>{}, site_);
    refuse_if(wrong_);
    refuse_if(schedules_.error_text());
    publish_forms();
    all_reduce(comm_, in_place(forms_.numbers()), std::plus<>{}, options<>{}, site_);
    refuse_if(forms_.error_text(plan_.placement));
    take_tags();
  }

  /// For simulated ranks, which can't wait: starts both all_reduces at the same time; the first step completes them.
  void start_agreement() {
    while_memory_lasts([&] { wrong_ = schedule_error(); });
    refuse_if(wrong_);
    wrong_ = stages_error();
    schedules_.describe_own(comm_.rank(), plan_, wrong_.empty(), 0);
    publish_forms();
    take_tags();
    agreements_[0] = all_reduce_async(comm_, in_place(schedules_.numbers()), std::plus<>{}, options<>{}, site_);
    agreements_[1] = all_reduce_async(comm_, in_place(forms_.numbers()), std::plus<>{}, options<>{}, site_);
  }

  /// Takes tags that no other executor of this communicator has on any rank. In virtual time receives are performed
  /// late, so their order may differ from the row's, and there are 2^32 tags.
  void take_tags() {
    tags_apart_ = virtual_time || !detail::are_in_order(plan_);
    const std::uint32_t count = tags_apart_ ? detail::crossings_of(plan_) : 1;
    if (!virtual_time && count > most_tags) {
      refuse(hocket::detail::concat(
          {"two ranks list the messages between them in different orders; such a schedule can have at most ", most_tags,
           " messages, not ", count}));
    }
    if (!virtual_time && schedules_.reach() + count > most_tags) {
      refuse(hocket::detail::concat(
          {"the executors created on this communicator since the oldest one that a rank still has use ",
           schedules_.reach(), " of its ", most_tags, " tags, and this one needs ", count,
           ": destroy the oldest executor first, or create it on a separate communicator"}));
    }
    tags_ = hocket::detail::tag_lease(state().tags(), count);
  }

  /// Calls `now`, which needs much memory. If memory runs out, revokes the communicator, so that no rank waits.
  template <class Do>
  void while_memory_lasts(Do now) {
    const hocket::detail::call_site call{"pipeline", site_, state().timeout()};
    hocket::detail::deliver(
        hocket::detail::if_memory_lasts(state(), call, hocket::detail::no_place{}, [&]() -> outcome {
          now();
          return {};
        }));
  }

  /// Prepares the steps, after all ranks have agreed.
  void prepare() {
    while_memory_lasts([&] { make_ready(); });
  }

  void make_ready() {
    program_ = detail::compiler(plan_, comm_.rank(), numbers_, forms_.boundary_bytes(), tags_apart_).compile();
    buffers_ = buffers(program_.lifetimes);
    messages_ = std::vector<message>(program_.requests);
    measured_.reserve(plan_.of(comm_.rank()).size());
    state().sends().reserve(messages_.size());
    state().receives().reserve(messages_.size());
  }

  /// Returns whether the step can begin.
  bool prepared() {
    if constexpr (virtual_time) {
      if (agreed_) return true;
      // The call may come from within a poll of all operations of this rank, by another executor's step.
      if (!state().enter_without_reads()) return false;
      state().leave();
      if (!agreements_[0].test()) return false;
      agreements_[0].wait();
      refuse_if(wrong_);
      refuse_if(schedules_.error_text());
      if (!agreements_[1].test()) return false;
      agreements_[1].wait();
      refuse_if(forms_.error_text(plan_.placement));
      agreed_ = true;  // the requests are not destroyed, because the world is iterating over the active operations
      prepare();
      begin_ = seconds();
    }
    return true;
  }

  const any_stage& stage_of(int stage) const {
    const auto found = std::lower_bound(numbers_.begin(), numbers_.end(), stage);
    return stages_[static_cast<std::size_t>(found - numbers_.begin())];
  }

  // ---- a step ----

  /// Returns whether a step has begun and has neither completed nor failed. The simulated world may end a step.
  bool is_running() const {
    if constexpr (virtual_time) return turn_ && !turn_->over();
    else return phase_ == phase::running;
  }

  /// Calls `step`, which continues a step. Returns true when the step is complete. Throws the first cause of a failure.
  template <class Step>
  bool guarded(Step step) {
#if HOCKET_HAS_EXCEPTIONS
    try {
      if (step()) phase_ = phase::over;
    } catch (const error& problem) {
      phase_ = phase::failed;
      if (problem.code() == errc::revoked) throw_first_cause();
      throw;
    } catch (...) {
      phase_ = phase::failed;
      throw;
    }
#else
    if (step()) phase_ = phase::over;
#endif
    return phase_ == phase::over;
  }

  bool execute_without_waiting() {
    return guarded([&] { return prepared() && execute([](message& each) { return each.test(); }); });
  }

  /// Executes the rest of the step, up to a message for which `arrived` returns false.
  template <class Arrived>
  bool execute(Arrived arrived) {
    for (; position_ < program_.instructions.size(); ++position_) {
      const detail::instruction& each = program_.instructions[position_];
      if (is_send(each.what.kind) || is_receive(each.what.kind)) {
        start_message(each);
      } else {
        for (const std::size_t request : {each.request, each.request_of_second}) {
          if (request != detail::none && !arrived(messages_[request])) return false;
        }
        compute(each);
      }
    }
    return true;
  }

#if HOCKET_HAS_EXCEPTIONS
  /// Throws the cause of a failure, if a message got it. The communicator reports the cause only once, perhaps to a
  /// message for which no instruction has waited yet; later calls get only `revoked`.
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

  /// Starts a message, on another channel than that of the user's `send` and `recv`.
  void start_message(const detail::instruction& each) {
    hocket::detail::message_spec spec;
    spec.channel = transport::internal_channel;
    spec.tag = virtual_time ? tags_.first() + each.tag : (tags_.first() + each.tag) % most_tags;
    if (is_send(each.what.kind)) {
      spec.name = "send of a pipeline";
      spec.out = buffers_.of(each.message);
      spec.to = each.peer;
    } else {
      spec.name = "receive of a pipeline";
      spec.in = buffers_.of(each.message);
      spec.from = each.peer;
    }
    messages_[each.request].start(comm_, spec, site_);
  }

  void compute(const detail::instruction& each) {
    if (each.what.kind == task_kind::wait_send_forward || each.what.kind == task_kind::wait_send_backward) return;
    const double begin = now();
    call_stage(each);
    if (hocket::plan::pipeline::is_computation(each.what.kind)) note(each, begin, now());
  }

  void call_stage(const detail::instruction& each) {
    const auto described = [&] {
      const task& done = each.what;
      return hocket::detail::concat({"stage ", done.stage, " failed in ", hocket::plan::pipeline::to_string(done),
                                     hocket::plan::pipeline::has_microbatch(done.kind)
                                         ? hocket::detail::concat({", microbatch ", done.microbatch})
                                         : ""});
    };
    with_error_text(described, [&] { call_stage_now(each); });
  }

  /// Calls user code. If it throws, revokes the communicator with the texts of `described()` and of the exception.
  template <class Describe, class Do>
  auto with_error_text(Describe described, Do now) {
#if HOCKET_HAS_EXCEPTIONS
    try {
      return now();
    } catch (const std::exception& problem) {
      state().revoke(make_failure(errc::aborted, hocket::detail::concat({described(), ": ", problem.what()})));
      throw;
    } catch (...) {
      state().revoke(make_failure(errc::aborted, described() + ": an exception that is not a std::exception"));
      throw;
    }
#else
    return now();
#endif
  }

  void call_stage_now(const detail::instruction& each) {
    const int m = each.what.microbatch;
    switch (each.what.kind) {
      case task_kind::forward:
        stages_[each.stage].forward(m, memory(each.in), memory(each.out));
        if (each.forgets) stages_[each.stage].forget(m);
        break;
      case task_kind::backward:
        stages_[each.stage].backward(m, memory(each.in), memory(each.out_gradient), memory(each.in_gradient));
        break;
      case task_kind::input_gradient:
        stages_[each.stage].input_gradient(m, memory(each.in), memory(each.out_gradient), memory(each.in_gradient));
        break;
      case task_kind::weight_gradient:
        stages_[each.stage].weight_gradient(m, memory(each.in), memory(each.out_gradient));
        break;
      case task_kind::recompute: stages_[each.stage].recompute(m, memory(each.in)); break;
      default: stages_[each.stage].on(each.what.kind); break;
    }
  }

  std::span<std::byte> memory(std::size_t number) const {
    return number == detail::none ? std::span<std::byte>() : buffers_.of(number);
  }

  double now() const { return seconds() - begin_; }

  /// Returns the seconds since a fixed point in the past.
  double seconds() const {
    if constexpr (virtual_time) {
      return state().endpoints().now();
    } else {
      return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
    }
  }

  /// Records the called function and its stage, which may differ from the task that the row lists.
  void note(const detail::instruction& each, double begin, double end) {
    const task done{each.what.kind, numbers_[each.stage], each.what.microbatch};
    if (!measured_.empty() && measured_.back().index == each.step) {
      measured_.back().what.second = done;
      measured_.back().end = end;
    } else {
      measured_.push_back({comm_.rank(), each.step, {done, {}}, begin, end});
    }
  }

  const communicator<Domain>& comm_;
  std::source_location site_;  ///< the caller's line
  schedule plan_;
  std::vector<any_stage> stages_;  ///< of this rank
  std::vector<int> numbers_;       ///< of these stages
  std::string wrong_;              ///< the error in this rank's arguments; empty if none
  detail::schedule_round schedules_;
  detail::form_round forms_;
  request agreements_[2];  ///< simulated ranks: the two rounds
  bool agreed_ = false;
  bool tags_apart_ = false;         ///< whether the messages of a step have different tags
  hocket::detail::tag_lease tags_;  ///< of this executor
  detail::program program_;
  buffers buffers_;
  std::vector<message> messages_;
  timeline measured_;
  std::size_t position_ = 0;     ///< of the next instruction
  phase phase_ = phase::before;  ///< of the last step
  double begin_ = 0;
  std::optional<detail::step_operation<Domain>> turn_;  ///< simulated ranks: the step under way
};

}  // namespace pipeline
HOCKET_END_NAMESPACE
