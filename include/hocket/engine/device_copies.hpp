// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Copies in memory that the processor can't read: a plan may run on device memory if the transport sends and receives
/// it directly and an object of this interface performs the plan's local copies.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>

#include <cstddef>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// Used only by the thread that advances the operation.
class device_copies {
 public:
  device_copies() = default;
  device_copies(const device_copies&) = delete;
  device_copies& operator=(const device_copies&) = delete;
  virtual ~device_copies() = default;

  /// Begins a copy. A copy from or to host memory may be complete on return.
  virtual failure begin(void* to, const void* from, std::size_t bytes) = 0;
  /// Sets `over` to whether all copies that were begun have completed.
  virtual failure look(bool& over) = 0;
};

}  // namespace detail
HOCKET_END_NAMESPACE
