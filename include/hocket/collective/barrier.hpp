// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Waits until all ranks are here.
#pragma once

#include <hocket/collective/detail/generate_call.hpp>
#include <hocket/collective/detail/moving_call.hpp>
#include <hocket/core/config.hpp>
#include <hocket/plan/plan.hpp>

HOCKET_BEGIN_NAMESPACE

/// Returns when every rank of `comm` has called it.
///
/// **Arguments.** `(comm, with(...), code)`.
///   Those from `with` on may be left out. A `std::error_code` gets the error, instead of an exception.
/// **Cost.** log2 p empty messages, one after the other. **Progress, threads, errors.** As for `all_reduce`.
inline constexpr detail::call<detail::bare<plan::collective_kind::barrier>> barrier{};

/// As `barrier`, but returns at once: the request is over when every rank has called it.
inline constexpr detail::call_async<detail::bare<plan::collective_kind::barrier>> barrier_async{};

HOCKET_END_NAMESPACE
