// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// How long messages are cut. What UCX has begun to move can't be taken back before the peer has done its share, but a
/// call that fails must leave the caller's memory at once, also while the peer computes and does nothing for UCX.
///
/// Over TCP and through shared memory a piece is what UCX moves as one: a receive that is given up has got all of it or
/// nothing. UCX asks for its bytes when it puts them on their way, and gets those of a send that was given up from a copy
/// (see send_buffer.hpp). And for some the sender waits until the receiver has asked for them, so that it runs ahead by no more
/// than what is under way. Left to itself UCX asks the receiver for each long message first and moves it in more parts,
/// which takes longer over TCP.
///
/// Over adapters that move messages by themselves that would cost too much. There, and where UCX_RNDV_THRESH says how
/// UCX is to move long messages, they are sent from where they lie, and few pieces are under way at any time. Memory of
/// devices, which can't be copied here, goes so on all ways; each piece costs a handshake there.
#pragma once

#include <hocket/core/config.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

HOCKET_BEGIN_NAMESPACE
namespace ucx {

struct piece_format {
  std::uint32_t bytes;      ///< of each piece but the last
  std::uint32_t under_way;  ///< at most
  bool at_once;             ///< can be given up at any time

  static constexpr std::size_t most_under_way = 32;

  /// Of the piece that begins after `before` of `message` bytes.
  constexpr std::size_t size_after(std::size_t before, std::size_t message) const noexcept {
    return std::min<std::size_t>(message - before, bytes);
  }
  /// Whether the sender of that piece waits until the receiver has asked for it.
  constexpr bool confirmed(std::size_t number) const noexcept { return at_once && number % (under_way / 2) == 0; }
};

/// UCX reads 64 KiB at a time from a socket, some of them its own.
inline constexpr piece_format tcp_pieces{60U << 10U, 16, true};
/// Shared memory is cut into segments of so many bytes, and some of UCX's own.
inline constexpr piece_format memory_pieces{8U << 10U, 32, true};
inline constexpr piece_format direct_pieces{512U << 10U, 2, false};
/// Not yet measured on a GPU.
inline constexpr piece_format device_pieces{4U << 20U, 2, false};

}  // namespace ucx
HOCKET_END_NAMESPACE
