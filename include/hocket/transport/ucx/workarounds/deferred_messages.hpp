// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Queue of notices and control messages to one peer that could not be sent yet.
///
/// Until the greeting of a peer arrives, this rank sends no long messages to it, and only messages that UCX can send
/// immediately, because UCX asks the peer for its endpoint number before it sends others. UCX never delays a greeting,
/// and once a greeting has arrived, the connection is complete.
///
/// Version: before UCX 1.16; seen with 1.13. Since 1.16 UCX refuses to send nonempty messages immediately over TCP, and
///   its answer needs no connection, so UCX may hold messages that it can't send immediately.
/// Symptom: UCX ends a process by an assertion if a peer that asked it for an endpoint number is killed while the
///   answer waits for a connection that is still being made.
/// Test: fault/kill.test.cpp, "processes killed while the world connects".
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/transport/ucx/workarounds/version.hpp>

#include <cstddef>
#include <cstring>
#include <deque>
#include <memory>
#include <span>
#include <utility>

#include <ucp/api/ucp.h>

HOCKET_BEGIN_NAMESPACE
namespace ucx {

class deferred_messages {
 public:
  bool empty() const noexcept { return unsent_.empty(); }
  void clear() noexcept { unsent_.clear(); }

  /// Adds an active message with that `id`. Copies header and words.
  template <class Header>
  void add(unsigned id, const Header& header, std::span<const std::byte> payload) {
    deferred_message each{id, sizeof header, sizeof header + payload.size(), {}};
    each.bytes = std::make_unique<std::byte[]>(each.size);
    std::memcpy(each.bytes.get(), &header, sizeof header);
    if (!payload.empty()) std::memcpy(each.bytes.get() + sizeof header, payload.data(), payload.size());
    unsent_.push_back(std::move(each));
  }

  /// Sends the queued messages in order, before the peer `has_greeted` only those that UCX can send immediately. Passes
  /// each request and its bytes, which UCX may still read, to `keep(request, bytes)`. Returns true if none is left.
  template <class Keep>
  bool send(ucp_ep_h link, bool has_greeted, Keep keep) {
    for (; !unsent_.empty(); unsent_.pop_front()) {
      deferred_message& next = unsent_.front();
      std::byte* const begin = next.bytes.get();
      ucp_request_param_t how{};
      how.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
      if (!has_greeted && !at_least(16)) how.op_attr_mask |= UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL;
      how.flags = UCP_AM_SEND_FLAG_EAGER;
      ucs_status_ptr_t const request = ucp_am_send_nbx(link, next.id, begin, next.header_size, begin + next.header_size,
                                                       next.size - next.header_size, &how);
      if (!has_greeted && UCS_PTR_IS_ERR(request) && UCS_PTR_STATUS(request) == UCS_ERR_NO_RESOURCE) return false;
      keep(request, std::move(next.bytes));
    }
    return true;
  }

 private:
  /// `bytes` begins with the header.
  struct deferred_message {
    unsigned id;
    std::size_t header_size;
    std::size_t size;
    std::unique_ptr<std::byte[]> bytes;
  };

  std::deque<deferred_message> unsent_;
};

}  // namespace ucx
HOCKET_END_NAMESPACE
