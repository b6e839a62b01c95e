// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The lanes of all active operations in a simulated world: the time of each, and what it waits for.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/text.hpp>
#include <hocket/transport/sim/endpoint.hpp>
#include <hocket/transport/sim/message_queues.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace sim {

/// One lane of one operation.
struct lane {
  endpoint* at = nullptr;  ///< null: free, or abandoned
  std::uint32_t sequence = 0;
  std::uint32_t number = 0;
  double time = 0;     ///< time at which it reached its next action
  double ready = 0;    ///< earliest start of this action, as far as known
  double drained = 0;  ///< time at which its last send was received
  std::uint64_t awaited = no_key;
  std::uint32_t undrained = 0;  ///< sends that have not been received
  std::uint32_t sent = 0;
  std::int32_t awaited_peer = -1;
  bool has_siblings = false;
  bool turn_over = false;  ///< it shares its rank's processor, and other lanes go first
  bool joining = false;
  bool ending = false;
  bool over = false;

  bool waits() const noexcept { return at != nullptr && !over; }
};

inline std::string describe(const lane& each) {
  std::string text = hocket::detail::concat({"rank ", each.at->rank, " in operation #", each.sequence});
  if (each.has_siblings) hocket::detail::append(text, {" (lane ", each.number, ")"});
  if (each.awaited != no_key) return hocket::detail::concat({text, " waits for a message of rank ", each.awaited_peer});
  return text + " waits until what it sent is received";
}

class lane_table {
 public:
  lane& operator[](std::uint32_t index) noexcept { return lanes_[index]; }

  std::uint32_t make() {
    if (free_.empty()) {
      lanes_.emplace_back();
      return static_cast<std::uint32_t>(lanes_.size() - 1);
    }
    const std::uint32_t index = free_.back();
    free_.pop_back();
    oldest_ = std::min<std::size_t>(oldest_, index);
    lanes_[index] = {};
    return index;
  }

  void release(std::uint32_t index) {
    lanes_[index].at = nullptr;
    free_.push_back(index);
  }

  /// Like `release`, but does not reuse the index: events may still refer to it.
  void abandon(std::uint32_t index) noexcept { lanes_[index].at = nullptr; }

  std::uint32_t find(const endpoint& at, std::uint32_t sequence, unsigned number) const noexcept {
    for (const std::uint32_t index : at.lanes) {
      if (lanes_[index].sequence == sequence && lanes_[index].number == number) return index;
    }
    return no_index;
  }

  /// Calls `visit(lane)` for lanes that have not completed, until it returns false.
  template <class Visit>
  void for_each_waiting(Visit visit) {
    while (oldest_ < lanes_.size() && !lanes_[oldest_].waits()) ++oldest_;
    for (std::size_t i = oldest_; i < lanes_.size(); ++i) {
      if (lanes_[i].waits() && !visit(lanes_[i])) return;
    }
  }

 private:
  std::vector<lane> lanes_;
  std::vector<std::uint32_t> free_;
  std::size_t oldest_ = 0;  ///< no lane before this one waits
};

}  // namespace sim
HOCKET_END_NAMESPACE
