// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The barrier: waits until all ranks have arrived.
#pragma once

#include <hocket/collective/detail/generate_call.hpp>
#include <hocket/collective/detail/moving_call.hpp>
#include <hocket/core/config.hpp>
#include <hocket/plan/plan.hpp>

HOCKET_BEGIN_NAMESPACE

/// Returns when every rank of `comm` has called `barrier`.
///
/// **Arguments.** `(comm, with(...), code)`.
///   `with(...)` and what follows are optional.
///   `code` is a `std::error_code` that receives the error, which is thrown otherwise.
/// **Cost.** log2 p empty messages, one after the other. **Progress, threads, errors.** As for `all_reduce`.
inline constexpr detail::call<detail::bare<plan::collective_kind::barrier>> barrier{};

/// Like `barrier`, but returns immediately. The request completes when every rank has made the call.
inline constexpr detail::call_async<detail::bare<plan::collective_kind::barrier>> barrier_async{};

HOCKET_END_NAMESPACE
