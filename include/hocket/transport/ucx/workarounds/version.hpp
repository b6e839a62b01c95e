// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Which UCX is loaded: a program may run over a newer one than it was compiled with.
///
/// Version: settings have other names before UCX 1.17, and what it sends at once differs before 1.16.
/// Symptom: UCX warns of settings that it does not know, or waits where it was to send at once.
/// Test: newest-ucx, the tests of transport/ucx over the newest UCX. This can go when the oldest supported UCX is 1.17.
#pragma once

#include <hocket/core/config.hpp>

#include <ucp/api/ucp.h>

HOCKET_BEGIN_NAMESPACE
namespace ucx {

/// Whether it is UCX 1.`minor` or newer.
inline bool at_least(unsigned minor) noexcept {
  unsigned major = 0, found = 0, release = 0;
  ucp_get_version(&major, &found, &release);
  return major > 1 || found >= minor;
}

}  // namespace ucx
HOCKET_END_NAMESPACE
