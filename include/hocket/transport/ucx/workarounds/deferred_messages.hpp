// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Notices and control messages to one peer that could not be sent yet.
///
/// Until a peer has greeted this rank, nothing is sent to it that UCX can't send at once, and no long messages. For those
/// UCX asks the peer for the number of its endpoint. A greeting is never waited for by UCX, and the connection it came
/// through is made.
///
/// Version: before UCX 1.16; seen with 1.13. Since 1.16 UCX refuses to send anything but empty messages at once over TCP, and its answer
///   needs no connection, so it may keep what it can't send at once.
/// Symptom: UCX ends a process by an assertion if a peer that asked it for an endpoint number dies while the answer waits
///   for a connection that is still being made.
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

  /// An active message with that `id`. Keeps a copy of header and words.
  template <class Header>
  void add(unsigned id, const Header& header, std::span<const std::byte> words) {
    deferred_message each{id, sizeof header, sizeof header + words.size(), {}};
    each.bytes = std::make_unique<std::byte[]>(each.size);
    std::memcpy(each.bytes.get(), &header, sizeof header);
    if (!words.empty()) std::memcpy(each.bytes.get() + sizeof header, words.data(), words.size());
    unsent_.push_back(std::move(each));
  }

  /// Sends what may go to a peer that `has_greeted` or not. `keep(request, bytes)` gets what UCX is not done with.
  /// Returns whether nothing is left.
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
  /// The header is the beginning of `bytes`.
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
