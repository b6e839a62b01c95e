// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// What a transport says about its speed, so that an algorithm can be chosen.
#pragma once

#include <hocket/core/config.hpp>

HOCKET_BEGIN_NAMESPACE
namespace transport {

/// The links between ranks, in seconds. Must be equal on all ranks of a world.
struct link_costs {
  double message_latency = 2e-6;      ///< per message
  double message_per_byte = 1.5e-10;  ///< copied through the transport
  double flag_latency = 1e-7;         ///< until a peer sees a flag
  double load_per_byte = 6e-11;       ///< reading a peer's memory
  double reduce_per_byte = 6e-11;     ///< combining two operands
};

}  // namespace transport
HOCKET_END_NAMESPACE
