// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Sends a message to one rank.
#pragma once

#include <hocket/collective/detail/generate_call.hpp>
#include <hocket/collective/detail/message_call.hpp>
#include <hocket/core/config.hpp>

HOCKET_BEGIN_NAMESPACE

/// Sends `buffer` to another rank of `comm`, the peer, where `recv` with the same tag receives it.
///
/// **Arguments.** `(comm, buffer, peer{1}, tag{7}, with(...), code)`.
///   `tag` and what follows are optional; the tag is then 0.
///   `code` is a `std::error_code` that receives the error, which is thrown otherwise.
/// Messages between two ranks that have the same tag arrive in order. The receiver must ask for as many elements as are
/// sent, of the same type, unless one of the two is `std::byte`: raw bytes. Collectives and messages of one communicator do not meet: they may be under way at once.
/// **Buffers.** `buffer` may be reused when the call returns. That may be before the message is received, so the return
///   says nothing of the peer; and it may be no sooner, so two ranks must not both `send` first, and none to itself
///   unless it has begun to receive: use `send_recv`.
/// **Memory of devices.** Buffers with a tag, such as `cuda::device(...)`, are sent to, and received from, such buffers alone:
///   see docs/device-memory.md.
/// **Progress, threads, errors.** As for `all_reduce`.
inline constexpr detail::call<detail::one_way<false>> send{};

/// As `send`, but returns at once. The buffer must not change until the request is over.
inline constexpr detail::call_async<detail::one_way<false>> send_async{};

HOCKET_END_NAMESPACE
