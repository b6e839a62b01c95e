// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Copies the vector of one rank, the root, to all ranks.
#pragma once

#include <hocket/collective/detail/generate_call.hpp>
#include <hocket/collective/detail/moving_call.hpp>
#include <hocket/core/config.hpp>
#include <hocket/plan/plan.hpp>

HOCKET_BEGIN_NAMESPACE

/// Copies `buffer` of the root to `buffer` of every other rank.
///
/// **Arguments.** `(comm, buffer, root{0}, with(...), code)`.
///   `root` and what follows are optional; the root is then rank 0.
///   `code` is a `std::error_code` that receives the error, which is thrown otherwise.
/// Collective: every rank must pass an equal `buffer.size()`, element type, root and algorithm.
/// **Cost.** p ranks: binomial log2 p messages of the whole vector, one after the other; direct one step over peer
///   pointers.
/// **Progress, threads, errors.** As for `all_reduce`.
inline constexpr detail::call<detail::rooted<plan::collective_kind::broadcast>> broadcast{};

/// Like `broadcast`, but returns immediately. The buffer belongs to the operation until the request has completed.
inline constexpr detail::call_async<detail::rooted<plan::collective_kind::broadcast>> broadcast_async{};

HOCKET_END_NAMESPACE
