// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Definitions of <hocket/collective/explain.hpp>.
#pragma once

#include <hocket/collective/explain.hpp>
#include <hocket/collective/host/host_call.hpp>
#include <hocket/collective/host/impl/call.ipp>
#include <hocket/communicator/communicator.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/text.hpp>
#include <hocket/selection/select.hpp>
#include <hocket/transport/concept.hpp>
#include <hocket/transport/link_costs.hpp>
#include <hocket/transport/link_costs_text.hpp>

#include <cstddef>
#include <cstdio>
#include <limits>
#include <string>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// The algorithm that the options of a call name, if any.
struct named_algorithm {
  std::string name;     ///< empty: the cheapest is chosen
  std::string refusal;  ///< why the algorithm can't run here; empty if it can
};

inline std::string size_in_words(const selection::query& asked) {
  if (asked.bytes == std::numeric_limits<std::size_t>::max()) return "2^64 or more bytes";
  return concat({asked.bytes, " bytes"});
}

inline std::string heading_of(const selection::query& asked) {
  const bool equal = asked.lengths_are_known && asked.total_bytes == 0;
  const char* const up_to = equal ? "" : asked.lengths_are_known ? "up to " : "any length, estimated as ";
  return concat({plan::to_string(asked.what.kind), equal ? "" : "_v", " of ", up_to, size_in_words(asked),
                 asked.what.blocks(asked.ranks) > 1 ? " per block" : "", " on ", asked.ranks, " ranks\n"});
}

/// Returns the remark that the table prints after the price of `row`.
inline std::string remark_on(const selection::candidate& row, const selection::candidate& best,
                             const named_algorithm& named) {
  if (named.name == row.name && !named.refusal.empty()) return "<- named by with(...), which fails: " + named.refusal;
  if (named.name.empty() ? &row == &best : named.name == row.name) {
    return &row == &best ? "<- chosen: the cheapest by the model" : "<- chosen: named by with(...)";
  }
  return row.unusable_reason != nullptr ? row.unusable_reason : "";
}

inline std::string explain_table(const selection::query& asked, const named_algorithm& named) {
  const selection::table candidates(asked);
  const selection::candidate& best = candidates.best();
  std::string text = heading_of(asked);
  bool listed = named.name.empty();
  for (const selection::candidate& each : candidates) {
    char line[80];
    std::snprintf(line, sizeof line, "  %-20s %12.3f us", each.name, each.seconds * 1e6);
    const std::string remark = remark_on(each, best, named);
    text += line + (remark.empty() ? "" : "  " + remark) + '\n';
    listed = listed || named.name == each.name;
  }
  if (listed) return text;
  return text + "  " + named.name + ": " +
         (named.refusal.empty() ? "<- chosen: named by with(...)"
                                : "named by with(...), which fails: " + named.refusal) +
         '\n';
}

/// Returns a line with the costs, and where they are from.
template <class State>
std::string explain_costs(const State& state, bool must_repeat) {
  const transport::world_costs costs = transport::agreed_costs(*state.domain());
  const char* from = "built in";
  if (costs.origin == transport::cost_origin::file) from = "from the file of HOCKET_CONSTANTS";
  if (costs.origin == transport::cost_origin::measured && !must_repeat) from = "measured at start-up";
  return concat({"  costs ", from, ": ", transport::describe(costs_for(state, must_repeat)), "\n"});
}

/// Returns the query of a call. Its lengths may exceed what memory can hold, so products are saturated.
template <class State>
selection::query question_of(const State& state, const call_request& asked) {
  selection::query result = query_of(state, asked);
  if (result.lengths_are_known) {
    result.bytes = selection::saturated_product(asked.block_elements, asked.element_size);
    result.total_bytes = selection::saturated_product(asked.total_elements, asked.element_size);
  }
  return result;
}

template <class Domain>
std::string explain_request(const communicator<Domain>& comm, const call_request& asked,
                            const call_settings& settings) {
  auto& state = communicator_access::state(comm);
  if (const outcome wrong = check_root(asked.what.root, state.size()); wrong.failed()) raise(wrong.cause());
  named_algorithm named;
  if (settings.algorithm != nullptr) {
    failure refused;
    named.name = choose_plan(state, asked, settings, refused).name();
    if (refused) named.refusal = refused.quoted();
  }
  return explain_table(question_of(state, asked), named) + explain_costs(state, asked.has_repeatable_choice);
}

}  // namespace detail
HOCKET_END_NAMESPACE
