// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Requests of messages in flight.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/transport/ucx/connections.hpp>
#include <hocket/transport/ucx/message_tag.hpp>
#include <hocket/transport/ucx/send_buffer.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <utility>

#include <ucp/api/ucp.h>

HOCKET_BEGIN_NAMESPACE
namespace ucx {

/// Requests between this rank and one peer in one communicator.
struct traffic {
  std::uint32_t context = 0;                     ///< of the communicator
  std::uint32_t waiting = 0;                     ///< number of messages in flight
  bool missed = false;                           ///< a message can't be sent or received: no connection
  const std::atomic<bool>* expedited = nullptr;  ///< the communicator's: pending sends must end soon
};

/// A request that UCX has not finished. Movable. Destroying it abandons the message, and may have to wait for the peer,
/// except if the message is sent from a send buffer.
class request_handle {
 public:
  request_handle() = default;
  /// Requires the lock.
  request_handle(connections& links, void* request, int rank_in_domain, bool receives, traffic& counted,
                 send_buffer_pool::pointer sent = {}) noexcept
      : links_(&links), request_(request), counted_(&counted), rank_(rank_in_domain), receives_(receives),
        sent_(std::move(sent)) {
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
    void* const abandoned = std::exchange(request_, nullptr);
    if (sent_ != nullptr && sent_->save_bytes()) {
      links_->keep(abandoned, std::move(sent_));
    } else {
      links_->abandon(abandoned, rank_, receives_, counted_->context, *counted_->expedited);
    }
    forget();
  }

  bool pending() const noexcept { return request_ != nullptr; }
  void* get() const noexcept { return request_; }

  /// Requires the lock. Frees the request, which must have completed with `status`.
  void finish(ucs_status_t status) noexcept {
    ucp_request_free(std::exchange(request_, nullptr));
    if (status != UCS_OK && status != UCS_ERR_MESSAGE_TRUNCATED) links_->note_error(rank_, status);
    links_->outbox().recycle(std::move(sent_));
    forget();
  }

 private:
  void forget() noexcept {
    --counted_->waiting;
    links_->count_waiting(-1);
  }
  void swap(request_handle& other) noexcept {
    std::swap(links_, other.links_);
    std::swap(request_, other.request_);
    std::swap(counted_, other.counted_);
    std::swap(rank_, other.rank_);
    std::swap(receives_, other.receives_);
    std::swap(sent_, other.sent_);
  }

  connections* links_ = nullptr;
  void* request_ = nullptr;
  traffic* counted_ = nullptr;
  int rank_ = 0;
  bool receives_ = false;
  send_buffer_pool::pointer sent_;
};

/// Requires the lock. Receives the next message with `tag`, of at most `bytes`, by a request that reports its length.
inline ucs_status_t ask(request_handle& place, connections& links, int rank_in_domain, ucp_tag_t tag, void* buffer,
                        std::size_t bytes, traffic& counted) noexcept {
  ucp_request_param_t how{};
  how.op_attr_mask = UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
  ucs_status_ptr_t const request =
      ucp_tag_recv_nbx(links.through()->get(), buffer, bytes, tag, message_tag::matched_mask, &how);
  if (UCS_PTR_IS_ERR(request)) return UCS_PTR_STATUS(request);
  place = request_handle(links, request, rank_in_domain, true, counted);
  return UCS_OK;
}

}  // namespace ucx
HOCKET_END_NAMESPACE
