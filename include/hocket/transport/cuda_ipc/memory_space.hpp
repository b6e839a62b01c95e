// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The kinds of memory that CUDA knows. The type of a caller's buffer specifies the kind.
#pragma once

#include <hocket/core/config.hpp>

HOCKET_BEGIN_NAMESPACE
namespace cuda_ipc {

enum class memory_space : int {
  plain,   ///< host memory that the driver does not know
  pinned,  ///< page-locked host memory, which devices copy asynchronously
  device,
  managed  ///< memory that moves between host and devices on use
};

/// Returns words for messages: "lies in ...".
inline const char* words_for(memory_space what) noexcept {
  switch (what) {
    case memory_space::pinned: return "pinned host memory";
    case memory_space::device: return "device memory";
    case memory_space::managed: return "managed memory";
    case memory_space::plain: break;
  }
  return "plain host memory";
}

}  // namespace cuda_ipc
HOCKET_END_NAMESPACE
