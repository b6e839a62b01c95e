// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// A number that one thread at a time changes, and that any thread reads: a change is a load and a store, no locked
/// instruction, so that counting costs less than a nanosecond.
#pragma once

#include <hocket/core/config.hpp>

#include <atomic>
#include <cstdint>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// Changes need an order among themselves, such as that of the calls on one communicator; reads need none.
class published_count {
 public:
  void add(std::uint64_t amount) noexcept { set(value() + amount); }
  void subtract(std::uint64_t amount) noexcept { set(value() - amount); }
  void set(std::uint64_t value) noexcept { value_.store(value, std::memory_order_relaxed); }
  std::uint64_t value() const noexcept { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

}  // namespace detail
HOCKET_END_NAMESPACE
