// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Plans that were found when running, so that a redistribution that is repeated is not planned again. A mesh keeps
/// them.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/shard/placement.hpp>
#include <hocket/shard/redistribution_move.hpp>

#include <array>
#include <cstddef>
#include <mutex>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// The latest plans over one mesh, for tensors of `Rank` dimensions. May be used from several threads.
template <std::size_t Rank, std::size_t Axes>
class plan_memory {
 public:
  struct request {
    std::array<std::size_t, Rank> sizes{};
    std::array<placement, Axes> from{};
    std::array<placement, Axes> to{};
    std::size_t element_bytes = 0;
    friend constexpr bool operator==(const request&, const request&) = default;
  };

  /// The plan for `wanted`: as remembered, or by `search()`.
  template <class Search>
  redistribution_plan<Axes> get(const request& wanted, const Search& search) {
    {
      const std::lock_guard lock(mutex_);
      for (const auto& [known, plan] : plans_) {
        if (known == wanted) return plan;
      }
    }
    const redistribution_plan<Axes> found = search();
    const std::lock_guard lock(mutex_);
    if (plans_.size() < most) {
      plans_.emplace_back(wanted, found);
    } else {
      plans_[searches_ % most] = {wanted, found};
    }
    ++searches_;
    return found;
  }

  /// How often a plan was not known.
  std::size_t searches() {
    const std::lock_guard lock(mutex_);
    return searches_;
  }

  static constexpr std::size_t most = 64;  ///< plans; beyond them the oldest is forgotten

 private:
  std::mutex mutex_;
  std::vector<std::pair<request, redistribution_plan<Axes>>> plans_;
  std::size_t searches_ = 0;
};

}  // namespace detail
HOCKET_END_NAMESPACE
