// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Gives each rank a block of equal length of the vector of one rank, the root.
#pragma once

#include <hocket/collective/detail/generate_call.hpp>
#include <hocket/collective/detail/moving_call.hpp>
#include <hocket/core/config.hpp>
#include <hocket/plan/plan.hpp>

HOCKET_BEGIN_NAMESPACE

/// Writes block r of the `in` of the root to `out` on rank r, for all p ranks of `comm`.
///
/// **Arguments.** `(comm, in, out, root{0}, with(...), code)`.
///   `root` and what follows are optional; the root is then rank 0.
///   `code` is a `std::error_code` that receives the error, which is thrown otherwise.
/// Collective: every rank must pass an equal `out.size()`, element type, root and algorithm.
/// **Buffers.** On the root `in` has p blocks of `out.size()` elements, and `out` may be the root's block of `in`;
///   otherwise they must not overlap. On other ranks `in` is ignored, and may be empty.
/// **Cost.** p - 1 blocks out of the root: flat in p - 1 messages, which are in flight together; binomial in log2 p
///   messages that carry the blocks of several ranks; direct in one step over peer pointers, in which each rank reads
///   its block.
/// **Return.** Any rank may return before other ranks have begun the call if its own part is done.
/// **Progress, threads, errors.** As for `all_reduce`.
inline constexpr detail::call<detail::rooted_moving<plan::collective_kind::scatter>> scatter{};

/// Like `scatter`, but returns immediately. The buffers belong to the operation until the request has completed.
inline constexpr detail::call_async<detail::rooted_moving<plan::collective_kind::scatter>> scatter_async{};

HOCKET_END_NAMESPACE
