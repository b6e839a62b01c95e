// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The kinds of memory that CUDA knows. Callers say in the type of a buffer which it is.
#pragma once

#include <hocket/core/config.hpp>

HOCKET_BEGIN_NAMESPACE
namespace cuda_ipc {

enum class memory_space : int {
  plain,   ///< of the host, and the driver knows nothing of it
  pinned,  ///< of the host, and locked in place: devices copy it without a stop
  device,
  managed  ///< moves between host and devices as it is used
};

/// For people: "lies in ...".
inline const char* words_for(memory_space what) noexcept {
  switch (what) {
    case memory_space::pinned: return "pinned memory of the host";
    case memory_space::device: return "memory of a device";
    case memory_space::managed: return "managed memory";
    case memory_space::plain: break;
  }
  return "plain memory of the host";
}

}  // namespace cuda_ipc
HOCKET_END_NAMESPACE
