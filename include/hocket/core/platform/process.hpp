// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The number of this process and the name of its host, for people who read the files that the process wrote.
#pragma once

#include <hocket/core/config.hpp>

#include <string>

#include <unistd.h>

HOCKET_BEGIN_NAMESPACE
namespace platform {

inline int process_number() noexcept { return static_cast<int>(::getpid()); }

/// Returns the name of this host; empty if it is unknown.
inline std::string host_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "";
}

}  // namespace platform
HOCKET_END_NAMESPACE
