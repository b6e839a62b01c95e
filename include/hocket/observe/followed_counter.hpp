// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Counters of what others count: the operating system, or a lower layer of the library.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/observe/registry.hpp>

#include <cstdint>
#include <optional>
#include <utility>

HOCKET_BEGIN_NAMESPACE
namespace observe::detail {

/// Adds to a counter what a count has grown by, so that several counts can be followed by one counter.
class followed_counter {
 public:
  explicit followed_counter(counter& shown) noexcept : shown_(&shown) {}
  followed_counter(registry& in, const char* name, const char* help, labels of = {})
      : followed_counter(in.counter(name, help, std::move(of))) {}

  /// @param unit what one of the count is in units of the counter
  void follow(double value, double unit = 1) noexcept {
    shown_->add((value - before_) * unit);
    before_ = value;
  }
  void follow(std::uint64_t value, double unit = 1) noexcept { follow(static_cast<double>(value), unit); }
  void follow(const std::optional<std::uint64_t>& value) noexcept {
    if (value) follow(*value);
  }

 private:
  counter* shown_;
  double before_ = 0;
};

}  // namespace observe::detail
HOCKET_END_NAMESPACE
