// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// `auto comm = hocket::ucx::connect();`: from the variables that the launcher has set to a communicator of all ranks.
#pragma once

#include <hocket/bootstrap/environment.hpp>
#include <hocket/communicator/communicator.hpp>
#include <hocket/core/config.hpp>
#include <hocket/transport/ucx/domain.hpp>

#include <chrono>
#include <cstddef>
#include <stop_token>

HOCKET_BEGIN_NAMESPACE
namespace ucx {

/// A communicator of processes.
using communicator = hocket::communicator<domain>;

/// How the world is made. All ranks pass the same, but for `stop`.
struct connect_options {
  /// How long start-up may take, and each call by default; 0: as the world says (`HOCKET_TIMEOUT`, or 60 s).
  std::chrono::nanoseconds timeout{};
  /// Memory through which ranks of one host read buffers that are not from `hocket::allocate`: so much for each of two
  /// regions and `transport::window` operations, on each rank and communicator. Only what is used takes up memory.
  std::size_t staging_bytes = 256 * 1024;
  /// Lets another thread end start-up, which then fails with `aborted`, here and on the other ranks. Of no use
  /// afterwards: a communicator has `abort`. Each rank may pass one of its own, or none.
  std::stop_token stop{};
};

namespace detail {

/// As `connect`.
HOCKET_DECL communicator connect_world(const bootstrap::world_description& world, const connect_options& options);

}  // namespace detail

/// Joins the world that `world` describes, and returns the communicator of all its ranks.
///
/// Collective over the world: returns when all ranks have come. The store is not needed afterwards.
/// **Threads.** Another one may end it by `options.stop`: it waits at most 2 ms longer, but UCX's own setting up, which
/// takes tens of milliseconds and waits for nobody, is not interrupted.
/// **Errors.** Throws `error`: `timeout` names ranks that have not come; `peer_lost`: one has come, and is gone;
/// `aborted`: `options.stop` was triggered here, and the reason names the ranks that had not come, or on the rank
/// `context().peer`, and the reason says so; `refused`: what answers at the store's address is not this job;
/// `mismatch`: ranks do not fit together; `unreachable`: UCX's settings lead from some rank to none; `out_of_memory`:
/// no memory to share; `bad_environment`: a variable, port or directory is wrong; `system`.
///
/// A template, so that `connect({.timeout = 10s})` means the options, and not a world that has a timeout.
template <class = void>
communicator connect(const bootstrap::world_description& world, const connect_options& options = {}) {
  return detail::connect_world(world, options);
}

/// Joins the world that this process's variables describe (see bootstrap/environment.hpp); without any, a world of one:
/// `connect()`, `connect({.timeout = 10s})`.
HOCKET_DECL communicator connect(const connect_options& options = {});

}  // namespace ucx
HOCKET_END_NAMESPACE

#if !defined(HOCKET_SEPARATE_COMPILATION)
#include <hocket/group/impl/ucx.ipp>
#endif
