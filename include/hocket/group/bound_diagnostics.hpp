// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Compiler errors for a call that should be bound to device memory but matches no bound call: see
/// collective/detail/misuse.hpp.
#pragma once

#include <hocket/collective/detail/device_diagnostics.hpp>
#include <hocket/collective/detail/generate_call.hpp>
#include <hocket/collective/device/memory.hpp>
#include <hocket/collective/host/argument_diagnostics.hpp>
#include <hocket/collective/host/option_diagnostics.hpp>
#include <hocket/core/call_end.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/device_buffer.hpp>
#include <hocket/core/explanation.hpp>
#include <hocket/core/options.hpp>
#include <hocket/core/strong_types.hpp>
#include <hocket/operation/traits.hpp>
#include <hocket/plan/plan.hpp>

#include <cstddef>
#include <type_traits>

HOCKET_BEGIN_NAMESPACE
namespace detail {

// ── Which calls can be bound ───────────────────────────────────────────────────────────────────────────────────────

/// The options of bound calls; see collective/host/option_diagnostics.hpp.
template <plan::collective_kind Kind, class Op, class T>
struct bound_options {
  template <class Options>
  static consteval sentence explain() {
    if (!Options::template only<kind::algorithm, kind::timeout, kind::exactness>) {
      return "with(...): a bound call takes only an algorithm, an exactness and a timeout, the latter for binding; "
             "pass the stream to enqueue";
    }
    if constexpr (plan::collective{Kind, 0}.reduces()) {
      return reduction_options<Kind, Op, T>::template explain<Options>();
    } else {
      return explain_algorithm<Kind, Options>();
    }
  }
};

template <class Options>
concept only_timeout = call_options<Options> && accepted_by<Options, timeout_options>;

/// Whether a collective of `Kind` can be bound to a buffer of T that it reads and one of U that it writes. `Op` is void
/// if it combines nothing.
template <class T, class U, plan::collective_kind Kind, class Options = options<>, class Op = void>
concept bound_pair =
    device_pair<T, U> && ((std::is_void_v<Op> && element<U>) || (!std::is_void_v<Op> && reduction_for<Op, U>)) &&
    accepted_by<Options, bound_options<Kind, Op, U>>;

/// (in, out, op, options)
template <plan::collective_kind Kind, class... Arguments>
inline constexpr bool is_bound_reduction = false;
template <plan::collective_kind Kind, class T, class U, class Op, class... Rest>
  requires ends_call<Rest...>
inline constexpr bool is_bound_reduction<Kind, device_buffer<T, cuda::device_memory>,
                                         device_buffer<U, cuda::device_memory>, Op, Rest...> =
    bound_pair<T, U, Kind, options_at_end_t<Rest...>, Op>;

/// (in_place(buffer), op, options)
template <plan::collective_kind Kind, class... Arguments>
inline constexpr bool is_bound_in_place = false;
template <plan::collective_kind Kind, class T, class Op, class... Rest>
  requires ends_call<Rest...>
inline constexpr bool is_bound_in_place<Kind, device_in_place<T, cuda::device_memory>, Op, Rest...> =
    bound_pair<T, T, Kind, options_at_end_t<Rest...>, Op>;

/// (in, out, options)
template <plan::collective_kind Kind, class... Arguments>
inline constexpr bool is_bound_move = false;
template <plan::collective_kind Kind, class T, class U, class... Rest>
  requires ends_call<Rest...>
inline constexpr bool
    is_bound_move<Kind, device_buffer<T, cuda::device_memory>, device_buffer<U, cuda::device_memory>, Rest...> =
        bound_pair<T, U, Kind, options_at_end_t<Rest...>>;

/// (buffer, root, options)
template <plan::collective_kind Kind, class... Arguments>
inline constexpr bool is_bound_broadcast = false;
template <plan::collective_kind Kind, class T, class... Rest>
  requires ends_call<Rest...>
inline constexpr bool is_bound_broadcast<Kind, device_buffer<T, cuda::device_memory>, root, Rest...> =
    bound_pair<T, T, Kind, options_at_end_t<Rest...>>;

// ── What is wrong with others ──────────────────────────────────────────────────────────────────────────────────────
// `Arguments` is an `argument_list`. Each function returns the first problem that it finds.

template <class Buffer>
inline constexpr bool is_on_device = false;
template <class T>
inline constexpr bool is_on_device<device_buffer<T, cuda::device_memory>> = true;
template <class T>
inline constexpr bool is_on_device<device_in_place<T, cuda::device_memory>> = true;

template <class Arguments, std::size_t Index>
consteval sentence explain_bound_buffer() {
  using buffer = typename Arguments::template plain<Index>;
  if (!is_device_buffer<buffer>) {
    return "the buffers of a bound call come first: pass each as cuda::device(pointer, size)";
  }
  if (!is_on_device<buffer>) {
    return "a bound call takes only device memory, which peers can map: pass cuda::device(...); for pinned and managed "
           "memory use the calls that are not bound, such as all_reduce(comm, in, out, op, with(stream))";
  }
  return {};
}

/// Checks the options at `Index`, of a call of `Family`, which end the call.
template <class Family, class Arguments, std::size_t Index>
consteval sentence explain_end_of_bound_call() {
  if (Arguments::template has<Index> && !is_options<typename Arguments::template plain<Index>>) {
    return "the options of a bound call come last and are made by with(...), as in with(ring)";
  }
  if (Arguments::template has<Index + 1>) {
    return "a bound call ends with its options: pass the stream to enqueue; errors are thrown";
  }
  if constexpr (is_options<typename Arguments::template plain<Index>>) {
    return Family::template explain<typename Arguments::template plain<Index>>();
  }
  return {};
}

/// Checks the operation, right after the buffer `Result`, and the arguments that follow it.
template <plan::collective_kind Kind, class Arguments, std::size_t Result>
consteval sentence explain_bound_operation() {
  using op = typename Arguments::template plain<Result + 1>;
  using T = device_element_t<Arguments, Result>;
  if (!Arguments::template has<Result + 1>) {
    return "a bound reduction needs its operation, after the buffers: std::plus<>{} for a sum";
  }
  constexpr sentence misplaced = explain_place_of_operation<op>();
  if constexpr (misplaced) {
    return misplaced;
  } else if constexpr (constexpr sentence wrong = explain_operation<op, T>(); wrong) {
    return wrong;
  } else {
    return explain_end_of_bound_call<bound_options<Kind, op, T>, Arguments, Result + 2>();
  }
}

template <class Arguments>
consteval sentence explain_bound_pair() {
  if (is_device_in_place<typename Arguments::template plain<0>> ||
      is_device_in_place<typename Arguments::template plain<1>>) {
    return "only all_reduce takes in_place(buffer), once, instead of in and out: pass in and out";
  }
  return first_of({explain_bound_buffer<Arguments, 0>(), explain_bound_buffer<Arguments, 1>(),
                   explain_device_elements<device_element_t<Arguments, 0>, device_element_t<Arguments, 1>>()});
}

// ── The calls ──────────────────────────────────────────────────────────────────────────────────────────────────────

template <plan::collective_kind Kind>
struct bound_reduction {
  template <class... Arguments>
  static constexpr bool fits = is_bound_reduction<Kind, Arguments...>;

  template <class Arguments>
  static consteval sentence explain() {
    constexpr sentence wrong = explain_bound_pair<Arguments>();
    if constexpr (wrong) {
      return wrong;
    } else {
      return explain_bound_operation<Kind, Arguments, 1>();
    }
  }
};

struct bound_all_reduce {
  static constexpr auto kind = plan::collective_kind::all_reduce;

  template <class... Arguments>
  static constexpr bool fits = is_bound_reduction<kind, Arguments...> || is_bound_in_place<kind, Arguments...>;

  template <class Arguments>
  static consteval sentence explain() {
    using first = typename Arguments::template plain<0>;
    constexpr sentence wrong = explain_bound_buffer<Arguments, 0>();
    if constexpr (wrong) {
      return wrong;
    } else if constexpr (requires(first each) { each.elements; }) {
      return explain_bound_operation<kind, Arguments, 0>();
    } else {
      return bound_reduction<kind>::template explain<Arguments>();
    }
  }
};

template <plan::collective_kind Kind>
struct bound_move {
  template <class... Arguments>
  static constexpr bool fits = is_bound_move<Kind, Arguments...>;

  template <class Arguments>
  static consteval sentence explain() {
    return first_of(
        {explain_bound_pair<Arguments>(), explain_end_of_bound_call<bound_options<Kind, void, void>, Arguments, 2>()});
  }
};

struct bound_broadcast {
  static constexpr auto kind = plan::collective_kind::broadcast;

  template <class... Arguments>
  static constexpr bool fits = is_bound_broadcast<kind, Arguments...>;

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
                     explain_root<Arguments>(),
                     explain_end_of_bound_call<bound_options<kind, void, void>, Arguments, 2>()});
  }
};

/// Explains why a call can't be bound. Not viable if the call can be bound. Not consteval: see why_refused in
/// collective/detail/misuse.hpp.
template <class Call, class... Arguments>
  requires(!Call::template fits<std::remove_cvref_t<Arguments>...>)
constexpr auto why_not_bound() {
  return make_explanation([] {
    return first_of({Call::template explain<argument_list<Arguments...>>(),
                     "this call can't be bound: see the overloads in hocket/group/peers.hpp"});
  });
}

}  // namespace detail
HOCKET_END_NAMESPACE
