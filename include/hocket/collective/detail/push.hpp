// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The direct path for the smallest reductions: payload and flag in one cache line, the element type known, no
/// interpreter. Below 1 KiB interpreting a plan would cost as much as the communication.
///
/// It does what the plan `plan::push_all_reduce` lists, and reports the same steps; a vector that the plan's own
/// interpretation handles gives the same bits.
#pragma once

#include <hocket/communicator/window.hpp>
#include <hocket/core/config.hpp>
#include <hocket/engine/drive.hpp>
#include <hocket/engine/step_event.hpp>
#include <hocket/operation/traits.hpp>
#include <hocket/plan/collective/push.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// Up to so many ranks, writing to all peers is cheaper than anything else.
inline constexpr int most_ranks_to_push = 16;

template <class State>
bool can_push(const State& state, std::size_t bytes) noexcept {
  return bytes <= push_line::capacity && state.has_windows() && state.size() > 1 && state.size() <= most_ranks_to_push &&
         state.active().empty();
}

template <class State, class Op, class T>
class pushed_reduction {
  using reduction = hocket::reduction<Op, T>;
  using accumulator = typename reduction::accumulator;

 public:
  pushed_reduction(State& state, std::span<const T> in, std::span<T> out, const Op& op, std::uint32_t signature)
      : state_(state),
        in_(in),
        out_(out),
        op_(op),
        sequence_(state.take_sequence()),
        flag_(make_flag(sequence_, signature)) {}

  bool may_begin() noexcept { return state_.has_turn(sequence_) && state_.has_credit(sequence_); }

  void push() noexcept {
    for (int peer = 0; peer < state_.size(); ++peer) {
      if (peer == state_.rank()) continue;
      push_line& line = state_.push_line_at(peer, slot());
      std::memcpy(line.payload, in_.data(), in_.size_bytes());
      line.completed = state_.completed();
      line.word.store(flag_, std::memory_order_release);
    }
  }

  /// Whether the contribution of `peer` is here.
  bool arrived(int peer, failure& fail) {
    const push_line& line = state_.push_line_from(peer, slot());
    const flag_word word = line.word.load(std::memory_order_acquire);
    if (word == flag_) [[likely]] {
      state_.heard(peer, line.completed);
      return true;
    }
    if (static_cast<std::uint32_t>(word >> 32) == sequence_) fail = different_call(peer);
    return false;
  }

  /// In rank order, beginning with rank 0.
  void combine() {
    constexpr std::size_t most = push_line::capacity / sizeof(T);
    alignas(accumulator) std::byte storage[most * sizeof(accumulator)];
    auto* const sum = reinterpret_cast<accumulator*>(storage);
    const T* next = contribution(0);
    for (std::size_t i = 0; i < in_.size(); ++i) sum[i] = static_cast<accumulator>(next[i]);
    for (int rank = 1; rank < state_.size(); ++rank) {
      next = contribution(rank);
      for (std::size_t i = 0; i < in_.size(); ++i) {
        sum[i] = reduction::combine(op_, sum[i], static_cast<accumulator>(next[i]));
      }
    }
    for (std::size_t i = 0; i < in_.size(); ++i) out_[i] = static_cast<T>(sum[i]);
    state_.complete(sequence_);
  }

  void report(step_observer to) const {
    const plan::push_all_reduce plan;
    for (unsigned i = 0; i < plan.length(state_.size(), state_.rank(), 0); ++i) {
      const plan::action step = plan.at(state_.size(), state_.rank(), 0, i);
      to.on_step(to.context, {sequence_, 0, i, step, step.count > 0 ? in_.size_bytes() : 0});
    }
  }

  void locate(error_context& context, int step, int peer) const noexcept {
    context.sequence = sequence_;
    context.lane = 0;
    context.step = step;
    context.peer = peer;
  }

 private:
  unsigned slot() const noexcept { return sequence_ % transport::window; }

  const T* contribution(int rank) const noexcept {
    if (rank == state_.rank()) return in_.data();
    return reinterpret_cast<const T*>(state_.push_line_from(rank, slot()).payload);
  }

  static failure different_call(int peer) {
    return make_failure(errc::mismatch,
                        "the peer's call differs from ours: operation, count, type, reduction operation, root and "
                        "algorithm must be equal on all ranks",
                        {.peer = peer});
  }

  State& state_;
  const std::span<const T> in_;
  const std::span<T> out_;
  const Op& op_;
  const std::uint32_t sequence_;
  const flag_word flag_;
};

/// Waits until `condition(fail)` holds. `step` and `peer` are for the message of a timeout.
template <class State, class Work, class Stop, class Condition>
failure push_wait(State& state, const Work& work, const Stop& stop, const call_site& call, patience& waiting, int step,
                  int peer, Condition condition) {
  failure cause;
  while (!condition(cause)) {
    if (!cause) {
      if (!waiting.tick()) continue;
      state.port().progress();
      cause = reason_to_give_up(state, stop, waiting, call,
                                [&](error_context& context) { work.locate(context, step, peer); });
      if (!cause) continue;
    }
    work.locate(cause.context, step, peer);
    cause = in_context(std::move(cause), state, call);
    state.revoke(cause);
    return cause;
  }
  return {};
}

template <class State, class Op, class T, class Stop>
failure push_all_reduce(State& state, std::span<const T> in, std::span<T> out, const Op& op, std::uint32_t signature,
                        const Stop& stop, const call_site& call, step_observer observer) {
  pushed_reduction<State, Op, T> work(state, in, out, op, signature);
  patience waiting(call.timeout, state.port().oversubscribed());
  if (!work.may_begin()) [[unlikely]] {
    if (failure cause = push_wait(state, work, stop, call, waiting, 0, -1, [&](failure&) { return work.may_begin(); })) {
      return cause;
    }
  }
  work.push();
  for (int peer = 0; peer < state.size(); ++peer) {
    if (peer == state.rank()) continue;
    if (failure cause = push_wait(state, work, stop, call, waiting, 1, peer,
                                  [&](failure& fail) { return work.arrived(peer, fail); })) {
      return cause;
    }
  }
  work.combine();
  if (observer.on_step != nullptr) [[unlikely]] work.report(observer);
  return {};
}

}  // namespace detail
HOCKET_END_NAMESPACE
