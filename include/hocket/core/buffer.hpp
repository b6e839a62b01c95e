// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Scratch memory that is reused and grows when needed, so that repeated collectives do not allocate again.
#pragma once

#include <hocket/core/config.hpp>

#include <charconv>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <new>
#include <utility>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// Thrown when a buffer can't be allocated. Reports the requested size, and allocates no memory itself.
class no_buffer : public std::bad_alloc {
 public:
  explicit no_buffer(std::size_t bytes) noexcept {
    char* const end = std::to_chars(text_ + sizeof prefix - 1, text_ + sizeof text_, bytes).ptr;
    for (std::size_t i = 0; i + 1 < sizeof suffix; ++i) end[i] = suffix[i];
  }
  const char* what() const noexcept override { return text_; }

 private:
  static constexpr char prefix[] = "a buffer of ";
  static constexpr char suffix[] = " bytes";
  char text_[48] = "a buffer of ";  ///< followed by a number of at most 20 digits
};

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

  /// Returns at least `bytes` bytes. If the buffer has to grow, its content is lost.
  std::byte* get(std::size_t bytes) {
    if (bytes > capacity_) {
      release();
      memory_ = static_cast<std::byte*>(::operator new(bytes, std::align_val_t(alignment), std::nothrow));
      if (memory_ == nullptr) [[unlikely]]
        raise_no_buffer(bytes);
      capacity_ = bytes;
    }
    return memory_;
  }

 private:
  [[noreturn]] HOCKET_COLD static void raise_no_buffer(std::size_t bytes) {
#if HOCKET_HAS_EXCEPTIONS
    throw no_buffer(bytes);
#else
    std::fprintf(stderr, "hocket: no memory for %s\n", no_buffer(bytes).what());
    std::terminate();
#endif
  }

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
