// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Which UCX is loaded. Versions differ in what must be worked around, and a program may run over a newer one than it was
/// compiled with.
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
