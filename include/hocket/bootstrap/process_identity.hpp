// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Identifies a rank's process and host, so that ranks of one host know each other and detect immediately if one ends.
///
/// A communication library can't detect that a process was killed until its parent has reaped it. The kernel's handle
/// on a process (a pidfd) can, and so can /proc, more slowly. A process number alone is not enough: it may mean another
/// process in another PID namespace, or have been reused; so the namespace and the start time of the process must match
/// too. The start time depends on the reader's time namespace. Shared memory has separate namespaces: containers of one
/// host share its cores, but mostly not its shared memory.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/deadline.hpp>
#include <hocket/core/platform/cpu.hpp>
#include <hocket/core/platform/directory.hpp>
#include <hocket/core/platform/file_descriptor.hpp>
#include <hocket/core/text.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <poll.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

HOCKET_BEGIN_NAMESPACE
namespace bootstrap {

/// Copied between processes as raw bytes.
struct process_identity {
  char host[64] = {};               ///< differs between hosts, and between two boots of one
  std::uint64_t pid_namespace = 0;  ///< 0: not known
  std::uint64_t start_time = 0;     ///< in the kernel's ticks since boot, as `time_namespace` shows it; 0: not known
  std::int32_t pid = 0;
  std::uint32_t ipc_namespace = 0;   ///< 0: not known
  std::uint64_t net_namespace = 0;   ///< 0: not known
  std::uint64_t time_namespace = 0;  ///< 0: not known, or the kernel has none
  cpu_set_t cores = {};              ///< cores that the process may run on

  bool same_host(const process_identity& other) const noexcept {
    return std::memcmp(host, other.host, sizeof host) == 0;
  }
  /// True if the two processes are on one host and see the same network interfaces.
  bool same_network(const process_identity& other) const noexcept {
    return same_host(other) && net_namespace != 0 && net_namespace == other.net_namespace;
  }
  /// True if the two processes may open each other's named shared memory, such as that of UCX.
  bool may_share_memory(const process_identity& other) const noexcept {
    return same_host(other) && ipc_namespace == other.ipc_namespace;
  }
  /// True if this process can detect whether `other` is alive.
  bool can_watch(const process_identity& other) const noexcept {
    return same_host(other) && pid_namespace != 0 && pid_namespace == other.pid_namespace &&
           time_namespace == other.time_namespace && other.start_time != 0;
  }
};

namespace detail {

inline std::string text_of(const std::string& path) {
  std::vector<std::byte> content;
  platform::read_file(path, content);
  return std::string(reinterpret_cast<const char*>(content.data()), content.size());
}

/// Returns the number in a field, from 4 on, of a /proc/PID/stat; 0 if there is none. The name in field 2 may contain
/// parentheses.
inline std::uint64_t field_of(const std::string& text, int number) {
  std::size_t at = text.rfind(')');
  for (int field = 2; field < number && at != std::string::npos; ++field) at = text.find(' ', at + 1);
  return at == std::string::npos ? 0 : std::strtoull(text.c_str() + at, nullptr, 10);
}

/// Returns the letter in field 3: 'Z' for a process that has ended, and which its parent has not asked about.
inline char state_in(const std::string& text) {
  const std::size_t at = text.rfind(')');
  return at == std::string::npos || at + 2 >= text.size() ? '?' : text[at + 2];
}

inline std::uint64_t start_time_in(const std::string& text) { return field_of(text, 22); }

inline std::uint64_t start_time_of(std::int32_t pid) {
  return start_time_in(text_of(hocket::detail::concat({"/proc/", pid, "/stat"})));
}

}  // namespace detail

inline process_identity own_identity() {
  process_identity own;
  std::string host = detail::text_of("/proc/sys/kernel/random/boot_id");
  if (host.empty() && ::gethostname(own.host, sizeof own.host - 1) == 0) host = own.host;
  std::memset(own.host, 0, sizeof own.host);
  std::memcpy(own.host, host.data(), std::min(host.size(), sizeof own.host - 1));
  struct stat space {};
  if (::stat("/proc/self/ns/pid", &space) == 0) own.pid_namespace = space.st_ino;
  if (::stat("/proc/self/ns/ipc", &space) == 0) own.ipc_namespace = static_cast<std::uint32_t>(space.st_ino);
  if (::stat("/proc/self/ns/net", &space) == 0) own.net_namespace = space.st_ino;
  if (::stat("/proc/self/ns/time", &space) == 0) own.time_namespace = space.st_ino;
  own.pid = ::getpid();
  own.start_time = detail::start_time_of(own.pid);
  CPU_ZERO(&own.cores);
  ::sched_getaffinity(0, sizeof own.cores, &own.cores);
  return own;
}

/// Watches one process of this host: by the kernel's handle on it, or if there is none, before Linux 5.3 and under
/// filters of system calls, by its entry in /proc, at most once a millisecond.
class process_watch {
 public:
  /// Returns true once the process has ended, even if it is a zombie. Returns false if that can't be determined.
  bool ended(const process_identity& who) {
    if (gone_) return true;
    if (!descriptor_ && !has_no_handle_) begin(who);
    if (descriptor_) {
      pollfd query{descriptor_.get(), POLLIN, 0};
      gone_ = ::poll(&query, 1, 0) > 0;
    } else if (has_no_handle_ && next_check_.passed()) {
      gone_ = has_no_process(who);
      next_check_ = deadline::after(std::chrono::milliseconds(1));
    }
    return gone_;
  }

 private:
  void begin(const process_identity& who) {
    platform::file_descriptor handle(static_cast<int>(::syscall(SYS_pidfd_open, who.pid, 0)));
    if (!handle) {
      gone_ = errno == ESRCH;
      has_no_handle_ = !gone_ && errno != EMFILE && errno != ENFILE;  // those may pass
      return;
    }
    const std::uint64_t start_time = detail::start_time_of(who.pid);
    if (start_time == who.start_time) descriptor_ = std::move(handle);
    gone_ = start_time != 0 && start_time != who.start_time;
  }

  /// Looks for the process in /proc, which may hide processes of other users: only a signal shows that there is none.
  static bool has_no_process(const process_identity& who) {
    // Not by <csignal>, whose `signal` would be ambiguous with that of a plan in sources that use both namespaces.
    if (::syscall(SYS_kill, who.pid, 0) != 0 && errno == ESRCH) return true;
    const std::string text = detail::text_of(hocket::detail::concat({"/proc/", who.pid, "/stat"}));
    if (text.empty()) return false;
    return detail::field_of(text, 22) != who.start_time ||
           (detail::state_in(text) == 'Z' && detail::field_of(text, 20) <= 1);  // else other threads still run
  }

  platform::file_descriptor descriptor_;
  deadline next_check_ = deadline(deadline::clock::time_point::min());
  bool has_no_handle_ = false;
  bool gone_ = false;
};

}  // namespace bootstrap
HOCKET_END_NAMESPACE
