// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The speed of a transport, as input for the choice of an algorithm, and where that is known from.
#pragma once

#include <hocket/core/config.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>

HOCKET_BEGIN_NAMESPACE
namespace transport {

/// The links between ranks; times in seconds. Must be equal on all ranks of a world.
struct link_costs {
  double message_latency = 2e-6;      ///< per message
  double message_per_byte = 1.5e-10;  ///< for copying through the transport
  double flag_latency = 1e-7;         ///< time until a peer sees a flag
  double load_per_byte = 6e-11;       ///< for reading a peer's memory
  double reduce_per_byte = 6e-11;     ///< for combining two operands
  double load_latency = 0;            ///< to begin reading a peer's memory
  /// What reading costs in addition if the peer has just written the data, so that it is in the peer's cache, and up to
  /// how many bytes, because a cache holds no more.
  double fresh_load_per_byte = 0;
  double fresh_bytes = 0;
  /// A longer message waits for its receiver, which reads it like a peer's memory.
  std::size_t eager_bytes = std::numeric_limits<std::size_t>::max();

  friend constexpr bool operator==(const link_costs&, const link_costs&) = default;
};

/// Where costs are from.
enum class cost_origin : std::uint8_t {
  built_in,  ///< constants of the library
  measured,  ///< by the ranks at start-up
  file       ///< that the user names
};

/// The costs of a world. All ranks must have equal ones.
struct world_costs {
  link_costs current;     ///< for most calls
  link_costs repeatable;  ///< for calls that must choose alike in each run; never measured at start-up
  cost_origin origin = cost_origin::built_in;  ///< of `current`
};

}  // namespace transport
HOCKET_END_NAMESPACE
