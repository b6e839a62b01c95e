// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// What the compiler says of a call that fits no overload: in words, the first thing that is wrong with it.
///
/// Without this, it would list every overload with every constraint. Each collective's function object is an
/// `explained<Calls>`: `Calls` has the overloads that do something, and this adds the one for calls that fit none of
/// them. Whether a call fits is answered silently by `valid_call`.
#pragma once

#include <hocket/communicator/communicator.hpp>
#include <hocket/core/buffers.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/not_understood.hpp>
#include <hocket/core/options.hpp>
#include <hocket/core/placed_buffer.hpp>
#include <hocket/core/strong_types.hpp>
#include <hocket/operation/traits.hpp>

#include <cstddef>
#include <system_error>
#include <tuple>
#include <type_traits>
#include <vector>

HOCKET_BEGIN_NAMESPACE

/// Whether `collective(arguments...)` compiles: `static_assert(valid_call<decltype(all_reduce), communicator&, ...>)`.
template <class Collective, class... Arguments>
concept valid_call = std::is_invocable_v<const typename std::remove_cvref_t<Collective>::calls&, Arguments...>;

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
inline constexpr bool always_false = false;

// ── Buffers in memory of devices ───────────────────────────────────────────────────────────────────────────────────

/// Whether the call is one of those that take them.
template <class Calls>
consteval bool explain_taking_placed() {
  constexpr bool takes = requires { Calls::takes_placed_buffers; };
  static_assert(
      takes,
      "this call takes no buffers in memory of a device: all_reduce, reduce_scatter, all_gather, all_to_all and "
      "broadcast do, and their _async forms; copy to the host for others");
  return takes;
}

/// The type of elements of `Value`, if it is a buffer in memory of a device, or void.
template <class Value>
struct placed_element {
  using type = void;
};
template <class T, class Space>
struct placed_element<placed_buffer<T, Space>> {
  using type = T;
};
template <class T, class Space>
struct placed_element<placed_in_place<T, Space>> {
  using type = T;
};

template <class Arguments, std::size_t I>
using placed_element_t = typename placed_element<typename Arguments::template plain<I>>::type;

template <class Options>
consteval bool explain_stream() {
  static_assert(
      is_options<Options>,
      "a call on buffers in memory of a device needs its operation, or root, and then a stream, in whose order they "
      "are read and written: std::plus<>{}, with(cuda::stream_ref(stream)); there is no default stream");
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

/// (communicator, in, out, op, options, code) or (communicator, in_place(buffer), op, options, code); without `op` if
/// nothing is combined; (communicator, buffer, root, options, code).
template <class Form, class Arguments>
consteval bool explain_placed() {
  using first = typename Arguments::template plain<1>;
  using second = typename Arguments::template plain<2>;
  constexpr bool rooted = Form::is_rooted;
  constexpr bool pair = !rooted && !requires(first each) { each.elements; };
  if constexpr (pair) {
    constexpr bool both = is_placed<first> && is_placed<second>;
    static_assert(both,
                  "in and out must both be in memory that devices know, or both be the host's: say cuda::device(...), "
                  "cuda::pinned(...) or cuda::managed(...) of both, or copy one of them");
    if constexpr (!both) return false;
  }
  constexpr std::size_t result = pair ? 2 : 1;
  using out = placed_element_t<Arguments, result>;
  constexpr bool writable = !std::is_const_v<out>;
  static_assert(writable, "a buffer that receives a result must be writable; its elements are const here");
  using in = std::remove_const_t<placed_element_t<Arguments, 1>>;
  constexpr bool equal = !writable || std::is_same_v<in, out>;
  static_assert(equal, "in and out must have the same type of elements; convert one of them first");
  if constexpr (writable && equal && explain_element<out>()) {
    if constexpr (Form::combines && is_options<typename Arguments::template plain<result + 1>>) {
      return explain_operation<typename Arguments::template plain<result + 1>, out>();
    } else if constexpr (rooted && !is_options<typename Arguments::template plain<2>> && Arguments::template has<2> &&
                         !std::is_same_v<typename Arguments::template plain<2>, root>) {
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

// ── The forms of calls ─────────────────────────────────────────────────────────────────────────────────────────────
// Each says what is wrong with arguments of that form; true if it finds nothing.

/// (communicator, in, out, op, options, code) or (communicator, in_place(buffer), op, options, code)
struct reduction_form {
  static constexpr bool combines = true;
  static constexpr bool is_rooted = false;

  template <class Arguments, std::size_t I, class T>
  static consteval bool explain_rest() {
    if constexpr (!explain_element<T>()) {
      return false;
    } else if constexpr (!Arguments::template has<I>) {
      return explain_operation<std::plus<>, T>();
    } else if constexpr (explain_operation<typename Arguments::template plain<I>, T>()) {
      return explain_options<Arguments, I + 1>();
    } else {
      return false;
    }
  }

  template <class Arguments>
  static consteval bool explain() {
    static_assert(Arguments::template has<1>,
                  "a reduction is called as (communicator, in, out, op, options), or with "
                  "in_place(buffer) in the place of in and out");
    using first = typename Arguments::template plain<1>;
    if constexpr (is_in_place<first>::value) {
      return explain_rest<Arguments, 2, typename decltype(first::elements)::element_type>();
    } else if constexpr (!Arguments::template has<1>) {
      return false;
    } else if constexpr (explain_input<typename Arguments::template at<1>>()) {
      static_assert(Arguments::template has<2>, "out is missing; use in_place(buffer) to have one buffer for both");
      if constexpr (!Arguments::template has<2>) {
        return false;
      } else if constexpr (explain_output<typename Arguments::template at<2>>()) {
        using in = typename Arguments::template at<1>;
        using out = typename Arguments::template at<2>;
        if constexpr (explain_same_elements<in, out>()) return explain_rest<Arguments, 3, element_type_t<out>>();
      }
    }
    return false;
  }
};

/// (communicator, in, out, options, code)
struct moving_form {
  static constexpr bool combines = false;
  static constexpr bool is_rooted = false;

  template <class Arguments>
  static consteval bool explain() {
    static_assert(Arguments::template has<2>, "the call needs (communicator, in, out)");
    if constexpr (Arguments::template has<2>) {
      using in = typename Arguments::template at<1>;
      using out = typename Arguments::template at<2>;
      if constexpr (explain_input<in>() && explain_output<out>()) {
        if constexpr (explain_same_elements<in, out>() && explain_element<element_type_t<out>>()) {
          return explain_options<Arguments, 3>();
        }
      }
    }
    return false;
  }
};

/// (communicator, in, out, counts, options, code); all_to_all_v with two `Counts`, reduce_scatter_v with an operation.
template <bool Reduces, class... Counts>
struct uneven_form {
  static constexpr std::size_t after_counts = 3 + sizeof...(Counts);

  template <class Arguments, class T>
  static consteval bool explain_rest() {
    if constexpr (!Reduces) {
      return explain_options<Arguments, after_counts>();
    } else if constexpr (!Arguments::template has<after_counts>) {
      return explain_operation<std::plus<>, T>();
    } else if constexpr (explain_operation<typename Arguments::template plain<after_counts>, T>()) {
      return explain_options<Arguments, after_counts + 1>();
    } else {
      return false;
    }
  }

  template <class Arguments, std::size_t I, class First, class... Others>
  static consteval bool explain_all_counts() {
    if constexpr (!explain_counts<Arguments, I, First>()) {
      return false;
    } else if constexpr (sizeof...(Others) > 0) {
      return explain_all_counts<Arguments, I + 1, Others...>();
    } else {
      return true;
    }
  }

  template <class Arguments>
  static consteval bool explain() {
    if constexpr (explain_two_buffers<Arguments>()) {
      static_assert(Arguments::template has<2>, "the call needs (communicator, in, out, counts)");
      if constexpr (Arguments::template has<2>) {
        using in = typename Arguments::template at<1>;
        using out = typename Arguments::template at<2>;
        if constexpr (explain_input<in>() && explain_output<out>()) {
          if constexpr (explain_same_elements<in, out>() && explain_element<element_type_t<out>>()) {
            if constexpr (explain_all_counts<Arguments, 3, Counts...>()) {
              return explain_rest<Arguments, element_type_t<out>>();
            }
          }
        }
      }
    }
    return false;
  }
};

/// Whether argument I, if there is one, is a `Wanted`.
template <class Arguments, std::size_t I, class Wanted>
inline constexpr bool is_or_missing =
    !Arguments::template has<I> || std::is_same_v<typename Arguments::template plain<I>, Wanted>;

/// (communicator, buffer, root, options, code)
struct rooted_form {
  static constexpr bool combines = false;
  static constexpr bool is_rooted = true;

  template <class Arguments>
  static consteval bool explain() {
    static_assert(Arguments::template has<1>, "the call needs (communicator, buffer)");
    if constexpr (Arguments::template has<1>) {
      using buffer = typename Arguments::template at<1>;
      if constexpr (explain_output<buffer>()) {
        if constexpr (explain_element<element_type_t<buffer>>()) {
          constexpr bool rooted = is_or_missing<Arguments, 2, root>;
          static_assert(rooted, "the root is said as root{0}, after the buffer and before with(...)");
          return rooted && explain_options<Arguments, 3>();
        }
      }
    }
    return false;
  }
};

/// (communicator, options, code)
struct bare_form {
  template <class Arguments>
  static consteval bool explain() {
    return explain_options<Arguments, 1>();
  }
};

template <class Arguments, std::size_t I>
consteval bool explain_peer() {
  constexpr bool said = std::is_same_v<typename Arguments::template plain<I>, peer>;
  static_assert(said, "the rank at the other end is said as peer{1}, right after its buffer");
  return said;
}

template <class Arguments, std::size_t I>
consteval bool explain_tag() {
  constexpr bool said = is_or_missing<Arguments, I, tag>;
  static_assert(said, "the tag is said as tag{7}; in front of with(...) it can't be left out: tag{0}");
  return said && explain_options<Arguments, I + 1>();
}

/// (communicator, buffer, peer, tag, options, code)
template <bool Receives>
struct message_form {
  template <class Buffer>
  static consteval bool explain_buffer() {
    if constexpr (Receives) {
      return explain_output<Buffer>();
    } else {
      return explain_input<Buffer>();
    }
  }

  template <class Arguments>
  static consteval bool explain() {
    static_assert(Arguments::template has<2>, "the call needs (communicator, buffer, peer)");
    if constexpr (Arguments::template has<2>) {
      using buffer = typename Arguments::template at<1>;
      if constexpr (explain_buffer<buffer>()) {
        if constexpr (explain_element<element_type_t<buffer>>() && explain_peer<Arguments, 2>()) {
          return explain_tag<Arguments, 3>();
        }
      }
    }
    return false;
  }
};

/// (communicator, out, peer, in, peer, tag, options, code)
struct exchange_form {
  template <class Arguments>
  static consteval bool explain() {
    static_assert(Arguments::template has<4>, "the call needs (communicator, out, peer, in, peer)");
    if constexpr (Arguments::template has<4>) {
      using sent = typename Arguments::template at<1>;
      using received = typename Arguments::template at<3>;
      if constexpr (explain_input<sent>() && explain_peer<Arguments, 2>() && explain_output<received>()) {
        if constexpr (explain_element<element_type_t<sent>>() && explain_element<element_type_t<received>>() &&
                      explain_peer<Arguments, 4>()) {
          return explain_tag<Arguments, 5>();
        }
      }
    }
    return false;
  }
};

/// `Calls`, and one overload more for every call that fits none of theirs.
template <class Calls, class Form>
struct explained : Calls {
  using calls = Calls;
  using Calls::operator();

  template <class... Arguments>
    requires(!std::is_invocable_v<const Calls&, Arguments...>)
  not_understood operator()(Arguments&&...) const {
    using list = argument_list<Arguments...>;
    if constexpr (!explain_communicator<list>()) {
      return {};
    } else if constexpr ((is_placed<std::remove_cvref_t<Arguments>> || ...)) {
      if constexpr (explain_taking_placed<Calls>()) {
        if constexpr (explain_placed<Form, list>()) {
          static_assert(always_false<Arguments...>, "too many arguments, or one in the place of another");
        }
      }
    } else if constexpr (Form::template explain<list>()) {
      if constexpr (explain_lifetime<Arguments&&...>()) {
        static_assert(always_false<Arguments...>, "too many arguments, or one in the place of another");
      }
    }
    return {};
  }
};

}  // namespace detail
HOCKET_END_NAMESPACE
