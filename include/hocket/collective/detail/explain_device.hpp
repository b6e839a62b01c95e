// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// What the compiler says of a call on buffers in memory of devices that fits no overload.
#pragma once

#include <hocket/collective/host/explain_arguments.hpp>
#include <hocket/core/buffers.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/device_buffer.hpp>
#include <hocket/core/options.hpp>
#include <hocket/core/strong_types.hpp>

#include <cstddef>
#include <type_traits>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// The type of elements of `Value`, if it is a buffer in memory of a device, or void.
template <class Value>
struct device_element {
  using type = void;
};
template <class T, class Space>
struct device_element<device_buffer<T, Space>> {
  using type = T;
};
template <class T, class Space>
struct device_element<device_in_place<T, Space>> {
  using type = T;
};

template <class Arguments, std::size_t I>
using device_element_t = typename device_element<typename Arguments::template plain<I>>::type;

template <class Options>
consteval bool explain_stream() {
  static_assert(
      is_options<Options>,
      "a call on buffers in memory of a device needs its operation, root, counts or tag, and then a stream, in whose "
      "order they are read and written: std::plus<>{}, with(cuda::stream_ref(stream)); there is no default stream");
  if constexpr (is_options<Options>) {
    constexpr bool said = Options::template has<kind::stream>;
    static_assert(said,
                  "a call on buffers in memory of a device needs the stream in whose order they are read and written: "
                  "with(cuda::stream_ref(stream)); there is no default stream");
    return said;
  } else {
    return false;
  }
}

template <class T>
inline constexpr bool is_device_in_place = false;
template <class T, class Space>
inline constexpr bool is_device_in_place<device_in_place<T, Space>> = true;

/// What is wrong with argument I, where a buffer is to be, in such memory or not.
template <class Arguments, std::size_t I>
consteval bool explain_one_buffer() {
  using argument = typename Arguments::template plain<I>;
  constexpr bool single = !is_device_in_place<argument>;
  static_assert(single,
                "in_place(buffer) stands for both in and out of all_reduce, once: all_reduce(comm, in_place(buffer), "
                "...); other calls take two buffers, or one");
  constexpr bool buffer =
      !single || is_device_buffer<argument> || std::is_pointer_v<argument> || contiguous_buffer<argument>;
  static_assert(buffer,
                "a buffer is missing, or another argument stands in its place: calls take in and out, but for "
                "broadcast, send and recv, and all_reduce of in_place(buffer)");
  return single && buffer;
}

/// What is wrong with two buffers of which one at least is in such memory.
template <class Arguments, std::size_t In, std::size_t Out>
consteval bool explain_device_pair() {
  if constexpr (explain_one_buffer<Arguments, In>() && explain_one_buffer<Arguments, Out>()) {
    constexpr bool both = is_device_buffer<typename Arguments::template plain<In>> &&
                          is_device_buffer<typename Arguments::template plain<Out>>;
    static_assert(both,
                  "in and out must both be in memory that devices know, or both be the host's: say cuda::device(...), "
                  "cuda::pinned(...) or cuda::managed(...) of both, or copy one of them");
    return both;
  } else {
    return false;
  }
}

template <class T>
consteval bool explain_device_output() {
  constexpr bool writable = !std::is_const_v<T>;
  static_assert(writable, "a buffer that receives a result must be writable; its elements are const here");
  if constexpr (writable) {
    return explain_element<T>();
  } else {
    return false;
  }
}

template <class In, class Out>
consteval bool explain_device_elements() {
  constexpr bool equal = std::is_same_v<std::remove_const_t<In>, std::remove_const_t<Out>>;
  if constexpr (explain_device_output<Out>()) {
    static_assert(equal, "in and out must have the same type of elements; convert one of them first");
    return equal;
  } else {
    return false;
  }
}

/// A stream among the options at I, which can't be left out, and what comes after them.
template <class Arguments, std::size_t I>
consteval bool explain_device_options() {
  if constexpr (explain_stream<typename Arguments::template plain<I>>()) {
    return explain_options<Arguments, I>();
  } else {
    return false;
  }
}

/// (communicator, in, out, op, options, code) or (communicator, in_place(buffer), op, options, code); without `op` if
/// nothing is combined; (communicator, buffer, root, options, code).
template <class Form, class Arguments>
consteval bool explain_device_collective() {
  using first = typename Arguments::template plain<1>;
  using second = typename Arguments::template plain<2>;
  constexpr bool rooted = Form::is_rooted;
  constexpr bool pair = !rooted && !requires(first each) { each.elements; };
  if constexpr (pair) {
    if constexpr (!explain_device_pair<Arguments, 1, 2>()) return false;
  }
  constexpr std::size_t result = pair ? 2 : 1;
  using in = device_element_t<Arguments, 1>;
  using out = device_element_t<Arguments, result>;
  if constexpr (explain_device_elements<in, out>()) {
    if constexpr (Form::combines && is_options<typename Arguments::template plain<result + 1>>) {
      return explain_operation<typename Arguments::template plain<result + 1>, out>();
    } else if constexpr (rooted && !is_options<second> && Arguments::template has<2> && !std::is_same_v<second, root>) {
      static_assert(!rooted, "the root is said as root{0}, after the buffer and before with(...)");
    } else {
      constexpr std::size_t options = result + (Form::combines || rooted ? 2 : 1);
      if constexpr (explain_stream<typename Arguments::template plain<options>>()) {
        if constexpr (Form::combines) {
          if constexpr (!explain_operation<typename Arguments::template plain<result + 1>, out>()) return false;
        }
        return explain_options<Arguments, options>();
      }
    }
  }
  return false;
}

/// (communicator, in, out, counts, options, code), with an operation after the counts if it `Reduces`.
template <bool Reduces, class Arguments, class... Counts>
consteval bool explain_device_uneven() {
  if constexpr (explain_device_pair<Arguments, 1, 2>()) {
    using in = device_element_t<Arguments, 1>;
    using out = device_element_t<Arguments, 2>;
    if constexpr (explain_device_elements<in, out>() && explain_all_counts<Arguments, 3, Counts...>()) {
      constexpr std::size_t after_counts = 3 + sizeof...(Counts);
      if constexpr (!Reduces) {
        return explain_device_options<Arguments, after_counts>();
      } else if constexpr (explain_operation<typename Arguments::template plain<after_counts>, out>()) {
        return explain_device_options<Arguments, after_counts + 1>();
      }
    }
  }
  return false;
}

/// (communicator, buffer, peer, tag, options, code)
template <bool Receives, class Arguments>
consteval bool explain_device_one_way() {
  using element = device_element_t<Arguments, 1>;
  constexpr bool first = is_device_buffer<typename Arguments::template plain<1>>;
  static_assert(first, "the buffer comes right after the communicator");
  if constexpr (first && explain_one_buffer<Arguments, 1>()) {
    if constexpr (Receives) {
      if constexpr (!explain_device_output<element>()) return false;
    }
    if constexpr (explain_element<std::remove_const_t<element>>() && explain_peer<Arguments, 2>()) {
      if constexpr (explain_said_tag<Arguments, 3>()) return explain_device_options<Arguments, 4>();
    }
  }
  return false;
}

/// (communicator, out, peer, in, peer, tag, options, code)
template <class Arguments>
consteval bool explain_device_exchange() {
  if constexpr (explain_one_buffer<Arguments, 1>()) {
    if constexpr (explain_peer<Arguments, 2>()) {
      if constexpr (explain_device_pair<Arguments, 1, 3>()) {
        if constexpr (explain_element<std::remove_const_t<device_element_t<Arguments, 1>>>() &&
                      explain_device_output<device_element_t<Arguments, 3>>()) {
          if constexpr (explain_peer<Arguments, 4>()) {
            if constexpr (explain_said_tag<Arguments, 5>()) return explain_device_options<Arguments, 6>();
          }
        }
      }
    }
  }
  return false;
}

}  // namespace detail
HOCKET_END_NAMESPACE
