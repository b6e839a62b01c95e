// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The limit of the size of files, which also holds for shared memory: the kernel ends a process that exceeds it by
/// SIGXFSZ, so it must be known before.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/text.hpp>

#include <cstdint>

#include <sys/resource.h>

HOCKET_BEGIN_NAMESPACE
namespace platform {

/// Returns a failure that states the limit if this process can't make a file of `bytes` bytes.
inline failure exceeds_file_size_limit(std::uint64_t bytes) {
  rlimit most{};
  if (::getrlimit(RLIMIT_FSIZE, &most) != 0 || most.rlim_cur == RLIM_INFINITY || bytes <= most.rlim_cur) return {};
  return make_failure(errc::bad_environment,
                      hocket::detail::concat({"the limit of the size of files is ", std::uint64_t{most.rlim_cur},
                                              " bytes: raise it (ulimit -f)"}));
}

}  // namespace platform
HOCKET_END_NAMESPACE
