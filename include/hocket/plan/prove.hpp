// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Proof that a plan does what its collective says, however the ranks are scheduled: every contribution arrives exactly once,
/// in the order that the plan claims; nothing is overwritten while it is read; no rank waits for ever; no message or
/// signal is left over; and nobody reads a peer's memory before that peer has begun or after it may have ended.
///
/// Works at compile time too. With g++'s default limits that is up to 16 ranks for every plan of this library:
///
/// @code
/// static_assert(plan::prove(plan::ring_all_reduce{}, 8));
/// if (const plan::proof found = plan::prove(my_plan, 8); !found) std::puts(found.message().c_str());
/// @endcode
///
/// Cost: time and memory grow with steps × (ranks × lanes); the ring on 64 ranks takes a few milliseconds.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/plan/detail/action_table.hpp>
#include <hocket/plan/detail/prover.hpp>
#include <hocket/plan/plan.hpp>
#include <hocket/plan/proof.hpp>

HOCKET_BEGIN_NAMESPACE
namespace plan {

/// Which memory the plan is proven for.
struct prove_options {
  bool in_place = false;        ///< `in` and `out` are the same memory
  bool odd_ranks_only = false;  ///< with `in_place`: on odd ranks only, as when callers differ
};

/// The verdict on `plan` for `ranks` ranks.
template <algorithm Plan>
constexpr proof prove(const Plan& plan, int ranks, prove_options options = {}) {
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
