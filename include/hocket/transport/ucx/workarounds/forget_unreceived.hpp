// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Removes messages that no call will receive from a worker before the worker is destroyed.
///
/// Version: seen with UCX 1.13.
/// Symptom: after a failure UCX writes a warning for each message that arrived and was not received. These warnings
///   hide the error message of the failure.
/// Test: fault/mismatch.test.cpp, "UCX prints nothing about messages that are not received after a failure".
#pragma once

#include <hocket/core/config.hpp>

#include <ucp/api/ucp.h>

HOCKET_BEGIN_NAMESPACE
namespace ucx {

/// Call with the worker's lock held. Drops the bytes of the messages. The worker must make no progress afterwards.
inline void forget_unreceived(ucp_worker_h worker) noexcept {
  const ucp_request_param_t how{};
  ucp_tag_recv_info_t info{};
  while (ucp_tag_message_h const message = ucp_tag_probe_nb(worker, 0, 0, 1, &info)) {
    ucs_status_ptr_t const request = ucp_tag_msg_recv_nbx(worker, nullptr, 0, message, &how);
    if (UCS_PTR_IS_PTR(request)) ucp_request_free(request);
  }
}

}  // namespace ucx
HOCKET_END_NAMESPACE
