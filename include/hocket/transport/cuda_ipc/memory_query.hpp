// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// What kind of memory an address is of, as the driver says. Callers say it too; a wrong word there would be a crash of the
/// processor or a copy of what lies elsewhere, so both are compared at each call.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/transport/cuda_ipc/driver_status.hpp>
#include <hocket/transport/cuda_ipc/driver_types.hpp>
#include <hocket/transport/cuda_ipc/memory_space.hpp>

#include <cstdint>

HOCKET_BEGIN_NAMESPACE
namespace cuda_ipc {

/// Where `at` is. Local; a fraction of a microsecond. Needs a context.
template <class Driver>
failure space_of(Driver& through, address at, memory_space& result) {
  std::uint64_t type = 0, managed = 0;  // wide enough whatever the driver writes
  pointer_attribute which[] = {pointer_attribute::memory_type, pointer_attribute::is_managed};
  void* values[] = {&type, &managed};
  const status said = through.pointer_get_attributes(2U, which, values, at);
  if (said != status::success) return status_failure(through, "asking what kind of memory a buffer is", said);
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
