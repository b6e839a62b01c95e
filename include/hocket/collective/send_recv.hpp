// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Sends a message to one rank and receives one from another, at the same time.
#pragma once

#include <hocket/collective/detail/generate_call.hpp>
#include <hocket/collective/detail/message_call.hpp>
#include <hocket/core/config.hpp>

HOCKET_BEGIN_NAMESPACE

/// Sends `out` to the first peer and fills `in` with a message from the second peer. Both messages have the given tag.
/// Returns when both are complete, so that ranks can exchange data in pairs or in a ring without a deadlock.
///
/// **Arguments.** `(comm, out, peer{1}, in, peer{2}, tag{7}, with(...), code)`.
///   `tag` and what follows are optional; the tag is then 0.
///   `code` is a `std::error_code` that receives the error, which is thrown otherwise.
/// **Buffers.** `out` and `in` must not overlap, and may differ in size and type.
/// **Progress, threads, errors.** As for `all_reduce`.
inline constexpr detail::call<detail::both_ways> send_recv{};

/// Like `send_recv`, but returns immediately. The buffers belong to the operation until the request has completed.
inline constexpr detail::call_async<detail::both_ways> send_recv_async{};

HOCKET_END_NAMESPACE
