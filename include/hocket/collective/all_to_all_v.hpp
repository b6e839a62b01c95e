// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Each rank has something for each other rank, more for one than for another.
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

struct all_to_all_v_t {
  static constexpr plan::collective_kind collective = plan::collective_kind::all_to_all;
  static constexpr detail::block_lengths block_lengths = detail::block_lengths::known_to_pairs;

  /// Block d of `in` on rank s arrives as block s of `out` on rank d. On rank r, block d of `in` has `sent.of_ranks[d]`
  /// elements, and block s of `out` `received.of_ranks[s]`; blocks lie one after the other, in rank order.
  ///
  /// Collective: every rank must pass an equal element type and algorithm; and what s passes as sent to d, d must pass
  /// as received from s.
  /// **Buffers.** `in` and `out` have as many elements as the counts add up to. Any may be 0. They must not overlap.
  /// **Cost.** What the counts say goes out of and into each rank: pairwise in p - 1 messages; direct in one step over
  ///   peer pointers, where peers can read each other's own buffers, as threads do. Over shared memory that is staged
  ///   it takes messages, as no rank can know whether what another has fits there. Which of the two is chosen does not
  ///   depend on the counts.
  /// **Progress, threads, errors.** As for `all_to_all`. Where a rank sends another number than its peer expects, the
  ///   receiver fails with `mismatch`, which names the peer and both lengths; the others hear of it in this call, or,
  ///   if they have left it, in their next one.
  template <class Domain, contiguous_buffer In, writable_buffer Out, call_options Options = options<>>
    requires std::is_same_v<element_type_t<In>, element_type_t<Out>> && element<element_type_t<Out>>
  void operator()(const communicator<Domain>& comm, const In& in, Out&& out, send_counts sent, receive_counts received,
                  const Options& options = {},
                  const std::source_location& site = std::source_location::current()) const {
    detail::deliver(detail::run_spec(comm, spec(detail::as_input(in), detail::as_output(out), sent, received, options),
                                     options, site));
  }

  /// The same, with the error as a code instead of an exception.
  template <class Domain, contiguous_buffer In, writable_buffer Out, call_options Options>
    requires std::is_same_v<element_type_t<In>, element_type_t<Out>> && element<element_type_t<Out>>
  void operator()(const communicator<Domain>& comm, const In& in, Out&& out, send_counts sent, receive_counts received,
                  const Options& options, std::error_code& code,
                  const std::source_location& site = std::source_location::current()) const noexcept {
    code = detail::run_spec(comm, spec(detail::as_input(in), detail::as_output(out), sent, received, options), options,
                            site)
               .code();
  }

 private:
  friend struct all_to_all_v_async_t;

  template <class T, class Options>
  static auto spec(std::span<const T> in, std::span<T> out, send_counts sent, receive_counts received,
                   const Options& options) {
    return detail::make_move_spec<collective>(in, out, 0, options, detail::blocks_of<collective>(sent, received));
  }
};

struct all_to_all_v_async_t {
  /// As `all_to_all_v`, but returns at once. The buffers belong to the operation until the request is over, the counts
  /// do not.
  template <class Domain, lasting_buffer In, writable_buffer Out, call_options Options = options<>>
    requires std::is_same_v<element_type_t<In>, element_type_t<Out>> && element<element_type_t<Out>>
  request operator()(const communicator<Domain>& comm, In&& in, Out&& out, send_counts sent, receive_counts received,
                     const Options& options = {},
                     const std::source_location& site = std::source_location::current()) const {
    return detail::start_call(
        comm, all_to_all_v_t::spec(detail::as_input(in), detail::as_output(out), sent, received, options), options,
        site);
  }
};

inline constexpr detail::with_misuse_diagnostics<
    detail::device_move<all_to_all_v_t, all_to_all_v_t::collective, detail::blocking, send_counts, receive_counts>,
    detail::uneven_form<false, send_counts, receive_counts>>
    all_to_all_v{};
inline constexpr detail::with_misuse_diagnostics<detail::device_move<all_to_all_v_async_t, all_to_all_v_t::collective,
                                                                     detail::starting, send_counts, receive_counts>,
                                                 detail::uneven_form<false, send_counts, receive_counts>>
    all_to_all_v_async{};

HOCKET_END_NAMESPACE
