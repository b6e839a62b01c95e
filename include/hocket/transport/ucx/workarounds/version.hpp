// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The loaded version of UCX: a program may run with a newer version than it was compiled with.
///
/// Version: settings have other names before UCX 1.17, and other messages are sent immediately before 1.16.
/// Symptom: UCX warns about settings that it does not know, or waits where it should send immediately.
/// Test: newest-ucx, the tests of transport/ucx with the newest UCX. Remove this when the oldest supported UCX is 1.17.
#pragma once

#include <hocket/core/config.hpp>

#include <ucp/api/ucp.h>

HOCKET_BEGIN_NAMESPACE
namespace ucx {

/// Returns whether the loaded version is UCX 1.`least_minor` or newer.
inline bool at_least(unsigned least_minor) noexcept {
  unsigned found_major = 0, found_minor = 0, release = 0;
  ucp_get_version(&found_major, &found_minor, &release);
  return found_major > 1 || found_minor >= least_minor;
}

}  // namespace ucx
HOCKET_END_NAMESPACE
