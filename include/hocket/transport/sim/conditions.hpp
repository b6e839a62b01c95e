// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The conditions of a simulated world: how long operations take in it, and how much that varies.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/mixed_bits.hpp>
#include <hocket/plan/cost_model.hpp>
#include <hocket/transport/link_costs.hpp>

#include <cstdint>

HOCKET_BEGIN_NAMESPACE
namespace sim {

/// The network of simulated ranks: its costs, and how they vary.
struct conditions {
  plan::cost_model model = plan::example_machine;  ///< costs of messages and copies
  /// The latency of each message is multiplied by 1 + jitter · u, with u between 0 and 1 drawn for that message alone.
  double jitter = 0;
  /// Equal seeds give equal draws: u depends on the seed and on which message it is, not on the order of events.
  std::uint64_t seed = 0;
};

/// Converts the cost model of such a world to the costs by which algorithms are chosen.
constexpr transport::link_costs costs_of(const plan::cost_model& model) noexcept {
  return {model.latency, model.seconds_per_byte, model.flag_latency, model.peer_seconds_per_byte,
          model.reduce_seconds_per_byte};
}

namespace detail {

constexpr std::uint64_t mix(std::uint64_t bits) noexcept {
  return hocket::detail::mixed_bits(bits + hocket::detail::golden_ratio);
}

/// Returns a number in [0, 1) for the `count`-th message of its kind: `key` is from operation, channel and sender.
constexpr double draw(std::uint64_t seed, std::uint64_t key, std::uint64_t receiver, std::uint64_t count) noexcept {
  const std::uint64_t bits = mix(mix(mix(seed) ^ key) ^ mix((receiver << 32) ^ count));
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

}  // namespace detail
}  // namespace sim
HOCKET_END_NAMESPACE
