// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Sends a message to one rank.
#pragma once

#include <hocket/collective/detail/generate_call.hpp>
#include <hocket/collective/detail/message_call.hpp>
#include <hocket/core/config.hpp>

HOCKET_BEGIN_NAMESPACE

/// Sends `buffer` to the peer, a rank of `comm`, which receives it by `recv` with the same tag.
///
/// **Arguments.** `(comm, buffer, peer{1}, tag{7}, with(...), code)`.
///   `tag` and what follows are optional; the tag is then 0.
///   `code` is a `std::error_code` that receives the error, which is thrown otherwise.
/// Messages with the same tag between two ranks arrive in order. The receiver must pass a buffer of as many elements of
/// the same type; an element type of `std::byte` on either side matches any type. Collectives and messages of one
/// communicator are independent and may be in flight at the same time.
/// **Buffers.** `buffer` may be reused when the call returns. That may be before the receive or only after it. So two
///   ranks must not both `send` first, and a rank must not `send` to itself before it receives: use `send_recv`.
/// **Device memory.** A message sent from a tagged buffer, such as `cuda::device(...)`, must be received into a tagged
///   buffer: see docs/device-memory.md.
/// **Progress, threads, errors.** As for `all_reduce`.
inline constexpr detail::call<detail::one_way<false>> send{};

/// Like `send`, but returns immediately. The buffer must not change until the request has completed.
inline constexpr detail::call_async<detail::one_way<false>> send_async{};

HOCKET_END_NAMESPACE
