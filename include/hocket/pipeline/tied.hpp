// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Parameters that several stages share, as an embedding and the head of a language model do: each stage adds up the
/// gradients of its own copy, and after a step the copies are added between the ranks that hold them.
#pragma once

#include <hocket/collective/detail/misuse.hpp>
#include <hocket/collective/host/call_settings.hpp>
#include <hocket/collective/host/point_to_point.hpp>
#include <hocket/communicator/communicator.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/text.hpp>
#include <hocket/schedule/placement.hpp>
#include <hocket/transport/concept.hpp>

#include <algorithm>
#include <cstddef>
#include <source_location>
#include <span>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace pipeline {

/// The ranks that hold one of `stages`, ascending.
inline std::vector<int> holders(const plan::pipeline::placement& where, const std::vector<int>& stages,
                                const std::source_location& site = std::source_location::current()) {
  std::vector<int> found;
  for (const int stage : stages) {
    if (stage < 0 || stage >= where.stages()) {
      raise(errc::invalid_argument,
            hocket::detail::concat({"there is no stage ", stage, " to be tied; there are ", where.stages()}),
            {.operation = "pipeline", .site = site});
    }
    for (int rank = 0; rank < where.ranks(); ++rank) {
      if (where.holds(rank, stage) && std::find(found.begin(), found.end(), rank) == found.end()) found.push_back(rank);
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

/// Sums a gradient of parameters that `stages` share, over the ranks that hold one of them: `gradient` is then the same
/// on all of these, in every bit, as each adds in the order of ranks. A rank that holds several of the stages gives one
/// buffer, to which all of them have added. Call it after `run`, on all ranks, with equal stages, or at least on all
/// that hold one; on others nothing happens, and `gradient` may be empty.
///
/// Two-directional schedules have two copies of each stage: all of them are summed. Cost: with n ranks that hold one,
/// n - 1 messages each way, one after the other, and memory for n gradients; they never meet messages of the caller's.
/// Raises what `send_recv` raises, and `mismatch` or `truncated` where lengths differ.
template <class Domain, class T>
void add_tied(const communicator<Domain>& comm, const plan::pipeline::placement& where, const std::vector<int>& stages,
              std::span<T> gradient, const std::source_location& site = std::source_location::current()) {
  const std::vector<int> ranks = holders(where, stages, site);
  const auto own = std::find(ranks.begin(), ranks.end(), comm.rank());
  if (own == ranks.end() || ranks.size() == 1) return;
  const auto count = ranks.size();
  const auto self = static_cast<std::size_t>(own - ranks.begin());
  std::vector<std::vector<T>> parts(count);
  parts[self].assign(gradient.begin(), gradient.end());
  for (std::size_t distance = 1; distance < count; ++distance) {
    const std::size_t from = (self + count - distance) % count;
    parts[from].resize(gradient.size());
    const hocket::detail::message_spec exchange{.name = "add_tied",
                                                .out = std::as_bytes(std::span(parts[self])),
                                                .in = std::as_writable_bytes(std::span(parts[from])),
                                                .to = ranks[(self + distance) % count],
                                                .from = ranks[from],
                                                .channel = transport::partial_channel,
                                                .sent_type = hocket::detail::element_signature<T>(),
                                                .received_type = hocket::detail::element_signature<T>()};
    hocket::detail::deliver(hocket::detail::run_message(comm, exchange, hocket::detail::default_settings, site));
  }
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    T sum = parts[0][i];
    for (std::size_t part = 1; part < count; ++part) sum = static_cast<T>(sum + parts[part][i]);
    gradient[i] = sum;
  }
}

}  // namespace pipeline
HOCKET_END_NAMESPACE
