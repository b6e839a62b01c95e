// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Chooses between two ways to do the same work, by how long they have taken.
///
/// Which one is faster may depend on the machine and change while the program runs, for example when a virtual machine's
/// cores are moved. So the slower one is tried again from time to time.
#pragma once

#include <hocket/core/config.hpp>

#include <algorithm>
#include <cstdint>

HOCKET_BEGIN_NAMESPACE
namespace detail {

class faster_way {
 public:
  enum class way : std::uint8_t { usual, other };

  /// The other way is used if it takes less than the time of the usual one divided by `advantage`.
  explicit constexpr faster_way(unsigned advantage) noexcept : advantage_(advantage) {}

  /// Returns the way to use next.
  way next() noexcept {
    ++count_;
    const bool tries_slower = count_ % uses_per_trial == 0;
    next_ = prefers_other() != tries_slower ? way::other : way::usual;
    return next_;
  }
  /// Returns whether to measure this use. Measuring each would take too long.
  bool measures() const noexcept {
    return time_of(next_) == 0 || count_ % uses_per_trial == 0 || count_ % uses_per_measurement == 0;
  }
  /// Records the time of this use, in any unit, which must not be 0, for about the same amount of work each time.
  void record(std::uint64_t time) noexcept {
    std::uint64_t& known = time_[static_cast<unsigned>(next_)];
    if (known == 0 || time < known) {
      known = known == 0 ? time : (known + time) / 2;
    } else {
      known = (3 * known + std::min(time, 4 * known)) / 4;  // a thread that has lost its core takes long
    }
  }

 private:
  static constexpr unsigned uses_per_trial = 128, uses_per_measurement = 8;

  std::uint64_t time_of(way one) const noexcept { return time_[static_cast<unsigned>(one)]; }
  /// A way whose time is not known is tried.
  bool prefers_other() const noexcept {
    return time_of(way::usual) != 0 && time_of(way::other) * advantage_ < time_of(way::usual);
  }

  unsigned advantage_;
  unsigned count_ = 0;
  way next_ = way::usual;
  std::uint64_t time_[2] = {};  ///< 0: not known
};

}  // namespace detail
HOCKET_END_NAMESPACE
