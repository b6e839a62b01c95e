// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Makes the function objects of all calls, such as `all_reduce` and `all_reduce_async`, from their shapes.
///
/// A shape defines the arguments of a call and their order. It has a class template `overloads<How>`: the call
/// operators with and without a `std::error_code`, for buffers in host memory and in device memory. `How` is `blocking`
/// or `starting`. The shapes are in moving_call.hpp, reducing_call.hpp and message_call.hpp.
///
/// `device_calls<Space>` runs calls on device memory. This header does not need its definition. <hocket/cuda.cuh>,
/// included before or after this header, provides the one for CUDA, but only if collectives are included too: so
/// <hocket/cuda.cuh> alone costs no more to compile than its kernels.
#pragma once

#include <hocket/collective/detail/misuse.hpp>
#include <hocket/collective/host/call.hpp>
#include <hocket/collective/host/call_settings.hpp>
#include <hocket/collective/host/option_diagnostics.hpp>
#include <hocket/collective/host/point_to_point.hpp>
#include <hocket/communicator/communicator.hpp>
#include <hocket/core/buffers.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/device_buffer.hpp>
#include <hocket/core/options.hpp>
#include <hocket/core/request.hpp>
#include <hocket/operation/traits.hpp>
#include <hocket/plan/plan.hpp>

#include <source_location>
#include <type_traits>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// Runs or starts a call, with the caller's options as values. `Form` has the functions for all options.
template <class Form>
struct call_form {
  template <plan::collective_kind Kind, class Call, class Domain, class Options>
  static auto run(const communicator<Domain>& comm, const Call& what, const Options& options,
                  const std::source_location& site) {
    const auto named = named_plan<Kind>(options, what.root());
    return Form::run_with(comm, what, settings_of(options, named), site);
  }
  template <class Message, class Domain, class Options>
  static auto exchange(const communicator<Domain>& comm, const Message& what, const Options& options,
                       const std::source_location& site) {
    return Form::exchange_with(comm, what, settings_of(options), site);
  }
};

/// The form that returns when the call has completed on the host. Only it has an overload with a `std::error_code`.
struct blocking : call_form<blocking> {
  using result = void;
  static constexpr bool blocks = true;

  static outcome run_with(const auto& comm, const auto& what, const call_settings& settings,
                          const std::source_location& site) {
    return run_call(comm, what, settings, site);
  }
  static outcome exchange_with(const auto& comm, const auto& what, const call_settings& settings,
                               const std::source_location& site) {
    return run_message(comm, what, settings, site);
  }
  static void give(const outcome& found) { deliver(found); }
};

/// The form that returns a request immediately.
struct starting : call_form<starting> {
  using result = request;
  static constexpr bool blocks = false;

  static request run_with(const auto& comm, const auto& what, const call_settings& settings,
                          const std::source_location& site) {
    return start_call(comm, what, settings, site);
  }
  static request exchange_with(const auto& comm, const auto& what, const call_settings& settings,
                               const std::source_location& site) {
    return start_message(comm, what, settings, site);
  }
  static request give(request started) { return started; }
};

/// The function object of a call.
template <class Shape, class How = blocking>
using call = with_misuse_diagnostics<typename Shape::template overloads<How>, typename Shape::form>;

/// The function object of the `_async` form of a call.
template <class Shape>
using call_async = call<Shape, starting>;

// ── Buffers ────────────────────────────────────────────────────────────────────────────────────────────────────────

/// A range that the call reads. It must outlive a call whose operation continues after the call has returned.
template <class Range, class How>
concept input_range =
    (How::blocks && contiguous_buffer<std::remove_reference_t<Range>>) || (!How::blocks && lasting_buffer<Range>);

/// A tagged buffer, such as `cuda::device(...)`, that a call with these options can read.
template <class Buffer, class Options>
concept device_input = is_device_buffer<std::remove_cvref_t<Buffer>> && requires {
  typename std::remove_cvref_t<Buffer>::value_type;
} && (device_calls<typename std::remove_cvref_t<Buffer>::space>::template takes<Options>);

/// A tagged buffer that a call with these options can write.
template <class Buffer, class Options>
concept device_output =
    device_input<Buffer, Options> && !std::is_const_v<typename std::remove_cvref_t<Buffer>::element_type>;

template <class Buffer, class How, class Options>
concept input_buffer = input_range<Buffer, How> || device_input<Buffer, Options>;

template <class Buffer, class Options>
concept output_buffer = writable_buffer<Buffer> || device_output<Buffer, Options>;

/// True if elements of `T` may be sent to a buffer of `U`.
template <class T, class U>
concept device_pair = std::is_same_v<std::remove_const_t<T>, U>;

template <class Buffer>
struct element_of_buffer {
  using type = element_type_t<Buffer>;
};
template <class Buffer>
  requires is_device_buffer<std::remove_cvref_t<Buffer>>
struct element_of_buffer<Buffer> {
  using type = typename std::remove_cvref_t<Buffer>::value_type;
};
template <class Buffer>
using element_of_buffer_t = typename element_of_buffer<Buffer>::type;

/// True if a call may read `In` and write `Out`: both in host memory, or both in device memory.
template <class In, class Out, class How, class Options>
concept exchange_pair =
    ((input_range<In, How> && writable_buffer<Out>) || (device_input<In, Options> && device_output<Out, Options>)) &&
    element<element_of_buffer_t<In>> && element<element_of_buffer_t<Out>>;

/// The same with elements of one type.
template <class In, class Out, class How, class Options>
concept buffer_pair =
    exchange_pair<In, Out, How, Options> && std::is_same_v<element_of_buffer_t<In>, element_of_buffer_t<Out>>;

}  // namespace detail
HOCKET_END_NAMESPACE

#define HOCKET_DETAIL_HAS_DEVICE_CALLS
#if defined(HOCKET_DETAIL_HAS_CUDA_HEADER)
#include <hocket/collective/device/staged.hpp>
#endif
