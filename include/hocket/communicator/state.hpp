// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// What a communicator holds: its endpoints, its window into the peers' memory, and how far its operations are.
///
/// Operations are numbered from 1. At most `most_in_flight` of them are under way at once; the others wait for their
/// turn. An operation that writes into its peers' windows also waits until every peer has completed the one that used
/// the same slot before; that is nearly always known already, from the peers' last flags.
///
/// **The end.** The first failure on any rank revokes the communicator on all of them: it is told to the peers, who end
/// what they do and pass it on. Where ranks read each other's buffers, a flag in each window says so as well, and two
/// promises hold: a rank that finds the flag raised uses nothing of what it read; and, where ranks are threads, a call
/// that has failed returns only when no peer is in a call that might still read.
#pragma once

#include <hocket/communicator/attribute_cache.hpp>
#include <hocket/communicator/call_log.hpp>
#include <hocket/communicator/control.hpp>
#include <hocket/communicator/flight_recorder.hpp>
#include <hocket/communicator/last_call.hpp>
#include <hocket/communicator/message_numbers.hpp>
#include <hocket/communicator/tag_allocator.hpp>
#include <hocket/communicator/traffic.hpp>
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
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// Up to so many ranks, writing to all peers is cheaper than anything else.
inline constexpr int most_ranks_to_push = 16;

/// The lines by which this rank and one peer push to each other.
struct push_pair {
  int peer = 0;
  push_line* to = nullptr;
  const push_line* from = nullptr;
};

class operation;
struct posted_message;

/// A time that can't be waited for.
HOCKET_COLD inline failure negative_timeout(std::chrono::nanoseconds given, error_context where = {}) {
  return make_failure(
      errc::invalid_argument,
      concat({"timeout is ", given.count(), " ns; it must be at least 0, with which a call waits for nobody"}), where);
}

template <class Domain>
class communicator_state {
 public:
  using domain_type = Domain;
  using endpoints_type = typename Domain::endpoints_type;

  communicator_state(std::shared_ptr<Domain> through, transport::open_parameters how, std::size_t staging_bytes);
  communicator_state(const communicator_state&) = delete;
  communicator_state& operator=(const communicator_state&) = delete;
  ~communicator_state();

  int rank() const noexcept { return rank_; }
  int size() const noexcept { return size_; }
  endpoints_type& endpoints() noexcept { return *endpoints_; }
  const endpoints_type& endpoints() const noexcept { return *endpoints_; }
  const std::shared_ptr<Domain>& domain() const noexcept { return domain_; }
  /// Whether this process is a copy of the rank, by `fork`: then it may do nothing with this.
  bool in_forked_child() const noexcept { return transport::in_forked_child(*domain_); }
  /// Ranks on the wire of this communicator's ranks.
  const std::shared_ptr<const std::vector<int>>& members() const noexcept { return members_; }
  const window_layout& layout() const noexcept { return layout_; }

  /// Whether every member's window can be reached from here; equal on all members.
  bool has_windows() const noexcept { return !windows_.empty(); }

  // ── Flags ────────────────────────────────────────────────────────────────────────────────────────────────────────

  std::byte* window(int peer) const noexcept { return windows_[static_cast<std::size_t>(peer)]; }

  /// Whether small contributions are best written to all peers at once.
  bool pushes() const noexcept { return pushes_; }
  /// How often to look for a contribution before waiting patiently: longer than a peer takes that is there.
  int fast_path_polls() const noexcept { return fast_path_polls_; }
  /// Every other rank, with the push lines of slot 0; those of slot s are s * slot_lines() further.
  const std::vector<push_pair>& pushing() const noexcept { return pushing_; }
  std::size_t slot_lines() const noexcept { return slot_lines_; }
  /// The lines of slot 0 in this rank's window, by the rank that writes them.
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

  // ── Progress of operations ───────────────────────────────────────────────────────────────────────────────────────

  /// The first of `count` consecutive sequence numbers that nobody else gets.
  std::uint32_t take_sequence(std::uint32_t count = 1) noexcept {
    last_sequence_ += count;
    return last_sequence_ - count + 1;
  }
  std::uint32_t last_sequence() const noexcept { return last_sequence_; }

  /// Tags of the internal channel. They come round again, on most transports after 65536.
  tag_allocator& tags() noexcept { return tags_; }

  /// Whether operation `sequence` may begin here.
  bool has_turn(std::uint32_t sequence) const noexcept { return distance(completed_, sequence) <= most_in_flight; }

  /// Whether all peers have left the slot of `sequence`, so that it may be written.
  bool has_credit(std::uint32_t sequence) noexcept { return knows_credit(sequence) || refresh_credit(sequence); }
  /// The same, from what was heard so far.
  bool knows_credit(std::uint32_t sequence) const noexcept {
    return distance(least_completed_, sequence) <= static_cast<std::int32_t>(transport::window);
  }

  /// A flag of operation `sequence` came from `peer`.
  void note_completed(int peer, std::uint32_t sequence) noexcept {
    std::uint32_t& known = peer_completed_[static_cast<std::size_t>(peer)];
    const std::uint32_t completed = sequence - most_in_flight;
    if (distance(known, completed) > 0) known = completed;
  }

  /// Operation `sequence` is over on this rank, so are all before it, and every peer has begun it.
  void complete_all(std::uint32_t sequence) noexcept {
    const std::uint32_t before = completed_;
    completed_ = sequence;
    least_completed_ = sequence - most_in_flight;
    header_->completed.store(sequence, std::memory_order_release);
    if (is_next_era(before)) [[unlikely]]
      refresh_all_completed();
  }

  /// Operation `sequence` is over on this rank.
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

  /// What this rank has moved so far.
  traffic& moved() noexcept { return moved_; }
  const traffic& moved() const noexcept { return moved_; }

  // ── Memory ───────────────────────────────────────────────────────────────────────────────────────────────────────

  /// Scratch of the operation in `slot`.
  growing_buffer& scratch(unsigned slot) noexcept { return scratch_[slot]; }
  /// Where messages of the operation in `slot` land before they are combined, one buffer per lane.
  growing_buffer& landing(unsigned slot, unsigned lane);

  /// A buffer for prepared contributions, which can't be kept in the caller's; to be given back.
  growing_buffer borrow();
  void give_back(growing_buffer buffer);

  // ── Calls ────────────────────────────────────────────────────────────────────────────────────────────────────────

  /// Begins a call; false if another thread is in one, or this process is no rank. What is read from peers between
  /// `enter` and `leave` stays as long.
  bool enter() noexcept {
    const bool alone = occupy(occupancy::reads);
    platform::light_fence();  // then `flagged` is asked; the other side is `wait_for_readers`
    return alone;
  }
  /// The same for a call that reads nothing of its peers.
  bool enter_without_reads() noexcept { return occupy(occupancy::talks); }
  /// The call reads nothing of its peers any more.
  void stop_reading() noexcept { occupied_->store(occupancy::talks, std::memory_order_release); }
  void leave() noexcept { occupied_->store(occupancy::none, std::memory_order_release); }

  call_log& calls() noexcept { return calls_; }
  const call_log& calls() const noexcept { return calls_; }
  flight_recorder& recorder() noexcept { return recorder_; }
  const flight_recorder& recorder() const noexcept { return recorder_; }
  /// What peers have asked and could not be told yet.
  std::vector<open_inquiry>& open_inquiries() noexcept { return open_inquiries_; }
  vote_history& votes() noexcept { return votes_; }

  // ── Failure ──────────────────────────────────────────────────────────────────────────────────────────────────────

  /// Ends the communicator, here and on all other ranks: see the top of this file. `cause` is what this rank's call
  /// fails with; every later one fails with `revoked`.
  void revoke(const failure& cause);

  /// The same for an operation that nobody waits for now: the next call fails with `cause`.
  void revoke_undelivered(const failure& cause);

  /// Ends the communicator here; all other ranks do the same at their own time.
  void retire(failure cause);

  /// A peer says that the communicator has ended. The next call to ask fails as the peer's did.
  void accept_revocation(const revocation& told);

  /// Whether its ranks go on with another one.
  bool retired() const noexcept { return retired_; }
  bool revoked() const noexcept { return static_cast<bool>(cause_); }
  /// The first failure, if there was one.
  const failure& cause() const noexcept { return cause_; }
  /// A peer has raised this rank's flag. Why, its control message says.
  bool flagged() const noexcept { return header_ != nullptr && header_->revoked.load(std::memory_order_acquire) != 0; }

  /// Why no call can go on, after `revoked()`: the failure itself for the first one that asks.
  failure take_cause();

  /// The caller is told by an operation that it waits for: if that has ended the communicator, it is no news any more.
  void mark_cause_delivered() noexcept { delivered_ = revoked(); }

  /// While it lives, a failure ends operations that nobody waits for: it stays news to the next call.
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

  /// From any thread: the operation under way, or else the next one, ends with `aborted`, and revokes the communicator.
  void abort() noexcept;
  /// Whether an operation is to end for that.
  bool aborted() const noexcept { return aborted_.load(std::memory_order_relaxed); }
  /// What it fails with. Only that one: `shrink` can go on after it.
  HOCKET_NO_INLINE failure take_abort();

  /// Whether operations may begin.
  bool usable() const noexcept { return !revoked() && !aborted(); }

  std::chrono::nanoseconds timeout() const noexcept { return timeout_; }
  void set_timeout(std::chrono::nanoseconds timeout) noexcept { timeout_ = timeout; }

  // ── Choice ───────────────────────────────────────────────────────────────────────────────────────────────────────

  last_call& last() noexcept { return last_; }

  /// What calls keep for those that come after them: it goes when nothing can be read or sent any more.
  attribute_cache& attributes() noexcept { return attributes_; }

  // ── Operations that were started and not waited for ──────────────────────────────────────────────────────────────

  std::vector<operation*>& active() noexcept { return active_; }
  const std::vector<operation*>& active() const noexcept { return active_; }

  /// Messages outside any plan that are under way, in the order in which they were asked for.
  std::vector<const posted_message*>& messages() noexcept { return messages_; }

 private:
  static std::int32_t distance(std::uint32_t from, std::uint32_t to) noexcept {
    return static_cast<std::int32_t>(to - from);  // sequence numbers wrap
  }

  /// Without assertions there is no locked instruction, which would have to wait for all stores of the call before; two
  /// threads that begin a call within the same few nanoseconds do not find each other then.
  bool occupy(std::uint32_t how) noexcept {
    if (in_forked_child()) [[unlikely]]
      return false;
    if constexpr (HOCKET_ASSERTION_LEVEL > 0) {
      std::uint32_t nobody = occupancy::none;
      return occupied_->compare_exchange_strong(nobody, how, std::memory_order_seq_cst);
    }
    if (occupied_->load(std::memory_order_relaxed) != occupancy::none) [[unlikely]]
      return false;
    occupied_->store(how, std::memory_order_relaxed);
    return true;
  }

  std::unique_ptr<endpoints_type> open(transport::open_parameters& how);

  // ── The end ──────────────────────────────────────────────────────────────────────────────────────────────────────

  void record_revocation(const revocation& told);

  void end(const revocation& why);

  /// Where there is no memory for the words, peers see the flags, if there are any, and not why they are raised.
  void notify_peers(const revocation& why, int lost, std::chrono::nanoseconds longest);

  void expedite() noexcept;

  /// All of them; where they are many and far away, enough for those to reach all others by passing it on.
  void notify_peers(const std::vector<std::byte>& words, int lost, std::chrono::nanoseconds longest);

  /// Until no peer is in a call that began before its flag was raised. Those that are find the flag soon; the limit is
  /// for threads that a debugger holds.
  void wait_for_readers();

  /// Whether another quarter of all sequence numbers has begun since `before`.
  bool is_next_era(std::uint32_t before) const noexcept { return (before ^ completed_) >> 30 != 0; }

  /// Once in an era, so that nothing that is known of a peer gets so old that it seems to lie ahead: calls that go well
  /// need not look at it, and messages do not at all.
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
  attribute_cache attributes_;  ///< outlives the endpoints
  const window_layout layout_;
  const std::size_t slot_lines_;
  const std::unique_ptr<endpoints_type> endpoints_;
  std::vector<std::byte*> windows_;
  int fast_path_polls_ = 0;
  std::vector<push_pair> pushing_;
  const push_line* push_lines_from_ = nullptr;
  window_header* header_ = nullptr;  ///< of this rank's window
  bool pushes_ = false;
  std::vector<std::uint32_t> peer_completed_;
  std::uint32_t least_completed_ = 0;
  std::uint32_t last_sequence_ = 0;
  traffic moved_;
  tag_allocator tags_;
  std::uint32_t completed_ = 0;
  std::uint32_t finished_ = 0;  ///< bit i: operation completed_ + 1 + i is over
  std::array<growing_buffer, transport::window> scratch_;
  std::vector<growing_buffer> spare_;
  std::array<std::vector<growing_buffer>, transport::window> landing_;
  last_call last_;
  std::vector<operation*> active_;
  std::vector<const posted_message*> messages_;
  call_log calls_;
  std::vector<open_inquiry> open_inquiries_;
  vote_history votes_;
  std::chrono::nanoseconds timeout_ = default_timeout;
  failure cause_;
  bool delivered_ = false;  ///< some call has failed with `cause_`
  bool retired_ = false;
  std::atomic<bool> aborted_{false};
  std::atomic<std::uint32_t> occupied_here_{0};
  std::atomic<std::uint32_t>* occupied_ = &occupied_here_;  ///< in this rank's window, where there is one
  flight_recorder recorder_;
};

}  // namespace detail
HOCKET_END_NAMESPACE

#if !defined(HOCKET_SEPARATE_COMPILATION)
#include <hocket/communicator/impl/state.ipp>
#endif
