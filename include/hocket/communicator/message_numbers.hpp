// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Counts the messages of plans on sender and receiver, so that a lost or duplicated message is not mistaken for the
/// next one.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/transport/concept.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// Counters of one rank, for each peer, slot and channel, modulo 256. A peer's first message allocates 64 bytes for
/// each peer of its block of 64.
class message_numbers {
 public:
  explicit message_numbers(int ranks)
      : blocks_((static_cast<std::size_t>(ranks) + peers_per_block - 1) / peers_per_block) {}

  /// Number of the next message to, or from, `peer`.
  std::uint8_t& sent(int peer, transport::message_id id) { return at(peer).sent[index(id)]; }
  std::uint8_t& received(int peer, transport::message_id id) { return at(peer).received[index(id)]; }

 private:
  static constexpr std::size_t peers_per_block = 64;
  static constexpr std::size_t channels = std::size_t{transport::window} * transport::max_channels;

  struct numbers {
    std::array<std::uint8_t, channels> sent{};
    std::array<std::uint8_t, channels> received{};
  };
  using block = std::array<numbers, peers_per_block>;

  static constexpr std::size_t index(transport::message_id id) noexcept {
    return id.slot() * transport::max_channels + id.channel;
  }
  numbers& at(int peer) {
    const auto place = static_cast<std::size_t>(peer);
    auto& holder = blocks_[place / peers_per_block];
    if (holder == nullptr) holder = std::make_unique<block>();
    return (*holder)[place % peers_per_block];
  }

  std::vector<std::unique_ptr<block>> blocks_;
};

/// Signature of message `number` of a call: differs for 256 consecutive messages, also in its lower 12 bits.
constexpr std::uint32_t message_signature(std::uint32_t call_signature, std::uint8_t number) noexcept {
  return call_signature + number * 0x9E3779B1U;
}

}  // namespace detail
HOCKET_END_NAMESPACE
