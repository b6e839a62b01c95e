// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The state of a proof: the memory of all ranks, what each lane knows about the others, and the violation found.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/plan/detail/action_table.hpp>
#include <hocket/plan/detail/clocks.hpp>
#include <hocket/plan/detail/index_map.hpp>
#include <hocket/plan/detail/memory.hpp>
#include <hocket/plan/detail/values.hpp>
#include <hocket/plan/proof.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace plan::detail {

enum class progress : std::uint8_t { done, blocked, failed };

class workspace {
 public:
  workspace(const workspace&) = delete;
  workspace& operator=(const workspace&) = delete;

 protected:
  template <class Aliased>
  constexpr workspace(const action_table& table, Aliased aliased)
      : table_(table), known_(table.lanes()), values_(table.ranks, table.chunks()),
        memory_(table, known_, in_flight_, aliased) {
    result_.ranks = table.ranks;
  }
  constexpr ~workspace() = default;

  // Violations.

  constexpr step step_of(event e) const {
    if (!e.happened()) return {};
    const bool ended = e.position >= table_.length(e.lane);
    return {table_.rank_of(e.lane), static_cast<int>(e.lane % table_.shape.lanes), static_cast<int>(e.position),
            ended ? action{} : table_.at(e.lane, e.position)};
  }

  constexpr progress fail(violation what, event where, event other = {}) {
    result_.what = what;
    result_.where = step_of(where);
    result_.other = step_of(other);
    return progress::failed;
  }

  constexpr progress fail_in(const hazard& h, event where, int rank, place at) {
    result_.memory_of = rank;
    result_.memory = at;
    return fail(h.what, where, h.other);
  }

  template <class Holds>
  constexpr bool any_lane_of(int rank, Holds holds) const {
    const std::uint32_t first = static_cast<std::uint32_t>(rank) * table_.shape.lanes;
    for (std::uint32_t lane = first; lane < first + table_.shape.lanes; ++lane) {
      if (holds(lane)) return true;
    }
    return false;
  }

  // Memory. `held_` holds the values that the current step processes.

  /// Reads `from` of `owner` into `held_`.
  constexpr bool gather(event now, int owner, const action& a, std::uint32_t carrier = none) {
    if (!may_look_at(owner, now)) return false;
    held_.clear();
    const std::size_t first = memory_.cell_of(owner, {a.from, a.from_at});
    for (std::uint32_t i = 0; i < a.count; ++i) {
      const hazard h = memory_.read(now, first, i, a, a.from_at, a.from == region::scratch, carrier);
      if (h.what != violation::none) {
        fail_in(h, now, owner, {a.from, a.from_at + i});
        return false;
      }
      held_.push_back(memory_.value(first + i));
    }
    return true;
  }

  /// Reads what `writer` pushed to this rank into `held_`.
  constexpr bool gather_inbox(event now, int writer, const action& a) {
    held_.clear();
    const std::size_t first = memory_.inbox_of(table_.rank_of(now.lane), writer);
    for (std::uint32_t i = 0; i < a.count; ++i) {
      const hazard h =
          i < memory_.pushed() ? memory_.read(now, first, i, a, 0, true) : hazard{violation::reads_nothing, {}};
      if (h.what != violation::none) {
        fail_in(h, now, table_.rank_of(now.lane), inbox());
        return false;
      }
      held_.push_back(memory_.value(first + i));
    }
    return true;
  }

  constexpr bool gather_all(event now, const action& a) {
    std::vector<std::uint32_t> sum;
    const int self = table_.rank_of(now.lane);
    for (int rank = 0; rank < table_.ranks; ++rank) {
      if (a.from != region::inbox) {
        if (!gather(now, rank, a)) return false;
      } else if (rank == self) {
        action own = a;
        own.from = region::in;
        own.from_at = a.chunk;
        if (!gather(now, self, own)) return false;
      } else if (!gather_inbox(now, rank, a)) {
        return false;
      }
      if (rank > 0 && !combine(now, sum, held_, true)) return false;
      if (rank == 0) sum = held_;
    }
    held_ = sum;
    return true;
  }

  /// Sets first = first ∘ second. `in_one_step`: within one `load_reduce`.
  constexpr bool combine(event now, std::vector<std::uint32_t>& first, const std::vector<std::uint32_t>& second,
                         bool in_one_step = false) {
    for (std::size_t i = 0; i < first.size(); ++i) {
      if (values_.chunk_of(first[i]) != values_.chunk_of(second[i])) {
        return fail(violation::mixed_chunks, now) == progress::done;
      }
      result_.contribution = values_.shared(first[i], second[i]);
      if (result_.contribution >= 0) return fail(violation::counted_twice, now) == progress::done;
      first[i] = in_one_step ? values_.combine_in_one_step(first[i], second[i]) : values_.combine(first[i], second[i]);
    }
    return true;
  }

  constexpr progress store(event now, const action& a) {
    const int rank = table_.rank_of(now.lane);
    return store_at(now, rank, memory_.cell_of(rank, {a.to, a.to_at}), a, a.to_at, a.to == region::scratch);
  }

  constexpr progress store_at(event now, int owner, std::size_t first, const action& a, std::uint32_t base,
                              bool packed) {
    for (std::uint32_t i = 0; i < a.count; ++i) {
      const hazard h = memory_.write(now, first, i, a, base, packed, held_[i]);
      if (h.what != violation::none) return fail_in(h, now, owner, {a.to, a.to_at + i});
    }
    return progress::done;
  }

  /// A rank knows a peer's buffers from the peer's first signal on. `ends_in_time` checks that they are still valid.
  constexpr bool may_look_at(int owner, event now) {
    const int rank = table_.rank_of(now.lane);
    if (owner == rank) return true;
    foreign_reads_.push_back({now, owner});
    const event* const heard = first_signal_from(owner, rank);
    if (heard != nullptr && known_.knows(now.lane, *heard)) return true;
    return fail(violation::reads_before_begin, now) == progress::done;
  }

  constexpr std::uint64_t pair_of(int from, int to) const noexcept {
    return static_cast<std::uint64_t>(from) * static_cast<std::uint64_t>(table_.ranks) + static_cast<std::uint64_t>(to);
  }

  /// Returns the step in which `rank` first waited for a signal of `peer`, or null.
  constexpr const event* first_signal_from(int peer, int rank) const {
    const std::uint32_t index = first_signal_from_.find(pair_of(peer, rank));
    return index == none ? nullptr : &waits_[index];
  }

  constexpr void mark_cause_delivered(event now, int peer) {
    std::uint32_t& index = first_signal_from_[pair_of(peer, table_.rank_of(now.lane))];
    if (index != none) return;
    index = static_cast<std::uint32_t>(waits_.size());
    waits_.push_back(now);
  }

  struct foreign_read {
    event when;
    int owner;
  };

  const action_table& table_;
  proof result_;
  std::vector<in_flight_message> in_flight_;
  clocks known_;
  values values_;
  memory memory_;
  std::vector<std::uint32_t> held_;
  std::vector<foreign_read> foreign_reads_;
  std::vector<event> waits_;
  index_map first_signal_from_;
};

}  // namespace plan::detail
HOCKET_END_NAMESPACE
