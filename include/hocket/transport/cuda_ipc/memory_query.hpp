// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Queries the driver for the kind of memory at an address. Callers pass the kind too; a wrong one would crash the
/// program or copy other memory, so each call compares both.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/transport/cuda_ipc/driver_status.hpp>
#include <hocket/transport/cuda_ipc/driver_types.hpp>
#include <hocket/transport/cuda_ipc/memory_space.hpp>

#include <cstdint>

HOCKET_BEGIN_NAMESPACE
namespace cuda_ipc {

/// Queries the kind of memory at `at`. Local; a fraction of a microsecond. Needs a context.
template <class Driver>
failure space_of(Driver& through, address at, memory_space& result) {
  std::uint64_t type = 0, managed = 0;  // wide enough whatever the driver writes
  pointer_attribute which[] = {pointer_attribute::memory_type, pointer_attribute::is_managed};
  void* values[] = {&type, &managed};
  const status returned = through.pointer_get_attributes(2U, which, values, at);
  if (returned != status::success)
    return status_failure(through, "asking the driver for the kind of a buffer's memory", returned);
  if (managed != 0) {
    result = memory_space::managed;
  } else if (type == static_cast<std::uint64_t>(memory_type::device)) {
    result = memory_space::device;
  } else if (type == static_cast<std::uint64_t>(memory_type::host)) {
    result = memory_space::pinned;
  } else {
    result = memory_space::plain;
  }
  return {};
}

}  // namespace cuda_ipc
HOCKET_END_NAMESPACE
