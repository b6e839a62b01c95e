// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// `local::run(4, [](auto comm) { … })`: the same function on four threads, each of which is a rank.
#pragma once

#include <hocket/communicator/communicator.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/deadline.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/text.hpp>
#include <hocket/transport/local/domain.hpp>
#include <hocket/transport/local/world.hpp>

#include <cstddef>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
#if HOCKET_HAS_EXCEPTIONS
namespace detail {

/// Raises the failure to start one more thread after `started` threads.
[[noreturn]] HOCKET_DECL void raise_no_thread(std::size_t started, int ranks, const std::system_error& cause);

}  // namespace detail
#endif

namespace local {

/// A communicator of threads.
using communicator = hocket::communicator<domain>;

/// Makes this thread rank `rank` of `place` and returns the communicator of all its ranks. Each rank must be connected
/// once, by its own thread. Throws `error`: `timeout` if the other ranks do not arrive within `timeout`,
/// `invalid_argument` if `rank` is out of range.
HOCKET_DECL communicator connect(std::shared_ptr<world> place, int rank,
                                 std::chrono::nanoseconds timeout = default_timeout);

/// Runs `body(communicator)` on `ranks` threads and waits for all of them. If ranks end by exceptions, `run` rethrows
/// the first one when all threads have ended; ranks that wait for such a rank get `peer_lost`. Throws `system` if the
/// threads can't be started.
template <class Body>
void run(int ranks, Body body) {
  if (ranks < 1) {
    raise(errc::invalid_argument, hocket::detail::concat({"local::run needs at least 1 rank, not ", ranks}));
  }
  const auto place = std::make_shared<world>(ranks);
  std::vector<std::thread> threads;
  threads.reserve(static_cast<std::size_t>(ranks));
#if HOCKET_HAS_EXCEPTIONS
  std::mutex first_mutex;
  std::exception_ptr first;
  const auto leave = [&](int rank) {
    const std::lock_guard lock(first_mutex);
    if (!first) first = std::current_exception();
    place->abandon(rank);
  };
  const auto take_part = [&](int rank) {
    try {
      body(connect(place, rank));
    } catch (...) {
      leave(rank);
    }
  };
  for (int rank = 0; rank < ranks; ++rank) {
    try {
      try {
        threads.emplace_back([&take_part, rank] { take_part(rank); });
      } catch (const std::system_error& cause) {
        hocket::detail::raise_no_thread(threads.size(), ranks, cause);
      }
    } catch (...) {
      for (int missing = rank; missing < ranks; ++missing) leave(missing);
      break;
    }
  }
  for (auto& thread : threads) thread.join();
  if (first) std::rethrow_exception(first);
#else
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] { body(connect(place, rank)); });
  }
  for (auto& thread : threads) thread.join();
#endif
}

}  // namespace local
HOCKET_END_NAMESPACE

#if !defined(HOCKET_SEPARATE_COMPILATION)
#include <hocket/group/impl/local.ipp>
#endif
