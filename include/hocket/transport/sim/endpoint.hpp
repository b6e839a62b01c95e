// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Source and destination of messages in a simulated world: one rank's endpoint in one communicator.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/plan/detail/index_map.hpp>
#include <hocket/transport/concept.hpp>
#include <hocket/transport/operation_event.hpp>
#include <hocket/transport/sim/conditions.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace sim {

inline constexpr std::uint32_t no_index = plan::detail::none;
inline constexpr std::size_t not_in_use = ~std::size_t{0};

struct endpoint;

/// The endpoints of one communicator, by rank; null if a rank has not joined, or has left.
struct group {
  std::uint64_t number = 0;  ///< groups that were made before
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

/// Messages that were delivered and not received, from the oldest to the last.
struct message_list {
  std::uint32_t first = no_index;
  std::uint32_t last = no_index;
};

/// All such messages of an endpoint, in lists by their keys: one list for few messages, more for many.
struct delivered_messages {
  message_list& list_of(std::uint64_t key) noexcept {
    return more.empty() ? only : more[detail::mix(key) & (more.size() - 1)];
  }

  message_list only;               ///< unused once there are more
  std::vector<message_list> more;  ///< a power of two
  std::uint32_t count = 0;
};

/// The network's state of one rank in one communicator.
struct endpoint {
  group* of = nullptr;
  int rank = 0;                ///< rank in the communicator
  std::size_t world_rank = 0;  ///< rank in the world
  delivered_messages delivered;
  std::vector<std::uint32_t> lanes;  ///< lanes of active operations
  /// The clock at the call of each operation that has not begun: it may have to wait for its turn.
  std::unordered_map<std::uint32_t, double> called;
  double left = 0;  ///< completion time of the last completed operation
  std::uint32_t point_to_point_sent = 0;
  std::deque<transport::control_message> mail;
  int awaited_peer = -1;  ///< peer of the point-to-point message that the last poll did not find; -1: none
  std::size_t place_in_use = not_in_use;    ///< in `endpoints_in_use`
  void* owner = nullptr;                    ///< argument of `poll`
  transport::poll_function poll = nullptr;  ///< polls the operations; null: only blocking calls do
};

class group_table {
 public:
  /// Adds `at` to the members of its communicator: those that pass the same context and the same ranks.
  void join(endpoint& at, std::uint32_t context, const std::shared_ptr<const std::vector<int>>& ranks) {
    const auto rank = static_cast<std::size_t>(at.rank);
    auto& alike = groups_[context];
    const auto found = std::find_if(alike.begin(), alike.end(), [&](const auto& each) {
      return (each->ranks == ranks || *each->ranks == *ranks) && each->members[rank] == nullptr;
    });
    if (found != alike.end()) {
      at.of = found->get();
    } else {
      alike.push_back(std::make_unique<group>(group{made_++, context, ranks, std::vector<endpoint*>(ranks->size())}));
      at.of = alike.back().get();
    }
    at.of->members[rank] = &at;
  }

 private:
  std::unordered_map<std::uint32_t, std::vector<std::unique_ptr<group>>> groups_;  ///< by context
  std::uint64_t made_ = 0;
};

/// The endpoints that may have incomplete operations: only these are asked what they wait for.
class endpoints_in_use {
 public:
  void add(endpoint& at) {
    if (at.place_in_use != not_in_use) return;
    all_.push_back(&at);
    at.place_in_use = all_.size() - 1;
  }
  void remove(endpoint& at) noexcept {
    if (at.place_in_use == not_in_use) return;
    all_[at.place_in_use] = all_.back();
    all_[at.place_in_use]->place_in_use = at.place_in_use;
    all_.pop_back();
    at.place_in_use = not_in_use;
  }

  /// Calls `visit(endpoint)` for each in the order of groups and ranks. It may open, use and close endpoints.
  template <class Visit>
  void for_each(Visit visit) const {
    std::vector<std::pair<const group*, std::size_t>> places;
    places.reserve(all_.size());
    for (const endpoint* const at : all_) places.emplace_back(at->of, static_cast<std::size_t>(at->rank));
    std::sort(places.begin(), places.end(), [](const auto& a, const auto& b) {
      return a.first != b.first ? a.first->number < b.first->number : a.second < b.second;
    });
    for (const auto& [of, rank] : places) {
      if (endpoint* const at = of->members[rank]; at != nullptr) visit(*at);
    }
  }

 private:
  std::vector<endpoint*> all_;
};

}  // namespace sim
HOCKET_END_NAMESPACE
