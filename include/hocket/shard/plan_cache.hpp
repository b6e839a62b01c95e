// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Storage in a mesh for plans that were found at run time, so that a repeated redistribution is not planned again.
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

/// The latest results of searches for one mesh. Thread-safe.
template <class Request, class Answer>
class search_cache {
 public:
  using request = Request;

  /// Returns the stored answer to `wanted`; if there is none, stores and returns that of `search()`.
  template <class Search>
  Answer get(const Request& wanted, const Search& search) {
    {
      const std::lock_guard lock(mutex_);
      for (const auto& [known, answer] : answers_) {
        if (known == wanted) return answer;
      }
    }
    const Answer found = search();
    const std::lock_guard lock(mutex_);
    if (answers_.size() < most) {
      answers_.emplace_back(wanted, found);
    } else {
      answers_[searches_ % most] = {wanted, found};
    }
    ++searches_;
    return found;
  }

  /// Returns the number of searches.
  std::size_t searches() {
    const std::lock_guard lock(mutex_);
    return searches_;
  }

  static constexpr std::size_t most = 64;  ///< answers; then a new one replaces the oldest

 private:
  std::mutex mutex_;
  std::vector<std::pair<Request, Answer>> answers_;
  std::size_t searches_ = 0;
};

template <std::size_t Rank, std::size_t Axes>
struct plan_request {
  std::array<std::size_t, Rank> sizes{};
  std::array<placement, Axes> from{};
  std::array<placement, Axes> to{};
  std::size_t element_bytes = 0;
  friend constexpr bool operator==(const plan_request&, const plan_request&) = default;
};

/// The plans for tensors of `Rank` dimensions.
template <std::size_t Rank, std::size_t Axes>
using plan_cache = search_cache<plan_request<Rank, Axes>, redistribution_plan<Axes>>;

}  // namespace detail
HOCKET_END_NAMESPACE
