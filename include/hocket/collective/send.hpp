// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Sends a message to one rank.
#pragma once

#include <hocket/collective/detail/generate_call.hpp>
#include <hocket/collective/detail/message_call.hpp>
#include <hocket/core/config.hpp>

HOCKET_BEGIN_NAMESPACE

/// Sends `buffer` to rank `to.rank` of `comm`, where `recv` with the same tag takes it.
///
/// **Arguments.** `(comm, buffer, peer{1}, tag{7}, with(...), code)`.
///   Those from `tag` on may be left out: then the tag is 0. A `std::error_code` gets the error, instead of an exception.
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
