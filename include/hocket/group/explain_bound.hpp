// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// What the compiler says of a call that is to be bound to memory of devices, and fits none that can be: see
/// collective/detail/misuse.hpp.
#pragma once

#include <hocket/collective/detail/explain_device.hpp>
#include <hocket/collective/detail/generate_call.hpp>
#include <hocket/collective/device/memory.hpp>
#include <hocket/collective/host/explain_arguments.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/device_buffer.hpp>
#include <hocket/core/not_understood.hpp>
#include <hocket/core/options.hpp>
#include <hocket/core/strong_types.hpp>
#include <hocket/operation/traits.hpp>

#include <cstddef>
#include <source_location>
#include <type_traits>

HOCKET_BEGIN_NAMESPACE
namespace detail {

// ── Which calls can be bound ───────────────────────────────────────────────────────────────────────────────────────

/// Whether these may follow what says what is to be done: options, and the place of the call.
template <class... Rest>
inline constexpr bool ends_bound_call = sizeof...(Rest) == 0;
template <class Options>
inline constexpr bool ends_bound_call<Options> = is_options<Options>;
template <class Options>
inline constexpr bool ends_bound_call<Options, std::source_location> = is_options<Options>;

/// (in, out, op, options)
template <class... Arguments>
inline constexpr bool is_bound_reduction = false;
template <class T, class U, class Op, class... Rest>
inline constexpr bool
    is_bound_reduction<device_buffer<T, cuda::device_memory>, device_buffer<U, cuda::device_memory>, Op, Rest...> =
        device_pair<T, U> && reduction_for<Op, U> && ends_bound_call<Rest...>;

/// (in_place(buffer), op, options)
template <class... Arguments>
inline constexpr bool is_bound_in_place = false;
template <class T, class Op, class... Rest>
inline constexpr bool is_bound_in_place<device_in_place<T, cuda::device_memory>, Op, Rest...> =
    reduction_for<Op, T> && ends_bound_call<Rest...>;

/// (in, out, options)
template <class... Arguments>
inline constexpr bool is_bound_move = false;
template <class T, class U, class... Rest>
inline constexpr bool
    is_bound_move<device_buffer<T, cuda::device_memory>, device_buffer<U, cuda::device_memory>, Rest...> =
        device_pair<T, U> && element<U> && ends_bound_call<Rest...>;

/// (buffer, root, options)
template <class... Arguments>
inline constexpr bool is_bound_broadcast = false;
template <class T, class... Rest>
inline constexpr bool is_bound_broadcast<device_buffer<T, cuda::device_memory>, root, Rest...> =
    !std::is_const_v<T> && element<T> && ends_bound_call<Rest...>;

// ── What is wrong with others ──────────────────────────────────────────────────────────────────────────────────────
// `Arguments` is an `argument_list`. Each returns true if it finds nothing.

template <class Buffer>
inline constexpr bool is_on_device = false;
template <class T>
inline constexpr bool is_on_device<device_buffer<T, cuda::device_memory>> = true;
template <class T>
inline constexpr bool is_on_device<device_in_place<T, cuda::device_memory>> = true;

template <class Arguments, std::size_t I>
consteval bool explain_bound_buffer() {
  using buffer = typename Arguments::template plain<I>;
  constexpr bool tagged = is_device_buffer<buffer>;
  static_assert(tagged, "the buffers of a bound call come first, and are said as cuda::device(pointer, size)");
  constexpr bool on_device = !tagged || is_on_device<buffer>;
  static_assert(
      on_device,
      "a bound call takes memory of devices alone, which peers can map: cuda::device(...); pinned and managed "
      "memory goes with the calls that are not bound, as all_reduce(comm, in, out, op, with(stream))");
  return tagged && on_device;
}

template <class Arguments, std::size_t I>
consteval bool explain_end_of_bound_call() {
  constexpr bool options = !Arguments::template has<I> || is_options<typename Arguments::template plain<I>>;
  static_assert(options, "the options of a bound call come last and are made by with(...), as in with(ring)");
  constexpr bool too_many = options && Arguments::template has<I + 1>;
  static_assert(!too_many, "a bound call ends with its options; the stream is said by enqueue, and errors are thrown");
  return options && !too_many;
}

template <class Arguments, std::size_t Result>
consteval bool explain_bound_operation() {
  static_assert(Arguments::template has<Result + 1>,
                "a bound reduction needs its operation, after the buffers: std::plus<>{} for a sum");
  if constexpr (Arguments::template has<Result + 1>) {
    if constexpr (explain_operation<typename Arguments::template plain<Result + 1>,
                                    device_element_t<Arguments, Result>>()) {
      return explain_end_of_bound_call<Arguments, Result + 2>();
    }
  }
  return false;
}

template <class Arguments>
consteval bool explain_bound_pair() {
  if constexpr (explain_bound_buffer<Arguments, 0>()) {
    if constexpr (explain_bound_buffer<Arguments, 1>()) {
      return explain_device_elements<device_element_t<Arguments, 0>, device_element_t<Arguments, 1>>();
    }
  }
  return false;
}

template <class Arguments>
consteval bool explain_bound_reduction() {
  if constexpr (explain_bound_pair<Arguments>()) return explain_bound_operation<Arguments, 1>();
  return false;
}

template <class Arguments>
consteval bool explain_bound_all_reduce() {
  using first = typename Arguments::template plain<0>;
  if constexpr (!requires(first each) { each.elements; }) {
    return explain_bound_reduction<Arguments>();
  } else if constexpr (explain_bound_buffer<Arguments, 0>()) {
    return explain_bound_operation<Arguments, 0>();
  }
  return false;
}

template <class Arguments>
consteval bool explain_bound_move() {
  if constexpr (explain_bound_pair<Arguments>()) return explain_end_of_bound_call<Arguments, 2>();
  return false;
}

template <class Arguments>
consteval bool explain_bound_broadcast() {
  if constexpr (explain_bound_buffer<Arguments, 0>()) {
    if constexpr (explain_device_output<device_element_t<Arguments, 0>>()) {
      constexpr bool rooted = std::is_same_v<typename Arguments::template plain<1>, root>;
      static_assert(rooted, "the root is said as root{0}, after the buffer and before with(...)");
      return rooted && explain_end_of_bound_call<Arguments, 2>();
    }
  }
  return false;
}

/// What such a call gives. `Found` nothing: then neither does this know what is wrong.
template <bool Found>
not_understood refuse_to_bind() {
  static_assert(!Found, "this call can't be bound: see the overloads in hocket/group/peers.hpp");
  return {};
}

}  // namespace detail
HOCKET_END_NAMESPACE
