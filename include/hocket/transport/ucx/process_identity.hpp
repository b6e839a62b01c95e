// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Process identities as UCX needs them: how ranks share a host's cores, and which processes UCX can't watch.
#pragma once

#include <hocket/bootstrap/process_identity.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/text.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <sched.h>
#include <unistd.h>

HOCKET_BEGIN_NAMESPACE
namespace ucx {

using bootstrap::own_identity;
using bootstrap::process_identity;
using bootstrap::process_watch;

/// Returns whether `own` may open the files of all those processes that may share memory with it by their namespaces: not
/// those of other users, and of user namespaces beside its own.
inline bool may_open_files_of(const process_identity& own, const std::vector<process_identity>& all) {
  return std::all_of(all.begin(), all.end(), [&](const process_identity& each) {
    if (!own.may_share_memory(each)) return true;
    char link[64];
    const std::string name = hocket::detail::concat({"/proc/", each.pid, "/ns/ipc"});
    return ::readlink(name.c_str(), link, sizeof link) > 0;
  });
}

/// Number of ranks on this host, and of cores that they may use altogether.
struct host_share {
  int ranks = 0;
  int cores = 0;
};

inline host_share share_of_host(const process_identity& own, const std::vector<process_identity>& all) noexcept {
  host_share result;
  cpu_set_t cores;
  CPU_ZERO(&cores);
  for (const process_identity& each : all) {
    if (!own.same_host(each)) continue;
    ++result.ranks;
    CPU_OR(&cores, &cores, &each.cores);
  }
  result.cores = std::max(1, CPU_COUNT(&cores));
  return result;
}

/// Returns whether UCX can watch all processes with which it shares memory. UCX searches for their process numbers as
/// if all were in one PID namespace, and so assumes that a process in another namespace has exited.
inline bool all_watched_in_memory(const process_identity& own, const std::vector<process_identity>& all) noexcept {
  return std::all_of(all.begin(), all.end(), [&](const process_identity& each) {
    return !own.may_share_memory(each) || own.pid_namespace == each.pid_namespace;
  });
}

}  // namespace ucx
HOCKET_END_NAMESPACE
