// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Sends a message to one rank and receives one from another, at the same time.
#pragma once

#include <hocket/collective/detail/generate_call.hpp>
#include <hocket/collective/detail/message_call.hpp>
#include <hocket/core/config.hpp>

HOCKET_BEGIN_NAMESPACE

/// Sends `out` to the first peer and fills `in` with a message from the second, both with the same tag; returns when
/// both are done. Ranks may so exchange data in pairs or in a circle without one having to be first.
///
/// **Arguments.** `(comm, out, peer{1}, in, peer{2}, tag{7}, with(...), code)`.
///   `tag` and what follows are optional; the tag is then 0.
///   `code` is a `std::error_code` that receives the error, which is thrown otherwise.
/// **Buffers.** They must not overlap, and may differ in size and type.
/// **Progress, threads, errors.** As for `all_reduce`.
inline constexpr detail::call<detail::both_ways> send_recv{};

/// As `send_recv`, but returns at once. The buffers belong to the operation until the request is over.
inline constexpr detail::call_async<detail::both_ways> send_recv_async{};

HOCKET_END_NAMESPACE
