// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Gives each rank a block of given length of the vector of one rank, the root.
#pragma once

#include <hocket/collective/detail/generate_call.hpp>
#include <hocket/collective/detail/moving_call.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/strong_types.hpp>
#include <hocket/plan/plan.hpp>

HOCKET_BEGIN_NAMESPACE

/// Writes block r of the `in` of the root to `out` on rank r, which has `lengths.of_ranks[r]` elements. Blocks are
/// concatenated in rank order.
///
/// **Arguments.** `(comm, in, out, counts{lengths}, root{0}, with(...), code)`.
///   `root` and what follows are optional; the root is then rank 0.
///   `code` is a `std::error_code` that receives the error, which is thrown otherwise.
/// Collective: every rank must pass equal counts, element type, root and algorithm.
/// **Buffers.** On rank r `out` has `lengths.of_ranks[r]` elements. On the root `in` has the sum of all lengths, and `out`
///   may be the root's block of `in`; otherwise they must not overlap. On other ranks `in` is ignored. A length may be 0.
/// **Cost.** As for `scatter`, without binomial, which needs blocks of equal length. The call reads p lengths, and stores
///   as many numbers in memory that the communicator reuses.
/// **Return, progress, threads, errors.** As for `scatter`. Counts that differ between ranks are a `mismatch`.
inline constexpr detail::call<detail::rooted_moving<plan::collective_kind::scatter, counts>> scatter_v{};

/// Like `scatter_v`, but returns immediately. The buffers belong to the operation until the request has completed; the
/// counts may be destroyed when the call returns.
inline constexpr detail::call_async<detail::rooted_moving<plan::collective_kind::scatter, counts>> scatter_v_async{};

HOCKET_END_NAMESPACE
