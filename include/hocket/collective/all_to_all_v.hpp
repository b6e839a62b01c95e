// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Each rank has something for each other rank, more for one than for another.
#pragma once

#include <hocket/collective/detail/generate_call.hpp>
#include <hocket/collective/detail/moving_call.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/strong_types.hpp>
#include <hocket/plan/plan.hpp>

HOCKET_BEGIN_NAMESPACE

/// Block d of `in` on rank s arrives as block s of `out` on rank d. On rank r, block d of `in` has `sent.of_ranks[d]`
/// elements, and block s of `out` `received.of_ranks[s]`; blocks lie one after the other, in rank order.
///
/// **Arguments.** `(comm, in, out, send_counts{sent}, receive_counts{received}, with(...), code)`.
///   `with(...)` and what follows are optional.
///   `code` is a `std::error_code` that receives the error, which is thrown otherwise.
/// Collective: every rank must pass an equal element type and algorithm; and what s passes as sent to d, d must pass
/// as received from s.
/// **Buffers.** `in` and `out` have as many elements as the counts add up to. Any may be 0. They must not overlap.
/// **Cost.** What the counts say goes out of and into each rank: pairwise in p - 1 messages; direct in one step over
///   peer pointers, where peers can read each other's own buffers, as threads do. Over shared memory that is staged
///   it takes messages, as no rank can know whether what another has fits there. Which of the two is chosen does not
///   depend on the counts.
/// **Progress, threads, errors.** As for `all_to_all`. Where a rank sends another number than its peer expects, the
///   receiver fails with `mismatch`, which names the peer and both lengths; the other ranks fail with the same error in
///   this call, or, if they have left it, in their next one.
inline constexpr detail::call<detail::moving<plan::collective_kind::all_to_all, send_counts, receive_counts>>
    all_to_all_v{};

/// As `all_to_all_v`, but returns at once. The buffers belong to the operation until the request is over, the counts
/// do not.
inline constexpr detail::call_async<detail::moving<plan::collective_kind::all_to_all, send_counts, receive_counts>>
    all_to_all_v_async{};

HOCKET_END_NAMESPACE
