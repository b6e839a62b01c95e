// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Tells which algorithm a call would choose, and why: the model's table, row by row.
#pragma once

#include <hocket/collective/detail/call.hpp>
#include <hocket/communicator/communicator.hpp>
#include <hocket/core/config.hpp>
#include <hocket/kernel/host/leaf.hpp>
#include <hocket/operation/traits.hpp>
#include <hocket/selection/select.hpp>

#include <cstddef>
#include <cstdio>
#include <functional>
#include <string>

HOCKET_BEGIN_NAMESPACE
namespace detail {

inline std::string explain_table(const selection::query& asked) {
  const selection::table candidates(asked);
  const selection::candidate& best = candidates.best();
  char line[160];
  std::snprintf(line, sizeof line, "%s of %zu bytes%s on %d ranks\n", plan::to_string(asked.what.kind), asked.bytes,
                asked.what.blocks(asked.ranks) > 1 ? " per block" : "", asked.ranks);
  std::string text = line;
  for (const selection::candidate& each : candidates) {
    std::snprintf(line, sizeof line, "  %-20s %12.3f us  %s\n", each.name, each.seconds * 1e6,
                  &each == &best            ? "<- chosen: the cheapest by the model"
                  : each.verdict != nullptr ? each.verdict
                                            : "");
    text += line;
  }
  return text;
}

}  // namespace detail

/// The table from which `collective` chooses for `count` elements of T per rank's `out` (per block where the result has
/// blocks): `explain<float>(comm, all_reduce, 1 << 20)`. Local; the answer is the same on all ranks.
template <class T, class Wire, class Collective, class Op = std::plus<>>
std::string explain(const communicator<Wire>& comm, const Collective&, std::size_t count, const Op& = {}) {
  detail::call_request asked{.what = {Collective::goal, 0}, .block_elements = count, .element_size = sizeof(T)};
  if constexpr (plan::goal{Collective::goal, 0}.reduces()) {
    asked.element_size = kernel::leaf_of<Op, T>.size;
    asked.commutative = is_commutative_v<Op, T>;
  }
  return detail::explain_table(detail::query_of(detail::communicator_access::state(comm), asked));
}

HOCKET_END_NAMESPACE
