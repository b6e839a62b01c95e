// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Receives a message from one rank.
#pragma once

#include <hocket/collective/detail/generate_call.hpp>
#include <hocket/collective/detail/message_call.hpp>
#include <hocket/core/config.hpp>

HOCKET_BEGIN_NAMESPACE

/// Fills `buffer` with the next message with this tag from the peer, a rank of `comm`.
///
/// **Arguments.** `(comm, buffer, peer{0}, tag{7}, with(...), code)`.
///   `tag` and what follows are optional; the tag is then 0.
///   `code` is a `std::error_code` that receives the error, which is thrown otherwise.
/// The sender must send as many elements as `buffer` has; otherwise the call fails with `mismatch` or `truncated`.
/// **Device memory.** A message sent from a tagged buffer, such as `cuda::device(...)`, must be received into a tagged
///   buffer: see docs/device-memory.md.
/// **Progress, threads, errors.** As for `all_reduce`.
inline constexpr detail::call<detail::one_way<true>> recv{};

/// Like `recv`, but returns immediately. The buffer belongs to the operation until the request has completed.
inline constexpr detail::call_async<detail::one_way<true>> recv_async{};

HOCKET_END_NAMESPACE
