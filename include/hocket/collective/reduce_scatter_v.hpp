// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Combines a vector over all ranks and gives each rank a block of given length of the result.
#pragma once

#include <hocket/collective/detail/generate_call.hpp>
#include <hocket/collective/detail/reducing_call.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/strong_types.hpp>
#include <hocket/plan/plan.hpp>

HOCKET_BEGIN_NAMESPACE

/// Combines `in` element-wise over all p ranks of `comm` with `op`; rank r gets block r of the result in `out`, which
/// has `lengths.of_ranks[r]` elements. Blocks are concatenated in rank order.
///
/// **Arguments.** `(comm, in, out, counts{lengths}, op, with(...), code)`.
///   `op` and what follows are optional; `op` is then `std::plus<>{}`.
///   `code` is a `std::error_code` that receives the error, which is thrown otherwise.
/// Collective: every rank must pass equal counts, element type, `op` and algorithm.
/// **Buffers.** On rank r `out` has `lengths.of_ranks[r]` elements, and `in` the sum of all lengths. A length may be 0.
///   `out` may be the block of rank r in `in`; otherwise they must not overlap. If `out` is a block of `in`, the other
///   blocks of `in` remain unchanged.
/// **Operation.** As for `all_reduce`.
/// **Cost.** As for `reduce_scatter`, with the time of the longest block. No padding is sent. The call reads p
///   lengths, and stores as many numbers in memory that the communicator reuses.
/// **Order, progress, threads, errors.** As for `reduce_scatter`. Counts that differ between ranks are a `mismatch`.
inline constexpr detail::call<detail::reducing<plan::collective_kind::reduce_scatter, counts>> reduce_scatter_v{};

/// Like `reduce_scatter_v`, but returns immediately. The buffers belong to the operation until the request has
/// completed; the counts may be destroyed when the call returns.
inline constexpr detail::call_async<detail::reducing<plan::collective_kind::reduce_scatter, counts>>
    reduce_scatter_v_async{};

HOCKET_END_NAMESPACE
