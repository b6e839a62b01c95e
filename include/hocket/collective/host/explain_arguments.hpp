// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// What the compiler says of one argument of a call that fits no overload: each function says in words what is wrong with it, by a
/// static_assert, and returns whether nothing is.
#pragma once

#include <hocket/communicator/communicator.hpp>
#include <hocket/core/buffers.hpp>
#include <hocket/core/config.hpp>
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
consteval bool explain_communicator() {
  constexpr bool first = is_communicator<typename Arguments::template plain<0>>::value;
  static_assert(first, "the first argument must be a communicator, such as local::run and ucx::connect make them");
  return first;
}

/// What `T` is, where it is clear that it was meant for another place.
template <class T>
consteval bool explain_stray() {
  constexpr bool code = std::is_same_v<T, std::error_code>;
  static_assert(
      !code,
      "the std::error_code comes last, and nothing before it can be left out: std::plus<>{} where there is an "
      "operation, and with(), as in (comm, in, out, std::plus<>{}, with(), code)");
  constexpr bool in_place = is_in_place<T>::value;
  static_assert(
      !in_place,
      "in_place(buffer) stands for both in and out of all_reduce, once: all_reduce(comm, in_place(buffer)); other "
      "calls take two buffers");
  return !code && !in_place;
}

template <class Range>
consteval bool explain_input() {
  using plain = std::remove_cvref_t<Range>;
  if constexpr (explain_stray<plain>()) {
    constexpr bool bits = std::is_same_v<plain, std::vector<bool>>;
    static_assert(!bits,
                  "std::vector<bool> keeps bits, which can't be sent as elements: use a vector of unsigned char");
    constexpr bool pointer = std::is_pointer_v<plain>;
    static_assert(!pointer, "a buffer must know its size, and a pointer does not: std::span(pointer, count)");
    constexpr bool range = bits || pointer || contiguous_buffer<std::remove_reference_t<Range>>;
    static_assert(range, "a buffer must be a contiguous range that knows its size: a vector, an array, a span");
    return range && !bits && !pointer;
  } else {
    return false;
  }
}

template <class Range>
consteval bool explain_output() {
  if constexpr (explain_input<Range>()) {
    constexpr bool lasting = lasting_buffer<Range>;
    static_assert(lasting, "a buffer that receives a result is a temporary, and gone with it: give it a name");
    constexpr bool writable = !lasting || writable_buffer<Range>;
    static_assert(writable, "a buffer that receives a result must be writable; its elements are const here");
    return lasting && writable;
  } else {
    return false;
  }
}

template <class T>
consteval bool explain_element() {
  static_assert(!std::is_pointer_v<T>, "elements must not be pointers: they mean nothing on another rank");
  constexpr bool copyable = std::is_trivially_copyable_v<T>;
  static_assert(copyable, "elements must be trivially copyable: their bytes are what travels");
  return element<T>;
}

template <class In, class Out>
consteval bool explain_same_elements() {
  constexpr bool equal = std::is_same_v<element_type_t<In>, element_type_t<Out>>;
  static_assert(equal, "in and out must have the same type of elements; convert one of them first");
  return equal;
}

/// Whether `Op` may be meant as an operation.
template <class Op>
consteval bool explain_place_of_operation() {
  static_assert(!is_options<Op>, "the operation comes before with(...): say std::plus<>{} for a sum");
  static_assert(!property<Op>,
                "an algorithm, a timeout and other properties are options, made by with(...), and come after the "
                "operation: std::plus<>{}, with(ring)");
  constexpr bool number = std::is_arithmetic_v<Op>;
  static_assert(!number,
                "a number in the place of the operation: the buffers say how many elements there are, and the "
                "operation is a function object, as std::plus<>{}");
  return !is_options<Op> && !property<Op> && !number && explain_stray<Op>();
}

template <class Op, class T>
consteval bool explain_operation() {
  if constexpr (explain_place_of_operation<Op>()) {
    constexpr bool copyable = std::is_trivially_copyable_v<Op>;
    static_assert(copyable, "the reduction operation must be trivially copyable: capture values, not containers");
    constexpr bool as_they_are = !rounds_first<Op, T>;
    static_assert(as_they_are,
                  "the reduction operation works on another type, to which the elements, or its factor, would be "
                  "rounded first: std::plus<>{} adds elements as what they are");
    constexpr bool callable = !copyable || !as_they_are || reduction_for<Op, T>;
    static_assert(callable,
                  "the reduction operation must be callable as op(a, b) on const elements and give one of them, "
                  "or have prepare, combine and finish: see hocket/operation/traits.hpp");
    return copyable && as_they_are && callable;
  } else {
    return false;
  }
}

/// The end of every call: with(...), and a std::error_code for those who want no exception.
template <class Arguments, std::size_t I>
consteval bool explain_options() {
  using last = typename Arguments::template plain<I>;
  if constexpr (explain_stray<last>()) {
    constexpr bool options = !Arguments::template has<I> || is_options<last>;
    static_assert(options,
                  "the argument in the place of the options must be made by with(...), as in "
                  "with(ring, timeout(5s)); those before it must not be left out");
    constexpr bool code = !options || !Arguments::template has<I + 1> ||
                          std::is_same_v<typename Arguments::template at<I + 1>, std::error_code&>;
    static_assert(code, "the last argument can be a std::error_code, which must not be const or a temporary");
    return options && code;
  } else {
    return false;
  }
}

/// Only the _async forms refuse what is otherwise a buffer.
template <class... Arguments>
consteval bool explain_lifetime() {
  constexpr bool lasting =
      (... && (!contiguous_buffer<std::remove_reference_t<Arguments>> || lasting_buffer<Arguments>));
  static_assert(lasting,
                "a buffer of an _async call is a temporary, which would be gone before the operation is over: "
                "give it a name and keep it until the request is over");
  return lasting;
}

/// Whether argument I is a `Wanted`: the lengths of blocks.
template <class Arguments, std::size_t I, class Wanted>
consteval bool explain_counts() {
  constexpr bool said = std::is_same_v<typename Arguments::template plain<I>, Wanted>;
  constexpr bool of_all = !std::is_same_v<Wanted, counts> || said;
  static_assert(of_all,
                "the lengths of the ranks' blocks are said as counts{lengths}, after in and out: `lengths` has "
                "a std::size_t for each rank");
  static_assert(said || !of_all,
                "the lengths of blocks are said as send_counts{lengths}, receive_counts{lengths}, "
                "after in and out: both have a std::size_t for each rank");
  return said;
}

/// ... one after the other, of each of the `Counts`.
template <class Arguments, std::size_t I, class First, class... Others>
consteval bool explain_all_counts() {
  if constexpr (!explain_counts<Arguments, I, First>()) {
    return false;
  } else if constexpr (sizeof...(Others) > 0) {
    return explain_all_counts<Arguments, I + 1, Others...>();
  } else {
    return true;
  }
}

/// What calls with counts can't be given.
template <class Arguments>
consteval bool explain_two_buffers() {
  constexpr bool two = !is_in_place<typename Arguments::template plain<1>>::value;
  static_assert(two,
                "calls with counts have no in_place(buffer): pass in and out; for all_gather_v and "
                "reduce_scatter_v the one may be this rank's block of the other");
  return two;
}

/// For what no rule above found wrong.
template <class... Arguments>
consteval void explain_surplus() {
  constexpr bool code =
      std::is_same_v<typename argument_list<Arguments...>::template plain<sizeof...(Arguments) - 1>, std::error_code>;
  static_assert(!code, "an _async form takes no std::error_code: its request tells by one, as in started.wait(code)");
  static_assert(code, "too many arguments, or one in the place of another");
}

/// Options that are for buffers with a tag alone, and even as a hint mean nothing here: whoever says them thinks of other memory.
template <class Options>
consteval bool explain_device_options_of_a_host() {
  constexpr bool has_none = !Options::template has<kind::stream> && !Options::template has<kind::staging>;
  static_assert(has_none,
                "with(...): a stream, or cuda::staging, goes with buffers that have a tag, such as cuda::device(...); "
                "these have none, and the processor reads and writes them, whatever a stream does");
  return has_none;
}

/// Whether argument I, if there is one, is a `Wanted`.
template <class Arguments, std::size_t I, class Wanted>
inline constexpr bool is_or_missing =
    !Arguments::template has<I> || std::is_same_v<typename Arguments::template plain<I>, Wanted>;

template <class Arguments, std::size_t I>
consteval bool explain_peer() {
  constexpr bool said = std::is_same_v<typename Arguments::template plain<I>, peer>;
  static_assert(said, "the rank at the other end is said as peer{1}, right after its buffer");
  return said;
}

template <class Arguments, std::size_t I>
consteval bool explain_said_tag() {
  constexpr bool said = is_or_missing<Arguments, I, tag>;
  static_assert(said, "the tag is said as tag{7}; in front of with(...) it can't be left out: tag{0}");
  return said;
}

}  // namespace detail
HOCKET_END_NAMESPACE
