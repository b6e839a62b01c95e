// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// How callers pass memory: any contiguous range of known size, or `in_place(buffer)` for one buffer that is both input
/// and output. Sizes count elements.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/explanation.hpp>
#include <hocket/core/not_understood.hpp>

#include <concepts>
#include <cstddef>
#include <span>
#include <type_traits>

HOCKET_BEGIN_NAMESPACE

/// One buffer that is read as the contribution and overwritten by the result.
template <class T>
struct in_place_buffer {
  std::span<T> elements;  ///< the buffer
};

/// A contiguous range whose size is known: arrays, vectors, spans.
template <class Range>
concept contiguous_buffer = std::ranges::contiguous_range<Range> && std::ranges::sized_range<Range>;

/// A contiguous buffer that outlives the call, not a temporary container. Required by calls that return before the
/// operation has completed. `Range` is the type of the argument, including its reference.
template <class Range>
concept lasting_buffer = contiguous_buffer<Range> && std::ranges::borrowed_range<Range>;

/// A lasting buffer whose elements are not const. A result in a temporary would be lost.
template <class Range>
concept writable_buffer =
    lasting_buffer<Range> && !std::is_const_v<std::remove_reference_t<std::ranges::range_reference_t<Range>>>;

/// The element type of a range, without const.
template <class Range>
using element_type_t = std::ranges::range_value_t<Range>;

/// Makes one buffer the contribution and the result of a call.
template <writable_buffer Range>
constexpr auto in_place(Range&& buffer) {
  return in_place_buffer<element_type_t<Range>>{{std::ranges::data(buffer), std::ranges::size(buffer)}};
}

namespace detail {

/// Returns the reason why `Value` can't be used in place.
template <class Value>
consteval sentence explain_in_place() {
  if (!contiguous_buffer<std::remove_reference_t<Value>>) {
    return "in_place(buffer): the buffer must be a contiguous range of known size: a vector, an array or a span; for "
           "one value x, pass std::span(&x, 1)";
  }
  if (!lasting_buffer<Value>) {
    return "in_place(buffer): the buffer is a temporary, and the result would be lost; pass a named buffer";
  }
  return "in_place(buffer): the result overwrites the buffer, so its elements must not be const";
}

template <class Value>
  requires(!writable_buffer<Value>)
constexpr auto why_not_in_place() {
  return make_explanation([] { return explain_in_place<Value>(); });
}

}  // namespace detail

/// Deleted: the template argument `Why` is the reason.
template <class Value, auto Why = detail::why_not_in_place<Value>()>
detail::not_understood in_place(Value&& buffer) = delete;

namespace detail {

template <contiguous_buffer Range>
constexpr std::span<const element_type_t<Range>> as_input(const Range& range) {
  return {std::ranges::data(range), std::ranges::size(range)};
}

template <writable_buffer Range>
constexpr std::span<element_type_t<Range>> as_output(Range&& range) {
  return {std::ranges::data(range), std::ranges::size(range)};
}

}  // namespace detail
HOCKET_END_NAMESPACE
