// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Gives every rank what each rank has, which may be more on one rank than on another.
#pragma once

#include <hocket/collective/detail/blocks.hpp>
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
#include <hocket/core/strong_types.hpp>

#include <source_location>
#include <span>
#include <system_error>
#include <type_traits>

HOCKET_BEGIN_NAMESPACE

struct all_gather_v_t {
  static constexpr plan::collective_kind collective = plan::collective_kind::all_gather;
  static constexpr detail::block_lengths block_lengths = detail::block_lengths::known_to_all;

  /// Leaves in `out`, on every rank, the `in` of all p ranks of `comm` one after the other, in rank order. Rank r has
  /// `lengths.of_ranks[r]` elements.
  ///
  /// Collective: every rank must pass equal counts, element type and algorithm.
  /// **Buffers.** On rank r `in` has as many elements as `lengths` says for r, and `out` has their sum. Any may be 0.
  ///   `in` may be the block of rank r in `out`; else they must not overlap.
  /// **Cost.** As `all_gather`: ring takes the time of p - 1 of the longest blocks, direct that of the sum. No padding
  ///   travels. p more numbers are read, and kept in memory that the communicator uses again.
  /// **Progress, threads, errors.** As for `all_gather`. Counts that differ between ranks are a `mismatch`.
  template <class Domain, contiguous_buffer In, writable_buffer Out, call_options Options = options<>>
    requires std::is_same_v<element_type_t<In>, element_type_t<Out>> && element<element_type_t<Out>>
  void operator()(const communicator<Domain>& comm, const In& in, Out&& out, counts lengths,
                  const Options& options = {},
                  const std::source_location& site = std::source_location::current()) const {
    detail::deliver(
        detail::run_spec(comm, spec(detail::as_input(in), detail::as_output(out), lengths, options), options, site));
  }

  /// The same, with the error as a code instead of an exception.
  template <class Domain, contiguous_buffer In, writable_buffer Out, call_options Options>
    requires std::is_same_v<element_type_t<In>, element_type_t<Out>> && element<element_type_t<Out>>
  void operator()(const communicator<Domain>& comm, const In& in, Out&& out, counts lengths, const Options& options,
                  std::error_code& code,
                  const std::source_location& site = std::source_location::current()) const noexcept {
    code = detail::run_spec(comm, spec(detail::as_input(in), detail::as_output(out), lengths, options), options, site)
               .code();
  }

 private:
  friend struct all_gather_v_async_t;

  template <class T, class Options>
  static auto spec(std::span<const T> in, std::span<T> out, counts lengths, const Options& options) {
    return detail::make_move_spec<collective>(in, out, 0, options, detail::blocks_of<collective>(lengths));
  }
};

struct all_gather_v_async_t {
  /// As `all_gather_v`, but returns at once. The buffers belong to the operation until the request is over, the counts
  /// do not.
  template <class Domain, lasting_buffer In, writable_buffer Out, call_options Options = options<>>
    requires std::is_same_v<element_type_t<In>, element_type_t<Out>> && element<element_type_t<Out>>
  request operator()(const communicator<Domain>& comm, In&& in, Out&& out, counts lengths, const Options& options = {},
                     const std::source_location& site = std::source_location::current()) const {
    return detail::start_call(
        comm, all_gather_v_t::spec(detail::as_input(in), detail::as_output(out), lengths, options), options, site);
  }
};

inline constexpr detail::with_misuse_diagnostics<
    detail::device_move<all_gather_v_t, all_gather_v_t::collective, detail::blocking, counts>,
    detail::uneven_form<false, counts>>
    all_gather_v{};
inline constexpr detail::with_misuse_diagnostics<
    detail::device_move<all_gather_v_async_t, all_gather_v_t::collective, detail::starting, counts>,
    detail::uneven_form<false, counts>>
    all_gather_v_async{};

HOCKET_END_NAMESPACE
