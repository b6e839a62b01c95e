// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Gathers blocks of given, possibly different, lengths from all ranks on one rank, the root.
#pragma once

#include <hocket/collective/detail/generate_call.hpp>
#include <hocket/collective/detail/moving_call.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/strong_types.hpp>
#include <hocket/plan/plan.hpp>

HOCKET_BEGIN_NAMESPACE

/// Writes the `in` of all p ranks of `comm`, concatenated in rank order, to `out` on the root. Rank r contributes
/// `lengths.of_ranks[r]` elements.
///
/// **Arguments.** `(comm, in, out, counts{lengths}, root{0}, with(...), code)`.
///   `root` and what follows are optional; the root is then rank 0.
///   `code` is a `std::error_code` that receives the error, which is thrown otherwise.
/// Collective: every rank must pass equal counts, element type, root and algorithm.
/// **Buffers.** On rank r `in` has `lengths.of_ranks[r]` elements. On the root `out` has the sum of all lengths, and `in`
///   may be the root's block of `out`; otherwise they must not overlap. On other ranks `out` is ignored. A length may
///   be 0.
/// **Cost.** As for `gather`, without binomial, which needs blocks of equal length. The call reads p lengths, and stores
///   as many numbers in memory that the communicator reuses.
/// **Return, progress, threads, errors.** As for `gather`. Counts that differ between ranks are a `mismatch`.
inline constexpr detail::call<detail::rooted_moving<plan::collective_kind::gather, counts>> gather_v{};

/// Like `gather_v`, but returns immediately. The buffers belong to the operation until the request has completed; the
/// counts may be destroyed when the call returns.
inline constexpr detail::call_async<detail::rooted_moving<plan::collective_kind::gather, counts>> gather_v_async{};

HOCKET_END_NAMESPACE
