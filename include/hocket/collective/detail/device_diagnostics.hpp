// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The compiler's diagnostics for a call on buffers in device memory that matches no overload.
#pragma once

#include <hocket/collective/host/argument_diagnostics.hpp>
#include <hocket/collective/host/option_diagnostics.hpp>
#include <hocket/core/buffers.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/device_buffer.hpp>
#include <hocket/core/explanation.hpp>
#include <hocket/core/options.hpp>
#include <hocket/core/strong_types.hpp>
#include <hocket/plan/plan.hpp>

#include <cstddef>
#include <type_traits>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// The element type of `Value` if it is a buffer in device memory; else void.
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

template <class Arguments, std::size_t Index>
using device_element_t = typename device_element<typename Arguments::template plain<Index>>::type;

template <class Options>
consteval sentence explain_stream() {
  if constexpr (!is_options<Options>) {
    return "pass the operation, root, counts or tag of a call on device buffers explicitly, and then the stream that "
           "orders its reads and writes: std::plus<>{}, with(cuda::stream_ref(stream)); there is no default stream";
  } else if constexpr (!Options::template has<kind::stream>) {
    return "a call on device buffers needs the stream that orders its reads and writes: pass "
           "with(cuda::stream_ref(stream)); there is no default stream";
  } else {
    return {};
  }
}

template <class T>
inline constexpr bool is_device_in_place = false;
template <class T, class Space>
inline constexpr bool is_device_in_place<device_in_place<T, Space>> = true;

/// Returns the mistake in argument `Index`, which must be a buffer in device or host memory.
template <class Arguments, std::size_t Index>
consteval sentence explain_one_buffer() {
  using argument = typename Arguments::template plain<Index>;
  if (is_device_in_place<argument>) return misplaced_in_place;
  if (!is_device_buffer<argument> && !std::is_pointer_v<argument> && !contiguous_buffer<argument>) {
    return "a buffer is missing, or another argument is in its place: calls take in and out, except broadcast, "
           "send, recv, and all_reduce and reduce of in_place(buffer)";
  }
  return {};
}

/// Returns the mistake in two buffers, at least one of which is in device memory.
template <class Arguments, std::size_t In, std::size_t Out>
consteval sentence explain_device_pair() {
  constexpr sentence wrong = first_of({explain_one_buffer<Arguments, In>(), explain_one_buffer<Arguments, Out>()});
  if (wrong) return wrong;
  if (!is_device_buffer<typename Arguments::template plain<In>> ||
      !is_device_buffer<typename Arguments::template plain<Out>>) {
    return "in and out must both be tagged buffers, or both be untagged host buffers: pass both as cuda::device(...), "
           "cuda::pinned(...) or cuda::managed(...), or copy one of them";
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

/// Checks the place of the options at `Index`, which must be passed and must have a stream, and the arguments after them.
template <class Arguments, std::size_t Index>
consteval sentence explain_place_of_device_options() {
  return first_of(
      {explain_stream<typename Arguments::template plain<Index>>(), explain_place_of_options<Arguments, Index>()});
}

/// Checks the options at `Index` of a call of `Family`, and the arguments after them.
template <class Family, class Arguments, std::size_t Index>
consteval sentence explain_device_options() {
  constexpr sentence wrong = explain_place_of_device_options<Arguments, Index>();
  if constexpr (wrong) {
    return wrong;
  } else {
    return Family::template explain<typename Arguments::template plain<Index>>();
  }
}

/// Checks argument `Index`, the operation on elements of `T`, which can't be omitted, the root after it, if the
/// collective has one, and the options with a stream at the end.
template <plan::collective_kind Kind, class Arguments, std::size_t Index, class T>
consteval sentence explain_device_operation_and_options() {
  using given = typename Arguments::template plain<Index>;
  constexpr bool is_rooted = plan::collective{Kind, 0}.has_root();
  constexpr std::size_t end = Index + (is_rooted ? 2 : 1);
  constexpr sentence misplaced =
      first_of({explain_place_of_operation<given>(), is_rooted ? explain_root<Arguments, Index + 1>() : sentence(),
                explain_place_of_device_options<Arguments, end>()});
  if constexpr (misplaced) {
    return misplaced;
  } else if constexpr (constexpr sentence wrong = explain_operation<given, T>(); wrong) {
    return wrong;
  } else {
    return explain_device_options<reduction_options<Kind, given, T>, Arguments, end>();
  }
}

/// Checks the buffers of a collective: in and out, or one for both. The last buffer is argument `Result`.
template <class Arguments, std::size_t Result>
consteval sentence explain_device_buffers() {
  if constexpr (Result == 2) {
    if (constexpr sentence wrong = explain_device_pair<Arguments, 1, 2>(); wrong) return wrong;
  }
  return explain_device_elements<device_element_t<Arguments, 1>, device_element_t<Arguments, Result>>();
}

/// (communicator, in, out, op, root, options, code) or (communicator, in_place(buffer), op, root, options, code), without
/// `op` or `root` if the call has none; or (communicator, buffer, root, options, code).
template <plan::collective_kind Kind, class Arguments>
consteval sentence explain_device_collective() {
  constexpr bool is_rooted = plan::collective{Kind, 0}.has_root();
  using first = typename Arguments::template plain<1>;
  constexpr bool pair = Kind != plan::collective_kind::broadcast && !requires(first each) { each.elements; };
  constexpr std::size_t result = pair ? 2 : 1;
  constexpr sentence wrong = explain_device_buffers<Arguments, result>();
  constexpr bool takes_in_place = Kind == plan::collective_kind::all_reduce || Kind == plan::collective_kind::reduce;
  if constexpr (is_device_in_place<first> && !takes_in_place) {
    return Kind == plan::collective_kind::broadcast ? misplaced_in_place : refused_in_place;
  } else if constexpr (wrong) {
    return wrong;
  } else if constexpr (plan::collective{Kind, 0}.reduces()) {
    return explain_device_operation_and_options<Kind, Arguments, result + 1, device_element_t<Arguments, result>>();
  } else if constexpr (is_rooted) {
    using given = typename Arguments::template plain<result + 1>;
    return first_of({is_options<given> ? sentence() : explain_root<Arguments, result + 1>(),
                     explain_device_options<move_options<Kind>, Arguments, result + 2>()});
  } else {
    return explain_device_options<move_options<Kind>, Arguments, result + 1>();
  }
}

/// (communicator, in, out, counts, options, code), with an operation after the counts if the collective combines, and a
/// root after the counts if it has one.
template <plan::collective_kind Kind, class Arguments, class... Counts>
consteval sentence explain_device_uneven() {
  constexpr std::size_t after_counts = 3 + sizeof...(Counts);
  constexpr sentence wrong =
      first_of({explain_device_buffers<Arguments, 2>(), explain_all_counts<Arguments, 3, Counts...>()});
  if constexpr (wrong) {
    return wrong;
  } else if constexpr (plan::collective{Kind, 0}.reduces()) {
    return explain_device_operation_and_options<Kind, Arguments, after_counts, device_element_t<Arguments, 2>>();
  } else if constexpr (plan::collective{Kind, 0}.has_root()) {
    return first_of({explain_root<Arguments, after_counts>(),
                     explain_device_options<move_options<Kind>, Arguments, after_counts + 1>()});
  } else {
    return explain_device_options<move_options<Kind>, Arguments, after_counts>();
  }
}

/// (communicator, buffer, peer, tag, options, code)
template <bool Receives, class Arguments>
consteval sentence explain_device_one_way() {
  using element = device_element_t<Arguments, 1>;
  if (!is_device_buffer<typename Arguments::template plain<1>>) return "pass the buffer right after the communicator";
  return first_of({explain_one_buffer<Arguments, 1>(), Receives ? explain_device_output<element>() : sentence(),
                   explain_element<std::remove_const_t<element>>(), explain_peer<Arguments, 2>(),
                   explain_tag_argument<Arguments, 3>(), explain_device_options<message_options, Arguments, 4>()});
}

/// (communicator, out, peer, in, peer, tag, options, code)
template <class Arguments>
consteval sentence explain_device_exchange() {
  return first_of({explain_one_buffer<Arguments, 1>(), explain_peer<Arguments, 2>(),
                   explain_device_pair<Arguments, 1, 3>(),
                   explain_element<std::remove_const_t<device_element_t<Arguments, 1>>>(),
                   explain_device_output<device_element_t<Arguments, 3>>(), explain_peer<Arguments, 4>(),
                   explain_tag_argument<Arguments, 5>(), explain_device_options<message_options, Arguments, 6>()});
}

}  // namespace detail
HOCKET_END_NAMESPACE
