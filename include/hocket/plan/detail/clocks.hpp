// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Vector clocks: what each lane knows about the progress of every other lane. They show which steps happen before
/// which others under every scheduling of the ranks.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/plan/detail/buffer.hpp>
#include <hocket/plan/detail/index_map.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace plan::detail {

/// A step as the proof refers to it; lanes are numbered over all ranks.
struct event {
  std::uint32_t lane = none;
  std::uint32_t position = 0;

  constexpr bool happened() const noexcept { return lane != none; }
};

class clocks {
 public:
  constexpr explicit clocks(std::uint32_t lanes) : width_(lanes), rows_(std::size_t{lanes} * lanes) {}

  /// Marks `now` as in progress, and all earlier steps of its lane as done.
  constexpr void enter(event now) noexcept { rows_[at(now.lane, now.lane)] = now.position + 1; }

  /// Returns whether `lane` knows that `past` is done, or that `past` is its own step in progress.
  constexpr bool knows(std::uint32_t lane, event past) const noexcept {
    return rows_[at(lane, past.lane)] > past.position;
  }

  /// Stores what `lane` knows now; returns the number with which `learn` gives this knowledge to another lane. After
  /// `readers` calls of `learn` the number is invalid: memory grows with what is in flight, not with the whole plan.
  constexpr std::uint32_t keep(std::uint32_t lane, std::uint32_t readers) {
    const std::uint32_t number = free_number();
    const std::uint32_t* mine = rows_.data() + at(lane, 0);
    std::uint32_t* kept = kept_[number].row.data();
    for (std::uint32_t i = 0; i < width_; ++i) kept[i] = mine[i];
    kept_[number].readers = readers;
    return number;
  }

  constexpr void learn(std::uint32_t lane, std::uint32_t kept) {
    std::uint32_t* mine = rows_.data() + at(lane, 0);
    const std::uint32_t* theirs = kept_[kept].row.data();
    for (std::uint32_t i = 0; i < width_; ++i) {
      if (theirs[i] > mine[i]) mine[i] = theirs[i];
    }
    if (kept_[kept].readers != 0 && --kept_[kept].readers == 0) free_.push_back(kept);
  }

 private:
  constexpr std::size_t at(std::uint32_t lane, std::uint32_t other) const noexcept {
    return std::size_t{lane} * width_ + other;
  }

  struct knowledge {
    buffer<std::uint32_t> row;
    std::uint32_t readers = 0;  ///< calls of `learn` that are to come
  };

  constexpr std::uint32_t free_number() {
    if (free_.empty()) {
      kept_.push_back({buffer<std::uint32_t>(width_)});
      return static_cast<std::uint32_t>(kept_.size() - 1);
    }
    const std::uint32_t number = free_.back();
    free_.pop_back();
    return number;
  }

  std::uint32_t width_;
  buffer<std::uint32_t> rows_;
  std::vector<knowledge> kept_;
  std::vector<std::uint32_t> free_;
};

}  // namespace plan::detail
HOCKET_END_NAMESPACE
