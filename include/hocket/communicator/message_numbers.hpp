// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The messages of plans are counted, by sender and receiver alike, so that one that got lost, or came twice, is not
/// taken for the one behind it.
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

/// Of one rank, for each peer, slot and channel; modulo 256. Takes up 64 bytes for each peer that it is asked for, and
/// for the 63 around it.
class message_numbers {
 public:
  explicit message_numbers(int ranks)
      : blocks_((static_cast<std::size_t>(ranks) + peers_per_block - 1) / peers_per_block) {}

  /// Of the next message to, or from, `peer`.
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

/// The signature of message `number` of a call: no two of 256 in a row have the same, nor the same lower 12 bits.
constexpr std::uint32_t message_signature(std::uint32_t call_signature, std::uint8_t number) noexcept {
  return call_signature + number * 0x9E3779B1U;
}

}  // namespace detail
HOCKET_END_NAMESPACE
