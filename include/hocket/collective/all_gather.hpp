// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Gathers a block of equal length from each rank on every rank.
#pragma once

#include <hocket/collective/detail/generate_call.hpp>
#include <hocket/collective/detail/moving_call.hpp>
#include <hocket/core/config.hpp>
#include <hocket/plan/plan.hpp>

HOCKET_BEGIN_NAMESPACE

/// Writes the `in` of all p ranks of `comm`, concatenated in rank order, to `out` on every rank.
///
/// **Arguments.** `(comm, in, out, with(...), code)`.
///   `with(...)` and what follows are optional.
///   `code` is a `std::error_code` that receives the error, which is thrown otherwise.
/// Collective: every rank must pass an equal `in.size()`, element type and algorithm.
/// **Buffers.** `out` has p blocks of `in.size()` elements. On rank r `in` may be block r of `out`; otherwise they must
///   not overlap.
/// **Cost.** p - 1 blocks into each rank: ring in p - 1 messages, direct in one step over peer pointers.
/// **Progress, threads, errors.** As for `all_reduce`.
inline constexpr detail::call<detail::moving<plan::collective_kind::all_gather>> all_gather{};

/// Like `all_gather`, but returns immediately. The buffers belong to the operation until the request has completed.
inline constexpr detail::call_async<detail::moving<plan::collective_kind::all_gather>> all_gather_async{};

HOCKET_END_NAMESPACE
