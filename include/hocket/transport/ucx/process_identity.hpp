// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// What of the identities of processes matters to UCX: how ranks share a host's cores, and whom UCX takes for dead.
#pragma once

#include <hocket/bootstrap/process_identity.hpp>
#include <hocket/core/config.hpp>

#include <algorithm>
#include <vector>

#include <sched.h>

HOCKET_BEGIN_NAMESPACE
namespace ucx {

using bootstrap::own_identity;
using bootstrap::process_identity;
using bootstrap::process_watch;

/// How many ranks of this host there are, and how many cores they may use in all.
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

/// Whether UCX can watch all those with whom it shares memory. It looks for their process numbers, as if all were of
/// one PID namespace, and takes a process of another for dead.
inline bool all_watched_in_memory(const process_identity& own, const std::vector<process_identity>& all) noexcept {
  return std::all_of(all.begin(), all.end(), [&](const process_identity& each) {
    return !own.may_share_memory(each) || own.pid_namespace == each.pid_namespace;
  });
}

}  // namespace ucx
HOCKET_END_NAMESPACE
