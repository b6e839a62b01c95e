// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The costs of links in a table, for functions that treat all of them alike.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/transport/link_costs.hpp>

HOCKET_BEGIN_NAMESPACE
namespace transport::detail {

using cost_value = double link_costs::*;  // named for nvcc, whose output g++ would warn about

struct cost_member {
  const char* name;
  cost_value value;
  const char* meaning;
};

inline constexpr cost_member cost_members[] = {
    {"message_latency", &link_costs::message_latency, "seconds per message"},
    {"message_per_byte", &link_costs::message_per_byte, "seconds per byte of a message"},
    {"flag_latency", &link_costs::flag_latency, "seconds until a peer sees a flag"},
    {"load_per_byte", &link_costs::load_per_byte, "seconds per byte that is read from a peer's memory"},
    {"reduce_per_byte", &link_costs::reduce_per_byte, "seconds per byte that is combined"},
    {"load_latency", &link_costs::load_latency, "seconds to begin reading a peer's memory"},
    {"fresh_load_per_byte", &link_costs::fresh_load_per_byte, "more per byte that the peer has just written"},
    {"fresh_bytes", &link_costs::fresh_bytes, "up to so many bytes"},
};

}  // namespace transport::detail
HOCKET_END_NAMESPACE
