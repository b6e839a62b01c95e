// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// What the compiler says of a call on buffers in memory of devices that fits no overload.
#pragma once

#include <hocket/collective/host/argument_diagnostics.hpp>
#include <hocket/core/buffers.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/device_buffer.hpp>
#include <hocket/core/explanation.hpp>
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
consteval sentence explain_stream() {
  if constexpr (!is_options<Options>) {
    return "a call on buffers in memory of a device needs its operation, root, counts or tag, and then a stream, in "
           "whose "
           "order they are read and written: std::plus<>{}, with(cuda::stream_ref(stream)); there is no default stream";
  } else if constexpr (!Options::template has<kind::stream>) {
    return "a call on buffers in memory of a device needs the stream in whose order they are read and written: "
           "with(cuda::stream_ref(stream)); there is no default stream";
  } else {
    return {};
  }
}

template <class T>
inline constexpr bool is_device_in_place = false;
template <class T, class Space>
inline constexpr bool is_device_in_place<device_in_place<T, Space>> = true;

/// What is wrong with argument I, where a buffer is to be, in such memory or not.
template <class Arguments, std::size_t I>
consteval sentence explain_one_buffer() {
  using argument = typename Arguments::template plain<I>;
  if (is_device_in_place<argument>) {
    return "in_place(buffer) stands for both in and out of all_reduce, once: all_reduce(comm, in_place(buffer), "
           "...); other calls take two buffers, or one";
  }
  if (!is_device_buffer<argument> && !std::is_pointer_v<argument> && !contiguous_buffer<argument>) {
    return "a buffer is missing, or another argument stands in its place: calls take in and out, but for "
           "broadcast, send and recv, and all_reduce of in_place(buffer)";
  }
  return {};
}

/// What is wrong with two buffers of which one at least is in such memory.
template <class Arguments, std::size_t In, std::size_t Out>
consteval sentence explain_device_pair() {
  constexpr sentence wrong = first_of({explain_one_buffer<Arguments, In>(), explain_one_buffer<Arguments, Out>()});
  if (wrong) return wrong;
  if (!is_device_buffer<typename Arguments::template plain<In>> ||
      !is_device_buffer<typename Arguments::template plain<Out>>) {
    return "in and out must both be in memory that devices know, or both be the host's: say cuda::device(...), "
           "cuda::pinned(...) or cuda::managed(...) of both, or copy one of them";
  }
  return {};
}

template <class T>
consteval sentence explain_device_output() {
  if (std::is_const_v<T>) return "a buffer that receives a result must be writable; its elements are const here";
  return explain_element<T>();
}

template <class In, class Out>
consteval sentence explain_device_elements() {
  if (constexpr sentence wrong = explain_device_output<Out>(); wrong) return wrong;
  if (!std::is_same_v<std::remove_const_t<In>, std::remove_const_t<Out>>) {
    return "in and out must have the same type of elements; convert one of them first";
  }
  return {};
}

/// A stream among the options at I, which can't be left out, and what comes after them.
template <class Arguments, std::size_t I>
consteval sentence explain_device_options() {
  return first_of({explain_stream<typename Arguments::template plain<I>>(), explain_options<Arguments, I>()});
}

/// Argument I, the operation on elements of `T`, and the options after it, with a stream. The operation can't be left out.
template <class Arguments, std::size_t I, class T>
consteval sentence explain_device_operation_and_options() {
  using given = typename Arguments::template plain<I>;
  constexpr sentence wrong =
      first_of({explain_place_of_operation<given>(), explain_device_options<Arguments, I + 1>()});
  if constexpr (wrong) {
    return wrong;
  } else {
    return explain_operation<given, T>();
  }
}

/// The buffers of a collective: in and out, or one for both, of which the last is argument `Result`.
template <class Arguments, std::size_t Result>
consteval sentence explain_device_buffers() {
  if constexpr (Result == 2) {
    if (constexpr sentence wrong = explain_device_pair<Arguments, 1, 2>(); wrong) return wrong;
  }
  return explain_device_elements<device_element_t<Arguments, 1>, device_element_t<Arguments, Result>>();
}

/// (communicator, in, out, op, options, code) or (communicator, in_place(buffer), op, options, code); without `op` if
/// nothing is combined; (communicator, buffer, root, options, code).
template <class Form, class Arguments>
consteval sentence explain_device_collective() {
  using first = typename Arguments::template plain<1>;
  using second = typename Arguments::template plain<2>;
  constexpr bool pair = !Form::is_rooted && !requires(first each) { each.elements; };
  constexpr std::size_t result = pair ? 2 : 1;
  constexpr sentence wrong = explain_device_buffers<Arguments, result>();
  if constexpr (wrong) {
    return wrong;
  } else if constexpr (Form::combines) {
    return explain_device_operation_and_options<Arguments, result + 1, device_element_t<Arguments, result>>();
  } else if constexpr (Form::is_rooted) {
    return first_of(
        {is_options<second> ? sentence() : explain_root<Arguments, 2>(), explain_device_options<Arguments, 3>()});
  } else {
    return explain_device_options<Arguments, result + 1>();
  }
}

/// (communicator, in, out, counts, options, code), with an operation after the counts if it `Reduces`.
template <bool Reduces, class Arguments, class... Counts>
consteval sentence explain_device_uneven() {
  constexpr std::size_t after_counts = 3 + sizeof...(Counts);
  constexpr sentence wrong =
      first_of({explain_device_buffers<Arguments, 2>(), explain_all_counts<Arguments, 3, Counts...>()});
  if constexpr (wrong) {
    return wrong;
  } else if constexpr (Reduces) {
    return explain_device_operation_and_options<Arguments, after_counts, device_element_t<Arguments, 2>>();
  } else {
    return explain_device_options<Arguments, after_counts>();
  }
}

/// (communicator, buffer, peer, tag, options, code)
template <bool Receives, class Arguments>
consteval sentence explain_device_one_way() {
  using element = device_element_t<Arguments, 1>;
  if (!is_device_buffer<typename Arguments::template plain<1>>) return "the buffer comes right after the communicator";
  return first_of({explain_one_buffer<Arguments, 1>(), Receives ? explain_device_output<element>() : sentence(),
                   explain_element<std::remove_const_t<element>>(), explain_peer<Arguments, 2>(),
                   explain_said_tag<Arguments, 3>(), explain_device_options<Arguments, 4>()});
}

/// (communicator, out, peer, in, peer, tag, options, code)
template <class Arguments>
consteval sentence explain_device_exchange() {
  return first_of({explain_one_buffer<Arguments, 1>(), explain_peer<Arguments, 2>(),
                   explain_device_pair<Arguments, 1, 3>(),
                   explain_element<std::remove_const_t<device_element_t<Arguments, 1>>>(),
                   explain_device_output<device_element_t<Arguments, 3>>(), explain_peer<Arguments, 4>(),
                   explain_said_tag<Arguments, 5>(), explain_device_options<Arguments, 6>()});
}

}  // namespace detail
HOCKET_END_NAMESPACE
