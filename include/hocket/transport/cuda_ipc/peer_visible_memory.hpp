// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Memory of this rank's device that peers have mapped. To free it while they have is undefined, and no destructor can
/// know: so it is freed by the teardown of all ranks, and one that never comes leaves it to the end of the process.
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

/// All of it that belongs to one rank's share of a communicator.
template <class Driver>
class peer_visible_memory {
 public:
  explicit peer_visible_memory(const driver_context<Driver>& at) : at_(at) {}
  peer_visible_memory(const peer_visible_memory&) = delete;
  peer_visible_memory& operator=(const peer_visible_memory&) = delete;
  ~peer_visible_memory() {
    for (piece& each : pieces_) each.memory.abandon();
  }

  /// At least `bytes`, to be lent: what was given back, or more. Local.
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
  /// Nobody uses what is there any more; peers may still have it mapped. Nothing else than what was allocated is taken.
  void give_back(address what) noexcept {
    for (piece& each : pieces_) each.spare = each.spare || each.memory.get() == what;
  }

  /// Frees all of it: only if no peer that lives has it mapped. All is given back even if the driver complains, which is
  /// the result then.
  failure free_all() {
    failure first;
    for (piece& each : pieces_) {
      failure found = each.memory.give_back();
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
