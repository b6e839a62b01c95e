// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Elements that a program can't just read: in the memory of a device, say. A view of them says in its type where they
/// are, and is no range: so that they never end up in a call that reads its buffers with the processor.
///
/// `Space` says how calls get at them. What that is, is not known here: see collective/device/memory.hpp.
#pragma once

#include <hocket/core/buffers.hpp>
#include <hocket/core/config.hpp>

#include <cstddef>
#include <span>
#include <type_traits>

HOCKET_BEGIN_NAMESPACE

/// `size` elements from `data` on, in the memory `Space`. Does not own them.
template <class T, class Space>
class device_buffer {
 public:
  using element_type = T;
  using value_type = std::remove_const_t<T>;
  using space = Space;

  constexpr device_buffer(T* data, std::size_t size) noexcept : data_(data), size_(size) {}

  /// Where they are: for the driver of the device, not to be followed.
  constexpr T* data() const noexcept { return data_; }
  constexpr std::size_t size() const noexcept { return size_; }

 private:
  T* data_;
  std::size_t size_;
};

/// One of them that is read as the contribution and overwritten by the result.
template <class T, class Space>
struct device_in_place {
  device_buffer<T, Space> elements;
};

template <class T, class Space>
  requires(!std::is_const_v<T>)
constexpr device_in_place<T, Space> in_place(device_buffer<T, Space> buffer) noexcept {
  return {buffer};
}

namespace detail {

template <class T>
inline constexpr bool is_device_buffer = false;
template <class T, class Space>
inline constexpr bool is_device_buffer<device_buffer<T, Space>> = true;
template <class T, class Space>
inline constexpr bool is_device_buffer<device_in_place<T, Space>> = true;

/// Its bytes, not to be looked at either.
template <class T, class Space>
auto bytes_of(device_buffer<T, Space> buffer) noexcept {
  const std::span<T> elements(buffer.data(), buffer.size());
  if constexpr (std::is_const_v<T>) {
    return std::as_bytes(elements);
  } else {
    return std::as_writable_bytes(elements);
  }
}

/// Says how calls over buffers in `Space` are run: `takes<Options>`, whether that is enough to be told, and `reduce`,
/// `move`, `broadcast` and `exchange`, which do it; `How` is one of the two of collective/detail/generate_call.hpp.
template <class Space>
struct device_calls;

}  // namespace detail
HOCKET_END_NAMESPACE
