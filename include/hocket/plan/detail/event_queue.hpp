// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The event queue of a simulation, ordered by virtual time; events of equal times are in the order of insertion.
///
/// Ranks of a symmetric algorithm do the same things at the same times, so that there are few distinct times and many
/// events at each. Events of one time share a list, and only times are stored in a heap: an event then costs some
/// nanoseconds, whatever the number of ranks. If all times differ, the queue is an ordinary heap. The virtual clock of
/// plan/trace.hpp and the transport `sim` use it; it also works during constant evaluation.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/plan/detail/index_map.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace plan::detail {

class event_queue {
 public:
  constexpr bool empty() const noexcept { return heap_.empty(); }

  constexpr void add(double time, std::uint32_t subject) {
    std::uint32_t& open = open_[place_of(time)];
    if (open == none || moments_[open].time != time) open = make_moment(time);
    const std::uint32_t made = make_entry(subject);
    moment& at = moments_[open];
    (at.first == none ? at.first : entries_[at.last].next) = made;
    at.last = made;
  }

  /// Removes and returns the earliest event. The queue must not be empty.
  constexpr std::pair<double, std::uint32_t> pop() {
    const std::uint32_t index = heap_.front().moment;
    moment& at = moments_[index];
    const std::uint32_t taken = at.first;
    at.first = entries_[taken].next;
    entries_[taken].next = std::exchange(free_entry_, taken);
    const double time = at.time;
    if (at.first == none) close(index);
    return {time, entries_[taken].subject};
  }

 private:
  /// All events of one time, or those of them that were added before another moment took the place in `open_`.
  struct moment {
    double time = 0;
    std::uint32_t first = none;  ///< in a free moment: the next free one
    std::uint32_t last = none;
  };
  struct entry {
    std::uint32_t subject = 0;
    std::uint32_t next = none;
  };
  struct due {
    double time = 0;
    std::uint64_t order = 0;
    std::uint32_t moment = 0;
  };
  struct later {
    constexpr bool operator()(const due& a, const due& b) const noexcept {
      return a.time != b.time ? a.time > b.time : a.order > b.order;
    }
  };

  static constexpr unsigned place_bits = 8;

  static constexpr std::size_t place_of(double time) noexcept {
    return static_cast<std::size_t>((std::bit_cast<std::uint64_t>(time) * 0x9E3779B97F4A7C15U) >> (64 - place_bits));
  }

  constexpr std::uint32_t make_moment(double time) {
    std::uint32_t index = free_moment_;
    if (index == none) {
      index = static_cast<std::uint32_t>(moments_.size());
      moments_.push_back({time});
    } else {
      free_moment_ = moments_[index].first;
      moments_[index] = {time};
    }
    heap_.push_back({time, order_++, index});
    std::push_heap(heap_.begin(), heap_.end(), later{});
    return index;
  }

  constexpr std::uint32_t make_entry(std::uint32_t subject) {
    if (free_entry_ == none) {
      entries_.push_back({subject});
      return static_cast<std::uint32_t>(entries_.size() - 1);
    }
    const std::uint32_t index = free_entry_;
    free_entry_ = entries_[index].next;
    entries_[index] = {subject};
    return index;
  }

  constexpr void close(std::uint32_t index) {
    moment& at = moments_[index];
    std::uint32_t& open = open_[place_of(at.time)];
    if (open == index) open = none;
    std::pop_heap(heap_.begin(), heap_.end(), later{});
    heap_.pop_back();
    at.first = std::exchange(free_moment_, index);
  }

  static constexpr std::array<std::uint32_t, std::size_t{1} << place_bits> none_open() noexcept {
    std::array<std::uint32_t, std::size_t{1} << place_bits> all{};
    all.fill(none);
    return all;
  }

  std::vector<due> heap_;
  std::vector<moment> moments_;
  std::vector<entry> entries_;
  std::uint32_t free_moment_ = none;
  std::uint32_t free_entry_ = none;
  std::uint64_t order_ = 0;
  std::array<std::uint32_t, std::size_t{1} << place_bits> open_ = none_open();
};

}  // namespace plan::detail
HOCKET_END_NAMESPACE
