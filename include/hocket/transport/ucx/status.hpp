// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Conversion of UCX's status codes into failures that describe the remedy.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/platform/file_descriptor.hpp>
#include <hocket/core/text.hpp>
#include <hocket/transport/ucx/workarounds/too_few_descriptors.hpp>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <ucs/type/status.h>

HOCKET_BEGIN_NAMESPACE
namespace ucx {

inline errc code_of(ucs_status_t status) noexcept {
  switch (status) {
    case UCS_ERR_NO_MEMORY:
    case UCS_ERR_NO_RESOURCE:
    case UCS_ERR_SHMEM_SEGMENT: return errc::out_of_memory;
    case UCS_ERR_UNREACHABLE:
    case UCS_ERR_NO_DEVICE: return errc::unreachable;
    case UCS_ERR_MESSAGE_TRUNCATED: return errc::truncated;
    case UCS_ERR_CANCELED:
    case UCS_ERR_NOT_CONNECTED:
    case UCS_ERR_CONNECTION_RESET:
    case UCS_ERR_REJECTED:
    case UCS_ERR_TIMED_OUT:
    case UCS_ERR_IO_ERROR:
    case UCS_ERR_ENDPOINT_TIMEOUT: return errc::peer_lost;
    default: return errc::system;
  }
}

/// "UCX_TLS='tcp'" or "UCX_TLS is not set".
inline std::string variable_text(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string(name) + " is not set" : hocket::detail::concat({name, "='", value, "'"});
}

/// "/dev/shm has 12288 KiB free", for messages; empty if unknown.
inline std::string shared_memory_text() {
  struct statvfs room {};
  if (::statvfs("/dev/shm", &room) != 0) return "";
  const auto free_bytes = static_cast<std::uint64_t>(room.f_bavail) * room.f_frsize;
  return hocket::detail::concat({"/dev/shm has ", free_bytes >> 10, " KiB free"});
}

/// Describes the remedy if this process can't open more files, sockets and segments; otherwise empty. UCX reports that
/// condition as a failure of the step that it tried.
inline std::string descriptors_text() {
  const platform::file_descriptor probe(::open("/", O_RDONLY | O_CLOEXEC));
  if (probe || (errno != EMFILE && errno != ENFILE)) return "";
  rlimit most{};
  ::getrlimit(RLIMIT_NOFILE, &most);
  return hocket::detail::concat(
      {"; this process has no free file descriptor; its limit is ", most.rlim_cur, raise_the_limit});
}

/// Describes what the user can do about `status`.
inline std::string hint_for(ucs_status_t status) {
  switch (code_of(status)) {
    case errc::unreachable:
      return hocket::detail::concat(
          {"; ", variable_text("UCX_TLS"), ", ", variable_text("UCX_NET_DEVICES"),
           ": the transports and devices that these variables allow must connect each rank to every other rank; "
           "`ucx_info -d` lists those of this host; UCX does not use shared memory if too little is free (",
           shared_memory_text(), ")"});
    case errc::out_of_memory:
      return hocket::detail::concat(
          {"; UCX needs about 5 MB of shared memory per process for queues between ranks of one host, and ",
           shared_memory_text(), ": enlarge /dev/shm (in containers: --shm-size), or set UCX_TLS=tcp,self"});
    default: return "";
  }
}

/// Returns the failure "what: UCX's text; a hint".
inline failure status_failure(std::string_view what, ucs_status_t status, error_context context = {}) {
  const std::string text = hocket::detail::concat({what, ": ", ucs_status_string(status)});
  if (const std::string used_up = descriptors_text(); !used_up.empty()) {
    return make_failure(errc::bad_environment, text + used_up, context);
  }
  return make_failure(code_of(status), text + hint_for(status), context);
}

/// Raises an error unless `status` is success. For local operations, in which no peer can be lost.
inline void check(ucs_status_t status, std::string_view what) {
  if (status == UCS_OK) return;
  failure cause = status_failure(what, status);
  if (cause.code == errc::peer_lost) cause.code = errc::system;
  raise(std::move(cause));
}

}  // namespace ucx
HOCKET_END_NAMESPACE
