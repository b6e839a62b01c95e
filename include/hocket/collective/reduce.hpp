// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Combines a vector over all ranks and gives the result to one of them, the root.
#pragma once

#include <hocket/collective/detail/generate_call.hpp>
#include <hocket/collective/detail/reducing_call.hpp>
#include <hocket/core/config.hpp>
#include <hocket/plan/plan.hpp>

HOCKET_BEGIN_NAMESPACE

/// Combines `in` element-wise over all ranks of `comm` with `op`, and writes the result to `out` on the root.
///
/// **Arguments.** `(comm, in, out, op, root{0}, with(...), code)`, or `in_place(buffer)` instead of `in, out`.
///   `op` and what follows are optional; `op` is then `std::plus<>{}`, and the root is rank 0.
///   `code` is a `std::error_code` that receives the error, which is thrown otherwise.
/// Collective: every rank must pass an equal `in.size()`, element type, `op`, root and algorithm.
/// **Buffers.** On the root `in` and `out` have equal size in elements and must not overlap. On other ranks `out` is
///   ignored, and may be empty; with `in_place(buffer)` their buffers remain unchanged.
/// **Operation.** As for `all_reduce`.
/// **Cost.** p ranks, n bytes: direct 1 step over peer pointers, in which the root reads (p-1) n; binomial log2 p
///   messages of n, one after the other; ring passes n in 16 pieces along a chain of all ranks. `explain` reports which
///   algorithm is chosen, and why.
/// **Order.** Fixed by (ranks, size, algorithm, root), from run to run; `require(fixed_tree)` and
///   `require(rank_count_invariant)` as for `all_reduce`, also for any root.
/// **Return.** A rank other than the root may return before other ranks have begun the call.
/// **Progress, threads, errors.** As for `all_reduce`.
inline constexpr detail::call<detail::rooted_reducing<plan::collective_kind::reduce>> reduce{};

/// Like `reduce`, but returns immediately. The buffers belong to the operation until the request has completed.
inline constexpr detail::call_async<detail::rooted_reducing<plan::collective_kind::reduce>> reduce_async{};

HOCKET_END_NAMESPACE
