// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// State of a communicator: its endpoints, its windows, and the progress of its operations.
///
/// Operations are numbered from 1. At most `most_in_flight` of them are in flight; the others wait for their turn. An
/// operation that writes into its peers' windows also waits until every peer has completed the operation that used the
/// same slot before; this is nearly always known from the peers' last flags.
///
/// **Failure.** The first failure on any rank revokes the communicator on all ranks: peers receive it, end their calls
/// and forward it. If ranks read each other's buffers, a flag in each window is raised too, and two guarantees hold: a
/// rank that finds the flag raised discards what it read; and, if ranks are threads, a failed call returns only when no
/// peer is in a call that might still read.
#pragma once

#include <hocket/communicator/active_operations.hpp>
#include <hocket/communicator/attribute_cache.hpp>
#include <hocket/communicator/call_log.hpp>
#include <hocket/communicator/communication_counts.hpp>
#include <hocket/communicator/control.hpp>
#include <hocket/communicator/flight_recorder.hpp>
#include <hocket/communicator/message_numbers.hpp>
#include <hocket/communicator/message_order.hpp>
#include <hocket/communicator/planned_call.hpp>
#include <hocket/communicator/spinning.hpp>
#include <hocket/communicator/tag_allocator.hpp>
#include <hocket/communicator/window.hpp>
#include <hocket/core/buffer.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/deadline.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/platform/cpu.hpp>
#include <hocket/core/platform/fence.hpp>
#include <hocket/core/text.hpp>
#include <hocket/transport/concept.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// Up to this number of ranks, pushing to all peers is the fastest algorithm.
inline constexpr int most_ranks_to_push = 16;

/// The lines through which this rank and one peer push to each other.
struct push_pair {
  int peer = 0;
  push_line* to = nullptr;
  const push_line* from = nullptr;
};

class operation;
template <class Operation>
class indexed_operations;

/// Failure of a call with a negative timeout.
HOCKET_COLD inline failure negative_timeout(std::chrono::nanoseconds given, error_context where = {}) {
  return make_failure(errc::invalid_argument,
                      concat({"timeout is ", given.count(), " ns; it must be at least 0, which means not to wait"}),
                      where);
}

template <class Domain>
class communicator_state {
 public:
  using domain_type = Domain;
  using endpoints_type = typename Domain::endpoints_type;
  /// Ranks in virtual time include <hocket/communicator/indexed_operations.hpp>.
  using active_type = std::conditional_t<transport::keeps_virtual_time<endpoints_type>, indexed_operations<operation>,
                                         active_operations<operation>>;

  communicator_state(std::shared_ptr<Domain> through, transport::open_parameters how, std::size_t staging_bytes);
  communicator_state(const communicator_state&) = delete;
  communicator_state& operator=(const communicator_state&) = delete;
  ~communicator_state();

  int rank() const noexcept { return rank_; }
  int size() const noexcept { return size_; }
  endpoints_type& endpoints() noexcept { return *endpoints_; }
  const endpoints_type& endpoints() const noexcept { return *endpoints_; }
  const std::shared_ptr<Domain>& domain() const noexcept { return domain_; }
  /// True if this process is a forked copy of the rank: it must not use or destroy this state.
  bool in_forked_child() const noexcept { return transport::in_forked_child(*domain_); }
  /// Ranks of the members in the domain.
  const std::shared_ptr<const std::vector<int>>& members() const noexcept { return members_; }
  const window_layout& layout() const noexcept { return layout_; }

  /// True if every member can reach every member's window; equal on all members.
  bool has_windows() const noexcept { return !windows_.empty(); }

  // ── Flags ────────────────────────────────────────────────────────────────────────────────────────────────────────

  std::byte* window(int peer) const noexcept { return windows_[static_cast<std::size_t>(peer)]; }

  /// True if pushing to all peers is the best way to distribute small contributions.
  bool pushes() const noexcept { return pushes_; }
  /// How long waits spin.
  detail::spinning& spin() noexcept { return spin_; }
  /// Every other rank with its push lines of slot 0; those of slot s are s * slot_lines() further.
  const std::vector<push_pair>& pushing() const noexcept { return pushing_; }
  std::size_t slot_lines() const noexcept { return slot_lines_; }
  /// Push lines of slot 0 in this rank's window, indexed by the rank that writes them.
  const push_line* push_lines_from() const noexcept { return push_lines_from_; }

  /// The line in `peer`'s window that this rank writes.
  push_line& push_line_at(int peer, unsigned slot) const noexcept { return layout_.push(window(peer), slot, rank()); }
  signal_line& signal_line_at(int peer, unsigned slot) const noexcept {
    return layout_.signal(window(peer), slot, rank());
  }
  /// The line in this rank's window that `peer` writes.
  push_line& push_line_from(int peer, unsigned slot) const noexcept { return layout_.push(window(rank()), slot, peer); }
  signal_line& signal_line_from(int peer, unsigned slot) const noexcept {
    return layout_.signal(window(rank()), slot, peer);
  }

  /// Maximum number of bytes that peers can read of a buffer of the caller; 0 if there is no limit.
  std::size_t staging_limit() const noexcept {
    return transport::copies_any_memory(*endpoints_) ? 0 : layout_.staging_bytes;
  }

  // ── Progress of operations ───────────────────────────────────────────────────────────────────────────────────────

  /// Reserves `count` consecutive sequence numbers and returns the first.
  std::uint32_t take_sequence(std::uint32_t count = 1) noexcept {
    last_sequence_ += count;
    return last_sequence_ - count + 1;
  }
  std::uint32_t last_sequence() const noexcept { return last_sequence_; }

  /// Tags of the internal channel. They wrap around, on most transports after 65536.
  tag_allocator& tags() noexcept { return tags_; }

  /// Whether operation `sequence` may begin here.
  bool has_turn(std::uint32_t sequence) const noexcept { return distance(completed_, sequence) <= most_in_flight; }

  /// The last operation that may begin here.
  std::uint32_t last_turn() const noexcept { return completed_ + static_cast<std::uint32_t>(most_in_flight); }

  /// True if all peers have left the slot of `sequence`, so that it may be written.
  bool has_credit(std::uint32_t sequence) noexcept { return knows_credit(sequence) || refresh_credit(sequence); }
  /// Like `has_credit`, but uses only what is already known.
  bool knows_credit(std::uint32_t sequence) const noexcept {
    return distance(least_completed_, sequence) <= static_cast<std::int32_t>(transport::window);
  }

  /// Records that a flag of operation `sequence` came from `peer`.
  void note_completed(int peer, std::uint32_t sequence) noexcept {
    std::uint32_t& known = peer_completed_[static_cast<std::size_t>(peer)];
    const std::uint32_t completed = sequence - most_in_flight;
    if (distance(known, completed) > 0) known = completed;
  }

  /// Records that operation `sequence` and all before it are complete on this rank, and that every peer has begun it.
  void complete_all(std::uint32_t sequence) noexcept {
    const std::uint32_t before = completed_;
    completed_ = sequence;
    least_completed_ = sequence - most_in_flight;
    header_->completed.store(sequence, std::memory_order_release);
    if (is_next_era(before)) [[unlikely]]
      refresh_all_completed();
  }

  /// Records that operation `sequence` is complete on this rank.
  void complete(std::uint32_t sequence) noexcept {
    const std::uint32_t before = completed_;
    if (finished_ == 0 && sequence == completed_ + 1) {
      completed_ = sequence;
    } else {
      finished_ |= 1U << static_cast<unsigned>(distance(completed_, sequence) - 1);
      for (; (finished_ & 1U) != 0; finished_ >>= 1) ++completed_;
    }
    if (header_ == nullptr) return;
    header_->completed.store(completed_, std::memory_order_release);
    if (is_next_era(before)) [[unlikely]]
      refresh_all_completed();
  }

  message_numbers& numbers() noexcept { return numbers_; }

  /// What this rank has done so far.
  communication_counts& counts() noexcept { return *counts_; }
  const std::shared_ptr<communication_counts>& shared_counts() const noexcept { return counts_; }

  /// Returns the times of a call that began at `begun`; of none in virtual time, in which a thread runs many ranks.
  timed_call timed(call_kind kind, bool blocks, std::uint64_t begun) noexcept {
    if constexpr (transport::keeps_virtual_time<endpoints_type>) return {};
    return {*counts_, kind, blocks, begun};
  }
  /// Reopens the last call, which was entered as brief but has not completed.
  log_entry reopen(call_kind kind) noexcept {
    const timed_call since = timed(kind, true, calls_.begin_of_last());
    return {calls_, calls_.reopen_last(), kind_of_calls, since};
  }

  // ── Memory ───────────────────────────────────────────────────────────────────────────────────────────────────────

  /// Scratch of the operation in `slot`.
  growing_buffer& scratch(unsigned slot) noexcept { return scratch_[slot]; }
  /// Buffer into which messages of the operation in `slot` are received before they are combined, one per lane.
  growing_buffer& receive_buffer(unsigned slot, unsigned lane);

  /// Lends a buffer for data that can't be stored in the caller's buffers, such as prepared contributions.
  growing_buffer borrow();
  void return_buffer(growing_buffer buffer);

  // ── Calls ────────────────────────────────────────────────────────────────────────────────────────────────────────

  /// Begins a call; false if another thread is in one, or if this process is a forked copy. Peer memory that is read
  /// between `enter` and `leave` remains valid until `leave`.
  bool enter() noexcept {
    const bool alone = occupy(occupancy::reads);
    platform::light_fence();  // before `flagged` is read; pairs with `wait_for_readers`
    return alone;
  }
  /// Like `enter`, for a call that does not read peer memory.
  bool enter_without_reads() noexcept { return occupy(occupancy::without_reads); }
  /// Marks that the call no longer reads peer memory.
  void stop_reading() noexcept { occupied_->store(occupancy::without_reads, std::memory_order_release); }
  void leave() noexcept { occupied_->store(occupancy::none, std::memory_order_release); }

  call_log& calls() noexcept { return calls_; }
  const call_log& calls() const noexcept { return calls_; }
  flight_recorder& recorder() noexcept { return recorder_; }
  const flight_recorder& recorder() const noexcept { return recorder_; }
  /// Inquiries from peers that could not be settled yet.
  std::vector<open_inquiry>& open_inquiries() noexcept { return open_inquiries_; }
  vote_history& votes() noexcept { return votes_; }

  // ── Failure ──────────────────────────────────────────────────────────────────────────────────────────────────────

  /// Ends the communicator, here and on all other ranks: see the top of this file. This rank's current call fails with
  /// `cause`; every later one fails with `revoked`.
  void revoke(const failure& cause);

  /// Like `revoke`, for an operation that no caller waits for: the next call fails with `cause`.
  void revoke_undelivered(const failure& cause);

  /// Ends the communicator on this rank only, after `shrink`; every other rank does the same.
  void retire(failure cause);

  /// Ends the communicator because a peer has revoked it. The next call fails with the peer's error.
  void accept_revocation(const revocation& details);

  /// True if `shrink` has replaced this communicator.
  bool retired() const noexcept { return retired_; }
  bool revoked() const noexcept { return static_cast<bool>(cause_); }
  /// The first failure, if any.
  const failure& cause() const noexcept { return cause_; }
  /// True if a peer has raised this rank's flag. The peer's control message gives the reason.
  bool flagged() const noexcept { return header_ != nullptr && header_->revoked.load(std::memory_order_acquire) != 0; }

  /// Failure of a call after `revoked()`: the first caller gets the cause itself, later ones `revoked`.
  failure consume_cause();

  /// Marks the cause as reported, because the operation that the caller waits for has failed with it.
  void mark_cause_delivered() noexcept { delivered_ = revoked(); }

  /// While it exists, failures of operations that no caller waits for stay unreported: the next call fails with them.
  class keep_undelivered {
   public:
    explicit keep_undelivered(communicator_state& state) noexcept : state_(state), delivered_(state.delivered_) {}
    keep_undelivered(const keep_undelivered&) = delete;
    keep_undelivered& operator=(const keep_undelivered&) = delete;
    ~keep_undelivered() { state_.delivered_ = delivered_; }

   private:
    communicator_state& state_;
    const bool delivered_;
  };

  /// Ends the current operation, or else the next one, with `aborted`, which revokes the communicator. Any thread.
  void abort() noexcept;
  /// True if an operation must end because of `abort`.
  bool aborted() const noexcept { return aborted_.load(std::memory_order_relaxed); }
  /// Returns the failure of the aborted operation and clears the request, so that `shrink` can proceed afterwards.
  HOCKET_NO_INLINE failure consume_abort();

  /// True if operations may begin.
  bool usable() const noexcept { return !revoked() && !aborted(); }

  std::chrono::nanoseconds timeout() const noexcept { return timeout_; }
  void set_timeout(std::chrono::nanoseconds timeout) noexcept { timeout_ = timeout; }

  // ── Choice ───────────────────────────────────────────────────────────────────────────────────────────────────────

  remembered_calls& remembered() noexcept { return remembered_; }

  /// Objects that calls cache for later calls. Destroyed after the endpoints, when no more data can be read or sent.
  attribute_cache& attributes() noexcept { return attributes_; }

  // ── Operations that were started and not waited for ──────────────────────────────────────────────────────────────

  active_type& active() noexcept { return active_; }
  const active_type& active() const noexcept { return active_; }

  /// Messages outside any plan that are not in transit, and those that have not arrived.
  message_order& sends() noexcept { return sends_; }
  message_order& receives() noexcept { return receives_; }

 private:
  static std::int32_t distance(std::uint32_t from, std::uint32_t to) noexcept {
    return static_cast<std::int32_t>(to - from);  // sequence numbers wrap
  }

  /// Without assertions there is no locked instruction, which would wait for all stores of the previous call; two
  /// threads that begin calls within the same few nanoseconds do not detect each other then.
  bool occupy(std::uint32_t how) noexcept {
    if (in_forked_child()) [[unlikely]]
      return false;
    if constexpr (HOCKET_ASSERTION_LEVEL > 0) {
      std::uint32_t expected = occupancy::none;
      return occupied_->compare_exchange_strong(expected, how, std::memory_order_seq_cst);
    }
    if (occupied_->load(std::memory_order_relaxed) != occupancy::none) [[unlikely]]
      return false;
    occupied_->store(how, std::memory_order_relaxed);
    return true;
  }

  std::unique_ptr<endpoints_type> open(transport::open_parameters& how);

  // ── The end ──────────────────────────────────────────────────────────────────────────────────────────────────────

  void record_revocation(const revocation& details);

  void end(const revocation& why);

  /// If memory for the message runs out, peers only see the flags, if present, without the reason.
  void notify_peers(const revocation& why, int lost, std::chrono::nanoseconds longest);

  void expedite() noexcept;

  /// Sends to all peers; to a subset that reaches the others by forwarding, if peers are many and have no windows.
  void notify_peers(const std::vector<std::byte>& payload, int lost, std::chrono::nanoseconds longest);

  /// Waits until no peer is in a call that began before its flag was raised. Such peers find the flag soon; the limit
  /// is for threads that a debugger has stopped.
  void wait_for_readers();

  /// True if another quarter of all sequence numbers has begun since `before`.
  bool is_next_era(std::uint32_t before) const noexcept { return (before ^ completed_) >> 30 != 0; }

  /// Called once per era, so that no retained number of a peer becomes so old that it seems to lie ahead: calls on the
  /// fast path need not check it, and messages never use it.
  HOCKET_NO_INLINE void refresh_all_completed() noexcept;

  std::uint32_t completed_at(int peer) const noexcept {
    return layout_.header(window(peer)).completed.load(std::memory_order_acquire);
  }

  HOCKET_NO_INLINE bool refresh_credit(std::uint32_t sequence) noexcept;

  const std::shared_ptr<Domain> domain_;
  const std::shared_ptr<const std::vector<int>> members_;
  const transport::contexts::lease context_;
  const int rank_;
  const int size_;
  message_numbers numbers_;
  const std::shared_ptr<communication_counts> counts_;
  attribute_cache attributes_;  ///< destroyed after the endpoints
  const window_layout layout_;
  const std::size_t slot_lines_;
  const std::unique_ptr<endpoints_type> endpoints_;
  std::vector<std::byte*> windows_;
  detail::spinning spin_;
  std::vector<push_pair> pushing_;
  const push_line* push_lines_from_ = nullptr;
  window_header* header_ = nullptr;  ///< of this rank's window
  bool pushes_ = false;
  std::vector<std::uint32_t> peer_completed_;
  std::uint32_t least_completed_ = 0;
  std::uint32_t last_sequence_ = 0;
  tag_allocator tags_;
  std::uint32_t completed_ = 0;
  std::uint32_t finished_ = 0;  ///< bit i: operation completed_ + 1 + i is complete
  std::array<growing_buffer, transport::window> scratch_;
  std::vector<growing_buffer> spare_;
  std::array<std::vector<growing_buffer>, transport::window> receive_buffers_;
  remembered_calls remembered_;
  active_type active_;
  message_order sends_, receives_;
  call_log calls_;
  std::vector<open_inquiry> open_inquiries_;
  vote_history votes_;
  std::chrono::nanoseconds timeout_ = default_timeout;
  failure cause_;
  bool delivered_ = false;  ///< some call has failed with `cause_`
  bool retired_ = false;
  std::atomic<bool> aborted_{false};
  std::atomic<std::uint32_t> occupied_here_{0};
  std::atomic<std::uint32_t>* occupied_ = &occupied_here_;  ///< in this rank's window if it has one
  flight_recorder recorder_;
};

}  // namespace detail
HOCKET_END_NAMESPACE

#if !defined(HOCKET_SEPARATE_COMPILATION)
#include <hocket/communicator/impl/state.ipp>
#endif
