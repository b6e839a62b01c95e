// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Opens the store that a description of the world names, whatever its kind.
#pragma once

#include <hocket/bootstrap/any_store.hpp>
#include <hocket/bootstrap/directory_store.hpp>
#include <hocket/bootstrap/environment.hpp>
#include <hocket/bootstrap/store.hpp>
#include <hocket/bootstrap/tcp_store.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/platform/file_descriptor.hpp>
#include <hocket/core/platform/socket.hpp>
#include <hocket/core/text.hpp>

#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <unistd.h>

HOCKET_BEGIN_NAMESPACE

namespace bootstrap {

/// The store of a world of one rank: a map. No other rank could set a key, so `get` never waits.
class single_store {
 public:
  void set(std::string_view key, byte_view value, const wait_limit& /*limit*/) {
    values_[std::string(key)].assign(value.begin(), value.end());
  }

  blob get(std::string_view key, const wait_limit& /*limit*/) {
    const auto found = values_.find(std::string(key));
    if (found == values_.end()) {
      raise(errc::timeout,
            hocket::detail::concat({"'", key, "' was not set, and a world of one has no other rank to set it"}),
            detail::store_context("store.get", 0, 1));
    }
    return found->second;
  }

  std::vector<blob> gather(std::string_view /*key*/, int /*rank*/, int ranks, byte_view mine,
                           const wait_limit& /*limit*/) {
    if (ranks != 1) {
      raise(errc::invalid_argument, hocket::detail::concat({"this store is for one rank, not for ", ranks}),
            detail::store_context("exchange", 0, 1));
    }
    return {blob(mine.begin(), mine.end())};
  }

 private:
  std::map<std::string, blob> values_;
};

namespace detail {

/// The port of the last TCP store that this process has joined; 0: none. Rank 0 closes the port after start-up, so that
/// nothing listens while the program runs. If the program connects once more, rank 0 opens the port again.
inline std::atomic<std::uint16_t>& joined_port() noexcept {
  static std::atomic<std::uint16_t> port{0};
  return port;
}

inline any_store connect_tcp_store(const world_description& world, const wait_limit& limit) {
  tcp_store_options how{world.rank, world.ranks, world.address, world.port, world.token, world.listener, world.open};
  // The number in the variable may no longer refer to that socket: check it before use.
  if (world.listener >= 0 && platform::local_address(world.listener).port() != world.port) {
    if (joined_port() != world.port) {
      raise(errc::bad_environment,
            hocket::detail::concat({"HOCKET_STORE_FD='", world.listener, "' is not a socket that listens on port ",
                                    world.port, ": start this program from launch::spawn, or unset the variable"}),
            detail::store_context("connect", world.rank, world.ranks));
    }
    how.listener = -1;
  }
  how.open = how.open && joined_port() != world.port;
  // Programs that this rank starts must not hold the port open.
  if (how.listener >= 0) platform::set_inherited(how.listener, false);
  any_store place(tcp_store(how, limit));  // with a duplicate of the listener
  if (how.listener >= 0) ::close(how.listener);
  joined_port() = world.port;
  return place;
}

}  // namespace detail

/// Opens the store that `world` names. Collective: every rank calls it.
/// **Errors.** Those of `tcp_store` and `directory_store`; `bad_environment` if `world` names no store.
inline any_store connect_store(const world_description& world, const wait_limit& limit) {
  if (!world.directory.empty()) {
    return any_store(directory_store({world.rank, world.ranks, world.directory, world.token}, limit));
  }
  if (!world.address.empty()) return detail::connect_tcp_store(world, limit);
  if (world.ranks == 1) return any_store(single_store());
  raise(errc::bad_environment, "no store is configured: set HOCKET_STORE=tcp://host:port of rank 0",
        detail::store_context("connect", world.rank, world.ranks));
}

}  // namespace bootstrap

HOCKET_END_NAMESPACE
