// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// A cache of the handles of this rank's buffers: making a handle takes seven driver calls, checking whether a cached
/// handle is still valid takes one.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/transport/cuda_ipc/context_scope.hpp>
#include <hocket/transport/cuda_ipc/driver_types.hpp>
#include <hocket/transport/cuda_ipc/memory_handle.hpp>
#include <hocket/transport/cuda_ipc/resources.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

HOCKET_BEGIN_NAMESPACE
namespace cuda_ipc {

/// Not thread-safe.
template <class Driver>
class export_cache {
 public:
  static constexpr std::size_t max_handles = 1024;

  export_cache(const driver_context<Driver>& at, const process_mark& own) : at_(at), own_(own) {}

  /// Like `describe`. The driver never reuses a buffer_id, so a cached handle with the current one is valid.
  failure handle_of(address data, std::uint64_t bytes, memory_handle& result) {
    const context_scope scope(*at_.through, at_.where);
    if (failure found = scope.refused()) return found;
    const auto known = known_.find({data, bytes});
    if (known != known_.end()) {
      std::uint64_t generation = 0;
      const status returned = detail::attribute_of(*at_.through, pointer_attribute::buffer_id, data, generation);
      if (returned == status::success && generation == known->second.generation) {
        result = known->second;
        return {};
      }
      known_.erase(known);
    }
    if (failure found = describe(*at_.through, data, bytes, own_, result)) return found;
    if (known_.size() >= max_handles) known_.clear();
    known_[{data, bytes}] = result;
    return {};
  }

 private:
  const driver_context<Driver> at_;
  const process_mark own_;
  std::map<std::pair<address, std::uint64_t>, memory_handle> known_;
};

}  // namespace cuda_ipc
HOCKET_END_NAMESPACE
