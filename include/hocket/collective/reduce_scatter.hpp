// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Combines a vector over all ranks and gives each rank its own block of the result.
#pragma once

#include <hocket/collective/detail/generate_call.hpp>
#include <hocket/collective/detail/reducing_call.hpp>
#include <hocket/core/config.hpp>
#include <hocket/plan/plan.hpp>

HOCKET_BEGIN_NAMESPACE

/// Combines `in` element-wise over all p ranks of `comm` with `op`; rank r gets block r of the result in `out`.
///
/// **Arguments.** `(comm, in, out, op, with(...), code)`.
///   `op` and what follows are optional; `op` is then `std::plus<>{}`.
///   `code` is a `std::error_code` that receives the error, which is thrown otherwise.
/// Collective: every rank must pass an equal `out.size()`, element type, `op` and algorithm.
/// **Buffers.** `in` has p blocks of `out.size()` elements. On rank r `out` may be block r of `in`; otherwise they must
///   not overlap. If `out` is a block of `in`, the other blocks of `in` remain unchanged.
/// **Operation.** As for `all_reduce`.
/// **Cost.** p - 1 blocks into and out of each rank: ring in p - 1 messages, direct in one step over peer pointers.
/// **Order, progress, threads, errors.** As for `all_reduce`.
inline constexpr detail::call<detail::reducing<plan::collective_kind::reduce_scatter>> reduce_scatter{};

/// Like `reduce_scatter`, but returns immediately. The buffers belong to the operation until the request has completed.
inline constexpr detail::call_async<detail::reducing<plan::collective_kind::reduce_scatter>> reduce_scatter_async{};

HOCKET_END_NAMESPACE
