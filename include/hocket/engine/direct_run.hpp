// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Runs a plan of short messages without a machine, as long as its peers are on time.
///
/// For a few bytes, making a machine and driving it takes longer than the communication. This loop performs the same
/// actions of the same plan in the same order, so a rank that uses it and a rank that uses a machine fit together. If a
/// message is late, or an action is not for it, it stops between two actions, and a machine continues from there.
#pragma once

#include <hocket/communicator/message_numbers.hpp>
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
#include <cstring>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// Returns the length up to which messages of `state` can be sent and received without a machine now; 0 if none can.
/// Endpoints that pace or observe steps need a machine.
template <class State>
std::size_t direct_bytes(const State& state) noexcept {
  using endpoints_type = typename State::endpoints_type;
  if constexpr (!transport::sends_eagerly<endpoints_type> || transport::paces_steps<endpoints_type> ||
                transport::observes_steps<endpoints_type> || transport::observes_operations<endpoints_type>) {
    return 0;
  } else {
    return state.active().empty() ? state.endpoints().eager_bytes() : 0;
  }
}

/// One operation whose blocks have equal lengths, in host memory.
template <class State>
class direct_run {
 public:
  /// The arguments must outlive the object. `most_bytes`: see `direct_bytes`. `signature`: of the call and all before it.
  direct_run(State& state, std::size_t most_bytes, const plan::any_algorithm& plan, const plan::layout& layout,
             const kernel::element_kernel& kernel, const void* operation, const std::byte* in, std::byte* out,
             std::uint32_t sequence, std::uint32_t signature) noexcept
      : state_(state), most_bytes_(most_bytes), plan_(plan), layout_(layout), kernel_(kernel), operation_(operation),
        sequence_(sequence), signature_(signature), in_(in), out_(out) {
    const plan::collective_kind kind = plan.collective().kind;
    in_origin_ = origin_of(kind, plan::region::in, layout, state.rank());
    out_origin_ = origin_of(kind, plan::region::out, layout, state.rank());
  }

  /// Performs actions until one must wait for long. Calls `before_waiting()` once, before the first wait or at the end.
  /// Returns true if the plan is complete; otherwise `position()` is the first action that has not been performed.
  template <class BeforeWaiting>
  bool run(BeforeWaiting before_waiting) {
    const plan::shape shape = plan_.shape(state_.size());
    if (shape.lanes != 1 || shape.peer_pointers) return false;
    if (shape.scratch > 0) {
      slot_bytes_ = layout_.largest_chunk() * kernel_.size;
      scratch_ = state_.scratch(sequence_ % transport::window).get(shape.scratch * slot_bytes_);
    }
    const unsigned length = plan_.length(state_.size(), state_.rank(), 0);
    bool has_waited = false;
    for (; position_ < length; ++position_) {
      const plan::action what = plan_.at(state_.size(), state_.rank(), 0, position_);
      if (perform(what)) continue;
      if (!is_receive(what)) return false;
      if (!has_waited) before_waiting();
      has_waited = true;
      if (!wait(what)) return false;
    }
    if (!has_waited) before_waiting();
    return true;
  }

  unsigned position() const noexcept { return position_; }

 private:
  static constexpr int most_yields = 8;  ///< to other ranks on this core, before a machine waits with more checks

  /// Polls until a receive is done. Returns false if it takes long.
  bool wait(const plan::action& what) {
    spinning& spin = state_.spin();
    for (int polls = spin.begin(); polls > 0; --polls) {
      platform::pause();
      if (!perform(what)) continue;
      spin.end(true);
      return true;
    }
    spin.end(false);
    for (int yields = spin.yields() ? most_yields : 0; yields > 0 && !spin.prefers_sleep(); --yields) {
      spin.yield();
      if (perform(what)) return true;
      if (state_.aborted()) break;
    }
    return false;
  }

  static bool is_receive(const plan::action& what) noexcept {
    return what.kind == plan::action_kind::receive || what.kind == plan::action_kind::receive_reduce;
  }

  HOCKET_ALWAYS_INLINE bool perform(const plan::action& what) {
    const std::size_t count = what.count == 0 ? 0 : layout_.chunks(what.chunk, what.count).size;
    const std::size_t bytes = count * kernel_.size;
    switch (what.kind) {
      case plan::action_kind::copy: {
        const std::byte* const from = place(what.from, what.from_at);
        std::byte* const to = place(what.to, what.to_at);
        if (bytes > 0 && from != to) kernel_.copy(to, from, bytes);
        return true;
      }
      case plan::action_kind::send: return bytes <= most_bytes_ && send(what, bytes);
      case plan::action_kind::receive:
      case plan::action_kind::receive_reduce: return bytes <= most_bytes_ && receive(what, count, bytes);
      default: return false;
    }
  }

  std::byte* place(plan::region where, std::uint32_t at) const noexcept {
    switch (where) {
      case plan::region::in: return const_cast<std::byte*>(in_) + (layout_.begin(at) - in_origin_) * kernel_.size;
      case plan::region::out: return out_ + (layout_.begin(at) - out_origin_) * kernel_.size;
      case plan::region::scratch: return scratch_ + at * slot_bytes_;
      default: return nullptr;
    }
  }

  HOCKET_ALWAYS_INLINE bool send(const plan::action& what, std::size_t bytes) {
    transport::message_id id{sequence_, what.channel};
    std::uint8_t& number = state_.numbers().sent(what.peer, id);
    id.signature = message_signature(signature_, number);
    if (!state_.endpoints().send_eagerly(what.peer, id, place(what.from, what.from_at), bytes)) return false;
    ++number;
    state_.moved().sent += bytes;
    return true;
  }

  HOCKET_ALWAYS_INLINE bool receive(const plan::action& what, std::size_t count, std::size_t bytes) {
    transport::message_id id{sequence_, what.channel};
    std::uint8_t& expected = state_.numbers().received(what.peer, id);
    id.signature = message_signature(signature_, expected);
    std::byte* const to = place(what.to, what.to_at);
    const bool combines = what.kind == plan::action_kind::receive_reduce;
    const std::byte* const from = combines ? place(what.from, what.from_at) : nullptr;
    const auto take = [&](const std::byte* message) {
      if (!combines) {
        if (bytes > 0) kernel_.copy(to, message, bytes);
      } else if (what.message_first) {
        kernel_.combine_two(operation_, to, message, from, count);
      } else {
        kernel_.combine_two(operation_, to, from, message, count);
      }
    };
    if (!state_.endpoints().receive_eagerly(what.peer, id, bytes, take)) return false;
    ++expected;
    return true;
  }

  State& state_;
  const std::size_t most_bytes_;
  const plan::any_algorithm& plan_;
  const plan::layout& layout_;
  const kernel::element_kernel& kernel_;
  const void* const operation_;
  const std::uint32_t sequence_;
  const std::uint32_t signature_;
  const std::byte* const in_;
  std::byte* const out_;
  std::size_t in_origin_ = 0;
  std::size_t out_origin_ = 0;
  std::byte* scratch_ = nullptr;
  std::size_t slot_bytes_ = 0;
  unsigned position_ = 0;
};

}  // namespace detail
HOCKET_END_NAMESPACE
