// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Gathers a block of equal length from each rank on one rank, the root.
#pragma once

#include <hocket/collective/detail/generate_call.hpp>
#include <hocket/collective/detail/moving_call.hpp>
#include <hocket/core/config.hpp>
#include <hocket/plan/plan.hpp>

HOCKET_BEGIN_NAMESPACE

/// Writes the `in` of all p ranks of `comm`, concatenated in rank order, to `out` on the root.
///
/// **Arguments.** `(comm, in, out, root{0}, with(...), code)`.
///   `root` and what follows are optional; the root is then rank 0.
///   `code` is a `std::error_code` that receives the error, which is thrown otherwise.
/// Collective: every rank must pass an equal `in.size()`, element type, root and algorithm.
/// **Buffers.** On the root `out` has p blocks of `in.size()` elements, and `in` may be the root's block of `out`;
///   otherwise they must not overlap. On other ranks `out` is ignored, and may be empty.
/// **Cost.** p - 1 blocks into the root: flat in p - 1 messages, which are in flight together; binomial in log2 p
///   messages that carry the blocks of several ranks; direct in one step over peer pointers.
/// **Return.** A rank other than the root may return before other ranks have begun the call.
/// **Progress, threads, errors.** As for `all_reduce`.
inline constexpr detail::call<detail::rooted_moving<plan::collective_kind::gather>> gather{};

/// Like `gather`, but returns immediately. The buffers belong to the operation until the request has completed.
inline constexpr detail::call_async<detail::rooted_moving<plan::collective_kind::gather>> gather_async{};

HOCKET_END_NAMESPACE
