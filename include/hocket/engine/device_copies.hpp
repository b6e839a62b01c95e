// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Who copies where the processor can't read: a plan may be run on memory of a device, if the transport sends and receives
/// it as it is and somebody makes the copies that the plan has on its own rank.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>

#include <cstddef>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// Used by the thread that advances the operation.
class device_copies {
 public:
  device_copies() = default;
  device_copies(const device_copies&) = delete;
  device_copies& operator=(const device_copies&) = delete;
  virtual ~device_copies() = default;

  /// Begins a copy. Where the host's memory takes part, it may be over when this returns.
  virtual failure begin(void* to, const void* from, std::size_t bytes) = 0;
  /// Whether all that were begun are `over`.
  virtual failure look(bool& over) = 0;
};

}  // namespace detail
HOCKET_END_NAMESPACE
