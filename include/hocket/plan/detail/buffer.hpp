// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// An array whose size is fixed at construction. During constant evaluation it costs much less than `std::vector`, and
/// this cost limits the number of ranks that a `static_assert` can prove a plan for.
#pragma once

#include <hocket/core/config.hpp>

#include <cstddef>
#include <utility>

HOCKET_BEGIN_NAMESPACE
namespace plan::detail {

template <class T>
class buffer {
 public:
  constexpr explicit buffer(std::size_t size) : data_(new T[size]()) {}
  constexpr buffer(buffer&& other) noexcept : data_(std::exchange(other.data_, nullptr)) {}
  buffer& operator=(buffer&&) = delete;
  constexpr ~buffer() { delete[] data_; }

  constexpr T* data() noexcept { return data_; }
  constexpr const T* data() const noexcept { return data_; }
  constexpr T& operator[](std::size_t i) noexcept { return data_[i]; }
  constexpr const T& operator[](std::size_t i) const noexcept { return data_[i]; }

 private:
  T* data_;
};

}  // namespace plan::detail
HOCKET_END_NAMESPACE
