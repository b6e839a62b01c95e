// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Compiler errors for a call that should be bound to device memory but matches no bound call: see
/// collective/detail/misuse.hpp.
#pragma once

#include <hocket/collective/detail/device_diagnostics.hpp>
#include <hocket/collective/detail/generate_call.hpp>
#include <hocket/collective/device/memory.hpp>
#include <hocket/collective/host/argument_diagnostics.hpp>
#include <hocket/core/call_end.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/device_buffer.hpp>
#include <hocket/core/explanation.hpp>
#include <hocket/core/options.hpp>
#include <hocket/core/strong_types.hpp>
#include <hocket/operation/traits.hpp>

#include <cstddef>
#include <type_traits>

HOCKET_BEGIN_NAMESPACE
namespace detail {

// ── Which calls can be bound ───────────────────────────────────────────────────────────────────────────────────────

/// (in, out, op, options)
template <class... Arguments>
inline constexpr bool is_bound_reduction = false;
template <class T, class U, class Op, class... Rest>
inline constexpr bool
    is_bound_reduction<device_buffer<T, cuda::device_memory>, device_buffer<U, cuda::device_memory>, Op, Rest...> =
        device_pair<T, U> && reduction_for<Op, U> && ends_call<Rest...>;

/// (in_place(buffer), op, options)
template <class... Arguments>
inline constexpr bool is_bound_in_place = false;
template <class T, class Op, class... Rest>
inline constexpr bool is_bound_in_place<device_in_place<T, cuda::device_memory>, Op, Rest...> =
    reduction_for<Op, T> && ends_call<Rest...>;

/// (in, out, options)
template <class... Arguments>
inline constexpr bool is_bound_move = false;
template <class T, class U, class... Rest>
inline constexpr bool
    is_bound_move<device_buffer<T, cuda::device_memory>, device_buffer<U, cuda::device_memory>, Rest...> =
        device_pair<T, U> && element<U> && ends_call<Rest...>;

/// (buffer, root, options)
template <class... Arguments>
inline constexpr bool is_bound_broadcast = false;
template <class T, class... Rest>
inline constexpr bool is_bound_broadcast<device_buffer<T, cuda::device_memory>, root, Rest...> =
    !std::is_const_v<T> && element<T> && ends_call<Rest...>;

// ── What is wrong with others ──────────────────────────────────────────────────────────────────────────────────────
// `Arguments` is an `argument_list`. Each function returns the first problem that it finds.

template <class Buffer>
inline constexpr bool is_on_device = false;
template <class T>
inline constexpr bool is_on_device<device_buffer<T, cuda::device_memory>> = true;
template <class T>
inline constexpr bool is_on_device<device_in_place<T, cuda::device_memory>> = true;

template <class Arguments, std::size_t I>
consteval sentence explain_bound_buffer() {
  using buffer = typename Arguments::template plain<I>;
  if (!is_device_buffer<buffer>) {
    return "the buffers of a bound call come first: pass each as cuda::device(pointer, size)";
  }
  if (!is_on_device<buffer>) {
    return "a bound call takes only device memory, which peers can map: pass cuda::device(...); for pinned and managed "
           "memory use the calls that are not bound, such as all_reduce(comm, in, out, op, with(stream))";
  }
  return {};
}

template <class Arguments, std::size_t I>
consteval sentence explain_end_of_bound_call() {
  if (Arguments::template has<I> && !is_options<typename Arguments::template plain<I>>) {
    return "the options of a bound call come last and are made by with(...), as in with(ring)";
  }
  if (Arguments::template has<I + 1>) {
    return "a bound call ends with its options: pass the stream to enqueue; errors are thrown";
  }
  return {};
}

/// Checks the operation, right after the buffer `Result`, and the arguments that follow it.
template <class Arguments, std::size_t Result>
consteval sentence explain_bound_operation() {
  using op = typename Arguments::template plain<Result + 1>;
  if (!Arguments::template has<Result + 1>) {
    return "a bound reduction needs its operation, after the buffers: std::plus<>{} for a sum";
  }
  constexpr sentence wrong =
      first_of({explain_place_of_operation<op>(), explain_end_of_bound_call<Arguments, Result + 2>()});
  if constexpr (wrong) {
    return wrong;
  } else {
    return explain_operation<op, device_element_t<Arguments, Result>>();
  }
}

template <class Arguments>
consteval sentence explain_bound_pair() {
  return first_of({explain_bound_buffer<Arguments, 0>(), explain_bound_buffer<Arguments, 1>(),
                   explain_device_elements<device_element_t<Arguments, 0>, device_element_t<Arguments, 1>>()});
}

// ── The calls ──────────────────────────────────────────────────────────────────────────────────────────────────────

struct bound_reduction {
  template <class... Arguments>
  static constexpr bool fits = is_bound_reduction<Arguments...>;

  template <class Arguments>
  static consteval sentence explain() {
    constexpr sentence wrong = explain_bound_pair<Arguments>();
    if constexpr (wrong) {
      return wrong;
    } else {
      return explain_bound_operation<Arguments, 1>();
    }
  }
};

struct bound_all_reduce {
  template <class... Arguments>
  static constexpr bool fits = is_bound_reduction<Arguments...> || is_bound_in_place<Arguments...>;

  template <class Arguments>
  static consteval sentence explain() {
    using first = typename Arguments::template plain<0>;
    constexpr sentence wrong = explain_bound_buffer<Arguments, 0>();
    if constexpr (wrong) {
      return wrong;
    } else if constexpr (requires(first each) { each.elements; }) {
      return explain_bound_operation<Arguments, 0>();
    } else {
      return bound_reduction::explain<Arguments>();
    }
  }
};

struct bound_move {
  template <class... Arguments>
  static constexpr bool fits = is_bound_move<Arguments...>;

  template <class Arguments>
  static consteval sentence explain() {
    return first_of({explain_bound_pair<Arguments>(), explain_end_of_bound_call<Arguments, 2>()});
  }
};

struct bound_broadcast {
  template <class... Arguments>
  static constexpr bool fits = is_bound_broadcast<Arguments...>;

  template <class Arguments>
  static consteval sentence explain_root() {
    if (!std::is_same_v<typename Arguments::template plain<1>, root>) {
      return "pass the root as root{0}, after the buffer and before with(...)";
    }
    return {};
  }

  template <class Arguments>
  static consteval sentence explain() {
    return first_of({explain_bound_buffer<Arguments, 0>(), explain_device_output<device_element_t<Arguments, 0>>(),
                     explain_root<Arguments>(), explain_end_of_bound_call<Arguments, 2>()});
  }
};

/// Explains why a call can't be bound. Not viable if the call can be bound. Not consteval: see why_refused in
/// collective/detail/misuse.hpp.
template <class Call, class... Arguments>
  requires(!Call::template fits<std::remove_cvref_t<Arguments>...>)
constexpr auto why_not_bound() {
  return in_words([] {
    return first_of({Call::template explain<argument_list<Arguments...>>(),
                     "this call can't be bound: see the overloads in hocket/group/peers.hpp"});
  });
}

}  // namespace detail
HOCKET_END_NAMESPACE
