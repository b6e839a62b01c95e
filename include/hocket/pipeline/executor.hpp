// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Runs a pipeline schedule: the ranks of a communicator do what their rows say, over any transport.
///
/// Everything is decided before the first step: the schedule is proven, memory is dealt out, and each action of this
/// rank's row becomes a record of what to call on which buffers. A step then walks through the records. Receives are
/// posted where the row says, ahead of their use, and waited for where it is computed with what they bring.
#pragma once

#include <hocket/collective/all_reduce.hpp>
#include <hocket/collective/recv.hpp>
#include <hocket/collective/send.hpp>
#include <hocket/communicator/communicator.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/request.hpp>
#include <hocket/pipeline/buffers.hpp>
#include <hocket/pipeline/stage.hpp>
#include <hocket/plan/pipeline/clock.hpp>
#include <hocket/plan/pipeline/lower.hpp>
#include <hocket/plan/pipeline/prove.hpp>
#include <hocket/plan/pipeline/prove_messages.hpp>
#include <hocket/plan/pipeline/schedule.hpp>
#include <hocket/plan/pipeline/text.hpp>
#include <hocket/plan/pipeline/timeline.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace pipeline {

using plan::pipeline::schedule;
using plan::pipeline::timeline;

namespace detail {

/// Which buffer holds what: numbers activations and gradients of a rank, with the steps between which they are needed.
class ledger {
 public:
  static constexpr std::size_t none = std::numeric_limits<std::size_t>::max();

  explicit ledger(const schedule& plan)
      : microbatches_(static_cast<std::size_t>(plan.microbatches)),
        numbers_(2 * static_cast<std::size_t>(plan.stages()) * microbatches_, none) {}

  /// The activation that stage `from` gives to the next one, or (`gradient`) the gradient of it. Makes it needed at
  /// `step`.
  std::size_t use(bool gradient, int from, int microbatch, std::size_t step, std::size_t bytes) {
    std::size_t& number = numbers_[(2 * static_cast<std::size_t>(from) + gradient) * microbatches_ +
                                   static_cast<std::size_t>(microbatch)];
    if (number == none) {
      number = lifetimes_.size();
      lifetimes_.push_back({step, step, bytes});
    }
    lifetimes_[number].last = step;
    return number;
  }

  const std::vector<lifetime>& lifetimes() const noexcept { return lifetimes_; }

 private:
  std::size_t microbatches_;
  std::vector<std::size_t> numbers_;
  std::vector<lifetime> lifetimes_;
};

/// One piece of work of a row, ready to be done.
struct instruction {
  plan::pipeline::work what;
  std::size_t step = 0;  ///< the action of the row that it belongs to
  const any_stage* stage = nullptr;
  std::size_t in = ledger::none;  ///< numbers of buffers
  std::size_t out = ledger::none;
  std::size_t out_gradient = ledger::none;
  std::size_t in_gradient = ledger::none;
  std::size_t message = ledger::none;  ///< of a send or receive: the buffer
  int peer = -1;
  std::size_t request = ledger::none;  ///< what is started, or waited for
};

}  // namespace detail

/// Runs one schedule on one rank, again and again. All ranks of `comm` make theirs together, with equal schedules, and
/// call `run` equally often.
///
/// **Threads.** As the communicator: one at a time. **Lifetime.** Stages and communicator must outlive it.
template <class Wire>
class executor {
 public:
  /// `stages`: those of this rank, in the order of their numbers. `plan` lists what is computed, or is lowered already.
  ///
  /// Raises `errc::invalid_argument` where the schedule does not hold its proof, has not as many ranks as `comm`, or
  /// keeps gradients apart that a stage has together; on all ranks alike, where what one stage gives is not as large as
  /// what the next one takes. Cost: one all_reduce of two numbers per stage.
  executor(const communicator<Wire>& comm, schedule plan, std::vector<any_stage> stages)
      : comm_(comm), plan_(std::move(plan)), stages_(std::move(stages)) {
    check_schedule();
    check_stages();
    exchange_sizes();
    compile();
  }
  executor(const executor&) = delete;
  executor& operator=(const executor&) = delete;

  /// One step: all microbatches, forward and backward. Returns when this rank's row is done.
  ///
  /// What a stage throws ends the step on all ranks: here with the exception itself, on the others with an `error` that
  /// says which stage and microbatch it was, and what it said.
  void run() {
    measured_.clear();
    begin_ = clock::now();
    for (const detail::instruction& each : program_) execute(each);
  }

  /// When each computation of the last step began and ended, in seconds from the begin of `run`.
  const timeline& measured() const noexcept { return measured_; }
  /// The schedule as it is run, with its messages.
  const schedule& plan() const noexcept { return plan_; }
  /// What activations and gradients between stages take on this rank.
  std::size_t buffer_bytes() const noexcept { return buffers_.total_bytes(); }

 private:
  using clock = std::chrono::steady_clock;
  using verb = hocket::plan::pipeline::verb;
  using work = hocket::plan::pipeline::work;
  static constexpr std::size_t none = detail::ledger::none;

  [[noreturn]] static void refuse(const std::string& why) { raise(errc::invalid_argument, "pipeline: " + why); }

  // ---- before the first step ----

  void check_schedule() {
    namespace schedules = hocket::plan::pipeline;
    if (plan_.ranks() != comm_.size()) {
      refuse("the schedule is for " + std::to_string(plan_.ranks()) + " ranks, the communicator has " +
             std::to_string(comm_.size()));
    }
    if (const schedules::proof found = schedules::prove(plan_); !found) refuse(found.message());
    if (!has_messages()) plan_ = schedules::lower(plan_);
    if (const schedules::proof found = schedules::prove_messages(plan_, schedules::unbounded); !found) {
      refuse(found.message());
    }
  }

  bool has_messages() const {
    for (const auto& row : plan_.rows) {
      for (const auto& each : row) {
        if (hocket::plan::pipeline::is_send(each.first.what)) return true;
      }
    }
    return false;
  }

  void check_stages() {
    for (int stage = 0; stage < plan_.stages(); ++stage) {
      if (plan_.placement.holds(comm_.rank(), stage)) numbers_.push_back(stage);
    }
    if (numbers_.size() != stages_.size()) {
      refuse("rank " + std::to_string(comm_.rank()) + " was given " + std::to_string(stages_.size()) +
             " stages; the schedule puts " + std::to_string(numbers_.size()) + " on it");
    }
    for (const auto& each : plan_.of(comm_.rank())) {
      hocket::plan::pipeline::for_each_work(each, [&](const work& what) {
        if (what.what != verb::weight_gradient || stage_of(what.stage).has_gradients_apart()) return;
        refuse("stage " + std::to_string(what.stage) +
               " has backward alone; this schedule needs input_gradient and "
               "weight_gradient");
      });
    }
  }

  /// So that all ranks learn of stages that do not fit each other, before any message is cut.
  void exchange_sizes() {
    sizes_.assign(2 * static_cast<std::size_t>(plan_.stages()), 0);
    for (std::size_t i = 0; i < numbers_.size(); ++i) {
      const int stage = numbers_[i];
      if (plan_.placement.rank_of(stage, 0) != comm_.rank()) continue;  // the copy for the other direction
      sizes_[2 * static_cast<std::size_t>(stage)] = stages_[i].input_bytes();
      sizes_[2 * static_cast<std::size_t>(stage) + 1] = stages_[i].output_bytes();
    }
    all_reduce(comm_, in_place(sizes_), std::plus<>{});
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

  std::size_t bytes_after(int stage) const { return sizes_[2 * static_cast<std::size_t>(stage) + 1]; }

  /// Turns the row into instructions: which buffers, which messages.
  void compile() {
    detail::ledger ledger(plan_);
    const auto& row = plan_.of(comm_.rank());
    std::vector<std::size_t> started(
        4 * static_cast<std::size_t>(plan_.stages()) * static_cast<std::size_t>(plan_.microbatches), none);
    for (std::size_t step = 0; step < row.size(); ++step) {
      hocket::plan::pipeline::for_each_work(
          row[step], [&](const work& what) { program_.push_back(translate(what, step, ledger, started)); });
    }
    buffers_ = buffers(ledger.lifetimes());
  }

  detail::instruction translate(const work& what, std::size_t step, detail::ledger& ledger,
                                std::vector<std::size_t>& started) {
    detail::instruction made{.what = what, .step = step, .stage = &stage_of(what.stage)};
    const int s = what.stage;
    const int m = what.microbatch;
    const auto activation = [&](int from) {
      return from < 0 || from + 1 >= plan_.stages() ? none : ledger.use(false, from, m, step, bytes_after(from));
    };
    const auto gradient = [&](int from) {
      return from < 0 || from + 1 >= plan_.stages() ? none : ledger.use(true, from, m, step, bytes_after(from));
    };
    const auto request_of = [&](unsigned kind, int stage) -> std::size_t& {
      return started[(4 * static_cast<std::size_t>(stage) + kind) * static_cast<std::size_t>(plan_.microbatches) +
                     static_cast<std::size_t>(m)];
    };
    const auto start = [&](unsigned kind) {
      made.request = requests_.size();
      requests_.emplace_back();
      request_of(kind, s) = made.request;
      made.peer = hocket::plan::pipeline::detail::peer_of(plan_, what);
    };
    switch (what.what) {
      case verb::forward:
        made.in = activation(s - 1);
        made.out = activation(s);
        made.request = request_of(received_forward, s);
        break;
      case verb::input_gradient:
      case verb::backward:
        made.in_gradient = gradient(s - 1);
        made.in = activation(s - 1);
        made.out_gradient = gradient(s);
        made.request = request_of(received_backward, s);
        break;
      case verb::weight_gradient:
        made.in = activation(s - 1);
        made.out_gradient = gradient(s);
        break;
      case verb::send_forward:
        made.message = activation(s);
        start(sent_forward);
        break;
      case verb::receive_forward:
        made.message = activation(s - 1);
        start(received_forward);
        break;
      case verb::send_backward:
        made.message = gradient(s - 1);
        start(sent_backward);
        break;
      case verb::receive_backward:
        made.message = gradient(s);
        start(received_backward);
        break;
      case verb::wait_send_forward:
        activation(s);
        made.request = request_of(sent_forward, s);
        break;
      case verb::wait_send_backward:
        gradient(s - 1);
        made.request = request_of(sent_backward, s);
        break;
      default: break;
    }
    return made;
  }

  // ---- a step ----

  void execute(const detail::instruction& each) {
    switch (each.what.what) {
      case verb::send_forward:
      case verb::send_backward:
        requests_[each.request] =
            send_async(comm_, std::span<const std::byte>(buffers_.of(each.message)), peer{each.peer}, tag_of(each));
        return;
      case verb::receive_forward:
      case verb::receive_backward:
        requests_[each.request] = recv_async(comm_, buffers_.of(each.message), peer{each.peer}, tag_of(each));
        return;
      case verb::wait_send_forward:
      case verb::wait_send_backward: requests_[each.request].wait(); return;
      default: break;
    }
    if (each.request != none) requests_[each.request].wait();
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
      case verb::forward: each.stage->forward(m, memory(each.in), memory(each.out)); break;
      case verb::backward:
        each.stage->backward(m, memory(each.in), memory(each.out_gradient), memory(each.in_gradient));
        break;
      case verb::input_gradient:
        each.stage->input_gradient(m, memory(each.in), memory(each.out_gradient), memory(each.in_gradient));
        break;
      case verb::weight_gradient: each.stage->weight_gradient(m, memory(each.in), memory(each.out_gradient)); break;
      default: each.stage->on(each.what.what); break;
    }
  }

  void tell_others(const detail::instruction& each, const std::string& what) {
    hocket::detail::communicator_access::state(comm_).revoke(
        make_failure(errc::aborted, "stage " + std::to_string(each.what.stage) + " failed in " +
                                        hocket::plan::pipeline::to_string(each.what) + ", microbatch " +
                                        std::to_string(each.what.microbatch) + ": " + what));
  }

  std::span<std::byte> memory(std::size_t number) const {
    return number == none ? std::span<std::byte>() : buffers_.of(number);
  }

  /// Equal on both ends of a message. Where numbers come round again, the order of the row keeps messages apart.
  tag tag_of(const detail::instruction& each) const {
    const work& what = each.what;
    const bool backward = what.what == verb::send_backward || what.what == verb::receive_backward;
    const int from = what.what == verb::send_forward      ? what.stage
                     : what.what == verb::receive_forward ? what.stage - 1
                     : what.what == verb::send_backward   ? what.stage - 1
                                                          : what.stage;
    const auto number = (static_cast<unsigned>(from) * static_cast<unsigned>(plan_.microbatches) +
                         static_cast<unsigned>(what.microbatch)) *
                            2 +
                        backward;
    return tag{number & 0xffffU};
  }

  double now() const { return std::chrono::duration<double>(clock::now() - begin_).count(); }

  void note(const detail::instruction& each, double begin, double end) {
    const auto& what = plan_.of(comm_.rank())[each.step];
    if (!measured_.empty() && measured_.back().index == each.step) {
      measured_.back().end = end;  // the second half of a pair
      return;
    }
    measured_.push_back({comm_.rank(), each.step, what, begin, end});
  }

  enum : unsigned { sent_forward, sent_backward, received_forward, received_backward };

  const communicator<Wire>& comm_;
  schedule plan_;
  std::vector<any_stage> stages_;     ///< of this rank
  std::vector<int> numbers_;          ///< of these stages
  std::vector<std::uint64_t> sizes_;  ///< by stage: bytes of input and output per microbatch
  std::vector<detail::instruction> program_;
  buffers buffers_;
  std::vector<request> requests_;
  timeline measured_;
  clock::time_point begin_;
};

}  // namespace pipeline
HOCKET_END_NAMESPACE
