// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The failure of a simulated world in which no operation can make progress: which ranks wait, and for which peers.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/text.hpp>
#include <hocket/transport/sim/endpoint.hpp>
#include <hocket/transport/sim/lanes.hpp>

#include <cstdint>
#include <string>
#include <utility>

HOCKET_BEGIN_NAMESPACE
namespace sim {

/// Returns a failure whose reason names up to 8 waiting lanes and ranks that wait in `send` or `recv`; no failure if
/// none waits. `alive` is the number of lanes that have not completed. The failure's context is that of the first one.
inline failure report_waiting(lane_table& lanes, std::uint64_t alive, const endpoints_in_use& endpoints) {
  constexpr unsigned most_named = 8;
  unsigned named = 0;
  std::string reason = "no operation of this simulated world can make progress:";
  error_context where;
  const auto name = [&](const endpoint& at, int peer, std::uint32_t sequence, const std::string& text) {
    reason += (named++ == 0 ? " " : ", ") + text;
    if (named > 1) return;
    where.sequence = sequence;
    where.rank = at.rank;
    where.ranks = static_cast<int>(at.of->members.size());
    where.peer = peer;
  };
  if (alive > 0) {
    lanes.for_each_waiting([&](const lane& each) {
      name(*each.at, each.awaited_peer, each.sequence, describe(each));
      return named < most_named && named < alive;
    });
  }
  if (alive > named) hocket::detail::append(reason, {", and ", alive - named, " more lanes wait"});
  endpoints.for_each([&](const endpoint& at) {
    if (at.awaited_peer < 0 || named >= most_named) return;
    name(at, at.awaited_peer, 0,
         hocket::detail::concat({"rank ", at.rank, " waits in send or recv for rank ", at.awaited_peer}));
  });
  if (named == 0) return {};
  return make_failure(errc::timeout, std::move(reason), where);
}

}  // namespace sim
HOCKET_END_NAMESPACE
