// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// What moves bytes between the ranks of one communicator.
///
/// A transport is a *domain* (one per rank: what all communicators of a rank share, such as a UCX worker with its
/// endpoints) and *endpoint groups*, one per communicator, opened on the domain. The engine talks to these alone; peers are ranks
/// of that communicator. Messages are the floor that every one has. An endpoint group may also reach its peers' memory; whether
/// it does is known at run time, for each peer and each buffer.
///
/// All member functions of one endpoint group are called from one thread at a time. Those of one domain may be used from different
/// threads at the same time.
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

/// How many slots a communicator has for operations in flight; further ones wait for their turn. Each operation has a
/// slot of its own (sequence number modulo window), so that messages and flags of two operations never meet.
inline constexpr unsigned window = 8;

/// How many channels a plan may use between two ranks.
inline constexpr unsigned max_channels = 4;

/// The channel of messages that belong to no plan: those of `send` and `recv`. Their "sequence" is the caller's tag,
/// and they are matched by it.
inline constexpr unsigned point_to_point_channel = max_channels;

/// The channel of messages of the library itself that belong to no plan of a collective, as those of a pipeline's
/// steps. They are matched by their tags too, and never taken for those of `send` and `recv`.
inline constexpr unsigned internal_channel = point_to_point_channel + 1;

/// The same between some ranks only, of which the others know nothing, so that no tag can be dealt to them: these
/// messages are matched by their order.
inline constexpr unsigned partial_channel = internal_channel + 1;
inline constexpr unsigned last_channel = partial_channel;

/// How many messages of one channel a sender can be ahead of its receiver.
inline constexpr unsigned channel_depth = plan::channel_depth;

/// Which message: channel `channel` of operation `sequence`, or a message with a tag, of `send` and `recv` or internal.
struct message_id {
  std::uint32_t sequence = 0;
  std::uint32_t channel = 0;
  /// Of the call, or of the elements of a message from `send` to `recv`, where 0 is raw bytes; takes no part in matching,
  /// but the receiver compares it.
  std::uint32_t signature = 0;
  /// What is sent or received may lie where the processor can't read it. Equal on both sides; takes no part in matching.
  bool on_device = false;

  /// Whether it belongs to no plan, and `sequence` is its tag.
  constexpr bool point_to_point() const noexcept { return channel >= point_to_point_channel; }
  constexpr unsigned slot() const noexcept { return sequence % window; }
};

/// Of a flag or a message from `peer` in an operation of the same number, whose signature is another than ours.
HOCKET_NO_INLINE inline failure call_mismatch(int peer) {
  return make_failure(errc::mismatch,
                      "the peer's call differs from ours: operation, count, type, reduction operation, root and "
                      "algorithm must be equal on all ranks; or a message was lost, or came twice",
                      {.peer = peer});
}

/// In the signature of a message from `send`: it comes from a buffer with a tag, as one in memory of a device, and goes to no other.
inline constexpr std::uint32_t tagged_buffer = 1;

/// Whether a message with the signature `theirs` is what the receiver of `id` expects, but for its length.
constexpr bool fits(std::uint32_t theirs, message_id id) noexcept {
  if (theirs == id.signature) [[likely]]
    return true;
  const bool raw = theirs == 0 || id.signature == 0;
  return id.point_to_point() && raw && ((theirs | id.signature) & tagged_buffer) == 0;
}

/// Of a message from `peer` that does not.
HOCKET_NO_INLINE inline failure type_mismatch(int peer, message_id id) {
  if (!id.point_to_point()) return call_mismatch(peer);
  return make_failure(errc::mismatch,
                      "the peer sent elements of another type: sender and receiver must name the same type, or one of "
                      "them std::byte. Or one has a tagged buffer, such as cuda::device(...): then both must, with as "
                      "many elements and an equal cuda::staging",
                      {.peer = peer});
}

/// Of a message from `peer` that is longer or shorter than `wanted` bytes. `sent` says how long it is; `same_call`
/// whether it fits otherwise: then the sequence number is filled in.
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

/// What ranks tell each other beside the data: that the communicator has failed, or what they wait for.
struct control_message {
  static constexpr std::size_t most_bytes = 1024;

  int sender = -1;  ///< rank in the communicator
  std::vector<std::byte> bytes;
};

/// All-gather of small blobs among the members of a communicator that is being made: element r of the result is what
/// member r passed. Collective; throws `error` if a member does not show up.
using exchange_function = std::function<std::vector<std::vector<std::byte>>(std::span<const std::byte>)>;

/// How a communicator is made on a domain.
struct open_parameters {
  std::uint32_t context = 0;                        ///< equal on all members, unique among those that share one
  std::shared_ptr<const std::vector<int>> members;  ///< ranks on the wire, in the order of the communicator's ranks
  int rank = 0;                                     ///< this rank's place in `members`
  std::size_t window_bytes = 0;                     ///< memory that each member offers to the others, zeroed
  exchange_function exchange;
};

/// The engine's view of a transport.
template <class Endpoints>
concept endpoint_group = requires(Endpoints& p, const Endpoints& c, typename Endpoints::sending& sending,
                                  typename Endpoints::receiving& receiving, message_id id, int peer, const void* data,
                                  void* buffer, std::size_t bytes, std::uint64_t handle, failure& fail,
                                  std::span<const std::byte> words, control_message& received) {
  /// True if ranks are threads: memory that one of them frees is gone under those that read it.
  { Endpoints::shares_address_space } -> std::convertible_to<bool>;
  /// True if `try_receive` may show memory that is not `buffer`: then no buffer need be given.
  { Endpoints::receives_in_place } -> std::convertible_to<bool>;
  { c.rank() } -> std::convertible_to<int>;
  { c.size() } -> std::convertible_to<int>;

  /// Starts a message and returns true, or returns false if there is no room just now. `data` must stay unchanged until
  /// `drained(sending)`.
  { p.try_send(sending, peer, id, data, bytes, fail) } -> std::same_as<bool>;
  { p.drained(sending) } -> std::same_as<bool>;

  /// Where the next message of the channel lies, once it is here: in `buffer`, or in place. Null while it is not. The
  /// same arguments must be passed until it is; what is returned stays valid until `release`.
  { p.try_receive(receiving, peer, id, buffer, bytes, fail) } -> std::same_as<const void*>;
  { p.release(receiving) };

  /// Moves on whatever needs this thread's help. True if something happened.
  { p.progress() } -> std::same_as<bool>;
  /// True, and `fail` filled in, if a peer was lost or the transport broke.
  { p.broken(fail) } -> std::same_as<bool>;
  /// True if more ranks than cores share this machine: waits then yield early.
  { c.oversubscribed() } -> std::same_as<bool>;

  /// True if the peer has ended, or has left this communicator: nothing more will come from it, but for what is on its
  /// way.
  { p.gone(peer) } -> std::same_as<bool>;

  /// Forgets messages that have come and that nobody will receive, as this communicator has failed: their senders may
  /// wait for that before their buffers are free.
  { p.discard() } -> std::same_as<void>;

  /// Sends a control message of at most `control_message::most_bytes`: in order, without waiting, and in vain where the
  /// peer can't be reached.
  { p.post(peer, words) } -> std::same_as<void>;
  /// True if nothing that was posted needs this thread's help any more.
  { p.posted() } -> std::same_as<bool>;
  /// Whether a control message has come; costs a load.
  { c.has_control_message() } -> std::same_as<bool>;
  /// Takes the oldest one; false if there is none.
  { p.fetch(received) } -> std::same_as<bool>;

  /// The memory of `open_parameters::window_bytes` of a peer, or null if it can't be reached. This rank's own always can.
  { c.window_of(peer) } -> std::same_as<std::byte*>;
  /// True if the windows of all members can be reached from all members.
  { c.windows_reachable() } -> std::same_as<bool>;
  /// A handle by which peers may read `bytes` from `data` on; 0 if they can't.
  { c.publish(data, bytes) } -> std::same_as<std::uint64_t>;
  /// What a peer published, as an address here.
  { c.resolve(peer, handle) } -> std::same_as<const std::byte*>;
};

/// A port whose sends can't be given up at once: after `expedite`, by any thread, peers get a few milliseconds to take them.
template <class Endpoints>
concept can_expedite = requires(Endpoints& p) {
  { p.expedite() } noexcept;
};

/// Endpoints that sets the pace: before each action of an operation it says whether that lane may do it now, and before a
/// lane ends whether it may. How simulated ranks keep virtual time, and how others are slowed down or watched.
template <class Endpoints>
concept paces_steps =
    requires(Endpoints& endpoints, std::uint32_t sequence, unsigned lane, const plan::action& what, std::size_t bytes) {
      endpoints.call(sequence);         // an operation was called for; it may have to wait for its turn
      endpoints.enter(sequence, lane);  // it begins, with that many lanes
      { endpoints.may_act(sequence, lane, what, bytes) } -> std::same_as<bool>;
      { endpoints.may_end(sequence, lane) } -> std::same_as<bool>;
      endpoints.leave(sequence);  // the operation is over; asked for again when it is destroyed
    };

/// Endpoints that is told of each action of an operation when it is done.
template <class Endpoints>
concept observes_steps = requires(Endpoints& endpoints, std::uint32_t sequence, unsigned lane, const plan::action& what,
                                  std::size_t bytes) { endpoints.on_step(sequence, lane, what, bytes); };

/// Endpoints that is told what an operation is, right before it is entered: its collective, its algorithm, and the bytes of the
/// vector.
template <class Endpoints>
concept observes_operations =
    requires(Endpoints& endpoints, std::uint32_t sequence, const char* operation, const char* algorithm,
             std::size_t bytes) { endpoints.on_operation(sequence, operation, algorithm, bytes); };

/// Whether `Endpoints` lets each action be done at once, and each flag get where it is to: who does not ask it can do the same.
template <class Endpoints>
inline constexpr bool observes_only = !paces_steps<Endpoints> || requires { requires Endpoints::observes_only; };

/// Whether time passes for `Endpoints` only as it says: an action is never cut into slices then.
template <class Endpoints>
inline constexpr bool keeps_virtual_time = requires { requires Endpoints::virtual_time; };

/// Whether a flag that is written into the window of `peer` is to get there. Ports may have it lost.
template <class Endpoints>
constexpr bool flag_reaches(Endpoints& through, int peer) {
  if constexpr (requires { through.flag_reaches(peer); }) {
    return through.flag_reaches(peer);
  } else {
    return true;
  }
}

/// What has become of a peer that is `gone`. Ports may know more.
template <class Endpoints>
std::string departure_reason(Endpoints& through, int peer) {
  if constexpr (requires { through.departure_reason(peer); }) {
    return through.departure_reason(peer);
  } else {
    return "it has left the communicator";
  }
}

/// Whether this process is a copy of the one that `through` was made in, by `fork`, and must leave it alone. A wire whose
/// ranks are no processes needs not know.
template <class Domain>
bool in_forked_child(const Domain& through) noexcept {
  if constexpr (requires { through.in_forked_child(); }) {
    return through.in_forked_child();
  } else {
    return false;
  }
}

/// Whether messages of `through` may be marked `message_id::on_device`: then all of its ranks send and receive memory of
/// devices as it is.
template <class Domain>
bool is_device_aware(const Domain& through) noexcept {
  if constexpr (requires { through.is_device_aware(); }) {
    return through.is_device_aware();
  } else {
    return false;
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
  /// Collective over `how.members`, which a failure on `w` has left: the wire on which they go on. That is `w` itself,
  /// or a fresh one of theirs alone if those that died may have left `w` unusable; then `how` names its ranks and
  /// context 0.
  { Domain::renewed(w, changing) } -> std::same_as<std::shared_ptr<Domain>>;
};

}  // namespace transport
HOCKET_END_NAMESPACE
