// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Tied parameters, which several stages share, such as the embedding and the head of a language model. Each stage adds
/// up the gradients of its own copy; after a step the copies are summed over the ranks that hold them.
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

/// Returns the ranks that hold one of `stages`, in ascending order.
inline std::vector<int> holders(const plan::pipeline::placement& where, const std::vector<int>& stages,
                                const std::source_location& site = std::source_location::current()) {
  std::vector<int> found;
  for (const int stage : stages) {
    if (stage < 0 || stage >= where.stages()) {
      raise(errc::invalid_argument,
            hocket::detail::concat({"there is no stage ", stage, " to tie; the number of stages is ", where.stages()}),
            {.operation = "pipeline", .site = site});
    }
    for (int rank = 0; rank < where.ranks(); ++rank) {
      if (where.holds(rank, stage) && std::find(found.begin(), found.end(), rank) == found.end()) found.push_back(rank);
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

/// Sums the gradient of parameters that `stages` share over the ranks that hold one of them. Each rank adds in rank
/// order, so `gradient` is then bitwise equal on all of them. A rank that holds several of the stages passes one
/// buffer, to which all of them have added. Call it after `run` with equal stages, on all ranks or at least on all that
/// hold one of them; on other ranks it has no effect, and `gradient` may be empty.
///
/// Two-directional schedules have two copies of each stage: all of them are summed. Cost: for n ranks that hold one,
/// n - 1 messages each way, one after the other, and memory for n gradients. The messages have a separate channel.
/// Raises what `send_recv` raises, and `mismatch` or `truncated` if lengths differ.
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
