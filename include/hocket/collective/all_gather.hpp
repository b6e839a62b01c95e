// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Gives every rank what each rank has.
#pragma once

#include <hocket/collective/detail/call.hpp>
#include <hocket/collective/detail/device_calls.hpp>
#include <hocket/collective/detail/misuse.hpp>
#include <hocket/collective/detail/move.hpp>
#include <hocket/collective/detail/run.hpp>
#include <hocket/communicator/communicator.hpp>
#include <hocket/core/buffers.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/options.hpp>
#include <hocket/core/request.hpp>

#include <source_location>
#include <system_error>
#include <type_traits>

HOCKET_BEGIN_NAMESPACE

struct all_gather_t {
  static constexpr plan::collective_kind collective = plan::collective_kind::all_gather;

  /// Leaves in `out`, on every rank, the `in` of all p ranks of `comm` one after the other, in rank order.
  ///
  /// Collective: every rank must pass an equal `in.size()`, element type and algorithm.
  /// **Buffers.** `out` has p blocks of `in.size()` elements. `in` may be block r of `out` on rank r; else they must not
  ///   overlap.
  /// **Cost.** p - 1 blocks into each rank: ring in p - 1 messages, direct in one step over peer pointers.
  /// **Progress, threads, errors.** As for `all_reduce`.
  template <class Domain, contiguous_buffer In, writable_buffer Out, call_options Options = options<>>
    requires std::is_same_v<element_type_t<In>, element_type_t<Out>> && element<element_type_t<Out>>
  void operator()(const communicator<Domain>& comm, const In& in, Out&& out, const Options& options = {},
                  const std::source_location& site = std::source_location::current()) const {
    const auto spec = detail::make_move_spec<collective>(detail::as_input(in), detail::as_output(out), 0, options);
    detail::deliver(detail::run_spec(comm, spec, options, site));
  }

  /// The same, with the error as a code instead of an exception.
  template <class Domain, contiguous_buffer In, writable_buffer Out, call_options Options>
    requires std::is_same_v<element_type_t<In>, element_type_t<Out>> && element<element_type_t<Out>>
  void operator()(const communicator<Domain>& comm, const In& in, Out&& out, const Options& options,
                  std::error_code& code,
                  const std::source_location& site = std::source_location::current()) const noexcept {
    const auto spec = detail::make_move_spec<collective>(detail::as_input(in), detail::as_output(out), 0, options);
    code = detail::run_spec(comm, spec, options, site).code();
  }
};

struct all_gather_async_t {
  /// As `all_gather`, but returns at once. The buffers belong to the operation until the request is over.
  template <class Domain, lasting_buffer In, writable_buffer Out, call_options Options = options<>>
    requires std::is_same_v<element_type_t<In>, element_type_t<Out>> && element<element_type_t<Out>>
  request operator()(const communicator<Domain>& comm, In&& in, Out&& out, const Options& options = {},
                     const std::source_location& site = std::source_location::current()) const {
    const auto spec =
        detail::make_move_spec<all_gather_t::collective>(detail::as_input(in), detail::as_output(out), 0, options);
    return detail::start_call(comm, spec, options, site);
  }
};

inline constexpr detail::with_misuse_diagnostics<
    detail::device_move<all_gather_t, all_gather_t::collective, detail::blocking>, detail::moving_form>
    all_gather{};
inline constexpr detail::with_misuse_diagnostics<
    detail::device_move<all_gather_async_t, all_gather_t::collective, detail::starting>, detail::moving_form>
    all_gather_async{};

HOCKET_END_NAMESPACE
