// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Over which ranks a gradient is added up: one group, or, where a copy of the model is spread inside each host and
/// hosts hold copies, two that cross each other. Traffic between hosts then is the smaller part.
#pragma once

#include <hocket/communicator/communicator.hpp>
#include <hocket/core/config.hpp>

HOCKET_BEGIN_NAMESPACE

/// Ranks that share one copy of the model, and ranks that hold the same part of different copies. Made by `hybrid`.
template <class Wire>
struct hybrid_group {
  using wire_type = Wire;
  static constexpr bool has_replicas = true;
  const communicator<Wire>* shards;
  const communicator<Wire>* replicas;
};

/// For gradients and parameters that are sharded over `shards` and replicated over `replicas`: the communicators along
/// two axes of a mesh. They must outlive what is made with the result.
template <class Wire>
hybrid_group<Wire> hybrid(const communicator<Wire>& shards, const communicator<Wire>& replicas) noexcept {
  return {&shards, &replicas};
}
template <class Wire>
hybrid_group<Wire> hybrid(communicator<Wire>&&, const communicator<Wire>&) = delete;
template <class Wire>
hybrid_group<Wire> hybrid(const communicator<Wire>&, communicator<Wire>&&) = delete;

namespace detail {

/// One group alone.
template <class Wire>
struct plain_group {
  using wire_type = Wire;
  static constexpr bool has_replicas = false;
  const communicator<Wire>* shards;
};

template <class Wire>
plain_group<Wire> as_group(const communicator<Wire>& comm) noexcept {
  return {&comm};
}
template <class Wire>
hybrid_group<Wire> as_group(const hybrid_group<Wire>& group) noexcept {
  return group;
}

}  // namespace detail
HOCKET_END_NAMESPACE
