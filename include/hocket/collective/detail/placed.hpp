// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The overloads of collectives for buffers that lie elsewhere than in the program's own memory. What runs such a call is
/// not known here: `placed_calls<Space>` is, where the header of that memory was included. For memory of devices that header
/// comes with the door <hocket/cuda.cuh>, before or after this one: the door alone stays as cheap as its kernels are.
#pragma once

#include <hocket/collective/detail/call.hpp>
#include <hocket/collective/detail/run.hpp>
#include <hocket/communicator/communicator.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/options.hpp>
#include <hocket/core/placed_buffer.hpp>
#include <hocket/core/request.hpp>
#include <hocket/core/strong_types.hpp>
#include <hocket/operation/traits.hpp>

#include <source_location>
#include <system_error>
#include <type_traits>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// Returns when the call is over on the host.
struct blocks {
  template <class Job, class Wire, class Options>
  static outcome run(const communicator<Wire>& comm, const Job& job, const Options& options,
                     const std::source_location& site) {
    return run_job(comm, job, options, site);
  }
};

/// Returns at once.
struct starts {
  template <class Job, class Wire, class Options>
  static request run(const communicator<Wire>& comm, const Job& job, const Options& options,
                     const std::source_location& site) {
    return start_call(comm, job, options, site);
  }
};

/// Whether in and out may be these.
template <class T, class U>
concept placed_pair = std::is_same_v<std::remove_const_t<T>, U>;

/// Of a reduction.
template <class Calls>
struct placed_reduction : Calls {
  using Calls::operator();
  static constexpr bool takes_placed_buffers = true;

  template <class Wire, class T, class From, class U, class To, class Op, call_options Options>
    requires placed_pair<T, U> && reduction_for<Op, U> && (placed_calls<To>::template takes<Options>)
  void operator()(const communicator<Wire>& comm, placed_buffer<T, From> in, placed_buffer<U, To> out, const Op& op,
                  const Options& options, const std::source_location& site = std::source_location::current()) const {
    deliver(placed_calls<To>::template reduce<Calls::goal, blocks>(comm, in, out, op, options, site));
  }
  template <class Wire, class T, class From, class U, class To, class Op, call_options Options>
    requires placed_pair<T, U> && reduction_for<Op, U> && (placed_calls<To>::template takes<Options>)
  void operator()(const communicator<Wire>& comm, placed_buffer<T, From> in, placed_buffer<U, To> out, const Op& op,
                  const Options& options, std::error_code& code,
                  const std::source_location& site = std::source_location::current()) const {
    code = placed_calls<To>::template reduce<Calls::goal, blocks>(comm, in, out, op, options, site).code();
  }

  template <class Wire, class T, class Space, class Op, call_options Options>
    requires(Calls::goal == plan::goal_kind::all_reduce) && reduction_for<Op, T> &&
            (placed_calls<Space>::template takes<Options>)
  void operator()(const communicator<Wire>& comm, placed_in_place<T, Space> buffer, const Op& op,
                  const Options& options, const std::source_location& site = std::source_location::current()) const {
    deliver(placed_calls<Space>::template reduce<Calls::goal, blocks>(comm, buffer.elements, buffer.elements, op,
                                                                      options, site));
  }
  template <class Wire, class T, class Space, class Op, call_options Options>
    requires(Calls::goal == plan::goal_kind::all_reduce) && reduction_for<Op, T> &&
            (placed_calls<Space>::template takes<Options>)
  void operator()(const communicator<Wire>& comm, placed_in_place<T, Space> buffer, const Op& op,
                  const Options& options, std::error_code& code,
                  const std::source_location& site = std::source_location::current()) const {
    code = placed_calls<Space>::template reduce<Calls::goal, blocks>(comm, buffer.elements, buffer.elements, op,
                                                                     options, site)
               .code();
  }
};

/// Of a call that combines nothing.
template <class Calls>
struct placed_move : Calls {
  using Calls::operator();
  static constexpr bool takes_placed_buffers = true;

  template <class Wire, class T, class From, class U, class To, call_options Options>
    requires placed_pair<T, U> && element<U> && (placed_calls<To>::template takes<Options>)
  void operator()(const communicator<Wire>& comm, placed_buffer<T, From> in, placed_buffer<U, To> out,
                  const Options& options, const std::source_location& site = std::source_location::current()) const {
    deliver(placed_calls<To>::template move<Calls::goal, blocks>(comm, in, out, options, site));
  }
  template <class Wire, class T, class From, class U, class To, call_options Options>
    requires placed_pair<T, U> && element<U> && (placed_calls<To>::template takes<Options>)
  void operator()(const communicator<Wire>& comm, placed_buffer<T, From> in, placed_buffer<U, To> out,
                  const Options& options, std::error_code& code,
                  const std::source_location& site = std::source_location::current()) const {
    code = placed_calls<To>::template move<Calls::goal, blocks>(comm, in, out, options, site).code();
  }
};

/// Of a call from one rank to all others.
template <class Calls>
struct placed_rooted : Calls {
  using Calls::operator();
  static constexpr bool takes_placed_buffers = true;

  template <class Wire, class T, class Space, call_options Options>
    requires(!std::is_const_v<T>) && element<T> && (placed_calls<Space>::template takes<Options>)
  void operator()(const communicator<Wire>& comm, placed_buffer<T, Space> buffer, root from, const Options& options,
                  const std::source_location& site = std::source_location::current()) const {
    deliver(placed_calls<Space>::template broadcast<blocks>(comm, buffer, from, options, site));
  }
  template <class Wire, class T, class Space, call_options Options>
    requires(!std::is_const_v<T>) && element<T> && (placed_calls<Space>::template takes<Options>)
  void operator()(const communicator<Wire>& comm, placed_buffer<T, Space> buffer, root from, const Options& options,
                  std::error_code& code, const std::source_location& site = std::source_location::current()) const {
    code = placed_calls<Space>::template broadcast<blocks>(comm, buffer, from, options, site).code();
  }
};

// ── What is started, and waited for later ──────────────────────────────────────────────────────────────────────────

template <class Calls, plan::goal_kind Kind>
struct placed_reduction_async : Calls {
  using Calls::operator();
  static constexpr bool takes_placed_buffers = true;

  template <class Wire, class T, class From, class U, class To, class Op, call_options Options>
    requires placed_pair<T, U> && reduction_for<Op, U> && (placed_calls<To>::template takes<Options>)
  request operator()(const communicator<Wire>& comm, placed_buffer<T, From> in, placed_buffer<U, To> out, const Op& op,
                     const Options& options, const std::source_location& site = std::source_location::current()) const {
    return placed_calls<To>::template reduce<Kind, starts>(comm, in, out, op, options, site);
  }
  template <class Wire, class T, class Space, class Op, call_options Options>
    requires(Kind == plan::goal_kind::all_reduce) && reduction_for<Op, T> &&
            (placed_calls<Space>::template takes<Options>)
  request operator()(const communicator<Wire>& comm, placed_in_place<T, Space> buffer, const Op& op,
                     const Options& options, const std::source_location& site = std::source_location::current()) const {
    return placed_calls<Space>::template reduce<Kind, starts>(comm, buffer.elements, buffer.elements, op, options,
                                                              site);
  }
};

template <class Calls, plan::goal_kind Kind>
struct placed_move_async : Calls {
  using Calls::operator();
  static constexpr bool takes_placed_buffers = true;

  template <class Wire, class T, class From, class U, class To, call_options Options>
    requires placed_pair<T, U> && element<U> && (placed_calls<To>::template takes<Options>)
  request operator()(const communicator<Wire>& comm, placed_buffer<T, From> in, placed_buffer<U, To> out,
                     const Options& options, const std::source_location& site = std::source_location::current()) const {
    return placed_calls<To>::template move<Kind, starts>(comm, in, out, options, site);
  }
};

template <class Calls>
struct placed_rooted_async : Calls {
  using Calls::operator();
  static constexpr bool takes_placed_buffers = true;

  template <class Wire, class T, class Space, call_options Options>
    requires(!std::is_const_v<T>) && element<T> && (placed_calls<Space>::template takes<Options>)
  request operator()(const communicator<Wire>& comm, placed_buffer<T, Space> buffer, root from, const Options& options,
                     const std::source_location& site = std::source_location::current()) const {
    return placed_calls<Space>::template broadcast<starts>(comm, buffer, from, options, site);
  }
};

}  // namespace detail
HOCKET_END_NAMESPACE

#define HOCKET_DETAIL_HAS_PLACED_CALLS
#if defined(HOCKET_DETAIL_HAS_CUDA_DOOR)
#include <hocket/collective/device/staged.hpp>
#endif
