// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// What the compiler says of one argument of a call that fits no overload: each function returns in words the first thing that is
/// wrong with it, or nothing. None asserts it, so that std::is_invocable and others can ask about a call without an error.
#pragma once

#include <hocket/communicator/communicator.hpp>
#include <hocket/core/buffers.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/explanation.hpp>
#include <hocket/core/options.hpp>
#include <hocket/core/strong_types.hpp>
#include <hocket/operation/traits.hpp>

#include <cstddef>
#include <functional>
#include <system_error>
#include <tuple>
#include <type_traits>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace detail {

template <class T>
struct is_in_place : std::false_type {};
template <class T>
struct is_in_place<in_place_buffer<T>> : std::true_type {};

/// The arguments of a call that was not understood. Those that are missing are `none`.
template <class... Arguments>
struct argument_list {
  struct none {};

  template <std::size_t I>
  using at =
      std::tuple_element_t<(I < sizeof...(Arguments) ? I : sizeof...(Arguments)), std::tuple<Arguments..., none>>;
  template <std::size_t I>
  using plain = std::remove_cvref_t<at<I>>;
  template <std::size_t I>
  static constexpr bool has = I < sizeof...(Arguments);
};

template <class Arguments>
consteval sentence explain_communicator() {
  if (!is_communicator<typename Arguments::template plain<0>>::value) {
    return "the first argument must be a communicator, such as local::run and ucx::connect make them";
  }
  return {};
}

/// What `T` is, where it is clear that it was meant for another place.
template <class T>
consteval sentence explain_stray() {
  if (std::is_same_v<T, std::error_code>) {
    return "the std::error_code comes last, and nothing before it can be left out: std::plus<>{} where there is an "
           "operation, and with(), as in (comm, in, out, std::plus<>{}, with(), code)";
  }
  if (is_in_place<T>::value) {
    return "in_place(buffer) stands for both in and out of all_reduce, once: all_reduce(comm, in_place(buffer)); other "
           "calls take two buffers";
  }
  return {};
}

template <class Range>
consteval sentence explain_input() {
  using plain = std::remove_cvref_t<Range>;
  if (constexpr sentence stray = explain_stray<plain>(); stray) return stray;
  if (std::is_same_v<plain, std::vector<bool>>) {
    return "std::vector<bool> keeps bits, which can't be sent as elements: use a vector of unsigned char";
  }
  if (std::is_pointer_v<plain>) {
    return "a buffer must know its size, and a pointer does not: std::span(pointer, count)";
  }
  if (!contiguous_buffer<std::remove_reference_t<Range>>) {
    return "a buffer must be a contiguous range that knows its size: a vector, an array, a span";
  }
  return {};
}

template <class Range>
consteval sentence explain_output() {
  if (constexpr sentence wrong = explain_input<Range>(); wrong) return wrong;
  if (!lasting_buffer<Range>) {
    return "a buffer that receives a result is a temporary, and gone with it: give it a name";
  }
  if (!writable_buffer<Range>) {
    return "a buffer that receives a result must be writable; its elements are const here";
  }
  return {};
}

template <class T>
consteval sentence explain_element() {
  if (std::is_pointer_v<T>) return "elements must not be pointers: they mean nothing on another rank";
  if (!std::is_trivially_copyable_v<T>) return "elements must be trivially copyable: their bytes are what travels";
  return {};
}

/// ... of `Range`, if it has any: others are not the matter of this.
template <class Range>
consteval sentence explain_elements_of() {
  if constexpr (contiguous_buffer<std::remove_reference_t<Range>>) return explain_element<element_type_t<Range>>();
  return {};
}

template <class In, class Out>
consteval sentence explain_same_elements() {
  if (!std::is_same_v<element_type_t<In>, element_type_t<Out>>) {
    return "in and out must have the same type of elements; convert one of them first";
  }
  return {};
}

/// What is wrong with two buffers, of which the call reads the one and writes the other.
template <class In, class Out>
consteval sentence explain_pair() {
  constexpr sentence wrong = first_of({explain_input<In>(), explain_output<Out>()});
  if constexpr (wrong) {
    return wrong;
  } else {
    return first_of({explain_same_elements<In, Out>(), explain_elements_of<Out>()});
  }
}

/// Whether `Op` may be meant as an operation.
template <class Op>
consteval sentence explain_place_of_operation() {
  if (is_options<Op>) return "the operation comes before with(...): say std::plus<>{} for a sum";
  if (property<Op>) {
    return "an algorithm, a timeout and other properties are options, made by with(...), and come after the "
           "operation: std::plus<>{}, with(ring)";
  }
  if (std::is_arithmetic_v<Op>) {
    return "a number in the place of the operation: the buffers say how many elements there are, and the "
           "operation is a function object, as std::plus<>{}";
  }
  return explain_stray<Op>();
}

/// Only if nothing else is wrong: to find out whether it can be called, the compiler may have to look into the operation, and
/// an error in there ends the search.
template <class Op, class T>
consteval sentence explain_operation() {
  if (!std::is_trivially_copyable_v<Op>) {
    return "the reduction operation must be trivially copyable: capture values, not containers";
  }
  if (rounds_first<Op, T>) {
    return "the reduction operation works on another type, to which the elements, or its factor, would be "
           "rounded first: std::plus<>{} adds elements as what they are";
  }
  if (!reduction_for<Op, T>) {
    return "the reduction operation must be callable as op(a, b) on const elements and give one of them, "
           "or have prepare, combine and finish: see hocket/operation/traits.hpp";
  }
  return {};
}

/// The end of every call: with(...), and a std::error_code for those who want no exception.
template <class Arguments, std::size_t I>
consteval sentence explain_options() {
  using last = typename Arguments::template plain<I>;
  if (constexpr sentence stray = explain_stray<last>(); stray) return stray;
  if (Arguments::template has<I> && !is_options<last>) {
    return "the argument in the place of the options must be made by with(...), as in "
           "with(ring, timeout(5s)); those before it must not be left out";
  }
  if (Arguments::template has<I + 1> && !std::is_same_v<typename Arguments::template at<I + 1>, std::error_code&>) {
    return "the last argument can be a std::error_code, which must not be const or a temporary";
  }
  return {};
}

/// Argument I, the operation on elements of `T`, which can be left out, and what comes after it.
template <class Arguments, std::size_t I, class T>
consteval sentence explain_operation_and_options() {
  using given = typename Arguments::template plain<I>;
  constexpr sentence wrong = first_of({explain_place_of_operation<given>(), explain_options<Arguments, I + 1>()});
  if constexpr (wrong) {
    return wrong;
  } else {
    return explain_operation<std::conditional_t<Arguments::template has<I>, given, std::plus<>>, T>();
  }
}

/// Only the _async forms refuse what is otherwise a buffer.
template <class... Arguments>
consteval sentence explain_lifetime() {
  if (!(... && (!contiguous_buffer<std::remove_reference_t<Arguments>> || lasting_buffer<Arguments>))) {
    return "a buffer of an _async call is a temporary, which would be gone before the operation is over: "
           "give it a name and keep it until the request is over";
  }
  return {};
}

/// Whether argument I is a `Wanted`: the lengths of blocks.
template <class Arguments, std::size_t I, class Wanted>
consteval sentence explain_counts() {
  if (std::is_same_v<typename Arguments::template plain<I>, Wanted>) return {};
  if (std::is_same_v<Wanted, counts>) {
    return "the lengths of the ranks' blocks are said as counts{lengths}, after in and out: `lengths` has "
           "a std::size_t for each rank";
  }
  return "the lengths of blocks are said as send_counts{lengths}, receive_counts{lengths}, "
         "after in and out: both have a std::size_t for each rank";
}

/// ... one after the other, of each of the `Counts`.
template <class Arguments, std::size_t I, class First, class... Others>
consteval sentence explain_all_counts() {
  if (constexpr sentence wrong = explain_counts<Arguments, I, First>(); wrong) return wrong;
  if constexpr (sizeof...(Others) > 0) return explain_all_counts<Arguments, I + 1, Others...>();
  return {};
}

/// What calls with counts can't be given.
template <class Arguments>
consteval sentence explain_two_buffers() {
  if (is_in_place<typename Arguments::template plain<1>>::value) {
    return "calls with counts have no in_place(buffer): pass in and out; for all_gather_v and "
           "reduce_scatter_v the one may be this rank's block of the other";
  }
  return {};
}

/// For what no rule above found wrong.
template <class... Arguments>
consteval sentence explain_surplus() {
  using last = typename argument_list<Arguments...>::template plain<sizeof...(Arguments) - 1>;
  if (std::is_same_v<last, std::error_code>) {
    return "an _async form takes no std::error_code: its request tells by one, as in started.wait(code)";
  }
  return "too many arguments, or one in the place of another";
}

/// Whether argument I, if there is one, is a `Wanted`.
template <class Arguments, std::size_t I, class Wanted>
inline constexpr bool is_or_missing =
    !Arguments::template has<I> || std::is_same_v<typename Arguments::template plain<I>, Wanted>;

template <class Arguments, std::size_t I>
consteval sentence explain_root() {
  if (!is_or_missing<Arguments, I, root>) return "the root is said as root{0}, after the buffer and before with(...)";
  return {};
}

template <class Arguments, std::size_t I>
consteval sentence explain_peer() {
  if (!std::is_same_v<typename Arguments::template plain<I>, peer>) {
    return "the rank at the other end is said as peer{1}, right after its buffer";
  }
  return {};
}

template <class Arguments, std::size_t I>
consteval sentence explain_said_tag() {
  if (!is_or_missing<Arguments, I, tag>) {
    return "the tag is said as tag{7}; in front of with(...) it can't be left out: tag{0}";
  }
  return {};
}

/// Says by a static_assert what is wrong in a call that fits, and returns whether nothing is. For options that are for buffers
/// with a tag alone, and even as a hint mean nothing here: whoever says them thinks of other memory.
template <class Options>
consteval bool explain_device_options_of_a_host() {
  constexpr bool has_none = !Options::template has<kind::stream> && !Options::template has<kind::staging>;
  static_assert(has_none,
                "with(...): a stream, or cuda::staging, goes with buffers that have a tag, such as cuda::device(...); "
                "these have none, and the processor reads and writes them, whatever a stream does");
  return has_none;
}

}  // namespace detail
HOCKET_END_NAMESPACE
