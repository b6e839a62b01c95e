// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Refuses to start UCX if this process has too few free file descriptors.
///
/// Version: seen with UCX 1.13.
/// Symptom: UCX ends the process by an assertion, or reports a failure of the step that it tried, without the cause.
/// Test: ucx/few_descriptors.test.cpp.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/platform/directory.hpp>
#include <hocket/core/text.hpp>

#include <cstddef>

#include <sys/resource.h>

HOCKET_BEGIN_NAMESPACE
namespace ucx {

inline constexpr const char* raise_the_limit = ": raise the limit (ulimit -n)";

/// Returns a failure if this process has too few free file descriptors for UCX to start.
inline failure too_few_descriptors() {
  constexpr std::size_t needed = 24;  // up to 18 have been observed
  rlimit most{};
  if (::getrlimit(RLIMIT_NOFILE, &most) != 0 || most.rlim_cur == RLIM_INFINITY) return {};
  const std::size_t open = platform::list_directory("/proc/self/fd").size() - 1;  // without the directory's
  if (open + needed <= most.rlim_cur) return {};
  return make_failure(errc::bad_environment,
                      hocket::detail::concat({"UCX needs ", needed, " file descriptors to start, and this process has ",
                                              open, " of ", most.rlim_cur, " in use", raise_the_limit}));
}

}  // namespace ucx
HOCKET_END_NAMESPACE
