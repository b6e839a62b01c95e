// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The vocabulary in which every collective algorithm is written: what one rank does in one step.
///
/// A plan gives a list of actions for each rank and each of its lanes. The same list is proven, priced, drawn,
/// simulated and run. Lanes of one rank run concurrently; within a lane actions run in order.
///
/// **Chunks.** The vector that a collective works on is cut into chunks, numbered alike on all ranks. An action covers
/// `count` consecutive chunks from `chunk` on; their total length is the length of what is moved. In the regions `in`
/// and `out` a position is a chunk number; in `scratch` it is the number of a slot, as large as the largest chunk.
///
/// **Messages.** Between two ranks a message belongs to a channel; messages of one channel arrive in the order in which
/// they were sent. `send` only starts the transfer: its source must not be overwritten until the message has drained.
/// `join` on an action waits first until all earlier sends of its lane have drained. A message drains at the latest
/// when the peer has received it; a plan must not rely on an earlier drain. The end of a lane joins.
///
/// **Peer pointers.** Where ranks can reach each other's memory, `load` and `load_reduce` read a peer's region
/// directly, and `push` writes to this rank's place in a peer's inbox. `signal` and `wait` order such accesses: a tag
/// is used once per pair of ranks and operation.
#pragma once

#include <hocket/core/config.hpp>

#include <cstdint>

HOCKET_BEGIN_NAMESPACE
namespace plan {

/// What an action does.
enum class action_kind : std::uint8_t {
  copy,            ///< to = from, both on this rank
  send,            ///< start sending `from` to `peer`
  receive,         ///< to = message from `peer`
  receive_reduce,  ///< to = combination of a message from `peer` with `from`; `message_first` gives the operand order
  load,            ///< to = `peer`'s `from`
  load_reduce,     ///< to = combination of all ranks' `from`, or of this rank's inbox, in rank order
  push,            ///< `peer`'s inbox at this rank's place = from, and signal `tag` with it
  signal,          ///< report to `peer` that all earlier actions of this lane are done
  wait             ///< wait until `peer` has signalled; `from` is `inbox` if the signal comes with a push
};

/// The memory that an action reads or writes.
enum class region : std::uint8_t {
  none,
  in,       ///< the contribution of this rank; never written
  out,      ///< the result; may hold partial results on the way
  scratch,  ///< slots that only this rank's plan uses
  inbox     ///< one place per peer, written by `push`
};

/// As the peer of `push`, `signal` and `wait`: every rank except this one.
inline constexpr std::int32_t all_peers = -1;

/// Maximum number of messages by which a sender can be ahead of its receiver on one channel; a further `send` waits.
/// Plans are proven with this depth.
inline constexpr unsigned channel_depth = 4;

/// One action of a plan. The functions below make the valid ones.
struct action {
  action_kind kind = action_kind::copy;  ///< what it does
  region from = region::none;            ///< the region that it reads
  region to = region::none;              ///< the region that it writes
  bool join = false;                     ///< first wait until all earlier sends of this lane have drained
  bool message_first = false;            ///< receive_reduce: to = message ∘ from instead of from ∘ message
  std::uint8_t channel = 0;              ///< send, receive, receive_reduce
  std::uint16_t tag = 0;                 ///< push, signal, wait
  std::int32_t peer = all_peers;         ///< the other rank, or `all_peers`
  std::uint32_t chunk = 0;               ///< the first chunk whose length counts
  std::uint32_t count = 0;               ///< how many chunks; 0 moves no data
  std::uint32_t from_at = 0;             ///< where `from` begins: chunk in `in` and `out`, slot in `scratch`
  std::uint32_t to_at = 0;               ///< where `to` begins

  friend constexpr bool operator==(const action&, const action&) = default;
};

/// A place in a region: where an operand begins.
struct place {
  region where = region::none;  ///< the region
  std::uint32_t at = 0;         ///< chunk in `in` and `out`, slot in `scratch`
};

/// Chunk `chunk` of the contribution.
constexpr place in(std::uint32_t chunk) noexcept { return {region::in, chunk}; }
constexpr place out(std::uint32_t chunk) noexcept { return {region::out, chunk}; }  ///< chunk `chunk` of the result
/// Slot `slot` of the scratch memory.
constexpr place scratch(std::uint32_t slot) noexcept { return {region::scratch, slot}; }
constexpr place inbox() noexcept { return {region::inbox, 0}; }  ///< the inbox

/// Consecutive chunks that an action covers. Their total length is the length of the action.
struct chunks {
  std::uint32_t first = 0;  ///< the first chunk
  std::uint32_t count = 1;  ///< number of chunks
};

/// Makes an action of kind `copy`.
constexpr action copy(chunks what, place from, place to) noexcept {
  return {.kind = action_kind::copy,
          .from = from.where,
          .to = to.where,
          .chunk = what.first,
          .count = what.count,
          .from_at = from.at,
          .to_at = to.at};
}

/// Makes an action of kind `send`.
constexpr action send(int peer, chunks what, place from, unsigned channel = 0) noexcept {
  return {.kind = action_kind::send,
          .from = from.where,
          .channel = static_cast<std::uint8_t>(channel),
          .peer = peer,
          .chunk = what.first,
          .count = what.count,
          .from_at = from.at};
}

/// Makes an action of kind `receive`.
constexpr action receive(int peer, chunks what, place to, unsigned channel = 0) noexcept {
  return {.kind = action_kind::receive,
          .to = to.where,
          .channel = static_cast<std::uint8_t>(channel),
          .peer = peer,
          .chunk = what.first,
          .count = what.count,
          .to_at = to.at};
}

/// to = from ∘ message, or message ∘ from.
enum class operand_order : bool { local_first, message_first };

/// Makes an action of kind `receive_reduce`.
constexpr action receive_reduce(int peer, chunks what, place from, place to, operand_order order,
                                unsigned channel = 0) noexcept {
  return {.kind = action_kind::receive_reduce,
          .from = from.where,
          .to = to.where,
          .message_first = order == operand_order::message_first,
          .channel = static_cast<std::uint8_t>(channel),
          .peer = peer,
          .chunk = what.first,
          .count = what.count,
          .from_at = from.at,
          .to_at = to.at};
}

/// Makes an action of kind `load`.
constexpr action load(int peer, chunks what, place from, place to) noexcept {
  return {.kind = action_kind::load,
          .from = from.where,
          .to = to.where,
          .peer = peer,
          .chunk = what.first,
          .count = what.count,
          .from_at = from.at,
          .to_at = to.at};
}

/// Makes an action of kind `load_reduce`.
constexpr action load_reduce(chunks what, place from, place to) noexcept {
  return {.kind = action_kind::load_reduce,
          .from = from.where,
          .to = to.where,
          .chunk = what.first,
          .count = what.count,
          .from_at = from.at,
          .to_at = to.at};
}

/// Makes an action of kind `push`.
constexpr action push(int peer, chunks what, place from, unsigned tag = 0) noexcept {
  return {.kind = action_kind::push,
          .from = from.where,
          .to = region::inbox,
          .tag = static_cast<std::uint16_t>(tag),
          .peer = peer,
          .chunk = what.first,
          .count = what.count,
          .from_at = from.at};
}

/// Makes an action of kind `signal`.
constexpr action signal(int peer, unsigned tag) noexcept {
  return {.kind = action_kind::signal, .tag = static_cast<std::uint16_t>(tag), .peer = peer};
}

/// Makes an action of kind `wait`.
constexpr action wait(int peer, unsigned tag) noexcept {
  return {.kind = action_kind::wait, .tag = static_cast<std::uint16_t>(tag), .peer = peer};
}

/// Waits for the signal that came with a `push`.
constexpr action wait_push(int peer, unsigned tag) noexcept {
  return {.kind = action_kind::wait, .from = region::inbox, .tag = static_cast<std::uint16_t>(tag), .peer = peer};
}

/// Returns the same action, which starts only after all earlier sends of its lane have drained.
constexpr action joined(action what) noexcept {
  what.join = true;
  return what;
}

}  // namespace plan
HOCKET_END_NAMESPACE
