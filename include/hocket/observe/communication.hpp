// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The communication of a rank as metrics:
///
/// | metric | what it is |
/// |---|---|
/// | `hocket_collective_calls{collective="all_reduce"}` | calls, begun |
/// | `hocket_collective_bytes{collective="all_reduce"}` | bytes that the rank has sent, or read from peers' memory |
/// | `hocket_communication_seconds{collective="all_reduce"}` | time from the begin to the end of calls, hidden or not |
/// | `hocket_exposed_seconds` | time in which calls and waits kept a thread from computing |
/// | `hocket_sent_bytes{peer="3"}` | bytes in messages to a peer, and written to its memory |
/// | `hocket_received_bytes{peer="3"}` | bytes in messages from a peer, and written by it |
/// | `hocket_read_bytes{peer="3"}` | bytes that this rank has read from a peer's memory |
///
/// @code
/// hocket::observe::watch(metrics, comm);
/// @endcode
///
/// A call that ends on the path of the shortest messages without waiting takes about a microsecond, and is counted but
/// not timed: reading the clock would cost as much as a fifth of such a call. Forms for blocks of different lengths
/// count as their collective. Bytes are those of elements, as in `traffic`; copies between devices are not counted.
#pragma once

#include <hocket/communicator/communication_counts.hpp>
#include <hocket/communicator/communicator.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/platform/ticks.hpp>
#include <hocket/observe/followed_counter.hpp>
#include <hocket/observe/registry.hpp>

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace observe {
namespace detail {

/// The metrics of calls of one kind.
struct followed_calls {
  followed_calls(registry& in, call_kind kind)
      : calls(in, "hocket_collective_calls", "calls of this rank", of(kind)),
        bytes(in, "hocket_collective_bytes", "bytes that this rank has sent, or read from other ranks' memory",
              of(kind)),
        seconds(in, "hocket_communication_seconds", "time from the begin to the end of calls, hidden or not",
                of(kind)) {}

  static labels of(call_kind kind) { return {{"collective", to_string(kind)}}; }

  followed_counter calls, bytes, seconds;
};

/// The metrics of one peer, whose number in the domain is `peer`.
struct followed_peer {
  followed_peer(registry& in, int peer)
      : sent(in, "hocket_sent_bytes", "bytes that this rank has sent to a peer, or written to its memory", of(peer)),
        received(in, "hocket_received_bytes", "bytes that this rank has received from a peer", of(peer)),
        read(in, "hocket_read_bytes", "bytes that this rank has read from a peer's memory", of(peer)) {}

  static labels of(int peer) { return {{"peer", std::to_string(peer)}}; }

  followed_counter sent, received, read;
};

/// The metrics of one communicator. Further communicators add to the same counters.
class followed_communication {
  using counts_type = hocket::detail::communication_counts;

 public:
  followed_communication(registry& metrics, std::shared_ptr<const counts_type> counts)
      : counts_(std::move(counts)),
        exposed_(metrics, "hocket_exposed_seconds", "time in which calls and waits kept a thread from computing") {
    kinds_.reserve(call_kinds);
    peers_.reserve(static_cast<std::size_t>(counts_->ranks()));
    for (std::size_t kind = 0; kind < call_kinds; ++kind) kinds_.emplace_back(metrics, static_cast<call_kind>(kind));
    // All ranks of the domain have all peers, itself included: `read_over_ranks` needs equal labels on all ranks.
    for (int peer = 0; peer < counts_->ranks(); ++peer) peers_.emplace_back(metrics, peer);
  }

  /// Returns whether the counts can change later.
  bool update() noexcept {
    const bool was_last = counts_->has_ended();
    const double second = seconds_per_tick();
    for (std::size_t i = 0; i < call_kinds; ++i) {
      const auto kind = static_cast<call_kind>(i);
      kinds_[i].calls.follow(counts_->calls(kind));
      kinds_[i].bytes.follow(counts_->moved(kind).total());
      kinds_[i].seconds.follow(counts_->ticks(kind), second);
    }
    exposed_.follow(counts_->exposed_ticks(), second);
    for (int member = 0; member < static_cast<int>(counts_->members().size()); ++member) update_peer(member);
    return !was_last;
  }

 private:
  double seconds_per_tick() const noexcept {
    const platform::tick_mark now = platform::tick_mark::now(), begin = counts_->begin();
    if (now.ticks <= begin.ticks) return 0;
    return 1e-9 * static_cast<double>(now.nanoseconds - begin.nanoseconds) /
           static_cast<double>(now.ticks - begin.ticks);
  }

  void update_peer(int member) noexcept {
    const auto moved = counts_->with_peer(member);
    followed_peer& shown = peers_[static_cast<std::size_t>(counts_->members()[static_cast<std::size_t>(member)])];
    shown.sent.follow(moved.sent);
    shown.received.follow(moved.received);
    shown.read.follow(moved.read);
  }

  const std::shared_ptr<const counts_type> counts_;
  std::vector<followed_calls> kinds_;
  followed_counter exposed_;
  std::vector<followed_peer> peers_;
};

}  // namespace detail

/// Shows the calls of this rank on `comm` in `metrics`, from its first call on; a snapshot of the metrics has the
/// values at that time. The communicator may be destroyed before the registry. Several communicators of one registry
/// are added up: watch each once. Peers have the numbers that they have in the whole job.
///
/// **Cost.** For a registry, 1.1 KiB for each rank of the job, and 18 KiB; for each communicator, 48 bytes for each rank
/// of the job, and 3 KiB, until it is destroyed and the metrics are read. Calls take as long as before, because they are
/// always counted. **Threads.** Any.
template <class Domain>
void watch(registry& metrics, const communicator<Domain>& comm) {
  const auto& counts = hocket::detail::communicator_access::state(comm).shared_counts();
  metrics.before_read(
      [its = std::make_shared<detail::followed_communication>(metrics, counts)]() noexcept { return its->update(); });
}

/// Shows the calls on all communicators of a mesh.
template <class Mesh>
  requires requires(const Mesh& ranks) { Mesh::dimensions, ranks.all(), ranks.along(1U); }
void watch(registry& metrics, const Mesh& ranks) {
  for (unsigned axes = 1; axes < 1U << static_cast<unsigned>(Mesh::dimensions); ++axes)
    watch(metrics, ranks.along(axes));
}

}  // namespace observe
HOCKET_END_NAMESPACE
