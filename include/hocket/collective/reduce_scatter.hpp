// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Combines a vector over all ranks, and gives each rank its own block of the result.
#pragma once

#include <hocket/collective/detail/call.hpp>
#include <hocket/collective/detail/device_calls.hpp>
#include <hocket/collective/detail/misuse.hpp>
#include <hocket/collective/detail/reduce.hpp>
#include <hocket/collective/detail/run.hpp>
#include <hocket/communicator/communicator.hpp>
#include <hocket/core/buffers.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/options.hpp>
#include <hocket/core/request.hpp>

#include <functional>
#include <source_location>
#include <system_error>
#include <type_traits>

HOCKET_BEGIN_NAMESPACE

struct reduce_scatter_t {
  static constexpr plan::collective_kind collective = plan::collective_kind::reduce_scatter;

  /// Combines `in` element-wise over all p ranks of `comm` with `op`; rank r gets block r of the result in `out`.
  ///
  /// Collective: every rank must pass an equal `out.size()`, element type, `op` and algorithm.
  /// **Buffers.** `in` has p blocks of `out.size()` elements. `out` may be block r of `in` on rank r; else they must not
  ///   overlap. Where `out` is a block of `in`, the other blocks of `in` stay as they are.
  /// **Operation.** As for `all_reduce`.
  /// **Cost.** p - 1 blocks in and out of each rank: ring in p - 1 messages, direct in one step over peer pointers.
  /// **Order, progress, threads, errors.** As for `all_reduce`.
  template <class Domain, contiguous_buffer In, writable_buffer Out, class Op = std::plus<>,
            call_options Options = options<>>
    requires std::is_same_v<element_type_t<In>, element_type_t<Out>> && reduction_for<Op, element_type_t<Out>>
  void operator()(const communicator<Domain>& comm, const In& in, Out&& out, const Op& op = {},
                  const Options& options = {},
                  const std::source_location& site = std::source_location::current()) const {
    const auto spec =
        detail::make_reduction_spec<collective>(detail::as_input(in), detail::as_output(out), op, options);
    detail::deliver(detail::run_spec(comm, spec, options, site));
  }

  /// The same, with the error as a code instead of an exception.
  template <class Domain, contiguous_buffer In, writable_buffer Out, class Op, call_options Options>
    requires std::is_same_v<element_type_t<In>, element_type_t<Out>> && reduction_for<Op, element_type_t<Out>>
  void operator()(const communicator<Domain>& comm, const In& in, Out&& out, const Op& op, const Options& options,
                  std::error_code& code,
                  const std::source_location& site = std::source_location::current()) const noexcept {
    const auto spec =
        detail::make_reduction_spec<collective>(detail::as_input(in), detail::as_output(out), op, options);
    code = detail::run_spec(comm, spec, options, site).code();
  }
};

struct reduce_scatter_async_t {
  /// As `reduce_scatter`, but returns at once. The buffers belong to the operation until the request is over.
  template <class Domain, lasting_buffer In, writable_buffer Out, class Op = std::plus<>,
            call_options Options = options<>>
    requires std::is_same_v<element_type_t<In>, element_type_t<Out>> && reduction_for<Op, element_type_t<Out>>
  request operator()(const communicator<Domain>& comm, In&& in, Out&& out, const Op& op = {},
                     const Options& options = {},
                     const std::source_location& site = std::source_location::current()) const {
    const auto spec = detail::make_reduction_spec<reduce_scatter_t::collective>(detail::as_input(in),
                                                                                detail::as_output(out), op, options);
    return detail::start_call(comm, spec, options, site);
  }
};

inline constexpr detail::with_misuse_diagnostics<
    detail::device_reduction<reduce_scatter_t, reduce_scatter_t::collective, detail::blocking>, detail::reduction_form>
    reduce_scatter{};
inline constexpr detail::with_misuse_diagnostics<
    detail::device_reduction<reduce_scatter_async_t, reduce_scatter_t::collective, detail::starting>,
    detail::reduction_form>
    reduce_scatter_async{};

HOCKET_END_NAMESPACE
