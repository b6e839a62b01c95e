// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The speed of a transport, as input for the choice of an algorithm.
#pragma once

#include <hocket/core/config.hpp>

HOCKET_BEGIN_NAMESPACE
namespace transport {

/// The links between ranks, in seconds. Must be equal on all ranks of a world.
struct link_costs {
  double message_latency = 2e-6;      ///< per message
  double message_per_byte = 1.5e-10;  ///< for copying through the transport
  double flag_latency = 1e-7;         ///< time until a peer sees a flag
  double load_per_byte = 6e-11;       ///< for reading a peer's memory
  double reduce_per_byte = 6e-11;     ///< for combining two operands
};

}  // namespace transport
HOCKET_END_NAMESPACE
