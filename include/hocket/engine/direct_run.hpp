// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Runs a plan of short messages without a machine, as long as its peers are on time.
///
/// For a few bytes, making a machine and driving it takes longer than the communication. This loop performs the same
/// actions of the same plan in the same order, so a rank that uses it and a rank that uses a machine fit together. If a
/// message is late, it stops between two actions, and a machine continues from there.
#pragma once

#include <hocket/communicator/communication_counts.hpp>
#include <hocket/communicator/message_numbers.hpp>
#include <hocket/communicator/planned_call.hpp>
#include <hocket/communicator/short_plan.hpp>
#include <hocket/communicator/spinning.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/platform/cpu.hpp>
#include <hocket/engine/binding.hpp>
#include <hocket/kernel/host/element_kernel.hpp>
#include <hocket/plan/action.hpp>
#include <hocket/plan/layout.hpp>
#include <hocket/plan/plan.hpp>
#include <hocket/transport/concept.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// Returns whether messages of `state` can be sent and received without a machine now. Endpoints that pace or observe
/// steps need a machine.
template <class State>
bool can_run_directly(const State& state) noexcept {
  using endpoints_type = typename State::endpoints_type;
  if constexpr (!transport::sends_eagerly<endpoints_type> || transport::paces_steps<endpoints_type> ||
                transport::observes_steps<endpoints_type> || transport::observes_operations<endpoints_type>) {
    return false;
  } else {
    return state.active().empty();
  }
}

/// How a rank has waited for a message that may be on time.
struct brief_wait {
  transport::eager_receive result = transport::eager_receive::not_arrived;
  bool has_yielded = false;  ///< so that it may have taken long

  bool succeeded() const noexcept { return result == transport::eager_receive::taken; }
};

/// Calls `receive()` until a message has arrived, for about as long as a rank takes that is on time.
template <class State, class Receive>
brief_wait await_briefly(State& state, const Receive& receive) {
  constexpr int most_yields = 8;  // to other ranks on this core, before a machine waits with more checks
  brief_wait wait;
  const auto has_arrived = [&] {
    wait.result = receive();
    return wait.result != transport::eager_receive::not_arrived;
  };
  spinning& spin = state.spin();
  for (int polls = spin.begin(); polls > 0; --polls) {
    platform::pause();
    if (!has_arrived()) continue;
    spin.end(true);
    return wait;
  }
  spin.end(false);
  for (int yields = spin.yields() ? most_yields : 0; yields > 0 && !spin.prefers_sleep(); --yields) {
    spin.yield();
    wait.has_yielded = true;
    if (has_arrived() || state.aborted()) break;
  }
  return wait;
}

/// Returns where `at` is in a buffer of the caller or in scratch, in bytes.
inline std::size_t offset_of(const call_request& asked, const plan::layout& layout, plan::region where,
                             std::uint32_t at, int rank) noexcept {
  switch (where) {
    case plan::region::scratch: return at * layout.largest_chunk() * asked.element_size;
    case plan::region::in:
    case plan::region::out: return (layout.begin(at) - origin_of(asked.what, where, layout, rank)) * asked.element_size;
    default: return 0;
  }
}

/// Returns the steps of a planned call on this rank. They are not usable if a message is too long, or the call needs
/// more than copies and messages of consecutive elements. `lengths` are those of the blocks, if not equal. The memory of
/// `old` is used for them.
template <class State>
short_plan short_plan_of(const State& state, const call_request& asked, const planned_call& planned,
                         std::span<const std::size_t> lengths, short_plan old) {
  short_plan result{.steps = std::move(old.steps), .offsets = std::move(old.offsets)};
  result.steps.clear();
  result.offsets.clear();
  if constexpr (transport::sends_eagerly<typename State::endpoints_type>) {
    const bool is_plain = asked.lengths != block_lengths::known_to_pairs && !asked.checksummed && !asked.on_device;
    const std::size_t block = planned.layout.block_size();
    const std::size_t most_bytes = state.endpoints().eager_bytes();
    if (most_bytes == 0 || !is_plain) return result;
    if (block > most_bytes / asked.element_size) return result;  // some message may have a whole block
    const plan::shape shape = planned.plan.shape(state.size());
    if (shape.lanes != 1 || shape.peer_pointers) return result;
    const unsigned length = planned.plan.length(state.size(), state.rank(), 0);
    if (length > short_plan::most_steps) return result;
    plan::layout layout = planned.layout;
    if (!lengths.empty()) {
      result.offsets.resize(lengths.size() + 1);
      plan::write_offsets(result.offsets.data(), lengths);
      layout = plan::layout::given(result.offsets.data(), layout.blocks(), layout.chunks_per_block());
    }
    result.scratch_bytes = shape.scratch * layout.largest_chunk() * asked.element_size;
    result.steps.reserve(length);
    for (unsigned i = 0; i < length; ++i) {
      const plan::action what = planned.plan.at(state.size(), state.rank(), 0, i);
      const std::size_t count = what.count == 0 ? 0 : layout.chunks(what.chunk, what.count).size;
      if (what.kind > plan::action_kind::receive_reduce || count * asked.element_size > most_bytes) return result;
      result.steps.push_back({.kind = what.kind,
                              .from = what.from,
                              .to = what.to,
                              .message_first = what.message_first,
                              .channel = what.channel,
                              .peer = what.peer,
                              .count = static_cast<std::uint32_t>(count),
                              .bytes = count * asked.element_size,
                              .from_at = offset_of(asked, layout, what.from, what.from_at, state.rank()),
                              .to_at = offset_of(asked, layout, what.to, what.to_at, state.rank())});
    }
    result.is_usable = true;
  }
  return result;
}

/// One operation in host memory.
template <class State>
class direct_run {
 public:
  /// The arguments must outlive the object. `signature`: of the call and all before it.
  direct_run(State& state, call_kind kind, const short_plan& plan, const kernel::element_kernel& kernel,
             const void* operation, const std::byte* in, std::byte* out, std::uint32_t sequence,
             std::uint32_t signature)
      : state_(state), kind_(kind), plan_(plan), kernel_(kernel), operation_(operation), sequence_(sequence),
        signature_(signature), in_(const_cast<std::byte*>(in)), out_(out) {
    if (plan.scratch_bytes > 0) scratch_ = state.scratch(sequence % transport::window).get(plan.scratch_bytes);
  }

  /// Performs steps until one must wait for long, or needs a machine. Calls `before_waiting()` once, before the first wait
  /// or at the end. Returns true if all are done; otherwise `position()` is the first that is not.
  template <class BeforeWaiting>
  bool run(const BeforeWaiting& before_waiting) {
    bool has_waited = false;
    for (const auto length = static_cast<unsigned>(plan_.steps.size()); position_ < length; ++position_) {
      const short_step& step = plan_.steps[position_];
      if (step.kind == plan::action_kind::copy) {
        copy(step);
      } else if (step.kind == plan::action_kind::send) {
        if (!send(step)) return false;
      } else if (const auto found = receive(step); found != transport::eager_receive::taken) {
        if (found == transport::eager_receive::needs_general_receive) return false;
        if (!std::exchange(has_waited, true)) before_waiting();
        const brief_wait wait = await_briefly(state_, [&] { return receive(step); });
        has_yielded_ = has_yielded_ || wait.has_yielded;
        if (!wait.succeeded()) return false;
      }
    }
    if (!has_waited) before_waiting();
    return true;
  }

  /// Whether it may have waited long.
  bool has_yielded() const noexcept { return has_yielded_; }
  unsigned position() const noexcept { return position_; }

 private:
  std::byte* place(plan::region where, std::size_t offset) const noexcept {
    return (where == plan::region::in ? in_ : where == plan::region::out ? out_ : scratch_) + offset;
  }

  void copy(const short_step& step) {
    const std::byte* const from = place(step.from, step.from_at);
    std::byte* const to = place(step.to, step.to_at);
    if (step.bytes > 0 && from != to) kernel_.copy(to, from, step.bytes);
  }

  HOCKET_ALWAYS_INLINE bool send(const short_step& step) {
    transport::message_id id{sequence_, step.channel};
    std::uint8_t& number = state_.numbers().sent(step.peer, id);
    id.signature = message_signature(signature_, number);
    if (!state_.endpoints().send_eagerly(step.peer, id, place(step.from, step.from_at), step.bytes)) return false;
    ++number;
    state_.counts().note_sent(kind_, step.peer, step.bytes);
    return true;
  }

  HOCKET_ALWAYS_INLINE transport::eager_receive receive(const short_step& step) {
    transport::message_id id{sequence_, step.channel};
    std::uint8_t& expected = state_.numbers().received(step.peer, id);
    id.signature = message_signature(signature_, expected);
    const auto take = [&](const std::byte* message) {
      std::byte* const to = place(step.to, step.to_at);
      if (step.kind == plan::action_kind::receive) {
        if (step.bytes > 0) kernel_.copy(to, message, step.bytes);
      } else if (step.message_first) {
        kernel_.combine_two(operation_, to, message, place(step.from, step.from_at), step.count);
      } else {
        kernel_.combine_two(operation_, to, place(step.from, step.from_at), message, step.count);
      }
    };
    const transport::eager_receive found = state_.endpoints().receive_eagerly(step.peer, id, step.bytes, take);
    if (found == transport::eager_receive::taken) {
      ++expected;
      state_.counts().note_received(step.peer, step.bytes);
    }
    return found;
  }

  State& state_;
  const call_kind kind_;
  const short_plan& plan_;
  const kernel::element_kernel& kernel_;
  const void* const operation_;
  const std::uint32_t sequence_;
  const std::uint32_t signature_;
  std::byte* const in_;
  std::byte* const out_;
  std::byte* scratch_ = nullptr;
  unsigned position_ = 0;
  bool has_yielded_ = false;
};

}  // namespace detail
HOCKET_END_NAMESPACE
