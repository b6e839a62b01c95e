// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// How much memory `plan::prove` would take, computed without proving: a proof looks at all actions of all ranks, so
/// that plans for thousands of ranks may need more than a machine has. A price needs no proof: see plan/price.hpp.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/plan/action.hpp>
#include <hocket/plan/detail/memory.hpp>
#include <hocket/plan/detail/saturated.hpp>
#include <hocket/plan/plan.hpp>
#include <hocket/plan/symmetry.hpp>

#include <cstddef>
#include <cstdint>

HOCKET_BEGIN_NAMESPACE
namespace plan {

/// The least that a proof needs. Numbers that do not fit in 64 bits are the largest one.
struct proof_size {
  std::uint64_t actions = 0;    ///< of all ranks
  std::uint64_t transfers = 0;  ///< messages and flags of all ranks; 0 if the actions alone exceed the limit
  std::uint64_t bytes = 0;      ///< of memory
};

namespace detail {

/// Bytes that the proof stores for each message or flag, beside what its sender knew: an entry and a place in an index.
inline constexpr std::size_t proof_bytes_per_transfer = sizeof(in_flight_message) + 48;

template <algorithm Plan>
constexpr std::uint64_t actions_of_rank(const Plan& plan, int ranks, int rank, unsigned lanes) {
  std::uint64_t actions = 0;
  for (unsigned lane = 0; lane < lanes; ++lane) actions += plan.length(ranks, rank, lane);
  return actions;
}

template <algorithm Plan>
constexpr std::uint64_t transfers_of_rank(const Plan& plan, int ranks, int rank, unsigned lanes) {
  std::uint64_t transfers = 0;
  for (unsigned lane = 0; lane < lanes; ++lane) {
    const unsigned length = plan.length(ranks, rank, lane);
    for (unsigned i = 0; i < length; ++i) {
      const action what = plan.at(ranks, rank, lane, i);
      const bool starts =
          what.kind == action_kind::send || what.kind == action_kind::push || what.kind == action_kind::signal;
      if (!starts) continue;
      const bool to_all = what.kind != action_kind::send && what.peer == all_peers;
      transfers += to_all ? static_cast<std::uint64_t>(ranks - 1) : 1;
    }
  }
  return transfers;
}

/// Returns the sum of `of_rank(rank)`, which is the same for all ranks if the plan is symmetric.
template <class OfRank>
constexpr std::uint64_t over_all_ranks(const shape& form, int ranks, OfRank of_rank) {
  if (form.symmetry != rank_symmetry::none) return saturated_product(static_cast<std::uint64_t>(ranks), of_rank(0));
  std::uint64_t sum = 0;
  for (int rank = 0; rank < ranks; ++rank) sum = saturated_sum(sum, of_rank(rank));
  return sum;
}

/// Returns the bytes for what each lane knows, for all chunks and slots, and for expressions: each chunk combines the
/// contributions of all ranks at least once, and an expression has a bit per rank.
constexpr std::uint64_t proof_state_bytes(const collective& what, const shape& form, int ranks) {
  const auto all = static_cast<std::uint64_t>(ranks);
  const std::uint64_t lanes = all * form.lanes;
  const std::uint64_t chunks = static_cast<std::uint64_t>(what.blocks(ranks)) * form.chunks_per_block;
  const std::uint64_t cells = saturated_product(all, 2 * chunks + form.scratch);
  const std::uint64_t expressions = what.reduces() ? saturated_product(all - 1, chunks) : 0;
  return saturated_sum(saturated_product(lanes, lanes * sizeof(std::uint32_t)),
                       saturated_sum(saturated_product(cells, memory::cell_bytes()),
                                     saturated_product(expressions, (all + 63) / 64 * sizeof(std::uint64_t))));
}

}  // namespace detail

/// Returns the actions of all ranks. Cost: one call of `length` per lane, of rank 0 alone if the plan is symmetric.
template <algorithm Plan>
constexpr std::uint64_t action_count(const Plan& plan, int ranks) {
  const plan::shape form = plan.shape(ranks);
  return detail::over_all_ranks(form, ranks,
                                [&](int rank) { return detail::actions_of_rank(plan, ranks, rank, form.lanes); });
}

/// Returns the messages and flags of all ranks. Cost: one call of `at` per action, of rank 0 alone if the plan is
/// symmetric.
template <algorithm Plan>
constexpr std::uint64_t transfer_count(const Plan& plan, int ranks) {
  const plan::shape form = plan.shape(ranks);
  return detail::over_all_ranks(form, ranks,
                                [&](int rank) { return detail::transfers_of_rank(plan, ranks, rank, form.lanes); });
}

/// Returns the least that `prove(plan, ranks)` needs; `ranks` must be at least 1. If the actions and the state of the
/// ranks take more than `most_bytes`, messages are not counted, so that this takes a moment for any number of ranks.
template <algorithm Plan>
constexpr proof_size size_of_proof(const Plan& plan, int ranks, std::uint64_t most_bytes) {
  const plan::shape form = plan.shape(ranks);
  proof_size size{.actions = action_count(plan, ranks)};
  size.bytes = detail::saturated_sum(detail::proof_state_bytes(plan.collective(), form, ranks),
                                     detail::saturated_product(size.actions, sizeof(action)));
  if (size.bytes > most_bytes) return size;
  size.transfers = transfer_count(plan, ranks);
  size.bytes =
      detail::saturated_sum(size.bytes, detail::saturated_product(size.transfers, detail::proof_bytes_per_transfer));
  return size;
}

}  // namespace plan
HOCKET_END_NAMESPACE
