// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Metrics of what others count: the operating system, or a lower layer of the library.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/observe/registry.hpp>

#include <atomic>
#include <cstdint>
#include <optional>
#include <utility>

HOCKET_BEGIN_NAMESPACE
namespace observe::detail {

/// Adds to a counter what a count has grown by, so that several counts can be followed by one counter. A count that
/// begins again, as that of a network interface that was removed and added, is followed from there.
class followed_counter {
 public:
  followed_counter(registry& in, const char* name, const char* help, labels of = {})
      : shown_(&in.find<registry::stored_counter>(metric_kind::counter, name, help, {}, std::move(of)).followed) {}

  /// @param unit what one of the count is in units of the counter
  void follow(double value, double unit = 1) noexcept {
    if (value > before_) shown_->fetch_add((value - before_) * unit, std::memory_order_relaxed);
    before_ = value;
  }
  void follow(std::uint64_t value, double unit = 1) noexcept { follow(static_cast<double>(value), unit); }
  void follow(const std::optional<std::uint64_t>& value) noexcept {
    if (value) follow(*value);
  }

 private:
  std::atomic<double>* shown_;
  double before_ = 0;
};

/// Adds to a gauge what a number has changed by, so that one gauge can show the sum of several numbers.
class followed_gauge {
 public:
  explicit followed_gauge(gauge& shown) noexcept : shown_(&shown) {}

  void follow(double value) noexcept {
    shown_->add(value - before_);
    before_ = value;
  }

 private:
  gauge* shown_;
  double before_ = 0;
};

}  // namespace observe::detail
HOCKET_END_NAMESPACE
