// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Device memory of this rank that peers may have mapped. Freeing it while it is mapped is undefined, and a destructor
/// can't know that. So the collective teardown frees it; without teardown it stays allocated until the process ends.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/transport/cuda_ipc/driver_types.hpp>
#include <hocket/transport/cuda_ipc/resources.hpp>

#include <cstddef>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace cuda_ipc {

/// All peer-visible memory of one rank's share of a communicator.
template <class Driver>
class peer_visible_memory {
 public:
  explicit peer_visible_memory(const driver_context<Driver>& at) : at_(at) {}
  peer_visible_memory(const peer_visible_memory&) = delete;
  peer_visible_memory& operator=(const peer_visible_memory&) = delete;
  ~peer_visible_memory() {
    for (piece& each : pieces_) each.memory.abandon();
  }

  /// Returns at least `bytes` in `result`: memory that was given back, or new memory. Local.
  failure allocate(std::size_t bytes, address& result) {
    for (piece& each : pieces_) {
      if (!each.spare || each.bytes < bytes) continue;
      each.spare = false;
      result = each.memory.get();
      return {};
    }
    piece made{.bytes = bytes};
    if (failure found = device_memory<Driver>::make(at_, made.memory, bytes)) return found;
    pieces_.push_back(std::move(made));
    result = pieces_.back().memory.get();
    return {};
  }
  /// Gives back memory that is no longer used; peers may still have it mapped. Ignores other addresses.
  void mark_spare(address what) noexcept {
    for (piece& each : pieces_) each.spare = each.spare || each.memory.get() == what;
  }

  /// Frees all memory. No live peer may have it mapped. Continues after an error of the driver, and returns the first
  /// one.
  failure free_all() {
    failure first;
    for (piece& each : pieces_) {
      failure found = each.memory.destroy();
      if (found && !first) first = std::move(found);
    }
    pieces_.clear();
    return first;
  }

  std::size_t size() const noexcept { return pieces_.size(); }

 private:
  struct piece {
    device_memory<Driver> memory = {};
    std::size_t bytes = 0;
    bool spare = false;
  };

  const driver_context<Driver> at_;
  std::vector<piece> pieces_;
};

}  // namespace cuda_ipc
HOCKET_END_NAMESPACE
