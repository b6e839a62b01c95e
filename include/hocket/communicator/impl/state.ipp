// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Definitions of <hocket/communicator/state.hpp>: opening, ending, and rare functions of a communicator.
#pragma once

#include <hocket/communicator/control.hpp>
#include <hocket/communicator/state.hpp>
#include <hocket/communicator/window.hpp>
#include <hocket/core/buffer.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/deadline.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/platform/cpu.hpp>
#include <hocket/core/platform/fence.hpp>
#include <hocket/core/text.hpp>
#include <hocket/transport/concept.hpp>

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

template <class Domain>
communicator_state<Domain>::communicator_state(std::shared_ptr<Domain> through, transport::open_parameters how,
                                               std::size_t staging_bytes)
    : domain_(std::move(through)), members_(how.members), context_(domain_->contexts(), how.context), rank_(how.rank),
      size_(static_cast<int>(how.members->size())), numbers_(size_),
      counts_(std::make_shared<communication_counts>(members_, rank_, domain_->size())),
      layout_{how.members->size(), staging_bytes}, slot_lines_(layout_.slot_bytes() / platform::cache_line),
      endpoints_(open(how)), spin_(endpoints_->ranks_per_core(), transport::sleeps(*endpoints_)),
      recorder_(
          {rank_, members_, (*members_)[static_cast<std::size_t>(rank_)], domain_->size(), how.context, Domain::name}) {
  if (!endpoints_->windows_reachable()) return;
  peer_completed_.resize(members_->size(), 0);
  for (int peer = 0; peer < size(); ++peer) {
    windows_.push_back(endpoints_->window_of(peer));
  }
  for (int peer = 0; peer < size(); ++peer) {
    if (peer == rank_) continue;
    pushing_.push_back({peer, &layout_.push(window(peer), 0, rank_), &layout_.push(window(rank_), 0, peer)});
  }
  push_lines_from_ = &layout_.push(window(rank_), 0, 0);
  header_ = &layout_.header(window(rank_));
  occupied_ = &header_->occupied;
  // The direct path bypasses the endpoints, so they must not need to see each step.
  pushes_ = size_ > 1 && size_ <= most_ranks_to_push && transport::observes_only<endpoints_type>;
}

template <class Domain>
communicator_state<Domain>::~communicator_state() {
  counts_->end();
  if (aborted() && !cause_) revoke_undelivered(consume_abort());
  if (recorder_.directory().empty()) return;
  if (const auto details = cause_ ? std::nullopt : last_revocation(*endpoints_, size_)) record_revocation(*details);
  if (recorder_.due()) recorder_.record_on_leaving(calls_, cause_);
}

template <class Domain>
growing_buffer& communicator_state<Domain>::receive_buffer(unsigned slot, unsigned lane) {
  auto& buffers = receive_buffers_[slot];
  if (buffers.size() <= lane) buffers.resize(lane + 1);
  return buffers[lane];
}

template <class Domain>
growing_buffer communicator_state<Domain>::borrow() {
  if (spare_.empty()) return {};
  growing_buffer last = std::move(spare_.back());
  spare_.pop_back();
  return last;
}

template <class Domain>
void communicator_state<Domain>::return_buffer(growing_buffer buffer) {
  spare_.push_back(std::move(buffer));
}

template <class Domain>
void communicator_state<Domain>::revoke(const failure& cause) {
  delivered_ = true;
  revoke_undelivered(cause);
}

template <class Domain>
void communicator_state<Domain>::revoke_undelivered(const failure& cause) {
  if (cause_) return;
  // The peer that an aborted call waited for is not the culprit.
  const int culprit = cause.code == errc::aborted ? rank_ : cause.context.peer;
  const revocation why{cause.code.value(), rank_, culprit >= 0 && culprit < size_ ? culprit : -1, cause.quoted()};
  failure kept = cause;
  cause_ = std::move(kept);  // allocates no memory after this point
  recorder_.note_failure(rank_);
  end(why);
}

template <class Domain>
void communicator_state<Domain>::retire(failure cause) {
  retired_ = true;
  delivered_ = true;
  if (!cause_) cause_ = std::move(cause);
}

template <class Domain>
void communicator_state<Domain>::accept_revocation(const revocation& details) {
  if (cause_) return;
  record_revocation(details);
  end(details);
}

template <class Domain>
failure communicator_state<Domain>::consume_cause() {
  if (!std::exchange(delivered_, true)) return cause_;
  return make_failure(errc::revoked, "an earlier operation failed: " + cause_.code.message() + ": " + cause_.quoted(),
                      {.peer = cause_.context.peer});
}

template <class Domain>
void communicator_state<Domain>::abort() noexcept {
  aborted_.store(true, std::memory_order_relaxed);
  expedite();
}

template <class Domain>
HOCKET_NO_INLINE failure communicator_state<Domain>::consume_abort() {
  aborted_.store(false, std::memory_order_relaxed);
  return make_failure(errc::aborted, "abort() was called on this communicator");
}

template <class Domain>
void communicator_state<Domain>::record_revocation(const revocation& details) {
  const std::string reporter = details.reporter < 0 ? std::string() : concat({"rank ", details.reporter, " reports: "});
  cause_ = make_failure(static_cast<errc>(details.code), reporter + details.reason,
                        {.peer = details.culprit >= 0 ? details.culprit : details.reporter});
  recorder_.note_failure(details.reporter);
}

template <class Domain>
void communicator_state<Domain>::end(const revocation& why) {
  // Peers may be waiting until this rank stops reading, and this rank is about to wait for them.
  if (occupied_->load(std::memory_order_relaxed) == occupancy::reads) stop_reading();
  const bool lost = why.code == static_cast<int>(errc::peer_lost) && why.culprit >= 0 && endpoints_->gone(why.culprit);
  // An aborted call must return soon; messages that are not sent by then are sent by later progress calls.
  const bool expedited = why.code == static_cast<int>(errc::aborted) && why.reporter == rank_;
  notify_peers(why, lost ? why.culprit : -1, std::chrono::milliseconds(expedited ? 2 : 20));
  if (expedited) expedite();
  for (int peer = 0; has_windows() && peer < size_; ++peer) {
    if (!endpoints_type::shares_address_space && !transport::flag_reaches(*endpoints_, peer)) continue;
    layout_.header(window(peer)).revoked.store(1, std::memory_order_release);
    transport::wake(*endpoints_, peer);
  }
  endpoints_->discard();
  if constexpr (endpoints_type::shares_address_space) wait_for_readers();
}

template <class Domain>
void communicator_state<Domain>::notify_peers(const revocation& why, int lost, std::chrono::nanoseconds longest) {
#if HOCKET_HAS_EXCEPTIONS
  try {
    notify_peers(encode(why), lost, longest);
  } catch (const std::bad_alloc&) {}
#else
  notify_peers(encode(why), lost, longest);
#endif
}

template <class Domain>
void communicator_state<Domain>::expedite() noexcept {
  if constexpr (transport::can_expedite<endpoints_type>) endpoints_->expedite();
}

template <class Domain>
void communicator_state<Domain>::notify_peers(const std::vector<std::byte>& payload, int lost,
                                              std::chrono::nanoseconds longest) {
  constexpr int few = 32;
  const auto tell = [&](int peer) {
    if (peer != rank_ && peer != lost) endpoints_->post(peer, payload);
  };
  if (has_windows() || size_ <= few) {
    for (int peer = 0; peer < size_; ++peer) tell(peer);
  } else {
    for (int step = 1; step < size_; step *= 2) {
      tell((rank_ + step) % size_);
      tell((rank_ + size_ - step) % size_);
    }
  }
  const deadline last = deadline::after(longest);
  while (!endpoints_->posted() && !last.passed()) endpoints_->progress();
}

template <class Domain>
void communicator_state<Domain>::wait_for_readers() {
  platform::heavy_fence();
  const deadline last = deadline::after(std::chrono::seconds(30));
  for (int peer = 0; peer < size_; ++peer) {
    const std::atomic<std::uint32_t>& there = layout_.header(window(peer)).occupied;
    while (there.load(std::memory_order_acquire) == occupancy::reads && !last.passed()) platform::yield();
  }
}

template <class Domain>
HOCKET_NO_INLINE void communicator_state<Domain>::refresh_all_completed() noexcept {
  for (int peer = 0; peer < size(); ++peer) {
    peer_completed_[static_cast<std::size_t>(peer)] = completed_at(peer);
  }
  refresh_credit(completed_);
}

template <class Domain>
HOCKET_NO_INLINE bool communicator_state<Domain>::refresh_credit(std::uint32_t sequence) noexcept {
  std::uint32_t least = completed_;  // over this rank and all others
  for (int peer = 0; peer < size(); ++peer) {
    if (peer == rank()) continue;
    std::uint32_t& known = peer_completed_[static_cast<std::size_t>(peer)];
    if (distance(known, sequence) > static_cast<std::int32_t>(transport::window)) {
      known = completed_at(peer);
    }
    if (distance(known, least) > 0) least = known;
  }
  least_completed_ = least;
  return knows_credit(sequence);
}

template <class Domain>
std::unique_ptr<typename communicator_state<Domain>::endpoints_type> communicator_state<Domain>::open(
    transport::open_parameters& how) {
  how.window_bytes = layout_.size();
  return Domain::open(domain_, how);
}

}  // namespace detail
HOCKET_END_NAMESPACE
