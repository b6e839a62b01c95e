// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Scratch memory that is allocated once and grows: collectives that run again do not allocate again.
#pragma once

#include <hocket/core/config.hpp>

#include <cstddef>
#include <new>
#include <utility>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// Uninitialised bytes, aligned for every element type that fits a cache line.
class growing_buffer {
 public:
  static constexpr std::size_t alignment = 64;

  growing_buffer() = default;
  growing_buffer(growing_buffer&& other) noexcept
      : memory_(std::exchange(other.memory_, nullptr)), capacity_(std::exchange(other.capacity_, 0)) {}
  growing_buffer& operator=(growing_buffer other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(capacity_, other.capacity_);
    return *this;
  }
  ~growing_buffer() { release(); }

  /// At least `bytes` bytes; what was there before is lost if the buffer had to grow.
  std::byte* get(std::size_t bytes) {
    if (bytes > capacity_) {
      release();
      memory_ = static_cast<std::byte*>(::operator new(bytes, std::align_val_t(alignment)));
      capacity_ = bytes;
    }
    return memory_;
  }

 private:
  void release() noexcept {
    if (memory_ != nullptr) ::operator delete(memory_, std::align_val_t(alignment));
    memory_ = nullptr;
    capacity_ = 0;
  }

  std::byte* memory_ = nullptr;
  std::size_t capacity_ = 0;
};

}  // namespace detail
HOCKET_END_NAMESPACE
