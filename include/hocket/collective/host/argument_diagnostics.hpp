// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The compiler's diagnostics for one argument of a call that matches no overload. Each function returns a sentence
/// about the first mistake, or nothing. None asserts, so that std::is_invocable and concepts give no error.
#pragma once

#include <hocket/collective/host/option_diagnostics.hpp>
#include <hocket/communicator/communicator.hpp>
#include <hocket/core/buffers.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/explanation.hpp>
#include <hocket/core/options.hpp>
#include <hocket/core/strong_types.hpp>
#include <hocket/operation/traits.hpp>
#include <hocket/plan/plan.hpp>

#include <cstddef>
#include <functional>
#include <system_error>
#include <tuple>
#include <type_traits>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// The diagnosis of in_place(...) in another place than that of both buffers.
inline constexpr const char* misplaced_in_place =
    "in_place(buffer) replaces both in and out of all_reduce and reduce: pass it once, as in all_reduce(comm, "
    "in_place(buffer)); pass in and out, or the one buffer, to other calls";

/// The diagnosis of in_place(...) as the buffers of a call that has no such form.
inline constexpr const char* refused_in_place = "only all_reduce and reduce take in_place(buffer): pass in and out";

template <class T>
struct is_in_place : std::false_type {};
template <class T>
struct is_in_place<in_place_buffer<T>> : std::true_type {};

/// The arguments of a call that matches no overload. Missing arguments are `none`.
template <class... Arguments>
struct argument_list {
  struct none {};

  template <std::size_t Index>
  using at = std::tuple_element_t<(Index < sizeof...(Arguments) ? Index : sizeof...(Arguments)),
                                  std::tuple<Arguments..., none>>;
  template <std::size_t Index>
  using plain = std::remove_cvref_t<at<Index>>;
  template <std::size_t Index>
  static constexpr bool has = Index < sizeof...(Arguments);
};

/// A communicator, or a type derived from one.
template <class T>
concept communicator_like = requires(const T& given) { []<class Domain>(const communicator<Domain>&) {}(given); };

template <class Arguments>
consteval sentence explain_communicator() {
  if (!communicator_like<typename Arguments::template plain<0>>) {
    return "the first argument must be a communicator, such as one from local::run or ucx::connect";
  }
  return {};
}

/// Explains an argument of type `T` that clearly belongs to another place.
template <class T>
consteval sentence explain_stray() {
  if (std::is_same_v<T, std::error_code>) {
    return "the std::error_code must be the last argument, and no argument before it can be omitted: pass the "
           "operation, if any, and with(), as in (comm, in, out, std::plus<>{}, with(), code)";
  }
  if (is_in_place<T>::value) return misplaced_in_place;
  return {};
}

template <class Range>
consteval sentence explain_input() {
  using plain = std::remove_cvref_t<Range>;
  if (constexpr sentence stray = explain_stray<plain>(); stray) return stray;
  if (std::is_same_v<plain, std::vector<bool>>) {
    return "std::vector<bool> stores bits, which can't be sent as elements: use a vector of unsigned char";
  }
  if (std::is_pointer_v<plain>) {
    return "a buffer must have a size, and a pointer has none: pass std::span(pointer, count)";
  }
  if (!contiguous_buffer<std::remove_reference_t<Range>>) {
    return "a buffer must be a contiguous range with a size: a vector, an array, or a span";
  }
  return {};
}

template <class Range>
consteval sentence explain_output() {
  if (constexpr sentence wrong = explain_input<Range>(); wrong) return wrong;
  if (!lasting_buffer<Range>) {
    return "a buffer that receives a result is a temporary, which is destroyed with the result: pass a named buffer";
  }
  if (!writable_buffer<Range>) {
    return "a buffer that receives a result must be writable; its elements are const here";
  }
  return {};
}

template <class T>
consteval sentence explain_element() {
  if (std::is_pointer_v<T>) return "elements must not be pointers: a pointer is invalid on another rank";
  if (!std::is_trivially_copyable_v<T>) return "elements must be trivially copyable, because their bytes are sent";
  return {};
}

/// Checks the element type of `Range` if it is a buffer; other functions report what is not one.
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

/// Returns the mistake in two buffers: the call reads `In` and writes `Out`.
template <class In, class Out>
consteval sentence explain_pair() {
  constexpr sentence wrong = first_of({explain_input<In>(), explain_output<Out>()});
  if constexpr (wrong) {
    return wrong;
  } else {
    return first_of({explain_same_elements<In, Out>(), explain_elements_of<Out>()});
  }
}

/// Explains an argument in the place of the operation that can't be meant as one.
template <class Op>
consteval sentence explain_place_of_operation() {
  if (is_options<Op>) return "the operation comes before with(...): pass std::plus<>{} for a sum";
  if (std::is_same_v<Op, root>) return "the operation comes before the root: pass std::plus<>{} for a sum";
  if (property<Op>) {
    return "an algorithm, a timeout and other properties are options, made by with(...), and come after the "
           "operation: std::plus<>{}, with(ring)";
  }
  if (std::is_arithmetic_v<Op>) {
    return "a number was passed in place of the operation: the number of elements is that of the buffers, and "
           "the operation must be a function object, such as std::plus<>{}";
  }
  return explain_stray<Op>();
}

/// Must be called after all other checks: to find out whether the operation can be called, the compiler may have to
/// instantiate it, and an error inside it ends the diagnosis.
template <class Op, class T>
consteval sentence explain_operation() {
  if (!std::is_trivially_copyable_v<Op>) {
    return "the reduction operation must be trivially copyable: capture values, not containers";
  }
  if (rounds_first<Op, T>) {
    return "the reduction operation works on another type, to which the elements or its factor would be "
           "rounded first: use std::plus<>{}, which adds elements in their own type";
  }
  if (!reduction_for<Op, T>) {
    return "the reduction operation must be callable as op(a, b) on const elements and return an element, "
           "or have prepare, combine and finish: see hocket/operation/traits.hpp";
  }
  return {};
}

/// Checks the end of a call: with(...), and a std::error_code if the caller wants no exception.
template <class Arguments, std::size_t Index>
consteval sentence explain_place_of_options() {
  using last = typename Arguments::template plain<Index>;
  if (constexpr sentence stray = explain_stray<last>(); stray) return stray;
  if (Arguments::template has<Index> && !is_options<last>) {
    return "the options must be made by with(...), as in with(ring, timeout(5s)), and no "
           "argument before them can be omitted";
  }
  if (Arguments::template has<Index + 1> &&
      !std::is_same_v<typename Arguments::template at<Index + 1>, std::error_code&>) {
    return "the last argument must be a std::error_code that is neither const nor a temporary";
  }
  return {};
}

/// Checks the options at `Index` of a call of `Family` on host buffers, and the arguments after them.
template <class Family, class Arguments, std::size_t Index>
consteval sentence explain_options() {
  using given = typename Arguments::template plain<Index>;
  constexpr sentence wrong = explain_place_of_options<Arguments, Index>();
  if constexpr (wrong || !Arguments::template has<Index>) {
    return wrong;
  } else {
    return explain_host_options<Family, given>();
  }
}

/// True if argument `Index` is missing or is a `Wanted`.
template <class Arguments, std::size_t Index, class Wanted>
inline constexpr bool is_or_missing =
    !Arguments::template has<Index> || std::is_same_v<typename Arguments::template plain<Index>, Wanted>;

/// Checks argument `Index`, the root, which can be omitted.
template <class Arguments, std::size_t Index>
consteval sentence explain_root() {
  if (!is_or_missing<Arguments, Index, root>) return "pass the root as hocket::root{0}, right before with(...)";
  return {};
}

/// Checks argument `Index`, the operation on elements of `T`, which can be omitted, and the arguments after it: the root,
/// if the collective has one, and the options.
template <plan::collective_kind Kind, class Arguments, std::size_t Index, class T>
consteval sentence explain_operation_and_options() {
  using given = typename Arguments::template plain<Index>;
  using op = std::conditional_t<Arguments::template has<Index>, given, std::plus<>>;
  constexpr bool is_rooted = plan::collective{Kind, 0}.has_root();
  constexpr std::size_t end = Index + (is_rooted ? 2 : 1);
  constexpr sentence misplaced =
      first_of({explain_place_of_operation<given>(), is_rooted ? explain_root<Arguments, Index + 1>() : sentence(),
                explain_place_of_options<Arguments, end>()});
  if constexpr (misplaced) {
    return misplaced;
  } else if constexpr (constexpr sentence wrong = explain_operation<op, T>(); wrong) {
    return wrong;
  } else {
    return explain_options<reduction_options<Kind, op, T>, Arguments, end>();
  }
}

/// Explains temporary buffers, which only the _async forms refuse.
template <class... Arguments>
consteval sentence explain_lifetime() {
  if (!(... && (!contiguous_buffer<std::remove_reference_t<Arguments>> || lasting_buffer<Arguments>))) {
    return "a buffer of an _async call is a temporary, which would be destroyed before the operation completes: "
           "pass a named buffer that exists until the request has completed";
  }
  return {};
}

/// Checks that argument `Index`, the lengths of blocks, is a `Wanted`.
template <class Arguments, std::size_t Index, class Wanted>
consteval sentence explain_counts() {
  if (std::is_same_v<typename Arguments::template plain<Index>, Wanted>) return {};
  if (std::is_same_v<Wanted, counts>) {
    return "pass the lengths of the ranks' blocks as hocket::counts{lengths}, after in and out: `lengths` "
           "must have a std::size_t for each rank";
  }
  return "pass the lengths of blocks as hocket::send_counts{lengths}, hocket::receive_counts{lengths}, "
         "after in and out: both must have a std::size_t for each rank";
}

/// Checks the arguments from `Index` on against the types `First, Others...`.
template <class Arguments, std::size_t Index, class First, class... Others>
consteval sentence explain_all_counts() {
  if (constexpr sentence wrong = explain_counts<Arguments, Index, First>(); wrong) return wrong;
  if constexpr (sizeof...(Others) > 0) return explain_all_counts<Arguments, Index + 1, Others...>();
  return {};
}

/// Explains in_place(...), which calls with counts do not take.
template <class Arguments>
consteval sentence explain_two_buffers() {
  if (is_in_place<typename Arguments::template plain<1>>::value) {
    return "calls with counts do not take in_place(buffer): pass in and out; except in all_to_all_v, one may be this "
           "rank's block of the other";
  }
  return {};
}

/// The fallback if no rule above has found a mistake. `Form` names the arguments that such a call takes.
template <class Form, class... Arguments>
consteval sentence explain_surplus() {
  using last = typename argument_list<Arguments...>::template plain<sizeof...(Arguments) - 1>;
  if (std::is_same_v<last, std::error_code>) {
    return "an _async form takes no std::error_code: pass it to the request, as in started.wait(code)";
  }
  return Form::surplus;
}

template <class Arguments, std::size_t Index>
consteval sentence explain_peer() {
  if (!std::is_same_v<typename Arguments::template plain<Index>, peer>) {
    return "pass the other rank as hocket::peer{1}, right after its buffer";
  }
  return {};
}

template <class Arguments, std::size_t Index>
consteval sentence explain_tag_argument() {
  if (!is_or_missing<Arguments, Index, tag>) {
    return "pass the tag as hocket::tag{7}; before with(...) it can't be omitted: pass hocket::tag{0}";
  }
  return {};
}

}  // namespace detail
HOCKET_END_NAMESPACE
