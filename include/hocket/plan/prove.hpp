// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Proof that a plan performs its collective under every scheduling of the ranks: every contribution arrives exactly
/// once, in the order that the plan claims; nothing is overwritten while it is read; no rank waits forever; no message
/// or signal is left over; and no rank reads a peer's memory before that peer has begun or after it may have ended.
///
/// The proof also works at compile time, with g++'s default limits for up to 16 ranks for every plan of this library:
///
/// @code
/// static_assert(plan::prove(plan::ring_all_reduce{}, 8));
/// if (const plan::proof found = plan::prove(my_plan, 8); !found) std::puts(found.message().c_str());
/// @endcode
///
/// Cost: time grows with steps × (ranks × lanes); the ring on 64 ranks takes a few milliseconds. plan/proof_size.hpp
/// computes how much memory a proof takes, before it is begun.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/plan/detail/action_table.hpp>
#include <hocket/plan/detail/index_map.hpp>
#include <hocket/plan/detail/prover.hpp>
#include <hocket/plan/plan.hpp>
#include <hocket/plan/proof.hpp>

#include <cstdint>

HOCKET_BEGIN_NAMESPACE
namespace plan {

/// The buffers that the plan is proven for.
struct prove_options {
  bool in_place = false;        ///< `in` and `out` are the same memory
  bool odd_ranks_only = false;  ///< with `in_place`: only on odd ranks, as if callers differ
};

namespace detail {

/// Returns whether the ranks have more lanes or chunks together than the 32-bit numbers of a proof.
template <algorithm Plan>
constexpr bool exceeds_numbers(const Plan& plan, int ranks) {
  if (ranks < 1) return false;
  if (ranks > most_ranks) return true;
  constexpr std::uint64_t most = none;
  const plan::shape shape = plan.shape(ranks);
  const auto blocks = static_cast<std::uint64_t>(plan.collective().blocks(ranks));
  const auto all = static_cast<std::uint64_t>(ranks);
  return all * shape.lanes >= most || blocks * shape.chunks_per_block >= most / 2 / all;
}

}  // namespace detail

/// Proves `plan` for `ranks` ranks, and returns the result.
template <algorithm Plan>
constexpr proof prove(const Plan& plan, int ranks, prove_options options = {}) {
  if (detail::exceeds_numbers(plan, ranks)) {
    proof refused;
    refused.what = violation::too_large;
    refused.ranks = ranks;
    return refused;
  }
  const detail::action_table table = detail::tabulate(plan, ranks);
  if (const violation v = detail::form(table).of_plan(); v != violation::none) {
    proof refused;
    refused.what = v;
    refused.ranks = ranks;
    return refused;
  }
  detail::prover run(table, [&](int rank) { return options.in_place && (!options.odd_ranks_only || rank % 2 == 1); });
  return run.run();
}

}  // namespace plan
HOCKET_END_NAMESPACE
