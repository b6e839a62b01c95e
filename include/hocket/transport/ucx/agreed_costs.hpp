// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The costs by which the ranks of a world choose algorithms, equal on all of them. On one host they measure a part at
/// start-up, if each rank has a core; the variable `HOCKET_CONSTANTS` can name a file instead, or `built_in`.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/transport/concept.hpp>
#include <hocket/transport/link_costs.hpp>
#include <hocket/transport/ucx/connections.hpp>
#include <hocket/transport/ucx/endpoint_group.hpp>

#include <memory>

HOCKET_BEGIN_NAMESPACE
namespace ucx {

/// Costs between processes that reach each other only through UCX.
constexpr transport::link_costs network_costs() noexcept { return {1e-5, 2.5e-10, 1.8e-7, 2e-11, 2.5e-11}; }

/// Collective over the world, whose communicator has `endpoints`, if these share memory. Returns the costs on one host.
/// Raises `bad_environment` if this rank's `HOCKET_CONSTANTS` can't be used, and `mismatch` on the other ranks, or on
/// all ranks if it differs.
HOCKET_DECL transport::world_costs agree_on_costs(const std::shared_ptr<connections>& links,
                                                  const endpoint_group& endpoints,
                                                  const transport::open_parameters& how);

}  // namespace ucx
HOCKET_END_NAMESPACE

#if !defined(HOCKET_SEPARATE_COMPILATION)
#include <hocket/transport/ucx/impl/agreed_costs.ipp>
#endif
