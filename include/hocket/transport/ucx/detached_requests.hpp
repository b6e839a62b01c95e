// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Requests for which no call waits any more, and the memory that they send. UCX reads this memory until the requests
/// end, possibly long after the call that started them has failed.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/transport/ucx/send_buffer.hpp>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include <ucp/api/ucp.h>

HOCKET_BEGIN_NAMESPACE
namespace ucx {

/// Members are called with the worker's lock held.
class detached_requests {
 public:
  bool empty() const noexcept { return requests_.empty(); }
  /// Returns whether the end of this process must wait for any of the requests.
  bool any_awaited() const noexcept {
    return std::any_of(requests_.begin(), requests_.end(), [](const entry& each) { return each.awaited; });
  }

  /// Stores `request`, the result of starting a request, and the bytes that it uses, unless it has completed already.
  void add(ucs_status_ptr_t request, std::unique_ptr<std::byte[]> bytes, bool awaited) {
    if (UCS_PTR_IS_PTR(request)) requests_.push_back({request, std::move(bytes), {}, awaited});
  }
  void add(ucs_status_ptr_t request, send_buffer_pool::pointer buffer) {
    requests_.push_back({request, {}, std::move(buffer), true});
  }

  /// Frees the requests that have ended, and their bytes.
  void sweep() noexcept {
    std::erase_if(requests_, [](const entry& each) {
      if (ucp_request_check_status(each.request) == UCS_INPROGRESS) return false;
      ucp_request_free(each.request);
      return true;
    });
  }
  /// Leaves all requests to UCX and frees their bytes, so the worker must make no progress afterwards.
  void release() noexcept {
    for (const entry& each : requests_) ucp_request_free(each.request);
    requests_.clear();
  }

 private:
  struct entry {
    void* request;
    std::unique_ptr<std::byte[]> bytes;
    send_buffer_pool::pointer buffer;
    bool awaited;
  };

  std::vector<entry> requests_;
};

}  // namespace ucx
HOCKET_END_NAMESPACE
