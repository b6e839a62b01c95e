// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Device memory that a caller lends for one call, divided into arrays.
///
/// Kernels of several launches pass data to each other, and the library does not allocate device memory implicitly: the
/// caller asks how many bytes are needed, and lends them until the stream has executed the call.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/text.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

HOCKET_BEGIN_NAMESPACE
namespace kernel {
namespace device {

/// `bytes` of memory that the current device can access. `data` must be a multiple of `workspace_alignment`.
struct workspace {
  void* data = nullptr;
  std::size_t bytes = 0;
};

/// Each array begins at a multiple of this, as memory from cudaMalloc does.
inline constexpr std::size_t workspace_alignment = 256;

/// Assigns places to arrays in order; the same calls give the same places.
class workspace_cut {
 public:
  /// Returns the offset of an array of `bytes`.
  constexpr std::size_t take(std::size_t bytes) noexcept {
    const std::size_t begin = used_;
    used_ += (bytes + workspace_alignment - 1) / workspace_alignment * workspace_alignment;
    return begin;
  }
  /// Returns the size of all arrays together.
  constexpr std::size_t bytes() const noexcept { return used_; }

 private:
  std::size_t used_ = 0;
};

/// Returns the array at offset `place`.
template <class T>
T* array_of(const workspace& lent, std::size_t place) noexcept {
  return reinterpret_cast<T*>(static_cast<unsigned char*>(lent.data) + place);
}

/// Fails if the workspace is too small or misaligned.
inline failure check_workspace(const workspace& lent, std::size_t needed, const char* operation) {
  std::string wrong;
  if (lent.bytes < needed) {
    wrong = hocket::detail::concat({"the workspace has ", lent.bytes, " bytes, but needs ", needed,
                                    ": use the size that the call's _workspace function returns"});
  } else if (needed != 0 && reinterpret_cast<std::uintptr_t>(lent.data) % workspace_alignment != 0) {
    wrong = "the workspace must begin at a multiple of 256 bytes, as memory from cudaMalloc does";
  } else {
    return {};
  }
  return make_failure(errc::invalid_argument, std::move(wrong), {.operation = operation});
}

}  // namespace device
}  // namespace kernel
HOCKET_END_NAMESPACE
