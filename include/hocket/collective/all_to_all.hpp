// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Exchanges a block of equal length between every pair of ranks.
#pragma once

#include <hocket/collective/detail/generate_call.hpp>
#include <hocket/collective/detail/moving_call.hpp>
#include <hocket/core/config.hpp>
#include <hocket/plan/plan.hpp>

HOCKET_BEGIN_NAMESPACE

/// Block d of `in` on rank s arrives as block s of `out` on rank d.
///
/// **Arguments.** `(comm, in, out, with(...), code)`.
///   `with(...)` and what follows are optional.
///   `code` is a `std::error_code` that receives the error, which is thrown otherwise.
/// Collective: every rank must pass an equal `in.size()`, element type and algorithm.
/// **Buffers.** `in` and `out` have equal size, a multiple of the p ranks of `comm`. They may be the same memory;
///   otherwise they must not overlap.
/// **Cost.** p - 1 blocks out of and into each rank: pairwise in p - 1 messages, direct in one step over peer pointers.
/// **Progress, threads, errors.** As for `all_reduce`.
inline constexpr detail::call<detail::moving<plan::collective_kind::all_to_all>> all_to_all{};

/// Like `all_to_all`, but returns immediately. The buffers belong to the operation until the request has completed.
inline constexpr detail::call_async<detail::moving<plan::collective_kind::all_to_all>> all_to_all_async{};

HOCKET_END_NAMESPACE
