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
#include <hocket/core/platform/cpu.hpp>
#include <hocket/engine/drive.hpp>
#include <hocket/engine/step_event.hpp>
#include <hocket/operation/traits.hpp>
#include <hocket/plan/collective/push.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
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
        ranks_(state.size()),
        rank_(state.rank()),
        sequence_(state.take_sequence()),
        flag_(make_flag(sequence_, signature)),
        arrivals_(&state.push_line_from(0, slot())) {}

  bool may_begin() noexcept { return state_.has_turn(sequence_) && state_.has_credit(sequence_); }

  void push() noexcept {
    for (int peer = 0; peer < ranks_; ++peer) {
      if (peer == rank_) continue;
      push_line& line = state_.push_line_at(peer, slot());
      T* const payload = reinterpret_cast<T*>(line.payload);
      for (std::size_t i = 0; i < in_.size(); ++i) payload[i] = in_[i];
      line.completed = state_.completed();
      line.word.store(flag_, std::memory_order_release);
    }
  }

  /// Whether the contribution of `peer` is here.
  bool arrived(int peer) noexcept {
    const push_line& line = arrivals_[peer];
    if (line.word.load(std::memory_order_acquire) != flag_) return false;
    state_.heard(peer, line.completed);
    return true;
  }

  /// Whether `peer` has pushed something else in this operation.
  failure mismatch(int peer) const {
    const flag_word word = arrivals_[peer].word.load(std::memory_order_acquire);
    if (word == flag_ || static_cast<std::uint32_t>(word >> 32) != sequence_) return {};
    return make_failure(errc::mismatch,
                        "the peer's call differs from ours: operation, count, type, reduction operation, root and "
                        "algorithm must be equal on all ranks",
                        {.peer = peer});
  }

  /// In rank order, beginning with rank 0.
  void combine() {
    if (ranks_ == 2) {
      combine_two(contribution(0), contribution(1));
    } else {
      combine_many();
    }
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

  void combine_two(const T* first, const T* second) {
    const std::size_t count = in_.size();
    for (std::size_t i = 0; i < count; ++i) {
      out_[i] = static_cast<T>(
          reduction::combine(op_, static_cast<accumulator>(first[i]), static_cast<accumulator>(second[i])));
    }
  }

  void combine_many() {
    constexpr std::size_t most = push_line::capacity / sizeof(T);
    alignas(accumulator) std::byte storage[most * sizeof(accumulator)];
    auto* const sum = reinterpret_cast<accumulator*>(storage);
    const std::size_t count = in_.size();
    const T* next = contribution(0);
    for (std::size_t i = 0; i < count; ++i) sum[i] = static_cast<accumulator>(next[i]);
    for (int rank = 1; rank < ranks_; ++rank) {
      next = contribution(rank);
      for (std::size_t i = 0; i < count; ++i) {
        sum[i] = reduction::combine(op_, sum[i], static_cast<accumulator>(next[i]));
      }
    }
    for (std::size_t i = 0; i < count; ++i) out_[i] = static_cast<T>(sum[i]);
  }

  const T* contribution(int rank) const noexcept {
    return rank == rank_ ? in_.data() : reinterpret_cast<const T*>(arrivals_[rank].payload);
  }

  State& state_;
  const std::span<const T> in_;
  const std::span<T> out_;
  const Op& op_;
  const int ranks_;
  const int rank_;
  const std::uint32_t sequence_;
  const flag_word flag_;
  const push_line* const arrivals_;  ///< the lines that peers write, by rank
};

/// Waits until `condition()` holds, or gives up; out of the way of the calls that need not wait long. `step` and `peer`
/// say what is waited for; -1: for every peer.
template <class State, class Work, class Stop, class Condition>
HOCKET_NO_INLINE outcome wait_patiently(State& state, const Work& work, const Stop& stop, const call_site& call,
                                        int step, int peer, Condition condition) {
  patience waiting(call.timeout, state.port().oversubscribed());
  while (!condition()) {
    if (!waiting.tick()) continue;
    state.port().progress();
    failure cause = peer >= 0 ? work.mismatch(peer) : failure{};
    if (!cause) {
      cause = reason_to_give_up(state, stop, waiting, call,
                                [&](error_context& context) { work.locate(context, step, peer); });
    }
    if (!cause) continue;
    const int blamed = cause.context.peer;
    work.locate(cause.context, step, blamed);
    cause = in_context(std::move(cause), state, call);
    state.revoke(cause);
    return cause;
  }
  return {};
}

/// How often a rank looks for a contribution before it waits patiently: longer than a peer that is there takes.
inline constexpr int quick_polls = 1000;

/// True if `condition()` holds within `polls` polls.
template <class Condition>
bool holds_soon(int polls, Condition condition) {
  for (int i = 0; i < polls; ++i) {
    if (condition()) return true;
    platform::pause();
  }
  return false;
}

template <class State, class Op, class T, class Stop>
outcome push_all_reduce(State& state, std::span<const T> in, std::span<T> out, const Op& op, std::uint32_t signature,
                        const Stop& stop, const call_site& call, step_observer observer) {
  pushed_reduction<State, Op, T> work(state, in, out, op, signature);
  if (!work.may_begin()) [[unlikely]] {
    outcome ended = wait_patiently(state, work, stop, call, 0, -1, [&] { return work.may_begin(); });
    if (ended.failed()) return ended;
  }
  work.push();
  const int ranks = state.size();
  const int rank = state.rank();
  const int polls = state.port().oversubscribed() ? 1 : quick_polls;
  for (int peer = 0; peer < ranks; ++peer) {
    if (peer == rank) continue;
    const auto here = [&work, peer] { return work.arrived(peer); };
    if (holds_soon(polls, here)) [[likely]] continue;
    outcome ended = wait_patiently(state, work, stop, call, 1, peer, here);
    if (ended.failed()) return ended;
  }
  work.combine();
  if (observer.on_step != nullptr) [[unlikely]] work.report(observer);
  return {};
}

}  // namespace detail
HOCKET_END_NAMESPACE
