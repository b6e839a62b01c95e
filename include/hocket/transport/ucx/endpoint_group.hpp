// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The endpoint group over UCX: one process's end of a communicator. transport/concept.hpp describes its members.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/platform/cpu.hpp>
#include <hocket/core/platform/process_memory.hpp>
#include <hocket/core/platform/streaming_copy.hpp>
#include <hocket/core/text.hpp>
#include <hocket/transport/concept.hpp>
#include <hocket/transport/contexts.hpp>
#include <hocket/transport/host/message_ring.hpp>
#include <hocket/transport/host/messages.hpp>
#include <hocket/transport/spare_memory.hpp>
#include <hocket/transport/ucx/connections.hpp>
#include <hocket/transport/ucx/inbox.hpp>
#include <hocket/transport/ucx/long_message.hpp>
#include <hocket/transport/ucx/mailbox.hpp>
#include <hocket/transport/ucx/message.hpp>
#include <hocket/transport/ucx/message_tag.hpp>
#include <hocket/transport/ucx/piece_format.hpp>
#include <hocket/transport/ucx/shared_memory.hpp>
#include <hocket/transport/ucx/status.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <ucp/api/ucp.h>

HOCKET_BEGIN_NAMESPACE
namespace ucx {

/// What is in a rank's piece of shared memory: the window from the beginning, the mailbox, and the rings of messages.
struct piece_layout {
  piece_layout(std::size_t ranks, std::size_t window_bytes)
      : box_begin(in_lines(window_bytes)), rings_begin(box_begin + in_lines(mailbox::bytes_for(ranks))),
        rings(host::ring_layout::for_ranks(ranks)), end(rings_begin + host::messages::bytes_for(ranks, rings)) {}

  std::size_t box_begin;
  std::size_t rings_begin;
  host::ring_layout rings;
  std::size_t end;

 private:
  static std::size_t in_lines(std::size_t bytes) noexcept {
    return (bytes + platform::cache_line - 1) & ~(platform::cache_line - 1);
  }
};

/// If all members share memory, messages go through it, and so do windows and shared buffers, which processes map
/// without UCX. Other messages, and those of device memory, use UCX's tag matching.
class endpoint_group {
 public:
  static constexpr bool shares_address_space = false;
  static constexpr bool receives_in_place = false;

  struct sending {
    request_handle request;
    transport::spare_memory<long_sending>::pointer in_pieces;
    host::messages::sending on_host;
    int over_tcp_to = -1;        ///< the rank in the domain; -1 if UCX does not use TCP
    std::uint32_t number = 0;    ///< see `connections::count_completed`
    bool has_completed = false;  ///< UCX has completed all requests
  };
  struct receiving {
    request_handle request;
    transport::spare_memory<long_receiving>::pointer in_pieces;
    host::messages::receiving on_host;
    bool arrived = false;
  };

  /// `must_share`: raises an error if there is no memory that the peers can open.
  endpoint_group(std::shared_ptr<connections> links, const transport::open_parameters& how, int ranks_per_core,
                 bool must_share)
      : links_(std::move(links)), members_(how.members), rank_(how.rank), context_(checked_context(how)),
        ranks_per_core_(ranks_per_core), exceptions_at_start_(std::uncaught_exceptions()), with_(how.members->size()) {
    for (traffic& each : with_) {
      each.context = context_;
      each.expedited = &expedited_;
    }
    const piece_layout layout(how.members->size(), how.window_bytes);
    window_ = std::make_shared<shared_memory>(links_, how, layout.end, must_share);
    if (!window_->reachable()) window_.reset();
    if (window_ == nullptr) return;
    std::vector<std::byte*> boxes;
    std::vector<host::messages::member> members;
    for (int peer = 0; peer < size(); ++peer) {
      boxes.push_back(window_->piece_of(peer) + layout.box_begin);
      const pid_t process = window_->can_copy() ? links_->identity_of(rank_in_domain(peer)).pid : 0;
      members.push_back({window_->piece_of(peer) + layout.rings_begin, process});
    }
    box_ = mailbox(std::move(boxes), rank_);
    on_host_ = std::make_unique<host::messages>(members, rank_, layout.rings);
  }
  endpoint_group(const endpoint_group&) = delete;
  endpoint_group& operator=(const endpoint_group&) = delete;
  ~endpoint_group() {
    discard();
    const bool unwinding = std::uncaught_exceptions() > exceptions_at_start_;
    if (window_ != nullptr) window_->release(unwinding ? ownership::failed : ownership::released, culprit_);
  }

  int rank() const noexcept { return rank_; }
  int size() const noexcept { return static_cast<int>(members_->size()); }
  int ranks_per_core() const noexcept { return ranks_per_core_; }

  // ── Messages ─────────────────────────────────────────────────────────────────────────────────────────────────────

  bool try_send(sending& state, int peer, transport::message_id id, const void* data, std::size_t bytes,
                failure& fail) {
    if (on_host_ != nullptr && !id.on_device) {
      return on_host_->try_send(
          state.on_host, peer, id, data, bytes, [&] { return publish(data, bytes); }, fail);
    }
    const int to = rank_in_domain(peer);
    const std::lock_guard guard(links_->lock());
    // A peer that fails and ends closes its connections. UCX drops what arrived over one before, such as the reason of
    // the failure, once a send over it fails. A send to a peer that has ended may also succeed.
    if (!windows_reachable()) {
      links_->progress_locked();
      if (has_control_message()) [[unlikely]]
        return false;  // the caller reads it, and fails or tries again
    }
    if (const ucs_status_t status = links_->connect(to, true); status != UCS_OK) [[unlikely]] {
      fail = broken_link(peer, status);
      return false;
    }
    if (is_broken(peer) || !links_->may_carry(to, bytes)) [[unlikely]]
      return false;
    const ucp_tag_t tag = message_tag::make(tag_context_, rank_, id);
    const bool waits = unsent_.precede(to, tag);
    const piece_format& format = links_->outgoing(to, id.on_device);
    if (links_->uses_tcp(to)) state.over_tcp_to = to;
    if (waits || bytes > format.bytes) return send_in_pieces(state, peer, tag, id.on_device, data, bytes, fail);
    send_buffer_pool::pointer sent;
    ucs_status_ptr_t request = nullptr;
    if (format.at_once || (bytes <= send_buffer::most_copied && !id.on_device)) {
      sent = links_->outbox().fill(data, bytes);
      if (sent == nullptr) [[unlikely]]
        return lacks_memory(peer, fail);
      request = links_->outbox().send(*sent, links_->link_to(to).get(), tag, false);
      if (!UCS_PTR_IS_PTR(request)) links_->outbox().recycle(std::move(sent));
    } else {
      const ucp_request_param_t how{};
      request = ucp_tag_send_nbx(links_->link_to(to).get(), data, bytes, tag, &how);
    }
    if (request == nullptr) return true;
    if (UCS_PTR_IS_ERR(request)) [[unlikely]] {
      links_->note_error(to, UCS_PTR_STATUS(request));
      fail = broken_link(peer, UCS_PTR_STATUS(request));
      return false;
    }
    state.request = request_handle(*links_, request, to, false, with_[index(peer)], std::move(sent));
    return true;
  }

  std::size_t eager_bytes() const noexcept { return on_host_ != nullptr ? on_host_->eager_bytes() : 0; }
  bool send_eagerly(int peer, transport::message_id id, const void* data, std::size_t bytes) noexcept {
    return on_host_->send_eagerly(peer, id, data, bytes);
  }
  template <class Take>
  transport::eager_receive receive_eagerly(int peer, transport::message_id id, std::size_t bytes, Take take) {
    return on_host_->receive_eagerly(peer, id, bytes, take);
  }

  bool drained(sending& state) {
    if (on_host_ != nullptr && !on_host_->drained(state.on_host)) return false;
    if (!state.request.pending() && state.in_pieces == nullptr && state.over_tcp_to < 0) return true;
    const std::lock_guard guard(links_->lock());
    if (!state.has_completed) {
      if (!completed(state)) return false;
      if (state.over_tcp_to < 0) return true;
      state.has_completed = true;
      state.number = links_->count_completed(state.over_tcp_to);
      return false;  // the next question costs system calls, at the end of a call for several messages together
    }
    return links_->has_left(state.over_tcp_to, state.number);
  }

  const void* try_receive(receiving& state, int peer, transport::message_id id, void* buffer, std::size_t bytes,
                          failure& fail) {
    if (receives_parts(id)) return try_receive_parts(state, peer, id, static_cast<std::byte*>(buffer), bytes, fail);
    const std::lock_guard guard(links_->lock());
    if (!state.arrived && !take_message(state, peer, id, buffer, bytes, fail)) return nullptr;
    state.arrived = awaits_answer(peer, id, bytes) && links_->holds_bytes(rank_in_domain(peer));
    if (state.arrived) return nullptr;
    return buffer != nullptr ? buffer : this;  // an empty message must not return null
  }

  static void release(receiving&) noexcept {}

  /// Returns whether a message arrives in parts, from which it can be combined while they are in the cache.
  bool receives_parts(transport::message_id id) const noexcept { return on_host_ != nullptr && !id.on_device; }
  static constexpr std::size_t part_multiple = host::ring_layout::part_multiple;

  /// If `receives_parts`: see `host::messages::next_part`.
  const std::byte* next_part(receiving& state, int peer, transport::message_id id, std::byte* buffer, std::size_t room,
                             std::size_t bytes, std::size_t& length, failure& fail) {
    return on_host_->next_part(state.on_host, peer, id, buffer, room, bytes, length, fail,
                               [this](int from, std::uint64_t handle) { return resolve(from, handle); });
  }
  bool finish_part(receiving& state, int peer, std::size_t bytes) {
    return on_host_->finish_part(state.on_host, peer, bytes);
  }
  static std::size_t received_bytes(const receiving& state) noexcept { return state.on_host.received(); }

  bool progress() {
    if (on_host_ != nullptr) on_host_->progress();
    if (!unsent_.empty()) [[unlikely]] {
      const std::lock_guard guard(links_->lock());
      unsent_.advance();
    }
    if (std::exchange(polled_, false)) return false;  // `try_receive` has polled UCX
    // If no request waits, progress serves only what peers need from this rank: connections and keep-alive.
    if (!links_->waiting() && ++idle_polls_ % 16 != 0) return false;
    return links_->progress();
  }

  bool broken(failure& fail) {
    links_->check_processes();
    const bool has_changes = links_->presence_changes() != 0;
    if (window_ == nullptr && !has_changes) return false;
    for (int peer = 0; peer < size(); ++peer) {
      if (peer == rank_) continue;
      const presence found = has_changes ? links_->presence_of(rank_in_domain(peer)) : presence::here;
      if (const char* const what = reason_of_loss(peer, found); what != nullptr) {
        fail = lost(peer, what);
        culprit_ = fail.context.peer;
        return true;
      }
    }
    return false;
  }

  bool gone(int peer) {
    if (peer == rank_) return false;
    links_->check_processes();
    if (window_ != nullptr && window_->state_of(peer) != ownership::held) return true;
    const presence found = links_->presence_of(rank_in_domain(peer));
    if (window_ == nullptr || found != presence::cut) return found != presence::here;
    const std::lock_guard guard(links_->lock());  // control messages need no connection, only the process
    return links_->has_ended(rank_in_domain(peer));
  }

  /// Returns why a peer that is `gone` has left.
  std::string departure_reason(int peer) {
    std::string reason = links_->reason_of(rank_in_domain(peer));
    const bool is_released = window_ != nullptr && window_->state_of(peer) == ownership::released;
    return is_released || reason.empty() ? "it has left the communicator" : reason;
  }

  bool sleeps() const noexcept { return on_host_ != nullptr; }
  bool may_sleep() const noexcept { return on_host_ != nullptr && !links_->waiting(); }
  void announce_sleep() noexcept {
    on_host_->store_without_delay();
    on_host_->sleep().announce();
  }
  void sleep() noexcept { on_host_->sleep().sleep(); }
  void stay_awake() noexcept { on_host_->sleep().stay_awake(); }
  void wake(int peer) const noexcept {
    if (on_host_ != nullptr) on_host_->sleep().wake(peer);
  }

  // ── Control messages ─────────────────────────────────────────────────────────────────────────────────────────────

  void discard() {
    const std::lock_guard guard(links_->lock());
    links_->discard(context_);
  }

  /// Abandons pending sends soon, whether or not peers receive them. Thread-safe.
  void expedite() noexcept {
    expedited_.store(true, std::memory_order_relaxed);
    wake(rank_);
  }

  void post(int peer, std::span<const std::byte> payload) {
    if (windows_reachable()) {
      box_.send(peer, payload);
      return wake(peer);
    }
    links_->post(rank_in_domain(peer), context_, rank_, payload);
  }
  bool posted() { return windows_reachable() ? box_.flush() : links_->posted(); }
  bool has_control_message() const noexcept {
    return windows_reachable() ? box_.has_new_messages() : mail_.has_messages();
  }
  bool fetch(transport::control_message& received) {
    if (windows_reachable()) {
      box_.flush();
      return box_.receive(received);
    }
    if (!has_control_message()) return false;
    const std::lock_guard guard(links_->lock());
    return mail_.pop(received) && received.sender >= 0 && received.sender < size();
  }

  // ── Memory ───────────────────────────────────────────────────────────────────────────────────────────────────────

  std::byte* window_of(int peer) const noexcept { return window_ == nullptr ? nullptr : window_->piece_of(peer); }
  bool windows_reachable() const noexcept { return window_ != nullptr; }

  /// Collective. Allocates `bytes` of zeroed memory on each rank, which all ranks can read if `windows_reachable()`.
  /// Frees it with the last copy of the pointer.
  std::shared_ptr<std::byte> allocate(std::size_t bytes, const transport::exchange_function& exchange) {
    for (auto& each : shared_) {
      if (each != nullptr && each->memory->unused()) each.reset();
    }
    transport::open_parameters how;
    how.members = members_;
    how.rank = rank_;
    how.exchange = exchange;
    auto memory = std::make_shared<shared_memory>(links_, how, bytes, windows_reachable());
    std::byte* const begin = memory->piece_of(rank_);
    if (windows_reachable()) {
      auto listed = std::make_unique<published>();
      if (memory->reachable()) *listed = {memory, bytes};
      shared_.push_back(std::move(listed));
    }
    return {begin, [memory](std::byte*) { memory->release(ownership::released); }};
  }

  std::uint64_t publish(const void* data, std::size_t bytes) const noexcept {
    const auto* const begin = static_cast<const std::byte*>(data);
    for (std::size_t i = 0; i < shared_.size(); ++i) {
      if (shared_[i] == nullptr) continue;
      const std::byte* const piece = shared_[i]->memory->piece_of(rank_);
      if (piece == nullptr || begin < piece || begin + bytes > piece + shared_[i]->bytes) continue;
      return ((i + 1) << offset_bits) | static_cast<std::uint64_t>(begin - piece);
    }
    return 0;
  }

  bool copies_any_memory() const noexcept { return window_ != nullptr && window_->can_copy(); }
  static std::uint64_t publish_unmapped(const void* data) noexcept {
    return unmapped_bit | static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(data));
  }
  static bool is_mapped(std::uint64_t handle) noexcept { return (handle & unmapped_bit) == 0; }
  transport::memory_copy copy(int peer, std::uint64_t handle, std::size_t offset, void* to,
                              std::size_t bytes) const noexcept {
    const std::uint64_t address = (handle & ~unmapped_bit) + offset;
    switch (platform::read_process_memory(links_->identity_of(rank_in_domain(peer)).pid, address, to, bytes)) {
      case platform::process_read::done: return transport::memory_copy::done;
      case platform::process_read::process_ended: return transport::memory_copy::process_ended;
      case platform::process_read::failed: break;
    }
    return transport::memory_copy::failed;
  }

  const std::byte* resolve(int peer, std::uint64_t handle) const noexcept {
    const std::uint64_t offset = handle & ((std::uint64_t{1} << offset_bits) - 1);
    return shared_[(handle >> offset_bits) - 1]->memory->piece_of(peer) + offset;
  }

 private:
  /// Memory from `allocate`, numbered in the order of the calls: the number is equal on all ranks.
  struct published {
    std::shared_ptr<shared_memory> memory;
    std::size_t bytes = 0;
  };
  static constexpr unsigned offset_bits = 44;
  static constexpr std::uint64_t unmapped_bit = std::uint64_t{1} << 63;

  static std::size_t index(int peer) noexcept { return static_cast<std::size_t>(peer); }
  int rank_in_domain(int peer) const noexcept { return (*members_)[index(peer)]; }

  static std::uint32_t checked_context(const transport::open_parameters& how) {
    if (how.context >> message_tag::context_bits != 0) {
      raise(errc::system, "the context number of a communicator over UCX must fit into 16 bits");
    }
    if (how.members->size() >> message_tag::rank_bits > 1) {
      raise(errc::invalid_argument, "a communicator over UCX must have at most 65536 ranks");
    }
    return how.context;
  }

  /// Part of a message of `message` bytes: the `bytes` bytes after the first `before`.
  struct part {
    std::size_t before = 0;
    std::size_t bytes = 0;
    std::size_t message = 0;

    bool last() const noexcept { return before + bytes == message; }
  };

  /// Receives at most 1 MiB in one call, as other operations may wait for this thread.
  const void* try_receive_parts(receiving& state, int peer, transport::message_id id, std::byte* buffer,
                                std::size_t bytes, failure& fail) {
    constexpr std::size_t most = std::size_t{1} << 20;
    for (std::size_t moved = 0, length = 0; moved < most; moved += length) {
      std::byte* const to = buffer == nullptr ? nullptr : buffer + state.on_host.received();
      const std::byte* const from = next_part(state, peer, id, to, most, bytes, length, fail);
      if (from == nullptr) return nullptr;
      // A short part is in a block, from which streaming stores gain nothing.
      constexpr std::size_t least_streamed = std::size_t{1} << 16;
      if (from != to && length >= least_streamed && platform::exceeds_cache(bytes, with_.size())) {
        platform::streaming_copy(to, from, length);
      } else if (from != to && length > 0) {
        std::memcpy(to, from, length);
      }
      if (!finish_part(state, peer, bytes)) continue;
      return buffer != nullptr ? static_cast<const void*>(buffer) : this;  // an empty message must not return null
    }
    return nullptr;
  }

  /// Requires the lock. Posts the receive. That needs no connection, but without one this rank does not learn that the
  /// peer has ended. A peer that has ended may have sent the message before. Returns false on failure or to try again.
  bool ask_for(receiving& state, int peer, transport::message_id id, void* buffer, std::size_t bytes,
               failure& fail) noexcept {
    const int from = rank_in_domain(peer);
    ucs_status_t status = links_->connect(from, true);
    if (status != UCS_OK && !links_->ends(from)) [[unlikely]] {
      fail = broken_link(peer, status);
      return false;
    }
    const ucp_tag_t tag = message_tag::make(tag_context_, peer, id);
    const std::size_t piece_bytes = links_->piece_bytes_from(from, id.on_device);
    const bool is_short = bytes <= memory_pieces.bytes;
    if (!is_short && piece_bytes == 0) [[unlikely]] {
      static_cast<void>(is_broken(peer));
      return false;
    }
    if (unasked_.precede(from, tag)) [[unlikely]]
      return false;
    if (is_short || bytes <= piece_bytes) {
      status = ask(state.request, *links_, from, tag, buffer, bytes, with_[index(peer)]);
    } else {
      state.in_pieces =
          long_receives_.make(*links_, from, tag, piece_bytes, buffer, bytes, with_[index(peer)], unasked_);
      if (state.in_pieces == nullptr) return lacks_memory(peer, fail);
      status = state.in_pieces->advance();
    }
    if (status != UCS_OK) [[unlikely]]
      fail = broken_link(peer, status);
    return status == UCS_OK;
  }

  /// Requires the lock. Returns whether UCX has completed all requests of a send.
  static bool completed(sending& state) {
    if (state.in_pieces != nullptr) {
      state.in_pieces->advance();
      return state.in_pieces->drained();
    }
    if (!state.request.pending()) return true;
    const ucs_status_t status = ucp_request_check_status(state.request.get());
    if (status == UCS_INPROGRESS) return false;
    state.request.finish(status);
    return true;
  }

  /// Requires the lock. Returns whether a whole message has arrived in `buffer`.
  bool take_message(receiving& state, int peer, transport::message_id id, void* buffer, std::size_t bytes,
                    failure& fail) {
    const bool asked = state.request.pending() || state.in_pieces != nullptr;
    if (!asked && !ask_for(state, peer, id, buffer, bytes, fail)) return false;
    if (state.in_pieces == nullptr) return take_piece(state.request, peer, id, {0, bytes, bytes}, fail);
    long_receiving& message = *state.in_pieces;
    while (!message.whole()) {
      const part expected{message.bytes_before(), message.bytes_awaited(), bytes};
      if (!take_piece(message.awaited(), peer, id, expected, fail)) return false;
      if (const ucs_status_t status = message.note_arrival(); status != UCS_OK) [[unlikely]] {
        fail = broken_link(peer, status);
        return false;
      }
    }
    state.in_pieces.reset();
    return true;
  }

  /// Returns whether the sender of a message that has arrived may wait for an answer of UCX, which must leave before the
  /// call of this rank returns. After other receives, this rank need not wait until its own sends have left.
  bool awaits_answer(int peer, transport::message_id id, std::size_t bytes) const noexcept {
    const int from = rank_in_domain(peer);
    if (!links_->uses_tcp(from)) return false;
    const piece_format& format = links_->outgoing(from, id.on_device);
    return !format.at_once || bytes > format.bytes;
  }

  /// Requires the lock. Returns whether the piece has arrived that `request` receives.
  bool take_piece(request_handle& request, int peer, transport::message_id id, const part& expected,
                  failure& fail) noexcept {
    ucp_tag_recv_info_t info{};
    ucs_status_t status = ucp_tag_recv_request_test(request.get(), &info);
    if (status == UCS_INPROGRESS) {
      polled_ = true;
      if (!links_->progress_locked()) return false;
      status = ucp_tag_recv_request_test(request.get(), &info);
      if (status == UCS_INPROGRESS) return false;
    }
    request.finish(status);
    const bool more = (info.sender_tag & message_tag::more) != 0;
    if (status != UCS_OK || info.length != expected.bytes || more == expected.last()) [[unlikely]] {
      const bool has_more_pieces =
          more && (status == UCS_ERR_MESSAGE_TRUNCATED || (status == UCS_OK && expected.last()));
      const std::size_t rest = has_more_pieces ? rest_of_message(peer, id) : 0;
      fail = bad_message(peer, id, status, info, expected, rest);
      return false;
    }
    if (!message_tag::same_call(info.sender_tag, id)) [[unlikely]] {
      fail = transport::type_mismatch(peer, id);
      return false;
    }
    return true;
  }

  /// Requires the lock.
  bool send_in_pieces(sending& state, int peer, ucp_tag_t tag, bool on_device, const void* data, std::size_t bytes,
                      failure& fail) noexcept {
    state.in_pieces =
        long_sends_.make(*links_, rank_in_domain(peer), tag, on_device, data, bytes, with_[index(peer)], unsent_);
    if (state.in_pieces == nullptr) return lacks_memory(peer, fail);
    state.in_pieces->advance();
    return true;
  }

  static bool lacks_memory(int peer, failure& fail) {
    fail = make_failure(errc::out_of_memory, "can't allocate memory for a message", {.peer = peer});
    return false;
  }

  /// Requires the lock.
  failure broken_link(int peer, ucs_status_t status) const {
    const std::string what = hocket::detail::concat({"no connection to rank ", peer});
    failure cause = links_->unreachable(what, rank_in_domain(peer), status);
    cause.context.peer = peer;
    return cause;
  }

  /// Requires the lock. Receives the pieces that follow a piece that is not the last, and returns their length for the
  /// error message; 0 if they do not all arrive soon.
  std::size_t rest_of_message(int peer, transport::message_id id) {
    ucp_worker_h const worker = links_->through()->get();
    const ucp_tag_t tag = message_tag::make(tag_context_, peer, id);
    const deadline last = deadline::after(std::chrono::milliseconds(20));
    deadline next = deadline::after(std::chrono::milliseconds(5));
    std::size_t rest = 0;
    while (!last.passed() && !next.passed()) {
      ucp_tag_recv_info_t info{};
      ucp_tag_message_h const piece = ucp_tag_probe_nb(worker, tag, message_tag::matched_mask, 1, &info);
      if (piece == nullptr) {
        if (!links_->progress_locked()) platform::nap(20'000);
        continue;
      }
      links_->take_unwanted(piece, info.length);
      next = deadline::after(std::chrono::milliseconds(5));
      rest += info.length;
      if ((info.sender_tag & message_tag::more) == 0) return rest;
    }
    return 0;
  }

  /// `rest`: length of the pieces that followed; 0 if unknown.
  failure bad_message(int peer, transport::message_id id, ucs_status_t status, const ucp_tag_recv_info_t& info,
                      const part& expected, std::size_t rest) const {
    if (status != UCS_OK && status != UCS_ERR_MESSAGE_TRUNCATED) return broken_link(peer, status);
    const bool more = (info.sender_tag & message_tag::more) != 0;
    // If UCX truncates a message, it need not report the length; but only the last piece is shorter than the others.
    const std::size_t length =
        expected.before + (more ? links_->piece_bytes_from(rank_in_domain(peer), id.on_device) : info.length) + rest;
    const bool too_long = status == UCS_ERR_MESSAGE_TRUNCATED || (more && expected.last()) || length > expected.message;
    const bool is_length_known = more ? rest > 0 : !too_long || length > expected.message;
    const std::string sent =
        is_length_known ? std::to_string(length) : hocket::detail::concat({"more than ", expected.message});
    return transport::wrong_length(sent, too_long, peer, id, expected.message,
                                   message_tag::same_call(info.sender_tag, id));
  }

  /// Returns why a peer is lost: null if it is not, or has left in order; empty if `reason_of` has the reason.
  const char* reason_of_loss(int peer, presence found) {
    if (window_ != nullptr) {
      switch (window_->state_of(peer)) {
        case ownership::failed: return "it has left the communicator after an error";
        case ownership::released: return nullptr;
        case ownership::held: return found == presence::here || is_cut_and_idle(peer, found) ? nullptr : "";
      }
    }
    return found == presence::lost || (found == presence::cut && with_[index(peer)].missed) ? "" : nullptr;
  }

  /// Returns whether the connection to the peer of a message is broken; if so, makes `broken` report the reason.
  bool is_broken(int peer) noexcept {
    if (links_->presence_of(rank_in_domain(peer)) < presence::cut) [[likely]]
      return false;
    with_[index(peer)].missed = true;
    return true;
  }

  /// Returns whether the connection to a peer is cut, and no message needs it.
  bool is_cut_and_idle(int peer, presence found) const noexcept {
    const traffic& with = with_[index(peer)];
    return found == presence::cut && with.waiting == 0 && !with.missed;
  }

  failure lost(int peer, std::string what) {
    if (window_ != nullptr && window_->state_of(peer) == ownership::failed) {
      if (const int culprit = window_->culprit_of(peer); culprit >= 0 && culprit < size() && culprit != rank_) {
        what = hocket::detail::concat({"rank ", peer, " reports that it is lost"});
        peer = culprit;
      }
    }
    if (what.empty()) what = links_->reason_of(rank_in_domain(peer));
    const bool cut = links_->presence_of(rank_in_domain(peer)) == presence::cut;
    const std::string state = cut ? " can't be reached any more: " : " is gone: ";
    return make_failure(errc::peer_lost, hocket::detail::concat({"rank ", peer, state, what}), {.peer = peer});
  }

  const std::shared_ptr<connections> links_;
  const std::shared_ptr<const std::vector<int>> members_;
  const int rank_;
  const std::uint32_t context_;
  const std::uint32_t tag_context_ = links_->tag_context(context_);
  const int ranks_per_core_;
  const int exceptions_at_start_;
  std::atomic<bool> expedited_{false};
  std::vector<traffic> with_;                ///< UCX's messages from and to each peer
  std::unique_ptr<host::messages> on_host_;  ///< null if memory is not shared
  transport::spare_memory<long_sending> long_sends_;
  transport::spare_memory<long_receiving> long_receives_;
  unfinished<long_sending> unsent_;
  unfinished<long_receiving> unasked_;
  std::shared_ptr<shared_memory> window_;
  std::vector<std::unique_ptr<published>> shared_;
  mailbox box_;  ///< of control messages, if memory is shared
  inbox mail_;   ///< of control messages, otherwise
  const connections::subscription subscription_{*links_, context_, mail_};
  unsigned idle_polls_ = 0;
  bool polled_ = false;
  int culprit_ = -1;  ///< the rank that was found lost, or -1
};

static_assert(transport::endpoint_group<endpoint_group>);

}  // namespace ucx
HOCKET_END_NAMESPACE
