// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Which process on which host this is, for people who read what it has left.
#pragma once

#include <hocket/core/config.hpp>

#include <string>

#include <unistd.h>

HOCKET_BEGIN_NAMESPACE
namespace platform {

inline int process_number() noexcept { return static_cast<int>(::getpid()); }

/// Empty if it is not known.
inline std::string host_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "";
}

}  // namespace platform
HOCKET_END_NAMESPACE
