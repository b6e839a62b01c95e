// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// A contiguous array of numbers from a memory resource of the caller. It stores gradients, parameters and optimizer
/// states. Unlike a vector, it never grows or copies, and it begins at a cache line.
#pragma once

#include <hocket/core/config.hpp>

#include <cstddef>
#include <memory>
#include <memory_resource>
#include <span>
#include <type_traits>
#include <utility>

HOCKET_BEGIN_NAMESPACE

/// Owns `size` elements, value-initialised, that begin at a cache line. Move-only; its size is fixed.
template <class T>
class flat_buffer {
  static_assert(std::is_trivially_copyable_v<T>, "hocket::flat_buffer<T>: T must be trivially copyable");

 public:
  static constexpr std::size_t alignment = alignof(T) > 64 ? alignof(T) : 64;  ///< in bytes, of the first element

  flat_buffer() noexcept = default;
  /// Allocates `size` elements from `memory`, which must outlive the buffer.
  explicit flat_buffer(std::size_t size, std::pmr::memory_resource* memory = std::pmr::get_default_resource())
      : memory_(memory), size_(size) {
    if (size == 0) return;
    begin_ = static_cast<T*>(memory->allocate(size * sizeof(T), alignment));
    std::uninitialized_value_construct_n(begin_, size);
  }
  flat_buffer(flat_buffer&& other) noexcept
      : memory_(other.memory_), begin_(std::exchange(other.begin_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  flat_buffer& operator=(flat_buffer&& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(begin_, other.begin_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~flat_buffer() {
    if (begin_ != nullptr) memory_->deallocate(begin_, size_ * sizeof(T), alignment);
  }

  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  T* data() noexcept { return begin_; }
  const T* data() const noexcept { return begin_; }
  std::span<T> elements() noexcept { return {begin_, size_}; }
  std::span<const T> elements() const noexcept { return {begin_, size_}; }

 private:
  std::pmr::memory_resource* memory_ = nullptr;
  T* begin_ = nullptr;
  std::size_t size_ = 0;
};

HOCKET_END_NAMESPACE
