// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Tells which algorithm a call would choose, and why: the model's table, row by row.
#pragma once

#include <hocket/collective/detail/blocks.hpp>
#include <hocket/collective/detail/call.hpp>
#include <hocket/communicator/communicator.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/strong_types.hpp>
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
  const bool equal = asked.lengths_are_known && asked.total_bytes == 0;
  const char* const up_to = equal ? "" : asked.lengths_are_known ? "up to " : "any length, taken for ";
  std::snprintf(line, sizeof line, "%s%s of %s%zu bytes%s on %d ranks\n", plan::to_string(asked.what.kind),
                equal ? "" : "_v", up_to, asked.bytes, asked.what.blocks(asked.ranks) > 1 ? " per block" : "",
                asked.ranks);
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

namespace detail {

/// Whether a collective takes equal blocks, or counts.
template <class Collective>
constexpr block_lengths lengths_of() noexcept {
  if constexpr (requires { Collective::block_lengths; }) {
    return Collective::block_lengths;
  } else {
    return block_lengths::equal;
  }
}

/// What a call of `Collective` asks for, but for the lengths.
template <class T, class Collective, class Op>
call_request request_of() noexcept {
  call_request asked{.what = {Collective::goal, 0}, .element_size = sizeof(T), .lengths = lengths_of<Collective>()};
  if constexpr (plan::goal{Collective::goal, 0}.reduces()) {
    asked.element_size = kernel::leaf_of<Op, T>.size;
    asked.commutative = is_commutative_v<Op, T>;
  }
  return asked;
}

}  // namespace detail

/// The table from which `collective` chooses for `count` elements of T per rank's `out` (per block where the result has
/// blocks): `explain<float>(comm, all_reduce, 1 << 20)`. Local; the answer is the same on all ranks.
template <class T, class Wire, class Collective, class Op = std::plus<>>
  requires(detail::lengths_of<Collective>() == detail::block_lengths::equal)
std::string explain(const communicator<Wire>& comm, const Collective&, std::size_t count, const Op& = {}) {
  detail::call_request asked = detail::request_of<T, Collective, Op>();
  asked.block_elements = count;
  return detail::explain_table(detail::query_of(detail::communicator_access::state(comm), asked));
}

/// The same for all_gather_v and reduce_scatter_v with these counts: `explain<float>(comm, all_gather_v,
/// counts{lengths})`. Throws `error`, `invalid_argument`, if there is not one count for each rank.
template <class T, class Wire, class Collective, class Op = std::plus<>>
  requires(detail::lengths_of<Collective>() == detail::block_lengths::known_to_all)
std::string explain(const communicator<Wire>& comm, const Collective&, counts lengths, const Op& = {}) {
  std::size_t total = 0;
  if (const outcome wrong = detail::check_counts("counts", lengths.of_ranks, comm.size(), total); wrong.failed()) {
    raise(wrong.cause());
  }
  detail::call_request asked = detail::request_of<T, Collective, Op>();
  detail::given_blocks(Collective::goal, lengths.of_ranks).describe(asked);
  return detail::explain_table(detail::query_of(detail::communicator_access::state(comm), asked));
}

/// The same for all_to_all_v, whose choice depends on no count: `explain<float>(comm, all_to_all_v)`.
template <class T, class Wire, class Collective>
  requires(detail::lengths_of<Collective>() == detail::block_lengths::known_to_pairs)
std::string explain(const communicator<Wire>& comm, const Collective&) {
  const detail::call_request asked = detail::request_of<T, Collective, std::plus<>>();
  return detail::explain_table(detail::query_of(detail::communicator_access::state(comm), asked));
}

HOCKET_END_NAMESPACE
