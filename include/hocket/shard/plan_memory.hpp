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

/// The latest answers to questions about one mesh. May be used from several threads.
template <class Request, class Answer>
class answer_memory {
 public:
  using request = Request;

  /// The answer to `wanted`: as remembered, or by `search()`.
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

  /// How often an answer was not known.
  std::size_t searches() {
    const std::lock_guard lock(mutex_);
    return searches_;
  }

  static constexpr std::size_t most = 64;  ///< answers; beyond them the oldest is forgotten

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
using plan_memory = answer_memory<plan_request<Rank, Axes>, redistribution_plan<Axes>>;

}  // namespace detail
HOCKET_END_NAMESPACE
