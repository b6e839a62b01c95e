// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The events in virtual time after which an operation can make progress. The network names the event, and an operation
/// states which events it awaits, so that of thousands of operations only those that an event concerns are polled.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/transport/concept.hpp>

#include <array>
#include <cstdint>

HOCKET_BEGIN_NAMESPACE
namespace transport {

/// Returns the key by which a receive matches messages: operation (or tag), channel and the other rank.
constexpr std::uint64_t message_key(std::uint32_t sequence, unsigned channel, int peer) noexcept {
  return (std::uint64_t{sequence} << 32) | (std::uint64_t{channel} << 28) | static_cast<std::uint32_t>(peer);
}

/// An event at one endpoint group.
struct operation_event {
  enum class kind : std::uint8_t {
    any,      ///< any event: what the operation awaits has no name
    step,     ///< a lane of an operation of a plan can continue, or that operation may begin
    arrival,  ///< a message outside plans has arrived
    receipt,  ///< the peer has received such a message
    none
  };

  kind what = kind::any;
  std::uint64_t key = 0;

  static constexpr operation_event step(std::uint32_t sequence) noexcept { return {kind::step, sequence}; }
  static constexpr operation_event arrival(const message_id& id, int from) noexcept {
    return {kind::arrival, message_key(id.sequence, id.channel, from)};
  }
  static constexpr operation_event receipt(const message_id& id, int to) noexcept {
    return {kind::receipt, message_key(id.sequence, id.channel, to)};
  }

  friend constexpr bool operator==(const operation_event&, const operation_event&) = default;
  friend constexpr bool operator<(const operation_event& a, const operation_event& b) noexcept {
    return a.what != b.what ? a.what < b.what : a.key < b.key;
  }
};

/// The events that an operation awaits: `any`, or at most two others.
using awaited_events = std::array<operation_event, 2>;
inline constexpr awaited_events every_event{operation_event{}, operation_event{operation_event::kind::none, 0}};

/// Polls the operations of `owner` that `now` may concern; all of them if it is `any`. Returns whether any is incomplete.
using poll_function = bool (*)(void* owner, const operation_event& now);

}  // namespace transport
HOCKET_END_NAMESPACE
