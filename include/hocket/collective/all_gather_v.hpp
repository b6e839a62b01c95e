// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Gathers blocks of given, possibly different, lengths from all ranks on every rank.
#pragma once

#include <hocket/collective/detail/generate_call.hpp>
#include <hocket/collective/detail/moving_call.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/strong_types.hpp>
#include <hocket/plan/plan.hpp>

HOCKET_BEGIN_NAMESPACE

/// Writes the `in` of all p ranks of `comm`, concatenated in rank order, to `out` on every rank. Rank r contributes
/// `lengths.of_ranks[r]` elements.
///
/// **Arguments.** `(comm, in, out, counts{lengths}, with(...), code)`.
///   `with(...)` and what follows are optional.
///   `code` is a `std::error_code` that receives the error, which is thrown otherwise.
/// Collective: every rank must pass equal counts, element type and algorithm.
/// **Buffers.** On rank r `in` has `lengths.of_ranks[r]` elements, and `out` the sum of all lengths. A length may be 0.
///   `in` may be the block of rank r in `out`; otherwise they must not overlap.
/// **Cost.** As for `all_gather`: ring takes the time of p - 1 of the longest blocks, direct that of the sum. No
///   padding is sent. The call reads p lengths, and stores as many numbers in memory that the communicator reuses.
/// **Progress, threads, errors.** As for `all_gather`. Counts that differ between ranks are a `mismatch`.
inline constexpr detail::call<detail::moving<plan::collective_kind::all_gather, counts>> all_gather_v{};

/// Like `all_gather_v`, but returns immediately. The buffers belong to the operation until the request has completed;
/// the counts may be destroyed when the call returns.
inline constexpr detail::call_async<detail::moving<plan::collective_kind::all_gather, counts>> all_gather_v_async{};

HOCKET_END_NAMESPACE
