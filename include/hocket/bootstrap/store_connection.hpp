// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// By which addresses a rank has reached the store. They show which network interface leads to the other ranks.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/platform/network_interface.hpp>

#include <concepts>

HOCKET_BEGIN_NAMESPACE
namespace bootstrap {

/// Both addresses are empty if the store has no connections, such as a directory.
struct store_connection {
  platform::ip_address local;   ///< of this rank
  platform::ip_address remote;  ///< of the rank that serves the store
};

/// A store whose ranks are connected with rank 0, which serves it.
template <typename Store>
concept has_connection = requires(const Store& place) {
  { place.connection() } -> std::same_as<store_connection>;
};

}  // namespace bootstrap
HOCKET_END_NAMESPACE
