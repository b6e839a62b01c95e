// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Combines a vector over all ranks, and gives each rank a block of the result, longer on one than on another.
#pragma once

#include <hocket/collective/detail/blocks.hpp>
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
#include <hocket/core/strong_types.hpp>

#include <functional>
#include <source_location>
#include <span>
#include <system_error>
#include <type_traits>

HOCKET_BEGIN_NAMESPACE

struct reduce_scatter_v_t {
  static constexpr plan::collective_kind collective = plan::collective_kind::reduce_scatter;
  static constexpr detail::block_lengths block_lengths = detail::block_lengths::known_to_all;

  /// Combines `in` element-wise over all p ranks of `comm` with `op`; rank r gets block r of the result in `out`, which
  /// has `lengths.of_ranks[r]` elements. Blocks lie one after the other, in rank order.
  ///
  /// Collective: every rank must pass equal counts, element type, `op` and algorithm.
  /// **Buffers.** On rank r `out` has as many elements as `lengths` says for r, and `in` has their sum. Any may be 0.
  ///   `out` may be the block of rank r in `in`; else they must not overlap. Where `out` is a block of `in`, the other
  ///   blocks of `in` stay as they are.
  /// **Operation.** As for `all_reduce`.
  /// **Cost.** As `reduce_scatter`, with the time of the longest block. No padding travels. p more numbers are read,
  ///   and kept in memory that the communicator uses again.
  /// **Order, progress, threads, errors.** As for `reduce_scatter`. Counts that differ between ranks are a `mismatch`.
  template <class Domain, contiguous_buffer In, writable_buffer Out, class Op = std::plus<>,
            call_options Options = options<>>
    requires std::is_same_v<element_type_t<In>, element_type_t<Out>> && reduction_for<Op, element_type_t<Out>>
  void operator()(const communicator<Domain>& comm, const In& in, Out&& out, counts lengths, const Op& op = {},
                  const Options& options = {},
                  const std::source_location& site = std::source_location::current()) const {
    detail::deliver(detail::run_spec(comm, spec(detail::as_input(in), detail::as_output(out), lengths, op, options),
                                     options, site));
  }

  /// The same, with the error as a code instead of an exception.
  template <class Domain, contiguous_buffer In, writable_buffer Out, class Op, call_options Options>
    requires std::is_same_v<element_type_t<In>, element_type_t<Out>> && reduction_for<Op, element_type_t<Out>>
  void operator()(const communicator<Domain>& comm, const In& in, Out&& out, counts lengths, const Op& op,
                  const Options& options, std::error_code& code,
                  const std::source_location& site = std::source_location::current()) const noexcept {
    code =
        detail::run_spec(comm, spec(detail::as_input(in), detail::as_output(out), lengths, op, options), options, site)
            .code();
  }

 private:
  friend struct reduce_scatter_v_async_t;

  template <class T, class Op, class Options>
  static auto spec(std::span<const T> in, std::span<T> out, counts lengths, const Op& op, const Options& options) {
    return detail::make_reduction_spec<collective>(in, out, op, options, detail::blocks_of<collective>(lengths));
  }
};

struct reduce_scatter_v_async_t {
  /// As `reduce_scatter_v`, but returns at once. The buffers belong to the operation until the request is over, the
  /// counts do not.
  template <class Domain, lasting_buffer In, writable_buffer Out, class Op = std::plus<>,
            call_options Options = options<>>
    requires std::is_same_v<element_type_t<In>, element_type_t<Out>> && reduction_for<Op, element_type_t<Out>>
  request operator()(const communicator<Domain>& comm, In&& in, Out&& out, counts lengths, const Op& op = {},
                     const Options& options = {},
                     const std::source_location& site = std::source_location::current()) const {
    return detail::start_call(
        comm, reduce_scatter_v_t::spec(detail::as_input(in), detail::as_output(out), lengths, op, options), options,
        site);
  }
};

inline constexpr detail::with_misuse_diagnostics<
    detail::device_uneven_reduction<reduce_scatter_v_t, reduce_scatter_v_t::collective, detail::blocking>,
    detail::uneven_form<true, counts>>
    reduce_scatter_v{};
inline constexpr detail::with_misuse_diagnostics<
    detail::device_uneven_reduction<reduce_scatter_v_async_t, reduce_scatter_v_t::collective, detail::starting>,
    detail::uneven_form<true, counts>>
    reduce_scatter_v_async{};

HOCKET_END_NAMESPACE
