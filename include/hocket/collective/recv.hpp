// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Receives a message from one rank.
#pragma once

#include <hocket/collective/detail/generate_call.hpp>
#include <hocket/collective/detail/message_call.hpp>
#include <hocket/core/config.hpp>

HOCKET_BEGIN_NAMESPACE

/// Fills `buffer` with the next message from a rank of `comm`, the peer, that has the same tag.
///
/// **Arguments.** `(comm, buffer, peer{0}, tag{7}, with(...), code)`.
///   `tag` and what follows are optional; the tag is then 0.
///   `code` is a `std::error_code` that receives the error, which is thrown otherwise.
/// The sender must have sent as many elements as `buffer` has; else the call fails with `mismatch` or `truncated`.
/// **Memory of devices.** Buffers with a tag, such as `cuda::device(...)`, are sent to, and received from, such buffers alone:
///   see docs/device-memory.md.
/// **Progress, threads, errors.** As for `all_reduce`.
inline constexpr detail::call<detail::one_way<true>> recv{};

/// As `recv`, but returns at once. The buffer belongs to the operation until the request is over.
inline constexpr detail::call_async<detail::one_way<true>> recv_async{};

HOCKET_END_NAMESPACE
