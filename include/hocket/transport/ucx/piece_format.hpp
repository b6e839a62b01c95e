// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// How long messages are cut into pieces. UCX can't take back a transfer that has begun until the peer has done its
/// part, but a call that fails must release the caller's memory immediately, even if the peer makes no progress in UCX.
///
/// Over TCP and through shared memory UCX moves a piece as a whole: an abandoned receive has got all of it or nothing.
/// UCX asks for the bytes of a piece when it sends them, and gets those of an abandoned send from a copy (see
/// send_buffer.hpp). For some pieces the sender waits until the receiver has asked for them, so that it is ahead by at
/// most the pieces in flight. By default UCX asks the receiver first for each long message and moves it in more parts,
/// which takes longer over TCP.
///
/// That would cost too much over adapters that move messages without the processor. There, and if UCX_RNDV_THRESH sets
/// how UCX moves long messages, pieces are sent directly from the caller's memory, and few pieces are in flight. Device
/// memory, which can't be copied here, is always sent that way; then each piece costs a handshake.
#pragma once

#include <hocket/core/config.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

HOCKET_BEGIN_NAMESPACE
namespace ucx {

struct piece_format {
  std::uint32_t bytes;            ///< of each piece except the last
  std::uint32_t in_flight_limit;  ///< most pieces in flight
  bool at_once;                   ///< a piece can be abandoned at any time

  static constexpr std::size_t most_in_flight = 32;

  /// Size of the piece that begins after `before` of `message` bytes.
  constexpr std::size_t size_after(std::size_t before, std::size_t message) const noexcept {
    return std::min<std::size_t>(message - before, bytes);
  }
  /// Returns whether the sender of piece `number` waits until the receiver has asked for it.
  constexpr bool confirmed(std::size_t number) const noexcept { return at_once && number % (in_flight_limit / 2) == 0; }
};

/// UCX reads 64 KiB at a time from a socket, including its own headers.
inline constexpr piece_format tcp_pieces{60U << 10U, 16, true};
/// Each of UCX's segments in shared memory holds this many bytes and UCX's headers.
inline constexpr piece_format memory_pieces{8U << 10U, 32, true};
inline constexpr piece_format direct_pieces{512U << 10U, 2, false};
/// Not yet measured on a GPU.
inline constexpr piece_format device_pieces{4U << 20U, 2, false};

}  // namespace ucx
HOCKET_END_NAMESPACE
