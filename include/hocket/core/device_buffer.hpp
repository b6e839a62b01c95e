// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Views of elements that the processor must not access directly, for example in device memory. The type states where
/// the elements are. It is not a range, so that it can't be passed to a call that reads its buffers with the processor.
///
/// `Space` determines how calls access the elements; collective/device/memory.hpp defines the spaces.
#pragma once

#include <hocket/core/buffers.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/explanation.hpp>
#include <hocket/core/not_understood.hpp>

#include <cstddef>
#include <span>
#include <type_traits>

HOCKET_BEGIN_NAMESPACE

/// View of `size` elements that begin at `data`, in the memory `Space`. Does not own them.
template <class T, class Space>
class device_buffer {
 public:
  using element_type = T;
  using value_type = std::remove_const_t<T>;
  using space = Space;  ///< the kind of memory

  /// A view of `size` elements at `data`.
  constexpr device_buffer(T* data, std::size_t size) noexcept : data_(data), size_(size) {}

  /// Address of the elements, for the device driver. Must not be dereferenced.
  constexpr T* data() const noexcept { return data_; }
  constexpr std::size_t size() const noexcept { return size_; }

 private:
  T* data_;
  std::size_t size_;
};

/// A device buffer that is read as the contribution and overwritten by the result.
template <class T, class Space>
struct device_in_place {
  device_buffer<T, Space> elements;  ///< the buffer
};

/// Makes one device buffer the contribution and the result of a call.
template <class T, class Space>
  requires(!std::is_const_v<T>)
constexpr device_in_place<T, Space> in_place(device_buffer<T, Space> buffer) noexcept {
  return {buffer};
}

namespace detail {

template <class T>
  requires std::is_const_v<T>
constexpr auto why_not_in_place_of_const() {
  return make_explanation([]() -> sentence {
    return "in_place(buffer): the result overwrites the buffer, so its elements must not be const";
  });
}

}  // namespace detail

/// Deleted: the template argument `Why` is the reason.
template <class T, class Space, auto Why = detail::why_not_in_place_of_const<T>()>
detail::not_understood in_place(device_buffer<T, Space> buffer) = delete;

namespace detail {

template <class T>
inline constexpr bool is_device_buffer = false;
template <class T, class Space>
inline constexpr bool is_device_buffer<device_buffer<T, Space>> = true;
template <class T, class Space>
inline constexpr bool is_device_buffer<device_in_place<T, Space>> = true;

/// Returns the bytes of a buffer. They must not be dereferenced either.
template <class T, class Space>
auto bytes_of(device_buffer<T, Space> buffer) noexcept {
  const std::span<T> elements(buffer.data(), buffer.size());
  if constexpr (std::is_const_v<T>) {
    return std::as_bytes(elements);
  } else {
    return std::as_writable_bytes(elements);
  }
}

/// Runs calls over buffers in `Space`. `takes<Options>` states whether the options suffice; `reduce`, `move`,
/// `broadcast` and `exchange` run a call. `How` is one of the two forms in collective/detail/generate_call.hpp.
template <class Space>
struct device_calls;

}  // namespace detail
HOCKET_END_NAMESPACE
