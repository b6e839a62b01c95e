// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Source and destination of messages in a simulated world: one rank's endpoint in one communicator.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/plan/detail/index_map.hpp>
#include <hocket/transport/concept.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace sim {

inline constexpr std::uint32_t no_index = plan::detail::none;

struct endpoint;

/// The endpoints of one communicator, by rank; null if a rank has not joined, or has left.
struct group {
  std::uint32_t context = 0;
  std::shared_ptr<const std::vector<int>> ranks;  ///< ranks in the world
  std::vector<endpoint*> members;
};

/// A message between `send` and `recv`: stored separately, so that either end may stop waiting.
struct point_to_point_message {
  std::vector<std::byte> bytes;
  int to = 0;
  bool received = false;
  double received_at = 0;
};

/// Resources of a rank of the world: the times at which its network ports and its processor are free again.
struct rank_resources {
  double out = 0;
  double in = 0;
  double processor = 0;
  double clock = 0;              ///< completion of the last operation
  std::uint32_t operations = 0;  ///< active operations
};

/// The time at which an operation was called: it may have to wait for its turn.
struct call_time {
  std::uint32_t sequence = 0;
  double clock = 0;
};

/// The network's state of one rank in one communicator.
struct endpoint {
  group* of = nullptr;
  int rank = 0;                           ///< rank in the communicator
  std::size_t world_rank = 0;             ///< rank in the world
  std::uint32_t first_queued = no_index;  ///< message that was delivered and not received; oldest
  std::uint32_t last_queued = no_index;
  std::vector<std::uint32_t> lanes;  ///< lanes of active operations
  std::vector<call_time> called;     ///< calls of operations that have not begun
  double left = 0;                   ///< completion time of the last completed operation
  std::uint32_t point_to_point_sent = 0;
  std::deque<transport::control_message> mail;
  int awaited_peer = -1;  ///< peer of the point-to-point message that the last poll did not find; -1: none
  void* owner = nullptr;  ///< argument of `poll`
  void (*poll)(void* owner) = nullptr;  ///< polls the operations; null: only blocking calls do
};

class group_table {
 public:
  /// Adds `at` to the members of its communicator: those that pass the same context and the same ranks.
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
