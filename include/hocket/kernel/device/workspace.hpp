// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Memory of a device that a caller lends for one call, cut into arrays.
///
/// Kernels of several launches hand numbers to each other, and the library allocates nothing behind a caller's back: who
/// calls asks how many bytes are needed, and lends them for as long as the stream is at work on the call.
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

/// `bytes` of memory that the current device reaches. `data` is a multiple of `workspace_alignment`.
struct workspace {
  void* data = nullptr;
  std::size_t bytes = 0;
};

/// Each array begins at such a multiple, as what cudaMalloc gives does.
inline constexpr std::size_t workspace_alignment = 256;

/// Deals arrays out, one after the other; the same calls give the same places.
class workspace_cut {
 public:
  /// Where `bytes` more begin.
  constexpr std::size_t take(std::size_t bytes) noexcept {
    const std::size_t begin = used_;
    used_ += (bytes + workspace_alignment - 1) / workspace_alignment * workspace_alignment;
    return begin;
  }
  /// Bytes for all that was taken.
  constexpr std::size_t bytes() const noexcept { return used_; }

 private:
  std::size_t used_ = 0;
};

/// The array that was taken at `place`.
template <class T>
T* array_of(const workspace& lent, std::size_t place) noexcept {
  return reinterpret_cast<T*>(static_cast<unsigned char*>(lent.data) + place);
}

/// A workspace that is too small, or begins where it must not.
inline failure check_workspace(const workspace& lent, std::size_t needed, const char* operation) {
  std::string wrong;
  if (lent.bytes < needed) {
    wrong = hocket::detail::concat(
        {"the workspace has ", lent.bytes, " bytes, and ", needed, " are needed: ask for the number before"});
  } else if (needed != 0 && reinterpret_cast<std::uintptr_t>(lent.data) % workspace_alignment != 0) {
    wrong = "the workspace does not begin at a multiple of 256, as all that cudaMalloc gives does";
  } else {
    return {};
  }
  return make_failure(errc::invalid_argument, std::move(wrong), {.operation = operation});
}

}  // namespace device
}  // namespace kernel
HOCKET_END_NAMESPACE
