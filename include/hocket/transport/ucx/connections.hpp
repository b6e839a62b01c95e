// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Connections to all peers of a process, opened on first use, and the liveness of each peer.
///
/// A peer's end is detected in three ways: UCX reports a broken connection, the kernel reports the end of a process of
/// this host, or another rank reports it. A rank that ends in order sends a goodbye message to the ranks with which it
/// exchanged messages, so that its end is no failure for them. A rank that knows of a lost rank reports it to others.
#pragma once

#include <hocket/core/checksum.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/deadline.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/platform/cpu.hpp>
#include <hocket/core/platform/fork_mark.hpp>
#include <hocket/core/platform/process_memory.hpp>
#include <hocket/core/platform/wait_limit.hpp>
#include <hocket/core/text.hpp>
#include <hocket/transport/concept.hpp>
#include <hocket/transport/ucx/detached_requests.hpp>
#include <hocket/transport/ucx/endpoint.hpp>
#include <hocket/transport/ucx/inbox.hpp>
#include <hocket/transport/ucx/message_tag.hpp>
#include <hocket/transport/ucx/piece_format.hpp>
#include <hocket/transport/ucx/process_address.hpp>
#include <hocket/transport/ucx/process_identity.hpp>
#include <hocket/transport/ucx/send_buffer.hpp>
#include <hocket/transport/ucx/status.hpp>
#include <hocket/transport/ucx/workarounds/closing_may_abort.hpp>
#include <hocket/transport/ucx/workarounds/deferred_messages.hpp>
#include <hocket/transport/ucx/workarounds/forget_unreceived.hpp>
#include <hocket/transport/ucx/workarounds/held_bytes.hpp>
#include <hocket/transport/ucx/workarounds/shut_down_sockets.hpp>
#include <hocket/transport/ucx/workarounds/tcp_sockets.hpp>
#include <hocket/transport/ucx/worker.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <ucp/api/ucp.h>

HOCKET_BEGIN_NAMESPACE
namespace ucx {

enum class presence : std::uint8_t {
  here,
  left,   ///< it sent a goodbye message
  ended,  ///< its process has ended, maybe in order: it had no reason to send a goodbye message to this rank
  cut,    ///< this rank closed the connection to it, or the connection broke; its process may be alive
  lost
};

/// Shared by all communicators of a process. Thread-safe. "Requires the lock" means that the caller holds the worker's.
class connections {
 public:
  connections(std::shared_ptr<worker> through, int rank, std::vector<process_address> all)
      : worker_(std::move(through)), rank_(rank), size_(static_cast<int>(all.size())), start_mark_(mark_of(all)),
        peers_(new peer[all.size()]) {
    for (int i = 0; i < size_; ++i) {
      peer& each = at(i);
      each.owner = this;
      each.rank = i;
      each.address = std::move(all[static_cast<std::size_t>(i)].address);
      each.listens = std::move(all[static_cast<std::size_t>(i)].listens);
      each.identity = all[static_cast<std::size_t>(i)].identity;
    }
    at(rank_).incoming_bytes = direct_pieces.bytes;
    set_handler(notice_id, &connections::on_notice);
    set_handler(control_id, &connections::on_control);
  }
  connections(const connections&) = delete;
  connections& operator=(const connections&) = delete;

  /// Waits at most a second for messages in flight.
  ~connections() {
    const std::lock_guard guard(worker_->lock());
    send_goodbye();
    close_all();
    set_handler(notice_id, nullptr);
    set_handler(control_id, nullptr);
  }

  int rank() const noexcept { return rank_; }
  int size() const noexcept { return size_; }
  const std::shared_ptr<worker>& through() const noexcept { return worker_; }
  /// Returns the bits of tags that stand for a communicator. They differ between starts: UCX does not check where a
  /// message comes from, and a process of another start may send one to a port that now belongs to this start.
  std::uint32_t tag_context(std::uint32_t context) const noexcept {
    return (context + static_cast<std::uint32_t>(start_mark_)) & message_tag::last_context;
  }
  /// Returns whether this process is a forked copy of the rank, which must not use the connections.
  bool in_forked_child() const noexcept { return mark_.in_forked_child(); }
  spin_lock& lock() noexcept { return worker_->lock(); }
  const process_identity& identity_of(int rank) const noexcept { return at(rank).identity; }
  /// Returns whether this rank can detect the end of that rank's process.
  bool can_watch(int rank) const noexcept { return at(rank_).identity.can_watch(at(rank).identity); }

  /// Returns whether the kernel should copy long messages between processes of this host.
  bool copies_by_kernel() const noexcept { return copies_by_kernel_; }

  /// Requires the lock. Connects if necessary. `messages`: whether messages follow, so that a goodbye message is due.
  ucs_status_t connect(int rank, bool messages) noexcept {
    peer& to = at(rank);
    if (messages) to.needs_goodbye = true;
    if (to.link) return UCS_OK;
    if (presence_of(rank) >= presence::cut) return UCS_ERR_CONNECTION_RESET;
    if (rank == rank_) return to.link.open(*worker_, to.address, nullptr, nullptr);
    const ucs_status_t status = to.link.open(*worker_, to.address, &connections::on_error, &to);
    if (status == UCS_OK) {
      to.outgoing = format_for(to.link);
      to.uses_tcp = to.link.uses_tcp();
      search_sockets(rank);
      send(to, notice_id, notice{start_mark_, notice::kind::greeting, rank_, -1, to.outgoing.bytes}, {});
    }
    return status;
  }
  /// Requires the lock. Returns whether a message of `bytes` may be sent on the connection to `rank` by now: long
  /// messages wait for the peer's greeting.
  bool may_carry(int rank, std::size_t bytes) const noexcept {
    return bytes <= memory_pieces.bytes || rank == rank_ || at(rank).has_greeted;
  }
  /// Returns how messages to `rank`, which must be connected, are cut into pieces.
  const piece_format& outgoing(int rank, bool on_device) const noexcept {
    return on_device ? device_pieces : at(rank).outgoing;
  }
  /// Requires the lock. Returns the length of the pieces that `rank` sends; 0 until its greeting has arrived.
  std::size_t piece_bytes_from(int rank, bool on_device) const noexcept {
    return on_device ? device_pieces.bytes : at(rank).incoming_bytes;
  }

  // A call that returns leaves no bytes in UCX for which a peer waits: this rank may not call hocket again for long.

  /// Requires the lock. Makes progress. Returns whether UCX may hold bytes for `rank` that it has reported as sent, and
  /// that leave only while this rank makes progress.
  HOCKET_NO_INLINE bool holds_bytes(int rank) {
    peer& to = at(rank);
    if (!to.uses_tcp || presence_of(rank) >= presence::cut) return false;
    const bool full = to.sockets.any_full(sockets_, [&](const tcp_socket& own) { return leads_to(to, own); });
    for (int turn = 0; turn < 100; ++turn) {
      if (!progress_locked()) return full;
    }
    return true;
  }
  /// Requires the lock. Counts a send to `rank` that UCX has completed. Returns its number for `has_left`.
  std::uint32_t count_completed(int rank) noexcept { return ++at(rank).completed; }
  /// Requires the lock. Returns whether the bytes of that send have left this process. Costs three system calls for all
  /// sends to `rank` that UCX has completed by then.
  bool has_left(int rank, std::uint32_t number) {
    peer& to = at(rank);
    if (static_cast<std::int32_t>(to.left - number) >= 0) return true;
    if (holds_bytes(rank)) return false;
    to.left = to.completed;
    return true;
  }
  bool uses_tcp(int rank) const noexcept { return at(rank).uses_tcp; }

  /// Connects to `rank`. Returns the reason if that fails.
  failure reach(int rank) {
    if (rank == rank_) return {};
    const std::lock_guard guard(lock());
    const ucs_status_t status = connect(rank, false);
    if (status == UCS_OK) return {};
    return unreachable(hocket::detail::concat({"UCX can't reach rank ", rank}), rank, status);
  }

  /// Waits at most 100 ms until these ranks have connected to this one: otherwise they may connect when it has ended.
  void await_greetings(std::initializer_list<int> ranks) {
    const deadline last = deadline::after(std::chrono::milliseconds(100));
    const auto has_greeted = [&](int rank) { return rank == rank_ || at(rank).has_greeted || has_ended(rank); };
    for (;;) {
      {
        const std::lock_guard guard(lock());
        if (std::all_of(ranks.begin(), ranks.end(), has_greeted)) return;
        while (progress_locked()) {}
      }
      if (last.passed()) return;
      platform::nap(20'000);
    }
  }

  /// Connects to these ranks, which do the same, and exchanges a message of several packets with each. UCX gives a
  /// connection over TCP one interface, so that the message tries all of it. Returns why that has failed for the first
  /// rank with which it did: `timeout` if the time of `limit` has passed, `limit` was aborted, or the rank has closed the
  /// connection, perhaps because it has failed to reach another one; `peer_lost` if a process of this host has ended;
  /// else `unreachable`.
  failure try_messages(std::span<const int> ranks, const wait_limit& limit) {
    for (;;) {
      {
        const std::lock_guard guard(lock());
        int waits_for = -1;
        failure cause = continue_trial(ranks, waits_for);
        if (cause || waits_for < 0) return cause;
        if (limit.passed() || limit.aborted())
          return make_failure(errc::timeout, "no message has arrived in time", {.peer = waits_for});
      }
      platform::nap(20'000);
    }
  }

  /// Requires the lock. Returns the failure to report after connecting to `rank` has failed with `status`.
  failure unreachable(const std::string& what, int rank, ucs_status_t status) {
    if (ends(rank)) return ended_failure(rank);
    return status_failure(what, status, {.peer = rank});
  }

  /// Requires the lock. Checks whether the process of `rank` has ended. Returns false if it can't be watched.
  bool has_ended(int rank) {
    peer& each = at(rank);
    return can_watch(rank) && each.watch.ended(each.identity);
  }
  /// Does the same for an unreachable rank, but waits up to 100 ms, because its process may be about to end. Returns
  /// false if it can't be watched.
  bool ends(int rank) {
    const deadline last = deadline::after(std::chrono::milliseconds(100));
    while (can_watch(rank) && !has_ended(rank) && !last.passed()) platform::nap(1'000'000);
    return has_ended(rank);
  }
  static failure ended_failure(int rank) {
    return make_failure(errc::peer_lost, "its process has ended", {.peer = rank});
  }
  const endpoint& link_to(int rank) const noexcept { return at(rank).link; }

  bool progress() noexcept {
    if (!lock().try_lock()) return false;
    const bool moved = progress_locked();
    lock().unlock();
    return moved;
  }

  /// Requires the lock.
  bool progress_locked() noexcept {
    const bool moved = advance();
    if (!unreported_losses_.empty()) [[unlikely]]
      report_losses();
    if (!detached_.empty()) [[unlikely]]
      detached_.sweep();
    return moved;
  }

  presence presence_of(int rank) const noexcept { return at(rank).state.load(std::memory_order_acquire); }
  /// Grows whenever a peer's presence changes.
  std::uint32_t presence_changes() const noexcept { return presence_changes_.load(std::memory_order_acquire); }

  /// Returns why a peer is not `here`.
  std::string reason_of(int rank) {
    const std::lock_guard guard(lock());
    return at(rank).reason;
  }

  /// Checks whether processes of this host have ended, at most every 20 ms, however often it is called.
  void check_processes() {
    const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
    auto due = next_check_.load(std::memory_order_relaxed);
    const auto period = std::chrono::steady_clock::duration(std::chrono::milliseconds(20)).count();
    if (now < due || !next_check_.compare_exchange_strong(due, now + period, std::memory_order_relaxed)) return;
    const std::lock_guard guard(lock());
    while (advance()) {  // a goodbye message may have arrived
    }
    for (int i = 0; i < size_; ++i) {
      peer& each = at(i);
      const presence known = presence_of(i);
      if (i == rank_ || (known != presence::here && known != presence::cut) || !has_ended(i)) continue;
      if (each.found_ended) note_end(each, "its process has ended");
      each.found_ended = true;  // its goodbye message must arrive before the next check
    }
  }

  // ── Control messages ─────────────────────────────────────────────────────────────────────────────────────────────

  /// While it exists, control messages of `context` are delivered to `to`.
  class subscription {
   public:
    subscription(connections& links, std::uint32_t context, inbox& to) : links_(links), context_(context) {
      const std::lock_guard guard(links_.lock());
      links_.inboxes_.open(context_, to);
    }
    subscription(const subscription&) = delete;
    subscription& operator=(const subscription&) = delete;
    ~subscription() {
      const std::lock_guard guard(links_.lock());
      links_.inboxes_.close(context_);
      if (links_.failed_context_ == context_) links_.failed_context_.reset();
    }

   private:
    connections& links_;
    const std::uint32_t context_;
  };

  /// Sends a control message to `rank` of the domain, from rank `sender` of the communicator `context`.
  void post(int rank, std::uint32_t context, int sender, std::span<const std::byte> payload) {
    const std::lock_guard guard(lock());
    if (rank == rank_ || presence_of(rank) != presence::here || connect(rank, false) != UCS_OK) return;
    send(at(rank), control_id, inboxes::header{start_mark_, context, sender}, payload);
    if (at(rank).uses_tcp && std::find(posted_.begin(), posted_.end(), rank) == posted_.end()) posted_.push_back(rank);
  }

  /// Returns whether no posted message needs further progress.
  bool posted() {
    const std::lock_guard guard(lock());
    send_unsent();
    detached_.sweep();
    if (!detached_.empty() || !unsent_.empty()) return false;
    std::erase_if(posted_, [this](int rank) { return !holds_bytes(rank); });
    return posted_.empty();
  }

  /// Requires the lock. Receives and drops all messages of a communicator that have arrived and were not received,
  /// because their senders may wait until they are received.
  void discard(std::uint32_t context) {
    constexpr ucp_tag_t mask = message_tag::context_mask;
    const ucp_tag_t tag = message_tag::of_context(tag_context(context));
    ucp_tag_recv_info_t info{};
    while (ucp_tag_message_h const message = ucp_tag_probe_nb(worker_->get(), tag, mask, 1, &info)) {
      take_unwanted(message, info.length);
    }
  }
  /// Requires the lock. Receives and drops a message that was found.
  void take_unwanted(ucp_tag_message_h message, std::size_t length) {
    auto bytes = std::make_unique<std::byte[]>(length);
    const ucp_request_param_t how{};
    ucs_status_ptr_t const request = ucp_tag_msg_recv_nbx(worker_->get(), bytes.get(), length, message, &how);
    keep(request, std::move(bytes));
  }

  /// Requires the lock. Buffers of messages that can be abandoned at any time.
  send_buffer_pool& outbox() noexcept { return outbox_; }

  /// Requires the lock. Retains a request that no caller waits for, and the bytes that it sends, until it ends.
  /// @param awaited whether the end of this process waits for the request
  void keep(ucs_status_ptr_t request, std::unique_ptr<std::byte[]> bytes = {}, bool awaited = true) {
    detached_.add(request, std::move(bytes), awaited);
  }
  void keep(ucs_status_ptr_t request, send_buffer_pool::pointer buffer) { detached_.add(request, std::move(buffer)); }

  /// Requires the lock. Abandons a send or receive; UCX does not access its buffer after the return. Closes the
  /// connection if necessary; but before, peers that know of the failure have time to receive the message: half a
  /// second for all of them together, because a communicator fails only once, and 4 ms once it is `expedited`.
  void abandon(void* request, int peer_rank, bool receives, std::uint32_t context,
               const std::atomic<bool>& expedited) noexcept {
    if (receives) ucp_request_cancel(worker_->get(), request);
    if (failed_context_ != context) {
      failed_context_ = context;
      peers_take_until_ = deadline::after(std::chrono::milliseconds(500));
    }
    const auto may_take = [&] {
      if (expedited.load(std::memory_order_relaxed)) {
        peers_take_until_ = std::min(peers_take_until_, deadline::after(std::chrono::milliseconds(4)));
      }
      return presence_of(peer_rank) == presence::here && !peers_take_until_.passed() && !has_ended(peer_rank);
    };
    advance();
    bool finished = finished_within(request, {});
    while (!finished && may_take()) {
      discard(context);
      finished = finished_within(request, std::chrono::milliseconds(1));
    }
    if (!finished) {
      cut(at(peer_rank));
      finished_within(request, std::chrono::milliseconds(200));
    }
    ucp_request_free(request);
  }

  /// Requires the lock. Adds `by` to the number of requests that wait for progress.
  void count_waiting(int by) noexcept {
    waiting_.store(waiting_.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
  }
  /// Returns whether any communicator of this process has a request that waits for progress.
  bool waiting() const noexcept { return waiting_.load(std::memory_order_relaxed) > 0; }

  /// Requires the lock. Call when a request on the connection to `rank` has ended with an error.
  void note_error(int rank, ucs_status_t status) noexcept { on_error(&at(rank), nullptr, status); }

 private:
  struct peer {
    connections* owner = nullptr;
    int rank = 0;
    std::vector<std::byte> address;
    std::vector<tcp_address> listens;
    std::vector<tcp_address> calls_from;  ///< its ends of connections that it opened to this rank
    process_identity identity;
    process_watch watch;
    endpoint link;
    piece_format outgoing = direct_pieces;
    bool uses_tcp = false;
    peer_sockets sockets;
    std::uint32_t completed = 0;  ///< number of sends over TCP that UCX has completed, modulo 2^32
    std::uint32_t left = 0;       ///< how many of them have left this process
    std::size_t incoming_bytes = 0;
    bool needs_goodbye = false;
    bool has_greeted = false;
    bool trial_sent = false;
    bool trial_arrived = false;
    deferred_messages unsent;
    bool found_ended = false;
    ucs_status_t broken_by = UCS_OK;  ///< why the connection broke
    std::atomic<presence> state{presence::here};
    std::string reason;
  };

  /// Header of a notice that one rank sends to another.
  struct notice {
    std::uint64_t start_mark;
    enum class kind : std::uint32_t { goodbye, rank_lost, greeting, calls, trial } what;
    std::int32_t sender;
    std::int32_t lost;              ///< lost rank, -1: none; the sender: an exception ends it
    std::uint32_t piece_bytes = 0;  ///< with `greeting`: length of the pieces that the sender sends
    // With `calls`, the addresses of the sender's ends of connections that it opened to the receiver follow.
    // With `trial`, `trial_bytes` bytes follow.
  };
  static constexpr unsigned notice_id = 1;
  /// More than a packet of any usual network: where the path takes shorter packets than the interfaces, only short
  /// messages arrive.
  static constexpr std::size_t trial_bytes = 16 * 1024;

  static constexpr unsigned control_id = 2;

  static std::uint64_t mark_of(const std::vector<process_address>& all) {
    std::vector<std::uint64_t> nonces;
    for (const process_address& each : all) nonces.push_back(each.nonce);
    return hocket::detail::checksum(std::as_bytes(std::span(nonces)));
  }

  peer& at(int rank) noexcept { return peers_[static_cast<std::size_t>(rank)]; }
  const peer& at(int rank) const noexcept { return peers_[static_cast<std::size_t>(rank)]; }

  const piece_format& format_for(const endpoint& link) const {
    if (worker_->leaves_long_messages()) return direct_pieces;
    if (link.uses_only("tcp")) return tcp_pieces;
    return link.shares_memory() ? memory_pieces : direct_pieces;
  }

  /// A copy by the kernel replaces two copies through shared memory, one of them of lines that a peer has just written.
  /// HOCKET_KERNEL_COPIES overrules the measurement: 0 or 1.
  static bool should_copy_by_kernel() {
    const char* const wanted = std::getenv("HOCKET_KERNEL_COPIES");
    if (wanted != nullptr && wanted[0] != '\0') return wanted[0] != '0';
    const double cost = platform::relative_cost_of_process_memory();
    return cost > 0 && cost < 3;
  }

  // ── Liveness ─────────────────────────────────────────────────────────────────────────────────────────────────────

  void change(peer& who, presence to, std::string reason) {
    const presence from = who.state.load(std::memory_order_relaxed);
    if (from == presence::lost || (from == presence::left && to != presence::left)) return;
    who.reason = std::move(reason);
    who.state.store(to, std::memory_order_release);
    if (to == presence::lost) {
      if (first_lost_ < 0) first_lost_ = who.rank;
      unreported_losses_.push_back(who.rank);
    }
    presence_changes_.fetch_add(1, std::memory_order_release);
  }

  /// Records that a peer has ended. A peer that exchanged messages with this rank would have sent a goodbye message.
  void note_end(peer& who, std::string reason) {
    change(who, who.needs_goodbye && who.link ? presence::lost : presence::ended, std::move(reason));
  }

  static void on_error(void* argument, ucp_ep_h, ucs_status_t status) {
    peer& who = *static_cast<peer*>(argument);
    connections& self = *who.owner;
    if (self.presence_of(who.rank) == presence::cut) return;  // closed here on purpose
    who.broken_by = status;
    const std::string what = std::string("its connection broke: ") + ucs_status_string(status) + descriptors_text();
    if (self.can_watch(who.rank) && !self.ends(who.rank)) {
      self.change(who, presence::cut, "its process is alive, but " + what);  // others may reach it
    } else {
      self.note_end(who, what);
    }
  }

  // ── Notices ──────────────────────────────────────────────────────────────────────────────────────────────────────

  void set_handler(unsigned id, ucp_am_recv_callback_t handler) noexcept {
    ucp_am_handler_param_t how{};
    how.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
    how.id = id;
    how.cb = handler;
    how.arg = this;
    ucp_worker_set_am_recv_handler(worker_->get(), &how);
  }

  static ucs_status_t on_notice(void* argument, const void* header, std::size_t header_size, void* data,
                                std::size_t size, const ucp_am_recv_param_t* how) {
    auto& self = *static_cast<connections*>(argument);
    notice received{};
    if (header_size != sizeof received) return UCS_OK;
    std::memcpy(&received, header, sizeof received);
    if (received.start_mark != self.start_mark_) return UCS_OK;
    const auto known = [&](int rank) { return rank >= 0 && rank < self.size_ && rank != self.rank_; };
    if (!known(received.sender)) return UCS_OK;
    if (received.what == notice::kind::greeting) {
      self.at(received.sender).has_greeted = true;
      self.search_sockets(received.sender);
      self.at(received.sender).incoming_bytes = std::max(received.piece_bytes, 1U);
      self.unanswered_greetings_.push_back(received.sender);
    }
    const bool whole = (how->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) == 0;
    if (received.what == notice::kind::calls && whole && size > 0) {
      auto& calls = self.at(received.sender).calls_from;
      calls.resize(size / sizeof(tcp_address));
      std::memcpy(calls.data(), data, calls.size() * sizeof(tcp_address));
      self.search_sockets(received.sender);
    }
    if (received.what == notice::kind::trial) self.at(received.sender).trial_arrived = size == trial_bytes;
    if (received.lost == received.sender) {
      self.change(self.at(received.sender), presence::lost, "it has left after an error");
    } else if (known(received.lost)) {
      const std::string reporter = hocket::detail::concat({"rank ", received.sender, " of the world"});
      self.change(self.at(received.lost), presence::lost, reporter + " reports that it is lost");
    }
    if (received.what == notice::kind::goodbye) {
      self.change(self.at(received.sender), presence::left, "it has left the communicator");
    }
    return UCS_OK;
  }

  /// Called from within `worker::progress`, so with the lock held.
  static ucs_status_t on_control(void* argument, const void* header, std::size_t header_size, void* data,
                                 std::size_t size, const ucp_am_recv_param_t* how) {
    auto& self = *static_cast<connections*>(argument);
    self.inboxes_.deliver(self.start_mark_, header, header_size, data, size, *how);
    return UCS_OK;
  }

  /// Requires the lock. Does what the trial with these ranks can do now. Sets `waits_for` to the first rank with which the
  /// trial is not complete.
  failure continue_trial(std::span<const int> ranks, int& waits_for) {
    while (progress_locked()) {}
    for (const int rank : ranks) {
      peer& to = at(rank);
      if (to.trial_sent && to.trial_arrived) continue;
      if (presence_of(rank) != presence::here) return trial_failure(to, to.broken_by, to.reason);
      const ucs_status_t status = connect(rank, false);
      if (status != UCS_OK) return trial_failure(to, status, ucs_status_string(status));
      if (to.has_greeted && !to.trial_sent) {
        const std::vector<std::byte> bytes(trial_bytes);
        send(to, notice_id, notice{start_mark_, notice::kind::trial, rank_, -1}, bytes);
        to.trial_sent = true;
      }
      if (waits_for < 0) waits_for = rank;
    }
    detached_.sweep();
    const bool has_sent_all = unsent_.empty() && !detached_.any_awaited();
    if (waits_for < 0 && !has_sent_all && !ranks.empty()) waits_for = ranks.back();
    return {};
  }

  /// A connection that was complete and is reset may be the consequence of another rank's failure.
  failure trial_failure(const peer& with, ucs_status_t status, std::string reason) {
    if (ends(with.rank)) return ended_failure(with.rank);
    const errc code = status == UCS_ERR_CONNECTION_RESET ? errc::timeout : errc::unreachable;
    return make_failure(code, std::move(reason), {.peer = with.rank});
  }

  void notify_all(notice::kind what, int lost) {
    for (int i = 0; i < size_; ++i) {
      peer& to = at(i);
      if (!to.needs_goodbye || !to.link || i == rank_ || presence_of(i) != presence::here) continue;
      send(to, notice_id, notice{start_mark_, what, rank_, lost}, {});
    }
  }

  template <class Header>
  void send(peer& to, unsigned id, const Header& header, std::span<const std::byte> payload) {
    if (to.unsent.empty()) unsent_.push_back(to.rank);
    to.unsent.add(id, header, payload);
    send_unsent();
  }

  void send_unsent() {
    std::erase_if(unsent_, [this](int rank) { return send_unsent_to(at(rank)); });
  }

  /// Returns whether no message is left.
  bool send_unsent_to(peer& to) {
    if (!to.link || presence_of(to.rank) >= presence::cut) to.unsent.clear();
    // A rank that has not arrived may never receive the greeting, so the end of this process does not wait for that.
    return to.unsent.send(to.link.get(), to.has_greeted, [&](ucs_status_ptr_t request, auto bytes) {
      keep(request, std::move(bytes), to.has_greeted || to.needs_goodbye);
    });
  }

  void report_losses() {
    const std::vector<int> lost = std::exchange(unreported_losses_, {});
    for (const int each : lost) notify_all(notice::kind::rank_lost, each);
  }

  /// Answers the greetings of ranks whose processes have not ended, and reports to each rank the addresses of this
  /// rank's connections to it. By now all connections between the two ranks exist, whichever rank opened them.
  void answer_greetings() {
    std::vector<int> ranks = std::exchange(unanswered_greetings_, {});
    std::erase_if(ranks, [this](int each) {
      return has_ended(each) || connect(each, false) != UCS_OK || at(each).listens.empty();
    });
    for (const int each : ranks) {
      std::vector<tcp_address> calls;
      for (const tcp_socket& own : sockets_.get()) {
        if (is_ours(own)) own.set_close_on_exec();
        if (contains(at(each).listens, own.remote_address)) calls.push_back(own.local_address);
      }
      if (calls.empty()) continue;
      send(at(each), notice_id, notice{start_mark_, notice::kind::calls, rank_, -1}, std::as_bytes(std::span(calls)));
    }
  }

  // ── Own requests ─────────────────────────────────────────────────────────────────────────────────────────────────

  bool advance() {
    const bool moved = worker_->progress();
    if (!unanswered_greetings_.empty()) [[unlikely]]
      answer_greetings();
    if (!unsent_.empty()) [[unlikely]]
      send_unsent();
    return moved;
  }

  bool finished_within(void* request, std::chrono::nanoseconds longest) noexcept {
    const deadline last = deadline::after(longest);
    while (ucp_request_check_status(request) == UCS_INPROGRESS) {
      if (last.passed()) return false;
      // Not `sched_yield`, which hands a busy core to other processes for milliseconds each time.
      if (!advance()) platform::nap(20'000);
    }
    return true;
  }

  void finish_detached(deadline last) noexcept {
    const auto waits = [this] {
      detached_.sweep();
      return detached_.any_awaited() ||
             std::any_of(unsent_.begin(), unsent_.end(), [&](int rank) { return at(rank).needs_goodbye; });
    };
    while (waits() && !last.passed()) {
      if (!advance()) ::sched_yield();
    }
  }

  // ── Full connections ─────────────────────────────────────────────────────────────────────────────────────────────

  /// Returns whether UCX owns the socket and it leads to another rank.
  bool is_ours(const tcp_socket& own) const noexcept {
    if (contains(worker_->listens(), own.local_address)) return true;
    for (int i = 0; i < size_; ++i) {
      if (contains(at(i).listens, own.remote_address)) return true;
    }
    return false;
  }

  /// Call when a connection with `rank` may have been opened.
  void search_sockets(int rank) noexcept {
    at(rank).sockets.search_again();
    sockets_.outdate();
  }

  static bool leads_to(const peer& with, const tcp_socket& own) noexcept {
    return contains(with.listens, own.remote_address) || contains(with.calls_from, own.remote_address);
  }

  /// Closes the connection to a peer that does not receive what was sent.
  void cut(peer& with) noexcept {
    change(with, presence::cut, "the connection was closed because an operation that used it was abandoned");
    if (!with.link) return;
    shut_down_sockets([&](const tcp_socket& own) { return leads_to(with, own); }, [this] { advance(); });
    keep(with.link.close());
  }

  // ── Shutdown ─────────────────────────────────────────────────────────────────────────────────────────────────────

  /// Waits up to 20 ms for peers to connect. When a peer first connects after this process has ended, UCX prints errors
  /// there, although the message that the peer waits for has arrived. Waits for peers that exchanged messages with this
  /// rank, and for peers that were only greeted, in start-up; but after an error the latter may have exited.
  void let_peers_connect(bool after_error) noexcept {
    const deadline last = deadline::after(std::chrono::milliseconds(20));
    const auto is_about_to = [&](int rank) {
      const peer& to = at(rank);
      const bool comes = to.needs_goodbye || !after_error;
      return rank != rank_ && comes && to.link && !to.has_greeted && presence_of(rank) == presence::here;
    };
    for (int rank = 0; rank < size_; ++rank) {
      while (is_about_to(rank) && !last.passed()) {
        if (!advance()) platform::nap(20'000);
      }
    }
  }

  void send_goodbye() noexcept {
    const bool unwinding = std::uncaught_exceptions() > exceptions_at_start_;
    let_peers_connect(unwinding);
    const deadline last = deadline::after(std::chrono::milliseconds(500));
    notify_all(notice::kind::goodbye, first_lost_ < 0 && unwinding ? rank_ : first_lost_);
    finish_detached(last);
    for (int i = 0; i < size_; ++i) {
      const peer& to = at(i);
      if (!to.needs_goodbye || !to.link || presence_of(i) != presence::here) continue;
      const ucp_request_param_t how{};
      keep(ucp_ep_flush_nbx(to.link.get(), &how));
    }
    finish_detached(last);
  }

  bool must_stay_open() const {
    for (int i = 0; i < size_; ++i) {
      const presence found = presence_of(i);
      const bool dead = found == presence::lost || found == presence::ended;
      if (at(i).link && closing_may_abort(dead, at(i).link.shares_memory())) return true;
    }
    return false;
  }

  void close_all() noexcept {
    if (must_stay_open()) return worker_->keep();
    shut_down_sockets([this](const tcp_socket& own) { return own.full() && is_ours(own); }, [this] { advance(); });
    for (int i = 0; i < size_; ++i) {
      if (at(i).link) keep(at(i).link.close());
    }
    finish_detached(deadline::after(std::chrono::milliseconds(500)));
    forget_unreceived(worker_->get());
    detached_.release();
  }

  const std::shared_ptr<worker> worker_;
  const int rank_;
  const int size_;
  const std::uint64_t start_mark_;  ///< the same on all ranks, and random
  const platform::fork_mark mark_;
  const bool copies_by_kernel_ = should_copy_by_kernel();
  const std::unique_ptr<peer[]> peers_;
  std::atomic<std::uint32_t> presence_changes_{0};
  std::atomic<std::chrono::steady_clock::rep> next_check_{0};
  std::atomic<int> waiting_{0};
  std::vector<int> unreported_losses_;     ///< lost ranks that have not been reported to the others
  std::vector<int> unanswered_greetings_;  ///< ranks whose greetings this rank has not answered
  std::vector<int> unsent_;                ///< ranks for which messages are queued
  socket_list sockets_;
  std::vector<int> posted_;  ///< ranks for which UCX may hold control messages
  const int exceptions_at_start_ = std::uncaught_exceptions();
  int first_lost_ = -1;
  std::optional<std::uint32_t> failed_context_;  ///< whose requests were abandoned last
  deadline peers_take_until_;
  detached_requests detached_;
  send_buffer_pool outbox_{worker_->type_of_send_buffers(), 2 * piece_format::most_in_flight};
  inboxes inboxes_;
};

}  // namespace ucx
HOCKET_END_NAMESPACE
