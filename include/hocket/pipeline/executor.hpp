// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Runs a pipeline schedule: the ranks of a communicator do what their rows say, over any transport.
///
/// Everything is decided before the first step: the schedule is proven, memory is dealt out, and each action of this
/// rank's row becomes a record of what to call on which buffers. A step then walks through the records. Receives are
/// posted where the row says, ahead of their use, and waited for where it is computed with what they bring.
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
#include <hocket/pipeline/buffers.hpp>
#include <hocket/pipeline/message_slot.hpp>
#include <hocket/pipeline/program.hpp>
#include <hocket/pipeline/stage.hpp>
#include <hocket/pipeline/step_operation.hpp>
#include <hocket/pipeline/tags.hpp>
#include <hocket/schedule/lower/lower.hpp>
#include <hocket/schedule/messages.hpp>
#include <hocket/schedule/prove.hpp>
#include <hocket/schedule/prove_messages.hpp>
#include <hocket/schedule/schedule.hpp>
#include <hocket/schedule/schedule_clock.hpp>
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

/// Runs one schedule on one rank, again and again. All ranks of `comm` make theirs together, with equal schedules, and
/// call `run` equally often. A step allocates nothing, apart from what its stages do.
///
/// Several may be under way on one communicator at once, beside messages and collectives of the user.
///
/// Simulated ranks share a thread, so none may wait there: `start` a step on each, then let the world run; it makes all
/// of them go on. The times of `measured` are virtual then.
///
/// **Threads.** As the communicator: one at a time. **Lifetime.** Stages and communicator must outlive it.
template <class Domain>
class executor {
 public:
  /// `stages`: those of this rank, in the order of their numbers. `plan` lists what is computed, or is lowered already.
  ///
  /// Raises `errc::invalid_argument` on all ranks where schedules differ, do not hold their proof or have not as many
  /// ranks as `comm`, where stages are missing or cannot do what their rank's row asks, and where what one stage gives
  /// is not of the number and type of what the next one takes; of simulated ranks, their first step raises what needs
  /// the others to be known. A communicator has 65536 tags, which are dealt out in turn: one for each executor, and
  /// twice stages times microbatches where two ranks list their messages in different orders. Raises `invalid_argument`
  /// on all ranks, too, where it would come round to those of an executor that some rank still has.
  ///
  /// What a stage throws when it is asked for its sizes or its number comes out here, and ends the communicator: on all
  /// other ranks with an `error` that says which stage it was, and what it said. (Simulated ranks share the thread that
  /// it comes out of.)
  ///
  /// A rank on which there is too little memory for the schedule, or for what lies between stages, raises
  /// `errc::out_of_memory`, and so do all others, at the latest in their first step. That ends the communicator.
  ///
  /// Cost: two all_reduces, of five numbers per rank and of six per stage.
  executor(const communicator<Domain>& comm, schedule plan, std::vector<any_stage> stages,
           const std::source_location& site = std::source_location::current())
      : comm_(comm), site_(site), plan_(std::move(plan)), stages_(std::move(stages)), schedules_(comm.size()) {
    if constexpr (virtual_time) {
      begin_to_agree();
    } else {
      agree();
      prepare();
    }
  }
  executor(const executor&) = delete;
  executor& operator=(const executor&) = delete;
  /// A step that is under way ends on all ranks, with `errc::aborted`. Does not wait.
  ~executor() {
    if constexpr (!virtual_time) {
      if (phase_ == phase::under_way) give_up();
    }
  }

  /// One step: all microbatches, forward and backward. Returns when this rank's row is done.
  ///
  /// What a stage throws ends the step on all ranks: here with the exception itself, on the others with an `error` that
  /// says which stage and microbatch it was, and what it said. A rank whose row is done by then has returned, and hears of
  /// it in its next call on the communicator: let a barrier end the training.
  void run(const std::source_location& site = std::source_location::current()) {
    start(site);
    if constexpr (virtual_time) {
      for (failure fail; !advance();) {
        if (state().endpoints().broken(fail)) raise(std::move(fail));
      }
    } else {
      static_cast<void>(guarded([&] { return go_on([](message& each) { return each.wait(), true; }); }));
    }
  }

  /// Begins a step that `advance` goes on with. Of simulated ranks, it goes at once as far as it can, and then with the
  /// world, whose `run` raises what a step fails with. Errors of the step name the line of this call.
  ///
  /// Raises `invalid_argument`, as `run` does, while a step is under way, which can go on after that.
  void start(const std::source_location& site = std::source_location::current()) {
    if (is_under_way()) {
      raise(errc::invalid_argument,
            "a step of this executor is under way: call advance() until it says that this one is over",
            {.operation = "pipeline", .rank = comm_.rank(), .ranks = comm_.size(), .site = site});
    }
    site_ = site;
    phase_ = phase::under_way;
    measured_.clear();
    position_ = 0;
    begin_ = seconds();
    if constexpr (virtual_time) {
      turn_.emplace(comm_, this, [](void* self) { return static_cast<executor*>(self)->go_on_without_waiting(); });
      turn_->poll();
    }
  }

  /// Goes on with the step as far as that is possible without waiting for another rank; true when this rank's row is
  /// done. Raises what `run` raises, and `invalid_argument` where no step was begun, or the last one has failed.
  bool advance() {
    if (phase_ == phase::before) refuse("advance: no step has begun: call start() first");
    if constexpr (virtual_time) {
      turn_->poll();
      if (turn_->thrown()) std::rethrow_exception(turn_->thrown());
      return turn_->over();
    } else {
      if (phase_ == phase::failed) refuse("advance: the step has failed, and with it the communicator");
      return phase_ == phase::over || go_on_without_waiting();
    }
  }

  /// When each computation of the last step began and ended, in seconds from the begin of `run`.
  const timeline& measured() const noexcept { return measured_; }
  /// The schedule as it is run, with its messages.
  const schedule& plan() const noexcept { return plan_; }
  /// What activations and gradients between stages take on this rank.
  std::size_t buffer_bytes() const noexcept { return buffers_.total_bytes(); }

 private:
  static constexpr bool virtual_time = transport::keeps_virtual_time<typename Domain::endpoints_type>;
  static constexpr std::uint32_t most_tags = 1U << 16;
  enum class phase : std::uint8_t { before, under_way, over, failed };
  using message = detail::message_slot<Domain>;
  using task_kind = hocket::plan::pipeline::task_kind;
  using task = hocket::plan::pipeline::task;

  auto& state() const { return hocket::detail::communicator_access::state(comm_); }

  [[noreturn]] void refuse(const std::string& why) const {
    raise(errc::invalid_argument, why,
          {.operation = "pipeline", .rank = comm_.rank(), .ranks = comm_.size(), .site = site_});
  }

  /// Else all ranks would wait to their deadlines for the messages of the step.
  HOCKET_COLD void give_up() noexcept {
#if HOCKET_HAS_EXCEPTIONS
    try {
      comm_.revoke("an executor was destroyed while a step was under way", site_);
    } catch (const std::exception&) {  // another thread is in a call: then the deadline it is
    }
#else
    comm_.revoke("an executor was destroyed while a step was under way", site_);
#endif
  }

  // ---- before the first step ----

  /// What is wrong with the schedule, in words; nothing, if it can be run. It has its messages then.
  std::string judge_schedule() {
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

  /// The same of the stages of this rank.
  std::string judge_stages() {
    for (int stage = 0; stage < plan_.stages(); ++stage) {
      if (plan_.placement.holds(comm_.rank(), stage)) numbers_.push_back(stage);
    }
    if (numbers_.size() != stages_.size()) {
      return hocket::detail::concat({"rank ", comm_.rank(), " was given ", stages_.size(),
                                     " stages; the schedule puts ", numbers_.size(), " on it"});
    }
    for (std::size_t i = 0; i < stages_.size(); ++i) {
      if (const std::string wrong = judge_number(i); !wrong.empty()) return wrong;
    }
    std::string wrong;
    for (const auto& each : plan_.of(comm_.rank())) {
      hocket::plan::pipeline::for_each_task(each, [&](const task& what) {
        if (!wrong.empty()) return;
        if (what.what == task_kind::weight_gradient && !stage_of(what.stage).has_gradients_apart()) {
          wrong = hocket::detail::concat(
              {"stage ", what.stage, " has backward alone; this schedule needs input_gradient and weight_gradient"});
        } else if (what.what == task_kind::recompute && !stage_of(what.stage).has_recompute()) {
          wrong = hocket::detail::concat(
              {"stage ", what.stage, " lacks forget or recompute; this schedule forms its activations again"});
        } else if (!has_microbatch(what.what) && !stage_of(what.stage).has(what.what)) {
          wrong = hocket::detail::concat({"stage ", what.stage, " lacks ", function_of(what.what),
                                          "; this schedule has ", hocket::plan::pipeline::to_string(what)});
        }
      });
    }
    return wrong;
  }

  /// Whether the rank's stage in this place is the one that belongs there, as far as it says.
  std::string judge_number(std::size_t place) {
    const int right = numbers_[place];
    const std::optional<int> said = ask(right, "for its number", [&] { return stages_[place].number(); });
    if (!said || *said == right) return "";
    return hocket::detail::concat({"rank ", comm_.rank(), " was given stage ", *said, " in the place of stage ", right,
                                   ": the stages of a rank are listed in the order of their numbers"});
  }

  /// What `question` gives, which asks a stage for something. If that throws, no other rank waits for the answer.
  template <class Question>
  auto ask(int stage, const char* what, Question question) {
    return with_error_text(
        [&] {
          return hocket::detail::concat({"stage ", stage, " failed when it was asked ", what});
        },
        question);
  }

  /// Begins with what each rank finds on its own, so that a rank that finds something wrong leaves no other waiting.
  void publish_schedule() {
    while_memory_lasts([&] { wrong_ = judge_schedule(); });
    if (wrong_.empty()) wrong_ = judge_stages();
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
    refuse_if(schedules_.judge());
    publish_forms();
    all_reduce(comm_, in_place(forms_.numbers()), std::plus<>{}, options<>{}, site_);
    refuse_if(forms_.judge(plan_.placement));
    take_tags();
  }

  /// Of simulated ranks, which can't wait: both rounds are under way at once, and their first step goes on from there.
  void begin_to_agree() {
    while_memory_lasts([&] { wrong_ = judge_schedule(); });
    refuse_if(wrong_);
    wrong_ = judge_stages();
    schedules_.describe_own(comm_.rank(), plan_, wrong_.empty(), 0);
    publish_forms();
    take_tags();
    agreements_[0] = all_reduce_async(comm_, in_place(schedules_.numbers()), std::plus<>{}, options<>{}, site_);
    agreements_[1] = all_reduce_async(comm_, in_place(forms_.numbers()), std::plus<>{}, options<>{}, site_);
  }

  /// Tags that no other executor of this communicator has, on any rank. In virtual time messages are asked for late,
  /// whatever their order is, and there are 2^32 tags.
  void take_tags() {
    tags_apart_ = virtual_time || !detail::are_in_order(plan_);
    const std::uint32_t count = tags_apart_ ? detail::crossings_of(plan_) : 1;
    if (!virtual_time && count > most_tags) {
      refuse(hocket::detail::concat(
          {"two ranks list the messages between them in different orders; then there can be at most ", most_tags,
           " of them in a schedule, not ", count}));
    }
    if (!virtual_time && schedules_.reach() + count > most_tags) {
      refuse(hocket::detail::concat(
          {"executors that were made on this communicator since the oldest one that some rank still has took ",
           schedules_.reach(), " of its ", most_tags, " tags, and this one needs ", count,
           ": destroy the oldest one first, or keep it on a communicator of its own"}));
    }
    tags_ = hocket::detail::tag_lease(state().tags(), count);
  }

  /// Does what needs much memory. A rank that has too little of it tells all others, which would wait for its messages.
  template <class Do>
  void while_memory_lasts(Do now) {
    const hocket::detail::call_site call{"pipeline", site_, state().timeout()};
    hocket::detail::deliver(
        hocket::detail::if_memory_lasts(state(), call, hocket::detail::no_place{}, [&]() -> outcome {
          now();
          return {};
        }));
  }

  /// When all ranks have agreed.
  void prepare() {
    while_memory_lasts([&] { make_ready(); });
  }

  void make_ready() {
    program_ = detail::compiler(plan_, comm_.rank(), numbers_, forms_.boundary_bytes(), tags_apart_).compile();
    buffers_ = buffers(program_.lifetimes);
    messages_ = std::vector<message>(program_.requests);
    measured_.reserve(plan_.of(comm_.rank()).size());
    state().active().reserve(state().active().size() + messages_.size());
    state().messages().reserve(state().messages().size() + messages_.size());
  }

  /// Whether the step can begin.
  bool prepared() {
    if constexpr (virtual_time) {
      if (agreed_) return true;
      // Another executor's step may just look at its own, and by that at all that is under way on this rank.
      if (!state().enter_without_reads()) return false;
      state().leave();
      if (!agreements_[0].test()) return false;
      agreements_[0].wait();
      refuse_if(wrong_);
      refuse_if(schedules_.judge());
      if (!agreements_[1].test()) return false;
      agreements_[1].wait();
      refuse_if(forms_.judge(plan_.placement));
      agreed_ = true;  // the requests are kept: the world is just looking through those that are under way
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

  /// A step that has failed is over. Of simulated ranks, the world may end one from outside.
  bool is_under_way() const {
    if constexpr (virtual_time) return turn_ && !turn_->over();
    else return phase_ == phase::under_way;
  }

  /// Calls `step`, which goes on with a step; true when that is over. Of a failure, its first cause comes out.
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
        for (const std::size_t request : {each.request, each.request_of_second}) {
          if (request != detail::none && !arrived(messages_[request])) return false;
        }
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

  /// Its channel is not that of `send` and `recv`, which the user may have under way meanwhile.
  void start_message(const detail::instruction& each) {
    hocket::detail::message_spec spec;
    spec.channel = transport::internal_channel;
    spec.tag = virtual_time ? tags_.first() + each.tag : (tags_.first() + each.tag) % most_tags;
    if (is_send(each.what.what)) {
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
    if (each.what.what == task_kind::wait_send_forward || each.what.what == task_kind::wait_send_backward) return;
    const double begin = now();
    call_stage(each);
    if (hocket::plan::pipeline::is_computation(each.what.what)) note(each, begin, now());
  }

  void call_stage(const detail::instruction& each) {
    const auto described = [&] {
      const task& done = each.what;
      return hocket::detail::concat({"stage ", done.stage, " failed in ", hocket::plan::pipeline::to_string(done),
                                     hocket::plan::pipeline::has_microbatch(done.what)
                                         ? hocket::detail::concat({", microbatch ", done.microbatch})
                                         : ""});
    };
    with_error_text(described, [&] { call_stage_now(each); });
  }

  /// Does what the user's code does, and tells all other ranks what that throws: `described()`, and the exception's
  /// words.
  template <class Describe, class Do>
  auto with_error_text(Describe described, Do now) {
#if HOCKET_HAS_EXCEPTIONS
    try {
      return now();
    } catch (const std::exception& problem) {
      state().revoke(make_failure(errc::aborted, hocket::detail::concat({described(), ": ", problem.what()})));
      throw;
    } catch (...) {
      state().revoke(make_failure(errc::aborted, described() + ": an exception of another type than std::exception"));
      throw;
    }
#else
    return now();
#endif
  }

  void call_stage_now(const detail::instruction& each) {
    const int m = each.what.microbatch;
    switch (each.what.what) {
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
      default: stages_[each.stage].on(each.what.what); break;
    }
  }

  std::span<std::byte> memory(std::size_t number) const {
    return number == detail::none ? std::span<std::byte>() : buffers_.of(number);
  }

  double now() const { return seconds() - begin_; }

  /// Since some moment that lies in the past.
  double seconds() const {
    if constexpr (virtual_time) {
      return state().endpoints().now();
    } else {
      return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
    }
  }

  /// What was called, and of which stage: not what the row says.
  void note(const detail::instruction& each, double begin, double end) {
    const task done{each.what.what, numbers_[each.stage], each.what.microbatch};
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
  std::string wrong_;              ///< with what this rank was given, in words
  detail::schedule_round schedules_;
  detail::form_round forms_;
  request agreements_[2];  ///< of simulated ranks: the two rounds
  bool agreed_ = false;
  bool tags_apart_ = false;         ///< whether messages of a step are told apart by their tags
  hocket::detail::tag_lease tags_;  ///< of this executor
  detail::program program_;
  buffers buffers_;
  std::vector<message> messages_;
  timeline measured_;
  std::size_t position_ = 0;     ///< of the next instruction
  phase phase_ = phase::before;  ///< of the last step
  double begin_ = 0;
  std::optional<detail::step_operation<Domain>> turn_;  ///< of simulated ranks: the step under way
};

}  // namespace pipeline
HOCKET_END_NAMESPACE
