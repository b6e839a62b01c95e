// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Definitions of <hocket/group/local.hpp>.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/deadline.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/text.hpp>
#include <hocket/group/local.hpp>
#include <hocket/transport/concept.hpp>
#include <hocket/transport/local/domain.hpp>
#include <hocket/transport/local/world.hpp>

#include <chrono>
#include <cstddef>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
#if HOCKET_HAS_EXCEPTIONS
namespace detail {

HOCKET_DECL void raise_no_thread(std::size_t started, int ranks, const std::system_error& cause) {
  raise(errc::system,
        concat({"can't start thread ", started + 1, " of ", ranks, " for the ranks of local::run: ", cause.what()}));
}

}  // namespace detail
#endif

namespace local {

HOCKET_DECL communicator connect(std::shared_ptr<world> place, int rank, std::chrono::nanoseconds timeout) {
  if (rank < 0 || rank >= place->size()) {
    raise(errc::invalid_argument,
          hocket::detail::concat({"rank is ", rank, "; it must be one of 0 to ", place->size() - 1}),
          {.operation = "local::connect"});
  }
  auto members = std::make_shared<std::vector<int>>(static_cast<std::size_t>(place->size()));
  std::iota(members->begin(), members->end(), 0);
  world* const meeting = place.get();
  transport::open_parameters how;
  how.members = std::move(members);
  how.rank = rank;
  how.exchange = [meeting, rank, timeout](std::span<const std::byte> blob) {
    return meeting->exchange(rank, blob, deadline::after(timeout));
  };
  return communicator(std::make_shared<domain>(std::move(place), rank), std::move(how), 0);
}

}  // namespace local
HOCKET_END_NAMESPACE
