// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// A connection to one peer.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/transport/ucx/status.hpp>
#include <hocket/transport/ucx/worker.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <ucp/api/ucp.h>

HOCKET_BEGIN_NAMESPACE
namespace ucx {

/// All members are called with the worker's lock held.
class endpoint {
 public:
  endpoint() = default;
  endpoint(const endpoint&) = delete;
  endpoint& operator=(const endpoint&) = delete;

  explicit operator bool() const noexcept { return handle_ != nullptr; }
  ucp_ep_h get() const noexcept { return handle_; }

  /// Opens the connection without waiting for the peer. `worker::progress` calls `on_error(argument, ...)` if the peer
  /// is lost, unless `on_error` is null or the transports can't detect that.
  ucs_status_t open(const worker& through, std::span<const std::byte> address, ucp_err_handler_cb_t on_error,
                    void* argument) noexcept {
    ucp_ep_params_t wanted{};
    wanted.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE;
    wanted.address = reinterpret_cast<const ucp_address_t*>(address.data());
    wanted.err_mode = UCP_ERR_HANDLING_MODE_NONE;
    if (on_error != nullptr) {
      ucp_ep_params_t watched = wanted;
      watched.field_mask |= UCP_EP_PARAM_FIELD_ERR_HANDLER;
      watched.err_mode = UCP_ERR_HANDLING_MODE_PEER;
      watched.err_handler.cb = on_error;
      watched.err_handler.arg = argument;
      const ucs_status_t status = ucp_ep_create(through.get(), &watched, &handle_);
      notices_death_ = status == UCS_OK;
      if (status != UCS_ERR_UNREACHABLE && status != UCS_ERR_UNSUPPORTED) return status;
    }
    return ucp_ep_create(through.get(), &wanted, &handle_);
  }

  /// Starts to close. Returns UCX's result: null, an error, or a request that the caller must wait for and free.
  ucs_status_ptr_t close() noexcept {
    ucp_request_param_t how{};
    how.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    how.flags = notices_death_ ? static_cast<std::uint32_t>(UCP_EP_CLOSE_FLAG_FORCE) : 0U;
    ucs_status_ptr_t const request = ucp_ep_close_nbx(handle_, &how);
    handle_ = nullptr;
    return request;
  }

  /// Names of the transports that this connection uses: "posix", "tcp".
  std::vector<std::string> transports() const {
    char* text = nullptr;
    std::size_t size = 0;
    std::FILE* const stream = ::open_memstream(&text, &size);
    if (stream == nullptr) return {};
    ucp_ep_print_info(handle_, stream);
    std::fclose(stream);
    std::vector<std::string> names = names_in({text, size});
    std::free(text);
    return names;
  }

  /// Returns whether all messages use `transport`.
  bool uses_only(std::string_view transport) const {
    const std::vector<std::string> names = transports();
    return !names.empty() &&
           std::all_of(names.begin(), names.end(), [=](const auto& each) { return each == transport; });
  }

  /// Returns whether some messages may use TCP.
  bool uses_tcp() const {
    const std::vector<std::string> names = transports();
    return std::find(names.begin(), names.end(), "tcp") != names.end();
  }

  /// Returns whether messages go through memory that both processes map.
  bool shares_memory() const {
    for (const std::string& each : transports()) {
      if (each == "posix" || each == "sysv" || each == "xpmem") return true;
    }
    return false;
  }

 private:
  /// Extracts the names from UCX's text, which has lanes as "lane[0]:  5:posix/memory.0 md[4] ...".
  static std::vector<std::string> names_in(std::string_view text) {
    std::vector<std::string> names;
    for (std::size_t at = text.find("lane["); at != std::string_view::npos; at = text.find("lane[", at)) {
      at = text.find("]:", at);
      const std::size_t slash = text.find('/', at);
      const std::size_t colon = text.rfind(':', slash);
      if (at == std::string_view::npos || slash == std::string_view::npos) break;
      names.emplace_back(text.substr(colon + 1, slash - colon - 1));
    }
    return names;
  }

  ucp_ep_h handle_ = nullptr;
  bool notices_death_ = false;
};

}  // namespace ucx
HOCKET_END_NAMESPACE
