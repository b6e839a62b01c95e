// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Names of threads, which debuggers and top show.
#pragma once

#include <hocket/core/config.hpp>

#include <pthread.h>

HOCKET_BEGIN_NAMESPACE
namespace platform {

/// Names the calling thread. The name must have at most 15 characters; a longer one has no effect.
inline void name_this_thread(const char* name) noexcept { ::pthread_setname_np(::pthread_self(), name); }

}  // namespace platform
HOCKET_END_NAMESPACE
