// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The direct path for the smallest reductions: payload and flag share one cache line, the element type is known, and
/// no plan is interpreted. Below 1 KiB interpreting a plan would cost as much as the communication.
///
/// The path performs the actions of the plan `plan::push_all_reduce`, reports the same steps to observers and to
/// observing endpoint groups, and gives the same bits as the interpreted plan.
#pragma once

#include <hocket/collective/host/call.hpp>
#include <hocket/collective/host/call_settings.hpp>
#include <hocket/collective/host/host_call.hpp>
#include <hocket/communicator/window.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/platform/cpu.hpp>
#include <hocket/engine/call_site.hpp>
#include <hocket/engine/step_observer.hpp>
#include <hocket/operation/fixed_tree.hpp>
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

/// The public name of the call.
inline constexpr const char* name_of_push = plan::to_string(plan::collective_kind::all_reduce);

/// Returns whether this call can take the direct path. Invalid calls can't; the general path reports their errors.
template <class State, class T>
bool can_push(const State& state, std::span<const T> in, std::span<T> out, const call_settings& settings) noexcept {
  return in.size_bytes() <= push_line::capacity && in.size() == out.size() && state.pushes() &&
         state.active().empty() && state.usable() && !settings.stop() && !settings.has_negative_timeout() &&
         (in.data() == out.data() || !overlap(in.data(), in.size_bytes(), out.data(), out.size_bytes()));
}

/// One operation of the direct path. Functions on the fast path take its members as separate arguments: an object would
/// be written to memory and read back, which costs more than the rest of the bookkeeping.
template <class State>
struct push_exchange {
  State& state;
  std::uint32_t sequence;
  flag_word flag;

  unsigned slot() const noexcept { return sequence % transport::window; }

  bool arrived(int peer) const noexcept { return word_from(peer) == flag; }

  /// Returns a failure if `peer` has pushed another call's contribution in this operation.
  failure mismatch(int peer) const {
    const flag_word word = word_from(peer);
    if (word == flag || !is_of_operation(word, sequence)) return {};
    failure cause = transport::call_mismatch(peer);
    cause.context.sequence = sequence;
    return cause;
  }

  void locate(error_context& context, int step, int peer) const noexcept {
    context.sequence = sequence;
    context.lane = 0;
    context.step = step;
    context.peer = peer;
  }

 private:
  flag_word word_from(int peer) const noexcept {
    return state.push_line_from(peer, slot()).word.load(std::memory_order_acquire);
  }
};

/// Writes the contribution to all peers. `offset` is that of the operation's slot, in lines.
template <class State, class T>
HOCKET_ALWAYS_INLINE void push_to_all(State& state, std::size_t offset, flag_word flag, const T* contribution,
                                      std::size_t count) noexcept {
  for (const push_pair& lines : state.pushing()) {
    push_line& line = lines.to[offset];
    T* const payload = reinterpret_cast<T*>(line.payload);
    for (std::size_t i = 0; i < count; ++i) payload[i] = contribution[i];
    line.word.store(flag, std::memory_order_release);
    transport::wake(state.endpoints(), lines.peer);
  }
  state.counts().note_pushed_to_each(count * sizeof(T));
}

/// Combines in the fixed tree; see `combine_all_pushed`.
template <class Op, class T>
void combine_pushed_in_tree(const push_line* arrivals, int ranks, int rank, const T* own, std::span<T> out,
                            const Op& op) {
  using reduction = hocket::reduction<Op, T>;
  using accumulator = typename reduction::accumulator;
  if (out.empty()) return;  // the pointers may be null
  alignas(T) std::byte storage[fixed_tree_depth * push_line::capacity];
  const auto kept = [&](std::size_t level) { return reinterpret_cast<T*>(storage + level * push_line::capacity); };
  walk_fixed_tree(
      static_cast<std::size_t>(ranks),
      [&](std::size_t level, std::size_t source) {
        const bool is_own = static_cast<int>(source) == rank;
        std::memcpy(kept(level), is_own ? static_cast<const void*>(own) : arrivals[source].payload, out.size_bytes());
      },
      [&](std::size_t level) {
        T* const left = kept(level);
        const T* const right = kept(level + 1);
        for (std::size_t i = 0; i < out.size(); ++i) {
          left[i] = static_cast<T>(
              reduction::combine(op, static_cast<accumulator>(left[i]), static_cast<accumulator>(right[i])));
        }
      });
  std::memcpy(out.data(), kept(0), out.size_bytes());
}

/// Combines in rank order, beginning with rank 0. `arrivals` are the lines of the operation's slot, by rank.
template <class Op, class T>
HOCKET_NO_INLINE void combine_all_pushed(const push_line* arrivals, int ranks, int rank, const T* own, std::span<T> out,
                                         const Op& op) {
  if constexpr (is_in_fixed_tree<Op>) return combine_pushed_in_tree(arrivals, ranks, rank, own, out, op);
  using reduction = hocket::reduction<Op, T>;
  using accumulator = typename reduction::accumulator;
  constexpr std::size_t most = push_line::capacity / sizeof(T);
  alignas(accumulator) std::byte storage[most * sizeof(accumulator)];
  auto* const sum = reinterpret_cast<accumulator*>(storage);
  for (int each = 0; each < ranks; ++each) {
    const T* const next = each == rank ? own : reinterpret_cast<const T*>(arrivals[each].payload);
    for (std::size_t i = 0; i < out.size(); ++i) {
      const auto term = static_cast<accumulator>(next[i]);
      sum[i] = each == 0 ? term : reduction::combine(op, sum[i], term);
    }
  }
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<T>(sum[i]);
}

template <class State, class Op, class T>
HOCKET_ALWAYS_INLINE void combine_pushed(const State& state, std::size_t offset, const T* own, T* out,
                                         std::size_t count, const Op& op) {
  using reduction = hocket::reduction<Op, T>;
  using accumulator = typename reduction::accumulator;
  const push_line* const arrivals = state.push_lines_from() + offset;
  const int rank = state.rank();
  if (state.size() != 2) return combine_all_pushed(arrivals, state.size(), rank, own, std::span(out, count), op);
  const T* const theirs = reinterpret_cast<const T*>(arrivals[1 - rank].payload);
  const T* const first = rank == 0 ? own : theirs;
  const T* const second = rank == 0 ? theirs : own;
  for (std::size_t i = 0; i < count; ++i) {
    out[i] =
        static_cast<T>(reduction::combine(op, static_cast<accumulator>(first[i]), static_cast<accumulator>(second[i])));
  }
}

/// Prefetches the lines that peers write now, so that they are in transit while the call is logged.
template <class State>
HOCKET_ALWAYS_INLINE void prefetch_arrivals(const State& state, std::size_t offset) noexcept {
  for (const push_pair& lines : state.pushing()) platform::prefetch(&lines.from[offset]);
}

/// Reports a step to an endpoint group that observes steps. `bytes` is the size of the pushed or combined vector.
template <class State>
HOCKET_ALWAYS_INLINE void report_step(State& state, std::uint32_t sequence, const plan::action& done,
                                      std::size_t bytes) {
  if constexpr (transport::observes_steps<typename State::endpoints_type>) {
    state.endpoints().on_step(sequence, 0, done, done.count > 0 ? bytes : 0);
  }
}
template <class State>
HOCKET_ALWAYS_INLINE void report_begin(State& state, std::uint32_t sequence, std::size_t bytes) {
  if constexpr (transport::observes_operations<typename State::endpoints_type>) {
    state.endpoints().on_operation(sequence, name_of_push, plan::push_all_reduce::name(), bytes);
  }
  if constexpr (transport::observes_steps<typename State::endpoints_type>) state.endpoints().enter(sequence, 1);
}

/// Reports the end of the operation to an observing endpoint group, also if it ends by an error or an exception.
template <class State>
class end_reporter {
 public:
  explicit end_reporter(State& state) noexcept : state_(state) {}
  end_reporter(const end_reporter&) = delete;
  end_reporter& operator=(const end_reporter&) = delete;
  ~end_reporter() {
    if constexpr (transport::observes_steps<typename State::endpoints_type>)
      state_.endpoints().leave(state_.last_sequence());
  }

 private:
  State& state_;
};

/// The steps of the plan.
inline constexpr plan::action step_of_pushing = plan::push(plan::all_peers, {0}, plan::in(0), 0);
inline constexpr plan::action step_of_waiting = plan::wait_push(plan::all_peers, 0);
inline constexpr plan::action step_of_combining = plan::load_reduce({0}, plan::inbox(), plan::out(0));

enum class pushed : std::uint8_t { done, begun, not_begun };

/// Writes to all peers and combines what they write, if it arrives within a bounded number of polls. Out of line and
/// with few parameters, so that its state stays in registers: the time from the arrival of one contribution to the
/// sending of the next is critical on both ranks. The log is written while the peers' contributions are in transit.
template <class State, class Op, class T>
HOCKET_NO_INLINE pushed exchange_fast_path(State& state, const T* in, T* out, std::size_t count, const Op& op,
                                           std::uint32_t signature, const std::source_location& site) {
  const std::uint32_t sequence = state.last_sequence() + 1;
  if (!state.knows_credit(sequence)) return pushed::not_begun;
  state.take_sequence();
  const std::uint32_t history = state.calls().history();
  const flag_word flag = make_flag(sequence, state.calls().extend_history(signature));
  const std::size_t offset = sequence % transport::window * state.slot_lines();
  report_begin(state, sequence, count * sizeof(T));
  push_to_all(state, offset, flag, in, count);
  report_step(state, sequence, step_of_pushing, count * sizeof(T));
  prefetch_arrivals(state, offset);
  state.counts().note_call(call_kind::all_reduce);
  state.calls().add_brief({sequence, 1, signature, history, name_of_push, types_name<T, Op>(),
                           plan::push_all_reduce::name(), count, 0, site});
  int polls = state.spin().begin();
  for (const push_pair& lines : state.pushing()) {
    const std::atomic<flag_word>& word = lines.from[offset].word;
    while (word.load(std::memory_order_acquire) != flag) {
      if (--polls <= 0) {
        state.spin().end(false);
        return pushed::begun;
      }
      platform::pause();
    }
  }
  state.spin().end(true);
  report_step(state, sequence, step_of_waiting, 0);
  combine_pushed(state, offset, in, out, count, op);
  state.counts().note_arrived_from_each(count * sizeof(T));
  report_step(state, sequence, step_of_combining, count * sizeof(T));
  state.complete_all(sequence);
  return pushed::done;
}

/// Waits until the contribution of `peer` has arrived or, if `peer` is -1, until all peers have freed the slot. Fails
/// on a timeout, an abort, or a failure of a peer.
template <class State>
HOCKET_NO_INLINE outcome wait_slow_path(const push_exchange<State>& operation_state, const call_site& call,
                                        stop_query stop, int peer = -1);

/// The same exchange for peers that are late and for callers that observe each step.
template <class State, class Op, class T>
HOCKET_NO_INLINE outcome exchange_slow_path(const push_exchange<State>& operation_state, pushed how,
                                            const log_entry& entry, std::span<const T> in, std::span<T> out,
                                            const Op& op, const call_site& call, stop_query stop,
                                            step_observer observer) {
  State& state = operation_state.state;
  const std::size_t offset = operation_state.slot() * state.slot_lines();
  unsigned position = 0;
  const auto report = [&](const plan::action& done) {
    report_step(state, operation_state.sequence, done, in.size_bytes());
    if (observer.on_step == nullptr) return;
    observer.on_step(observer.context, completed_step{operation_state.sequence, 0, position++, done,
                                                      done.count > 0 ? in.size_bytes() : 0});
  };
  if (how == pushed::not_begun) {
    outcome ended = wait_slow_path(operation_state, call, stop);
    if (ended.failed()) return ended;
    push_to_all(state, offset, operation_state.flag, in.data(), in.size());
    report(step_of_pushing);
  }
  for (const push_pair& lines : state.pushing()) {
    outcome ended = wait_slow_path(operation_state, call, stop, lines.peer);
    if (ended.failed()) return ended;
  }
  report(step_of_waiting);
  combine_pushed(state, offset, in.data(), out.data(), out.size(), op);
  state.counts().note_arrived_from_each(in.size_bytes());
  report(step_of_combining);
  state.complete_all(operation_state.sequence);
  entry.ends();
  return {};
}

/// Takes a sequence number for an operation that could not begin on the fast path, and logs it.
template <class T, class Op, class State>
log_entry log_push(State& state, std::size_t count, std::uint32_t signature, const call_site& call) {
  const std::uint32_t sequence = state.take_sequence(), history = state.calls().history();
  state.calls().extend_history(signature);
  report_begin(state, sequence, count * sizeof(T));
  state.counts().note_call(call_kind::all_reduce);
  const call_times times = call_times::from_now();
  return enter(state.calls(),
               call_record{sequence, 1, signature, history, call.operation, types_name<T, Op>(),
                           plan::push_all_reduce::name(), count, 0, call.site, times},
               state.timed(call_kind::all_reduce, true, times.begun));
}

/// Completes an exchange that the fast path did not complete, or that is observed step by step. Out of line, so that
/// the state of a call stays in registers while all peers are on time.
template <class State, class Op, class T>
HOCKET_NO_INLINE outcome end_exchange(State& state, pushed how, std::span<const T> in, std::span<T> out, const Op& op,
                                      std::uint32_t signature, const call_settings& settings,
                                      const std::source_location& site) {
  const bool is_observed = settings.observer.on_step != nullptr;
  if (how == pushed::not_begun && !is_observed && state.has_credit(state.last_sequence() + 1)) {
    how = exchange_fast_path(state, in.data(), out.data(), out.size(), op, signature, site);
    if (how == pushed::done) return {};
  }
  const call_site call = site_of(state, name_of_push, settings, site);
  const auto entry =
      how == pushed::begun ? state.reopen(call_kind::all_reduce) : log_push<T, Op>(state, in.size(), signature, call);
  const flag_word flag = make_flag(state.last_sequence(), state.calls().history());
  return exchange_slow_path(push_exchange<State>{state, state.last_sequence(), flag}, how, entry, in, out, op, call,
                            settings.stop, settings.observer);
}

template <class State, class Op, class T>
HOCKET_ALWAYS_INLINE outcome exchange(State& state, std::span<const T> in, std::span<T> out, const Op& op,
                                      std::uint32_t signature, const call_settings& settings,
                                      const std::source_location& site) {
  [[maybe_unused]] const end_reporter reporter(state);
  pushed how = pushed::not_begun;
  if (settings.observer.on_step == nullptr) {
    how = exchange_fast_path(state, in.data(), out.data(), out.size(), op, signature, site);
    if (how == pushed::done) [[likely]]
      return {};
  }
  return end_exchange(state, how, in, out, op, signature, settings, site);
}

/// Ends a call by the exception being handled: memory ran out, or the caller's operation threw. Out of line, because
/// having a `failure` on the fast path took 10 ns.
template <class State>
HOCKET_COLD outcome end_by_exception(State& state, const call_site& call);

/// Returns why `state` has not admitted the call.
template <class State>
HOCKET_COLD outcome refuse_entry(State& state, const call_site& call);

/// Like `all_reduce`, for calls for which `can_push` is true.
template <class State, class Op, class T>
HOCKET_ALWAYS_INLINE outcome push_all_reduce(State& state, std::span<const T> in, std::span<T> out, const Op& op,
                                             std::uint32_t signature, const call_settings& settings,
                                             const std::source_location& site) {
  if (!state.enter_without_reads()) [[unlikely]] {
    return refuse_entry(state, site_of(state, name_of_push, settings, site));
  }
#if HOCKET_HAS_EXCEPTIONS
  try {
    outcome ended = exchange(state, in, out, op, signature, settings, site);
    state.leave();
    return ended;
  } catch (...) {
    return end_by_exception(state, site_of(state, name_of_push, settings, site));
  }
#else
  outcome ended = exchange(state, in, out, op, signature, settings, site);
  state.leave();
  return ended;
#endif
}

}  // namespace detail
HOCKET_END_NAMESPACE

#if !defined(HOCKET_SEPARATE_COMPILATION)
#include <hocket/collective/host/impl/push.ipp>
#endif
