// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Gives every rank what each rank has.
#pragma once

#include <hocket/collective/detail/generate_call.hpp>
#include <hocket/collective/detail/moving_call.hpp>
#include <hocket/core/config.hpp>
#include <hocket/plan/plan.hpp>

HOCKET_BEGIN_NAMESPACE

/// Leaves in `out`, on every rank, the `in` of all p ranks of `comm` one after the other, in rank order.
///
/// **Arguments.** `(comm, in, out, with(...), code)`.
///   `with(...)` and what follows are optional.
///   `code` is a `std::error_code` that receives the error, which is thrown otherwise.
/// Collective: every rank must pass an equal `in.size()`, element type and algorithm.
/// **Buffers.** `out` has p blocks of `in.size()` elements. `in` may be block r of `out` on rank r; else they must not
///   overlap.
/// **Cost.** p - 1 blocks into each rank: ring in p - 1 messages, direct in one step over peer pointers.
/// **Progress, threads, errors.** As for `all_reduce`.
inline constexpr detail::call<detail::moving<plan::collective_kind::all_gather>> all_gather{};

/// As `all_gather`, but returns at once. The buffers belong to the operation until the request is over.
inline constexpr detail::call_async<detail::moving<plan::collective_kind::all_gather>> all_gather_async{};

HOCKET_END_NAMESPACE
