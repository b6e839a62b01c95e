// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Gives every rank what each rank has, which may be more on one rank than on another.
#pragma once

#include <hocket/collective/detail/generate_call.hpp>
#include <hocket/collective/detail/moving_call.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/strong_types.hpp>
#include <hocket/plan/plan.hpp>

HOCKET_BEGIN_NAMESPACE

/// Leaves in `out`, on every rank, the `in` of all p ranks of `comm` one after the other, in rank order. Rank r has
/// `lengths.of_ranks[r]` elements.
///
/// **Arguments.** `(comm, in, out, counts{lengths}, with(...), code)`.
///   `with(...)` and what follows are optional.
///   `code` is a `std::error_code` that receives the error, which is thrown otherwise.
/// Collective: every rank must pass equal counts, element type and algorithm.
/// **Buffers.** On rank r `in` has as many elements as `lengths` says for r, and `out` has their sum. Any may be 0.
///   `in` may be the block of rank r in `out`; else they must not overlap.
/// **Cost.** As `all_gather`: ring takes the time of p - 1 of the longest blocks, direct that of the sum. No padding
///   travels. p more numbers are read, and kept in memory that the communicator uses again.
/// **Progress, threads, errors.** As for `all_gather`. Counts that differ between ranks are a `mismatch`.
inline constexpr detail::call<detail::moving<plan::collective_kind::all_gather, counts>> all_gather_v{};

/// As `all_gather_v`, but returns at once. The buffers belong to the operation until the request is over, the counts
/// do not.
inline constexpr detail::call_async<detail::moving<plan::collective_kind::all_gather, counts>> all_gather_v_async{};

HOCKET_END_NAMESPACE
