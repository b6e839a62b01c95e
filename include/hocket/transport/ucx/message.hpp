// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// How messages are told apart on the wire, and the requests of those under way.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/transport/concept.hpp>
#include <hocket/transport/ucx/connections.hpp>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <utility>

#include <ucp/api/ucp.h>

HOCKET_BEGIN_NAMESPACE
namespace ucx {

/// UCX matches messages by 64 bits: context 16, source rank 16, channel 3, sequence number 16. So there
/// are at most 2^16 communicators at a time, of at most 2^16 ranks each. The low bits of a sequence number are enough, as
/// only `transport::window` of them are in use at a time; tags of `send` and `recv` have 16 bits.
///
/// The 13 bits that remain travel along, unmatched: the receiver compares them with those of its own call's signature.
struct message_tag {
  static constexpr unsigned context_bits = 16;
  static constexpr unsigned rank_bits = 16;
  static constexpr unsigned channel_bits = 3;
  static constexpr unsigned sequence_bits = 16;
  static constexpr unsigned signature_bits = 13;
  static constexpr ucp_tag_t signature_mask = (ucp_tag_t{1} << signature_bits) - 1;
  static constexpr ucp_tag_t matched_mask = ~signature_mask;

  static constexpr ucp_tag_t make(std::uint32_t context, int source, transport::message_id id) noexcept {
    ucp_tag_t tag = context;
    tag = (tag << rank_bits) | static_cast<ucp_tag_t>(source);
    tag = (tag << channel_bits) | id.channel;
    tag = (tag << sequence_bits) | (id.sequence & ((1U << sequence_bits) - 1));
    return (tag << signature_bits) | (id.signature & signature_mask);
  }

  /// Whether a message with `tag` comes from a call like that of `id`, as far as 13 bits tell.
  static constexpr bool same_call(ucp_tag_t tag, transport::message_id id) noexcept {
    return (tag & signature_mask) == (id.signature & signature_mask);
  }
};
static_assert(message_tag::context_bits + message_tag::rank_bits + message_tag::channel_bits +
                  message_tag::sequence_bits + message_tag::signature_bits == 64);
static_assert(transport::max_channels < (1U << message_tag::channel_bits));

/// Requests of one communicator with one peer.
struct traffic {
  std::uint32_t waiting = 0;   ///< under way
  std::uint32_t finished = 0;  ///< so far
};

/// A request that UCX has not finished. Movable. Destroying it gives the message up.
class request_handle {
 public:
  request_handle() = default;
  /// With the lock.
  request_handle(connections& links, void* request, int rank_on_wire, bool receives, traffic& counted) noexcept
      : links_(&links), request_(request), counted_(&counted), rank_(rank_on_wire), receives_(receives) {
    ++counted_->waiting;
    links_->count_waiting(1);
  }
  request_handle(request_handle&& other) noexcept { swap(other); }
  request_handle& operator=(request_handle&& other) noexcept {
    request_handle taken(std::move(other));
    swap(taken);
    return *this;
  }
  ~request_handle() {
    if (request_ == nullptr) return;
    const std::lock_guard guard(links_->lock());
    links_->abandon(std::exchange(request_, nullptr), rank_, receives_);
    forget();
  }

  bool pending() const noexcept { return request_ != nullptr; }
  void* get() const noexcept { return request_; }

  /// With the lock, when it is over.
  void finish(ucs_status_t status) noexcept {
    ucp_request_free(std::exchange(request_, nullptr));
    if (status != UCS_OK && status != UCS_ERR_MESSAGE_TRUNCATED) links_->note_error(rank_, status);
    forget();
  }

 private:
  void forget() noexcept {
    --counted_->waiting;
    ++counted_->finished;
    links_->count_waiting(-1);
  }
  void swap(request_handle& other) noexcept {
    std::swap(links_, other.links_);
    std::swap(request_, other.request_);
    std::swap(counted_, other.counted_);
    std::swap(rank_, other.rank_);
    std::swap(receives_, other.receives_);
  }

  connections* links_ = nullptr;
  void* request_ = nullptr;
  traffic* counted_ = nullptr;
  int rank_ = 0;
  bool receives_ = false;
};

}  // namespace ucx
HOCKET_END_NAMESPACE
