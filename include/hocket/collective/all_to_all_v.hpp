// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Exchanges a block of given length between every pair of ranks.
#pragma once

#include <hocket/collective/detail/generate_call.hpp>
#include <hocket/collective/detail/moving_call.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/strong_types.hpp>
#include <hocket/plan/plan.hpp>

HOCKET_BEGIN_NAMESPACE

/// Block d of `in` on rank s arrives as block s of `out` on rank d. On rank r, block d of `in` has `sent.of_ranks[d]`
/// elements, and block s of `out` has `received.of_ranks[s]`; blocks are concatenated in rank order.
///
/// **Arguments.** `(comm, in, out, send_counts{sent}, receive_counts{received}, with(...), code)`.
///   `with(...)` and what follows are optional.
///   `code` is a `std::error_code` that receives the error, which is thrown otherwise.
/// Collective: every rank must pass an equal element type and algorithm. The count that rank s passes for sending to d
/// must equal the count that d passes for receiving from s.
/// **Buffers.** `in` has as many elements as `sent` adds up to, and `out` as `received`. A count may be 0. The buffers
///   must not overlap.
/// **Cost.** Each rank sends and receives as many elements as its counts state: pairwise in p - 1 messages; direct in
///   one step over peer pointers, if peers can read each other's buffers, as threads can. Over staged shared memory the
///   call sends messages: no rank knows whether other ranks' blocks fit. The choice does not depend on the counts.
/// **Progress, threads, errors.** As for `all_to_all`. If a rank sends another number of elements than its peer
///   expects, the receiver fails with `mismatch`, which names the peer and both lengths. The other ranks fail with the
///   same error in this call or, if they have returned from it, in their next one.
inline constexpr detail::call<detail::moving<plan::collective_kind::all_to_all, send_counts, receive_counts>>
    all_to_all_v{};

/// Like `all_to_all_v`, but returns immediately. The buffers belong to the operation until the request has completed;
/// the counts may be destroyed when the call returns.
inline constexpr detail::call_async<detail::moving<plan::collective_kind::all_to_all, send_counts, receive_counts>>
    all_to_all_v_async{};

HOCKET_END_NAMESPACE
