// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Where messages of a simulated world come from and go to: one rank's port in one communicator.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/transport/concept.hpp>
#include <hocket/transport/sim/event_queue.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace sim {

struct endpoint;

/// The ports of one communicator, by rank; null where there is none (any more).
struct group {
  std::uint32_t context = 0;
  std::shared_ptr<const std::vector<int>> ranks;  ///< in the world
  std::vector<endpoint*> members;
};

/// A message between `send` and `recv`: it is kept here, so that either end may give up.
struct point_to_point_message {
  std::vector<std::byte> bytes;
  int to = 0;
  bool received = false;
  double received_at = 0;
};

/// A rank of the world: when its ports and its processor are free again.
struct rank_resources {
  double out = 0;
  double in = 0;
  double processor = 0;
  double clock = 0;              ///< the last operation was over
  std::uint32_t operations = 0;  ///< under way
};

/// When an operation was called for: it may have to wait for its turn.
struct call_time {
  std::uint32_t sequence = 0;
  double clock = 0;
};

/// What the network knows of one rank's port.
struct endpoint {
  group* of = nullptr;
  int rank = 0;                         ///< in the communicator
  std::size_t world_rank = 0;           ///< rank in the world
  std::uint32_t first_queued = nobody;  ///< delivered and not received, oldest first
  std::uint32_t last_queued = nobody;
  std::vector<std::uint32_t> lanes;  ///< of operations under way
  std::vector<call_time> called;     ///< of those that have not begun
  double left = 0;                   ///< when the last operation that is over was over
  std::uint32_t point_to_point_sent = 0;
  std::deque<transport::control_message> mail;
  int awaited_peer = -1;  ///< of the parcel that was last asked for in vain
  void* owner = nullptr;  ///< who polls the operations, and how; null: only calls that block do
  void (*poll)(void* owner) = nullptr;
};

class group_table {
 public:
  /// Puts `at` among the members of its communicator: those that give the same context and the same ranks.
  void join(endpoint& at, std::uint32_t context, const std::shared_ptr<const std::vector<int>>& ranks) {
    const auto rank = static_cast<std::size_t>(at.rank);
    const auto found = std::find_if(groups_.begin(), groups_.end(), [&](const auto& each) {
      const bool same = each->context == context && (each->ranks == ranks || *each->ranks == *ranks);
      return same && each->members[rank] == nullptr;
    });
    if (found != groups_.end()) {
      at.of = found->get();
    } else {
      groups_.push_back(std::make_unique<group>(group{context, ranks, std::vector<endpoint*>(ranks->size())}));
      at.of = groups_.back().get();
    }
    at.of->members[rank] = &at;
  }

  template <class Visit>
  void for_each(Visit visit) const {
    for (const auto& each : groups_) {
      for (endpoint* const at : each->members) {
        if (at != nullptr) visit(*at);
      }
    }
  }

 private:
  std::vector<std::unique_ptr<group>> groups_;
};

}  // namespace sim
HOCKET_END_NAMESPACE
