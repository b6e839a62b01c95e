// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The concepts of a transport, which moves bytes between the ranks of a communicator.
///
/// A transport is a *domain* (one per rank: what all communicators of a rank share, such as a UCX worker with its
/// endpoints) and *endpoint groups*, one per communicator, opened on the domain. The engine uses only endpoint groups;
/// peers are ranks of that communicator. Every endpoint group sends messages. It may also reach its peers' memory;
/// whether it does is known at run time, for each peer and each buffer.
///
/// All member functions of one endpoint group are called from one thread at a time. Different threads may use endpoint
/// groups of one domain at the same time.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/text.hpp>
#include <hocket/plan/action.hpp>
#include <hocket/transport/contexts.hpp>
#include <hocket/transport/link_costs.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace transport {

/// Number of slots of a communicator for operations in flight; further operations wait for their turn. Each operation
/// has its own slot (sequence number modulo window), so that messages and flags of two operations are never confused.
inline constexpr unsigned window = 8;

/// Number of channels that a plan may use between two ranks.
inline constexpr unsigned max_channels = 4;

/// The channel of messages that belong to no plan: those of `send` and `recv`. Their "sequence" is the caller's tag, by
/// which they are matched.
inline constexpr unsigned point_to_point_channel = max_channels;

/// The channel of the library's own messages that belong to no plan of a collective, such as those of a pipeline's
/// steps. They too are matched by tags, and never confused with those of `send` and `recv`.
inline constexpr unsigned internal_channel = point_to_point_channel + 1;

/// Like `internal_channel`, for messages between some ranks only. Other ranks do not know of them, so no tag can be
/// assigned; these messages are matched by their order.
inline constexpr unsigned partial_channel = internal_channel + 1;
inline constexpr unsigned last_channel = partial_channel;  ///< the last channel

/// Number of messages of one channel that a sender can be ahead of its receiver.
inline constexpr unsigned channel_depth = plan::channel_depth;

/// Identifies a message: channel `channel` of operation `sequence`, or a tagged one of `send` and `recv` or internal.
struct message_id {
  std::uint32_t sequence = 0;  ///< number of the operation, or a tag
  std::uint32_t channel = 0;   ///< channel within the operation
  /// Signature of the call, or of the element type of a message from `send` to `recv`, where 0 is raw bytes. Not used
  /// for matching, but the receiver compares it.
  std::uint32_t signature = 0;
  /// The buffer may be in memory that the processor can't read. Equal on both sides; not used for matching.
  bool on_device = false;

  /// True if the message belongs to no plan, and `sequence` is its tag.
  constexpr bool point_to_point() const noexcept { return channel >= point_to_point_channel; }
  constexpr unsigned slot() const noexcept { return sequence % window; }  ///< slot of the operation in the window
};

/// Failure if a flag or message from `peer` in the same operation has a signature that differs from this rank's.
HOCKET_NO_INLINE inline failure call_mismatch(int peer) {
  return make_failure(errc::mismatch,
                      "the peer's call differs from ours: operation, count, type, reduction operation, root and "
                      "algorithm must be equal on all ranks; or a message was lost or duplicated",
                      {.peer = peer});
}

/// Bit in the signature of a message from `send` out of a tagged buffer, such as one in device memory: the receiving
/// buffer must be tagged too.
inline constexpr std::uint32_t tagged_buffer = 1;

/// True if a message with the signature `theirs` is what the receiver of `id` expects, except for its length.
constexpr bool fits(std::uint32_t theirs, message_id id) noexcept {
  if (theirs == id.signature) [[likely]]
    return true;
  const bool raw = theirs == 0 || id.signature == 0;
  return id.point_to_point() && raw && ((theirs | id.signature) & tagged_buffer) == 0;
}

/// Failure for a message from `peer` that does not fit.
HOCKET_NO_INLINE inline failure type_mismatch(int peer, message_id id) {
  if (!id.point_to_point()) return call_mismatch(peer);
  return make_failure(errc::mismatch,
                      "the peer sent elements of another type: sender and receiver must name the same type, or one of "
                      "them std::byte. If one has a tagged buffer, such as cuda::device(...), both must, with as many "
                      "elements and an equal cuda::staging",
                      {.peer = peer});
}

/// Failure for a message from `peer` that is longer or shorter than `wanted` bytes. `sent` is its length as text. If
/// `same_call`, it fits otherwise, and the sequence number is filled in.
inline failure wrong_length(const std::string& sent, bool too_long, int peer, message_id id, std::size_t wanted,
                            bool same_call) {
  if (id.point_to_point() && !same_call) return type_mismatch(peer, id);
  const std::string lengths =
      hocket::detail::concat({"the peer sent ", sent, " bytes where ", wanted, " were expected: "});
  if (!id.point_to_point()) {
    return make_failure(errc::mismatch,
                        lengths + (same_call ? "counts differ between the two ranks, or the message was cut off"
                                             : "counts, types and algorithm must be equal on all ranks"),
                        {.sequence = same_call ? id.sequence : 0U, .peer = peer});
  }
  return make_failure(too_long ? errc::truncated : errc::mismatch,
                      lengths + "sender and receiver must name the same number of elements of the same type",
                      {.peer = peer});
}

/// A message beside the data: reports that the communicator has failed, or what a rank waits for.
struct control_message {
  static constexpr std::size_t most_bytes = 1024;  ///< maximum size

  int sender = -1;               ///< rank in the communicator
  std::vector<std::byte> bytes;  ///< the message
};

/// All-gather of small blobs among the members of a communicator that is being created: element r of the result is what
/// member r passed. Collective; throws `error` if a member does not arrive.
using exchange_function = std::function<std::vector<std::vector<std::byte>>(std::span<const std::byte>)>;

/// Parameters for opening an endpoint group on a domain.
struct open_parameters {
  std::uint32_t context = 0;  ///< equal on all members, unique among communicators that share a member
  std::shared_ptr<const std::vector<int>> members;  ///< ranks of the domain, in the order of the communicator's ranks
  int rank = 0;                                     ///< this rank's place in `members`
  std::size_t window_bytes = 0;                     ///< size of each member's window, which is zeroed
  exchange_function exchange;                       ///< among the members
};

/// The engine's view of a transport.
template <class Endpoints>
concept endpoint_group = requires(Endpoints& p, const Endpoints& c, typename Endpoints::sending& sending,
                                  typename Endpoints::receiving& receiving, message_id id, int peer, const void* data,
                                  void* buffer, std::size_t bytes, std::uint64_t handle, failure& fail,
                                  std::span<const std::byte> payload, control_message& received) {
  /// True if ranks are threads: if one of them frees memory, others may still be reading it.
  { Endpoints::shares_address_space } -> std::convertible_to<bool>;
  /// True if `try_receive` may return memory other than `buffer`: then no buffer is required.
  { Endpoints::receives_in_place } -> std::convertible_to<bool>;
  { c.rank() } -> std::convertible_to<int>;
  { c.size() } -> std::convertible_to<int>;

  /// Starts a message and returns true, or returns false if there is currently no room. `data` must stay unchanged
  /// until `drained(sending)`. From then on the message arrives even if this rank makes no progress.
  { p.try_send(sending, peer, id, data, bytes, fail) } -> std::same_as<bool>;
  { p.drained(sending) } -> std::same_as<bool>;

  /// Returns the address of the channel's next message, in `buffer` or in place; null until the message has arrived.
  /// Pass the same arguments until then. The result stays valid until `release`.
  { p.try_receive(receiving, peer, id, buffer, bytes, fail) } -> std::same_as<const void*>;
  { p.release(receiving) };

  /// Advances whatever needs this thread's help. Returns true if something happened.
  { p.progress() } -> std::same_as<bool>;
  /// Returns true and fills in `fail` if a peer was lost or the transport broke.
  { p.broken(fail) } -> std::same_as<bool>;
  /// Ranks of this machine per core, rounded up: if more than one, waits yield early.
  { c.ranks_per_core() } -> std::same_as<int>;

  /// True if the peer has ended, or has left this communicator: only messages in transit still arrive from it.
  { p.gone(peer) } -> std::same_as<bool>;

  /// Discards arrived messages that no call will receive, because this communicator has failed: their senders may wait
  /// for that before they can reuse their buffers.
  { p.discard() } -> std::same_as<void>;

  /// Sends a control message of at most `control_message::most_bytes`, in order and without waiting. Has no effect if
  /// the peer can't be reached.
  { p.post(peer, payload) } -> std::same_as<void>;
  /// True if no posted message needs this thread's help any more.
  { p.posted() } -> std::same_as<bool>;
  /// True if a control message has arrived; costs a load.
  { c.has_control_message() } -> std::same_as<bool>;
  /// Takes the oldest control message; returns false if there is none.
  { p.fetch(received) } -> std::same_as<bool>;

  /// Returns a peer's window of `open_parameters::window_bytes`; null if it can't be reached. This rank's own can.
  { c.window_of(peer) } -> std::same_as<std::byte*>;
  /// True if all members can reach the windows of all members.
  { c.windows_reachable() } -> std::same_as<bool>;
  /// Returns a handle by which peers may read `bytes` from `data` on; 0 if they can't.
  { c.publish(data, bytes) } -> std::same_as<std::uint64_t>;
  /// Returns this rank's address of memory that a peer published.
  { c.resolve(peer, handle) } -> std::same_as<const std::byte*>;
};

/// Endpoints whose messages may arrive in parts, in order. `receives_parts(id)` tells for which messages; then
/// `next_part` and `finish_part` may be used instead of `try_receive`. The length of each part but the last is a multiple
/// of `part_multiple`, if the room for it is.
template <class Endpoints>
concept receives_in_parts = requires(Endpoints& p, typename Endpoints::receiving& receiving, message_id id, int peer,
                                     std::byte* buffer, std::size_t bytes, std::size_t& part, failure& fail) {
  { Endpoints::part_multiple } -> std::convertible_to<std::size_t>;
  { p.receives_parts(id) } -> std::same_as<bool>;
  /// Arguments 4 to 7: a buffer and its size, the length of the message, and where to store the length of the part.
  /// Returns the next part, in the buffer or in place; null if none has arrived. Then call `finish_part` before anything
  /// else.
  { p.next_part(receiving, peer, id, buffer, bytes, bytes, part, fail) } -> std::same_as<const std::byte*>;
  /// Takes the part. Returns whether it was the last one.
  { p.finish_part(receiving, peer, bytes) } -> std::same_as<bool>;
};

/// Returns how many bytes of a message that is not complete have arrived, as far as the endpoints know: those that do
/// define a static `received_bytes`.
template <class Endpoints>
std::size_t received_bytes([[maybe_unused]] const typename Endpoints::receiving& receiving) noexcept {
  if constexpr (requires { Endpoints::received_bytes(receiving); }) {
    return Endpoints::received_bytes(receiving);
  } else {
    return 0;
  }
}

/// The result of an attempt to receive a short message at once.
enum class eager_receive : std::uint8_t {
  taken,
  not_arrived,
  needs_general_receive  ///< has arrived, but is behind another message, is stored, or does not fit: use `try_receive`
};

/// Endpoints that copy short messages when they are sent.
template <class Endpoints>
concept sends_eagerly = requires(Endpoints& p, const Endpoints& c, int peer, message_id id, const void* data,
                                 std::size_t bytes, void (*take)(const std::byte*)) {
  /// The length up to which messages are copied; 0 if none are.
  { c.eager_bytes() } -> std::same_as<std::size_t>;
  /// Copies and sends a message of at most `eager_bytes`. Returns false if there is no room.
  { p.send_eagerly(peer, id, data, bytes) } -> std::same_as<bool>;
  /// Calls `take` with the content of such a message, if the next message from `peer` that has no receive is this one
  /// and fits. Otherwise nothing has happened.
  { p.receive_eagerly(peer, id, bytes, take) } -> std::same_as<eager_receive>;
};

enum class memory_copy { done, process_ended, failed };

/// Endpoints by which ranks may read peers' memory that they do not share, by copying it. A handle then refers either to
/// memory that the reader maps, or to memory of the peer's process.
template <class Endpoints>
concept copies_memory = requires(Endpoints& p, const Endpoints& c, int peer, const void* data, void* buffer,
                                 std::size_t offset, std::size_t bytes, std::uint64_t handle) {
  /// True if all ranks can; equal on all of them.
  { c.copies_any_memory() } -> std::same_as<bool>;
  /// Returns a handle of any memory of this process.
  { c.publish_unmapped(data) } -> std::same_as<std::uint64_t>;
  { c.is_mapped(handle) } -> std::same_as<bool>;
  /// Copies `bytes` after the first `offset` of the memory with `handle`, which is not mapped.
  { p.copy(peer, handle, offset, buffer, bytes) } -> std::same_as<memory_copy>;
};

/// Returns whether all ranks can copy any memory of all their peers.
template <class Endpoints>
bool copies_any_memory([[maybe_unused]] const Endpoints& endpoints) noexcept {
  if constexpr (copies_memory<Endpoints>) {
    return endpoints.copies_any_memory();
  } else {
    return false;
  }
}

/// Endpoints whose rank can sleep until a peer writes to it.
template <class Endpoints>
concept can_sleep = requires(Endpoints& p, const Endpoints& c, int peer) {
  /// True if its peers wake it, now or later.
  { c.sleeps() } -> std::same_as<bool>;
  /// True if all that calls wait for now comes from peers that wake this rank.
  { c.may_sleep() } -> std::same_as<bool>;
  /// Announces that this rank will sleep. Then look for what it waits for, and call `sleep` or `stay_awake`.
  p.announce_sleep();
  p.sleep();  ///< at most some ms
  p.stay_awake();
  /// Wakes `peer` if it sleeps. Call it after each store to a window of `peer` that it may wait for.
  p.wake(peer);
};

/// Returns whether this rank can sleep while it waits for peers, now or later.
template <class Endpoints>
bool sleeps([[maybe_unused]] const Endpoints& endpoints) noexcept {
  if constexpr (can_sleep<Endpoints>) {
    return endpoints.sleeps();
  } else {
    return false;
  }
}

/// Returns whether calls of this rank may sleep now.
template <class Endpoints>
bool may_sleep([[maybe_unused]] const Endpoints& endpoints) noexcept {
  if constexpr (can_sleep<Endpoints>) {
    return endpoints.may_sleep();
  } else {
    return false;
  }
}

/// Wakes `peer` if it can sleep.
template <class Endpoints>
void wake([[maybe_unused]] Endpoints& endpoints, [[maybe_unused]] int peer) noexcept {
  if constexpr (can_sleep<Endpoints>) endpoints.wake(peer);
}

/// Endpoints that can't abandon sends immediately: after `expedite`, by any thread, peers get some ms to take them.
template <class Endpoints>
concept can_expedite = requires(Endpoints& p) {
  { p.expedite() } noexcept;
};

/// Endpoints that set the pace: they decide before each action of an operation whether that lane may do it now, and
/// before a lane ends whether it may. Used for virtual time on simulated ranks, and to delay or observe other ranks.
template <class Endpoints>
concept paces_steps =
    requires(Endpoints& endpoints, std::uint32_t sequence, unsigned lane, const plan::action& what, std::size_t bytes) {
      endpoints.call(sequence);         // an operation was called; it may have to wait for its turn
      endpoints.enter(sequence, lane);  // it begins, with that many lanes
      { endpoints.may_act(sequence, lane, what, bytes) } -> std::same_as<bool>;
      { endpoints.may_end(sequence, lane) } -> std::same_as<bool>;
      endpoints.leave(sequence);  // the operation has completed; called again when it is destroyed
    };

/// Endpoints that get each completed action of an operation reported.
template <class Endpoints>
concept observes_steps = requires(Endpoints& endpoints, std::uint32_t sequence, unsigned lane, const plan::action& what,
                                  std::size_t bytes) { endpoints.on_step(sequence, lane, what, bytes); };

/// Endpoints that get each operation described right before it is entered: its collective, its algorithm, and the bytes
/// of the vector.
template <class Endpoints>
concept observes_operations =
    requires(Endpoints& endpoints, std::uint32_t sequence, const char* operation, const char* algorithm,
             std::size_t bytes) { endpoints.on_operation(sequence, operation, algorithm, bytes); };

/// True if `Endpoints` delays no action and loses no flag: a caller need not ask before each action and flag.
template <class Endpoints>
inline constexpr bool observes_only = !paces_steps<Endpoints> || requires { requires Endpoints::observes_only; };

/// True if `Endpoints` runs in virtual time: an action is then never cut into slices.
template <class Endpoints>
inline constexpr bool keeps_virtual_time = requires { requires Endpoints::virtual_time; };

/// Returns whether a flag written into the window of `peer` arrives. Endpoints may inject its loss.
template <class Endpoints>
constexpr bool flag_reaches(Endpoints& through, int peer) {
  if constexpr (requires { through.flag_reaches(peer); }) {
    return through.flag_reaches(peer);
  } else {
    return true;
  }
}

/// Returns why a peer is `gone`. Endpoints may give a more precise reason.
template <class Endpoints>
std::string departure_reason(Endpoints& through, int peer) {
  if constexpr (requires { through.departure_reason(peer); }) {
    return through.departure_reason(peer);
  } else {
    return "it has left the communicator";
  }
}

/// Returns whether this process is a `fork` of the one that created `through`, and must not use it. A domain whose
/// ranks are not processes need not know.
template <class Domain>
bool in_forked_child(const Domain& through) noexcept {
  if constexpr (requires { through.in_forked_child(); }) {
    return through.in_forked_child();
  } else {
    return false;
  }
}

/// Returns whether messages of `through` may be marked `message_id::on_device`: then all of its ranks send and receive
/// device memory without staging.
template <class Domain>
bool is_device_aware(const Domain& through) noexcept {
  if constexpr (requires { through.is_device_aware(); }) {
    return through.is_device_aware();
  } else {
    return false;
  }
}

/// Returns the costs of `through` and where they are from. A domain with only one kind of costs need not know.
template <class Domain>
world_costs agreed_costs(const Domain& through) noexcept {
  if constexpr (requires { through.agreed_costs(); }) {
    return through.agreed_costs();
  } else {
    return {through.costs(), through.costs()};
  }
}

/// One rank's share of a transport, from which endpoint groups are opened.
template <class Domain>
concept domain = requires(const std::shared_ptr<Domain>& w, const open_parameters& how, open_parameters& changing) {
  typename Domain::endpoints_type;
  requires endpoint_group<typename Domain::endpoints_type>;
  { w->rank() } -> std::convertible_to<int>;
  { w->size() } -> std::convertible_to<int>;
  { Domain::name } -> std::convertible_to<const char*>;
  { w->costs() } -> std::same_as<link_costs>;
  { w->contexts() } -> std::same_as<contexts&>;
  { Domain::open(w, how) } -> std::same_as<std::unique_ptr<typename Domain::endpoints_type>>;
  /// Returns the domain on which the survivors of a failure on `w` continue; collective over them. That is `w` itself,
  /// or a new domain of the survivors if the lost ranks may have made `w` unusable; then `changing` gets the ranks of
  /// that domain and context 0.
  { Domain::renewed(w, changing) } -> std::same_as<std::shared_ptr<Domain>>;
};

}  // namespace transport
HOCKET_END_NAMESPACE
