// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Definitions of <hocket/group/ucx.hpp>: start-up.
#pragma once

#include <hocket/bootstrap/any_store.hpp>
#include <hocket/bootstrap/blob.hpp>
#include <hocket/bootstrap/connect_store.hpp>
#include <hocket/bootstrap/environment.hpp>
#include <hocket/bootstrap/store.hpp>
#include <hocket/communicator/communicator.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/deadline.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/text.hpp>
#include <hocket/group/ucx.hpp>
#include <hocket/transport/concept.hpp>
#include <hocket/transport/ucx/arrival.hpp>
#include <hocket/transport/ucx/domain.hpp>
#include <hocket/transport/ucx/process_identity.hpp>
#include <hocket/transport/ucx/workarounds/leftover_segments.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace ucx {
namespace detail {

/// Start-up of one rank.
class start_up {
 public:
  start_up(const bootstrap::world_description& world, bootstrap::any_store store, deadline until, std::stop_token stop)
      : world_(world), stop_(std::move(stop)), until_(until), store_(std::move(store)) {}
  start_up(const start_up&) = delete;
  start_up& operator=(const start_up&) = delete;

  communicator run(const connect_options& options) {
#if HOCKET_HAS_EXCEPTIONS
    try {
      return join_and_finish(options);
    } catch (const error& cause) {
      failure found = cause.cause();
      if (!store_failed_) store_.report_failure(found);
      if (found.code == errc::peer_lost && !store_failed_ && store_.obeys_limits())
        found = what_came_first(std::move(found));
      found.context.operation = "connect";  // whichever step found it
      raise(std::move(found));
    }
#else
    return join_and_finish(options);
#endif
  }

 private:
  static std::size_t index(int rank) noexcept { return static_cast<std::size_t>(rank); }

  communicator join_and_finish(const connect_options& options) {
    communicator made = join(options);
    store_.finish();
    return made;
  }

  communicator join(const connect_options& options) {
    const transport::exchange_function exchange = [this](std::span<const std::byte> blob) {
      return this->exchange(blob);
    };
    const std::vector<process_identity> identities = exchange_identities(options);
    remove_leftover_segments();
    std::shared_ptr<domain> through = join_by_first_way(identities, exchange);
    auto members = std::make_shared<std::vector<int>>(index(world_.ranks));
    std::iota(members->begin(), members->end(), 0);
    transport::open_parameters how;
    how.members = std::move(members);
    how.rank = world_.rank;
    how.exchange = exchange;
    return communicator(std::move(through), std::move(how), options.staging_bytes);
  }

  /// Returns a domain in which each rank has reached its neighbour. Tries the ways one after the other; all ranks agree
  /// on the first that works.
  std::shared_ptr<domain> join_by_first_way(const std::vector<process_identity>& identities,
                                            const transport::exchange_function& exchange) {
    failure found;
    for (const connection_way way : ways_to_connect(identities)) {
      if (way == connection_way::memory && !agree(may_open_files_of(identities))) continue;
      failure cause;
      std::shared_ptr<domain> through = domain::join(world_.rank, identities, way, exchange, cause);
      if (!cause) cause = try_neighbour(*through);
      if (!cause) return through;
      if (found) cause.reason = hocket::detail::concat({found.reason, "; without shared memory: ", cause.reason});
      found = std::move(cause);
      if (found.code == errc::peer_lost) break;
    }
    found.context.operation = "connect";
    found.context.rank = world_.rank;
    found.context.ranks = world_.ranks;
    raise(std::move(found));
  }

  /// Returns whether all ranks pass true.
  bool agree(bool mine) {
    const std::byte own{mine ? std::uint8_t{1} : std::uint8_t{0}};
    const auto all = exchange({&own, 1});
    return std::all_of(all.begin(), all.end(), [](const auto& each) { return each == bootstrap::blob{std::byte{1}}; });
  }

#if HOCKET_HAS_EXCEPTIONS
  /// If a peer is gone, perhaps only because another peer was lost first, asks the store: it reports which rank was
  /// lost first to a rank that waits for all ranks once more.
  failure what_came_first(failure found) {
    try {
      bootstrap::exchange(store_, "ucx.lost", world_.rank, world_.ranks, {},
                          wait_limit(deadline::after(std::chrono::seconds(1)), stop_));
    } catch (const error& cause) {
      if (cause.code() == errc::aborted) return cause.cause();
      if (cause.code() == errc::peer_lost && cause.context().peer != world_.rank) return cause.cause();
    }
    return found;
  }
#endif

  std::vector<bootstrap::blob> exchange(bootstrap::byte_view mine) {
    store_failed_ = true;  // unless it returns
    auto all = bootstrap::exchange(store_, hocket::detail::concat({"ucx.", ++round_}), world_.rank, world_.ranks, mine,
                                   wait_limit(until_, stop_));
    store_failed_ = false;
    return all;
  }

  /// Exchanges identities. Fails on all ranks if they differ in what must be equal on all ranks.
  std::vector<process_identity> exchange_identities(const connect_options& options) {
    const arrival own = own_arrival(options.staging_bytes);
    std::vector<process_identity> all;
    for (const auto& blob : exchange(std::as_bytes(std::span(&own, 1)))) {
      const int rank = static_cast<int>(all.size());
      const std::optional<arrival> each = arrival_from(blob);
      std::string reason = each ? difference(own, world_.rank, *each, rank)
                                : hocket::detail::concat({"rank ", rank, " runs another version of hocket"});
      if (!reason.empty()) raise(errc::mismatch, std::move(reason), {.peer = rank});
      all.push_back(each->who);
    }
    return all;
  }

  /// Finds unusable settings early, and returns the reason, on all ranks: no rank leaves before the others know it.
  failure try_neighbour(domain& through) {
    const int next = (world_.rank + 1) % world_.ranks, previous = (world_.rank + world_.ranks - 1) % world_.ranks;
    failure cause = through.reach(next);
    if (!cause) through.await_greetings({next, previous});
    if (cause.code != errc::peer_lost) {
      const auto reasons = exchange(std::as_bytes(std::span(cause.reason)));
      for (int rank = 0; rank < world_.ranks && !cause; ++rank) {
        const std::string reason = bootstrap::blob_text(reasons[index(rank)]);
        if (reason.empty()) continue;
        cause = make_failure(errc::unreachable, hocket::detail::concat({"rank ", rank, " reports: ", reason}),
                             {.peer = rank});
      }
    }
    return cause;
  }

  const bootstrap::world_description& world_;
  const std::stop_token stop_;
  const deadline until_;
  bootstrap::any_store store_;
  int round_ = 0;
  bool store_failed_ = false;  ///< the store has reported the first lost rank, or is gone itself
};

/// Catches, so that an error unwinds the stack even in a program without a handler: otherwise the program would
/// terminate before the destructor of rank 0's store sends its last messages to the other ranks.
template <class OpenStore>
communicator start_up_unwinding(const bootstrap::world_description& world, std::chrono::nanoseconds timeout,
                                const connect_options& options, const OpenStore& open_store) {
  const deadline until = deadline::after(timeout);
#if HOCKET_HAS_EXCEPTIONS
  try {
    return start_up(world, open_store(wait_limit(until, options.stop)), until, options.stop).run(options);
  } catch (...) {
    throw;
  }
#else
  return start_up(world, open_store(wait_limit(until, options.stop)), until, options.stop).run(options);
#endif
}

template <class OpenStore>
communicator connect_by(const bootstrap::world_description& world, const connect_options& options,
                        const OpenStore& open_store) {
  const std::chrono::nanoseconds timeout = options.timeout.count() > 0 ? options.timeout : world.timeout;
  communicator made = start_up_unwinding(world, timeout, options, open_store);
  made.set_timeout(timeout);
  made.set_flight_recorder(world.flight_recorder);
  return made;
}

HOCKET_DECL communicator connect_world(const bootstrap::world_description& world, const connect_options& options) {
  return connect_by(world, options, [&](const wait_limit& limit) { return bootstrap::connect_store(world, limit); });
}

HOCKET_DECL communicator connect_through(bootstrap::any_store store, const bootstrap::world_description& world,
                                         const connect_options& options) {
  return connect_by(world, options, [&](const wait_limit&) { return std::move(store); });
}

}  // namespace detail

HOCKET_DECL communicator connect(const connect_options& options) {
  return connect(bootstrap::read_environment(), options);
}

}  // namespace ucx
HOCKET_END_NAMESPACE
