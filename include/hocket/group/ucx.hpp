// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// `auto comm = hocket::ucx::connect();`: makes a communicator of all ranks from the launcher's environment variables.
/// Programs that have started their ranks by other means pass `connect` a description of the world, or an all-gather.
#pragma once

#include <hocket/bootstrap/all_gather_store.hpp>
#include <hocket/bootstrap/any_store.hpp>
#include <hocket/bootstrap/environment.hpp>
#include <hocket/communicator/communicator.hpp>
#include <hocket/core/config.hpp>
#include <hocket/transport/ucx/domain.hpp>

#include <chrono>
#include <cstddef>
#include <stop_token>
#include <utility>

HOCKET_BEGIN_NAMESPACE
namespace ucx {

/// A communicator of processes.
using communicator = hocket::communicator<domain>;

/// Options of start-up. All ranks must pass the same, except for `stop`.
struct connect_options {
  /// Time limit of start-up, and default of each call; 0: as the world defines (`HOCKET_TIMEOUT`, or 60 s).
  std::chrono::nanoseconds timeout{};
  /// Memory through which ranks of one host read buffers that are not from `hocket::allocate`: this size for each of
  /// two regions and `transport::window` operations, on each rank and communicator. Only used pages occupy memory.
  std::size_t staging_bytes = 256 * 1024;
  /// Lets another thread cancel start-up, which then fails with `aborted`, here and on the other ranks. Has no effect
  /// after start-up: then use the communicator's `abort`. Each rank may pass its own token, or none.
  std::stop_token stop{};
};

namespace detail {

/// Implements `connect`.
HOCKET_DECL communicator connect_world(const bootstrap::world_description& world, const connect_options& options);
HOCKET_DECL communicator connect_through(bootstrap::any_store store, const bootstrap::world_description& world,
                                         const connect_options& options);

}  // namespace detail

/// Joins the world that `world` describes, and returns the communicator of all its ranks.
///
/// Collective over the world: returns when all ranks have joined. The store is not needed afterwards.
/// **Threads.** Another thread may cancel start-up by `options.stop`. The call then ends within 2 ms, except during UCX
/// initialization, which takes tens of milliseconds, waits for no rank and can't be interrupted.
/// **Errors.** Throws `error`: `timeout` names ranks that have not arrived; `peer_lost`: a rank arrived and is gone;
/// `aborted`: `options.stop` was triggered here, and the reason names the missing ranks, or on rank `context().peer`,
/// which the reason names too; `refused`: the server at the store's address is not this job; `mismatch`: ranks do not
/// match; `unreachable`: UCX's settings leave two ranks without a transport, or messages between two hosts do not
/// arrive, and the reason names their interfaces; `out_of_memory`: less memory than the communicator needs;
/// `invalid_argument`: `staging_bytes` is too much for this host; `bad_environment`: a variable, port or directory is
/// invalid; `system`.
///
/// A template, so that `connect({.timeout = 10s})` means the options, not a world with a timeout.
template <class = void>
communicator connect(const bootstrap::world_description& world, const connect_options& options = {}) {
  return detail::connect_world(world, options);
}

/// Joins a world of `ranks` ranks that can exchange bytes already: by `all_gather`, a function that takes the bytes of
/// this rank and returns those of all ranks, in rank order. hocket opens no port for start-up then, and reads no variable
/// but `HOCKET_TIMEOUT` and `HOCKET_FLIGHT_RECORDER`.
///
/// @code
/// auto comm = hocket::ucx::connect(
///     [&](std::span<const std::byte> mine) -> std::vector<std::vector<std::byte>> { return gather_by_mpi(mine); },
///     mpi_rank, mpi_size);
/// @endcode
///
/// Collective over the ranks. `all_gather` is called a few times, equally often on every rank, in this thread; blobs are
/// of some hundred bytes, and differ in size. It is not called after start-up.
/// **Errors.** As above. If start-up fails on one rank, it fails on all of them, provided that `all_gather` returns: no
/// timeout can end it. Exceptions of `all_gather` pass through. `invalid_argument`: `rank` is not in [0, ranks), or
/// `all_gather` has not returned the bytes of each rank.
template <bootstrap::all_gather_function AllGather>
communicator connect(AllGather all_gather, int rank, int ranks, const connect_options& options = {}) {
  const bootstrap::world_description world = bootstrap::world_of(rank, ranks);
  bootstrap::all_gather_store<AllGather> store(std::move(all_gather), rank, ranks);
  return detail::connect_through(bootstrap::any_store(std::move(store)), world, options);
}

/// The same through a store: see bootstrap/store.hpp.
template <bootstrap::store Store>
communicator connect(Store store, int rank, int ranks, const connect_options& options = {}) {
  return detail::connect_through(bootstrap::any_store(std::move(store)), bootstrap::world_of(rank, ranks), options);
}

/// Joins the world that this process's variables describe (see bootstrap/environment.hpp); without any, a world of one
/// rank: `connect()`, `connect({.timeout = 10s})`.
HOCKET_DECL communicator connect(const connect_options& options = {});

}  // namespace ucx
HOCKET_END_NAMESPACE

#if !defined(HOCKET_SEPARATE_COMPILATION)
#include <hocket/group/impl/ucx.ipp>
#endif
