// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// V-Half and V-Min: two stages per rank in a V, with a half or a third of the activations of 1F1B. Each repeats one
/// pattern of forward and input gradient passes for every microbatch, chosen so that activations are held as briefly as
/// the memory requires; weight gradients fill the rest. The raw pattern leaves gaps, which two rounds of moving work to
/// earlier slots close.
///
/// Both are due to Qi et al. (controllable memory, 2024).
#pragma once

#include <hocket/schedule/schedule.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace plan::pipeline {
namespace detail {

/// Work of a rank in one unit of time. Kinds 0 to 3 follow each other for a microbatch on one rank: forward and then
/// input gradient passes, of the near stage r and the far stage 2P-1-r.
enum class v_kind : int { near_forward, far_forward, far_gradient, near_gradient, any_weight, far_weight, near_weight };

struct v_operation {
  int slot = 0;
  int rank = 0;
  v_kind kind = v_kind::near_forward;
  int microbatch = 0;  ///< for `any_weight`: its number among those of the rank

  friend constexpr bool operator<(const v_operation& a, const v_operation& b) noexcept {
    if (a.slot != b.slot) return a.slot < b.slot;
    if (a.rank != b.rank) return a.rank < b.rank;
    if (a.kind != b.kind) return a.kind < b.kind;
    return a.microbatch < b.microbatch;
  }
};

/// The row of one rank: its operations in order of time, at most one in each slot. Most slots of a short row are free.
class v_row {
 public:
  static constexpr int missing = -1;

  constexpr explicit v_row(int microbatches)
      : microbatches_(microbatches), slots_(kinds * 2 * static_cast<std::size_t>(microbatches), missing) {}

  constexpr int slot_of(v_kind kind, int microbatch) const { return slots_[index(kind, microbatch)]; }

  /// Adds an operation after all others. Its memory is counted by `count_memory`.
  constexpr void append(v_kind kind, int microbatch, int slot) {
    tally after = entries_.empty() ? tally{} : entries_.back().after;
    if (is_gradient(kind)) ++after.gradients;
    entries_.push_back({slot, kind, microbatch, after});
    slots_[index(kind, microbatch)] = slot;
  }

  /// Moves an operation to the earlier free slot `to`, if the row then holds at most `most` activations. Only operations
  /// between the two slots are counted again, and those after them whose tally changes.
  constexpr bool move(v_kind kind, int microbatch, int to, int most) {
    int& slot = slots_[index(kind, microbatch)];
    const auto first = count_before(to), last = count_before(slot);
    const auto begin = entries_.begin() + first, end = entries_.begin() + last;
    std::rotate(begin, end, end + 1);
    begin->slot = to;
    if (recount(first, last) <= most) {
      slot = to;
      return true;
    }
    begin->slot = slot;
    std::rotate(begin, begin + 1, end + 1);
    recount(first, last);
    return false;
  }

  /// Returns the first free slot from `slot` on.
  constexpr int free_from(int slot) const {
    for (auto at = entries_.begin() + count_before(slot); at != entries_.end() && at->slot == slot; ++at) ++slot;
    return slot;
  }

  /// Calls `visit(slot, kind, microbatch)` in order of time.
  template <class Visit>
  constexpr void for_each(Visit visit) const {
    for (const entry& each : entries_) visit(each.slot, each.kind, each.microbatch);
  }

  constexpr void drop_weights() {
    std::erase_if(entries_, [&](const entry& each) {
      if (each.kind < v_kind::any_weight) return false;
      slots_[index(each.kind, each.microbatch)] = missing;
      return true;
    });
  }

  /// Gives each free slot a weight gradient whose input gradient is complete, and appends the others at the end. The
  /// weight gradients are anonymous, or belong to stages, with those of the far stage first.
  constexpr void fill_weights(bool by_stage) {
    const std::vector<entry> others = std::exchange(entries_, {});
    std::vector<int> pending[2];  // far, near: microbatches
    std::size_t done[2] = {};
    int anonymous = 0;
    const auto fill = [&](int slot) {
      for (int which = 0; which < 2; ++which) {
        if (done[which] == pending[which].size()) continue;
        const int microbatch = pending[which][done[which]++];
        if (by_stage) append(which == 0 ? v_kind::far_weight : v_kind::near_weight, microbatch, slot);
        else append(v_kind::any_weight, anonymous++, slot);
        return true;
      }
      return false;
    };
    int slot = 0;
    for (const entry& each : others) {
      while (slot < each.slot && fill(slot)) ++slot;
      append(each.kind, each.microbatch, each.slot);
      slot = each.slot + 1;
      if (each.kind == v_kind::far_gradient) pending[0].push_back(each.microbatch);
      else if (each.kind == v_kind::near_gradient) pending[1].push_back(each.microbatch);
    }
    while (fill(slot)) ++slot;
  }

  /// Returns the largest number of activations held. In a row without weight gradients, a free slot counts as one.
  constexpr int count_memory() {
    has_weights_ = slot_of(v_kind::any_weight, 0) != missing || slot_of(v_kind::far_weight, 0) != missing;
    return recount(0, static_cast<std::ptrdiff_t>(entries_.size()));
  }

  /// Returns the slot of the input gradient that belongs to anonymous weight gradient `number`: both are counted alike.
  constexpr int slot_of_gradient(int number) const {
    const auto is_before = [](const entry& each, int limit) { return each.after.gradients <= limit; };
    const auto found = std::lower_bound(entries_.begin(), entries_.end(), number, is_before);
    return found == entries_.end() ? missing : found->slot;
  }

 private:
  /// What has happened up to an operation.
  struct tally {
    int held = 0;     ///< activations
    int pending = 0;  ///< input gradients whose weight gradients are not done; 0 in a row with weight gradients
    int gradients = 0;

    friend constexpr bool operator==(const tally&, const tally&) = default;
  };

  struct entry {
    int slot = 0;
    v_kind kind = v_kind::near_forward;
    int microbatch = 0;
    tally after;
  };

  static constexpr std::size_t kinds = 7;

  static constexpr bool is_gradient(v_kind kind) noexcept {
    return kind == v_kind::far_gradient || kind == v_kind::near_gradient;
  }

  constexpr std::size_t index(v_kind kind, int microbatch) const noexcept {
    return static_cast<std::size_t>(kind) * 2 * static_cast<std::size_t>(microbatches_) +
           static_cast<std::size_t>(microbatch);
  }

  /// Returns the number of operations before `slot`.
  constexpr std::ptrdiff_t count_before(int slot) const {
    const auto is_before = [](const entry& each, int limit) { return each.slot < limit; };
    return std::lower_bound(entries_.begin(), entries_.end(), slot, is_before) - entries_.begin();
  }

  /// Returns the tally after `next`, which follows `free` free slots.
  constexpr tally followed(tally at, int free, v_kind next) const {
    const int done = has_weights_ ? 0 : std::min(at.pending, free);
    at.pending -= done;
    at.held -= done;
    if (next <= v_kind::far_forward) {
      ++at.held;
    } else if (is_gradient(next)) {
      ++at.gradients;
      at.pending += has_weights_ ? 0 : 1;
    } else {
      --at.held;
    }
    return at;
  }

  /// Computes the tallies of the operations from position `first` on: to `last`, and then until none changes. Returns
  /// the most activations that these hold.
  constexpr int recount(std::ptrdiff_t first, std::ptrdiff_t last) {
    tally at = first == 0 ? tally{} : (entries_.begin() + first - 1)->after;
    int slot = first == 0 ? 0 : (entries_.begin() + first - 1)->slot + 1;
    int peak = 0;
    for (auto next = entries_.begin() + first; next != entries_.end(); ++next) {
      at = followed(at, next->slot - slot, next->kind);
      slot = next->slot + 1;
      peak = std::max(peak, at.held);
      if (next - entries_.begin() > last && at == next->after) break;
      next->after = at;
    }
    return peak;
  }

  int microbatches_;
  std::vector<int> slots_;      ///< by kind and microbatch
  std::vector<entry> entries_;  ///< in order of slots
  bool has_weights_ = false;    ///< as of `count_memory`
};

/// The rows of all ranks, and the moves that close their gaps.
class v_table {
 public:
  using pattern = std::array<int, 4>;  ///< first slots of kinds 0 to 3, of microbatch 0

  template <class PatternOf>
  constexpr v_table(int ranks, int microbatches, PatternOf pattern_of)
      : ranks_(ranks), microbatches_(microbatches), rows_(static_cast<std::size_t>(ranks), v_row(microbatches)) {
    std::vector<v_operation> of_rank;
    for (int rank = 0; rank < ranks; ++rank) {
      const pattern first = pattern_of(rank);
      of_rank.clear();
      for (int m = 0; m < microbatches; ++m) {
        for (int kind = 0; kind < 4; ++kind) {
          of_rank.push_back({first[static_cast<std::size_t>(kind)] + 6 * m, rank, static_cast<v_kind>(kind), m});
        }
      }
      std::sort(of_rank.begin(), of_rank.end());
      for (const v_operation& each : of_rank) at(rank).append(each.kind, each.microbatch, each.slot);
    }
  }

  /// Writes the order of actions after both rounds.
  constexpr void write(schedule& plan) {
    reorder(true);
    drop_weights();
    reorder(false);
    drop_weights();
    fill_weights(true);
    squeeze();
    for (int rank = 0; rank < ranks_; ++rank) {
      const int near_stage = rank;
      const int far_stage = 2 * ranks_ - 1 - rank;
      at(rank).for_each([&](int, v_kind kind, int m) {
        switch (kind) {
          case v_kind::near_forward: plan.of(rank).push_back(forward(near_stage, m)); break;
          case v_kind::far_forward: plan.of(rank).push_back(forward(far_stage, m)); break;
          case v_kind::far_gradient: plan.of(rank).push_back(input_gradient(far_stage, m)); break;
          case v_kind::near_gradient: plan.of(rank).push_back(input_gradient(near_stage, m)); break;
          case v_kind::far_weight: plan.of(rank).push_back(weight_gradient(far_stage, m)); break;
          default: plan.of(rank).push_back(weight_gradient(near_stage, m)); break;
        }
      });
    }
  }

 private:
  constexpr v_row& at(int rank) { return rows_[static_cast<std::size_t>(rank)]; }
  constexpr const v_row& at(int rank) const { return rows_[static_cast<std::size_t>(rank)]; }

  constexpr void drop_weights() {
    for (v_row& each : rows_) each.drop_weights();
  }
  constexpr void fill_weights(bool by_stage) {
    for (v_row& each : rows_) each.fill_weights(by_stage);
  }

  constexpr std::vector<v_operation> in_order() const {
    std::vector<v_operation> all;
    for (int rank = 0; rank < ranks_; ++rank) {
      at(rank).for_each([&](int slot, v_kind kind, int m) { all.push_back({slot, rank, kind, m}); });
    }
    std::sort(all.begin(), all.end());
    return all;
  }

  /// Returns the last slot of all that an operation needs, or `v_row::missing` if it needs nothing.
  constexpr int last_need(const v_operation& what) const {
    const v_row& own = at(what.rank);
    int last = v_row::missing;
    const auto needs = [&](int slot) { last = std::max(last, slot); };
    if (what.kind == v_kind::near_forward || what.kind == v_kind::far_gradient) {
      if (what.rank > 0) needs(at(what.rank - 1).slot_of(what.kind, what.microbatch));
    } else if (what.kind == v_kind::far_forward || what.kind == v_kind::near_gradient) {
      if (what.rank + 1 < ranks_) needs(at(what.rank + 1).slot_of(what.kind, what.microbatch));
    }
    switch (what.kind) {
      case v_kind::near_forward: break;
      case v_kind::far_forward: needs(own.slot_of(v_kind::near_forward, what.microbatch)); break;
      case v_kind::far_gradient: needs(own.slot_of(v_kind::far_forward, what.microbatch)); break;
      case v_kind::near_gradient: needs(own.slot_of(v_kind::far_gradient, what.microbatch)); break;
      case v_kind::any_weight: needs(own.slot_of_gradient(what.microbatch)); break;
      case v_kind::far_weight: needs(own.slot_of(v_kind::far_gradient, what.microbatch)); break;
      case v_kind::near_weight: needs(own.slot_of(v_kind::near_gradient, what.microbatch)); break;
    }
    if (what.microbatch > 0) needs(own.slot_of(what.kind, what.microbatch - 1));
    return last;
  }

  /// Moves work before and after the steady phase to earlier free slots, within the memory that the rows already need.
  /// The steady phase begins with the first near gradient of rank 0, and ends when the last microbatch has entered.
  constexpr void reorder(bool with_weights) {
    if (with_weights) fill_weights(false);
    int most = 0;
    for (v_row& each : rows_) most = std::max(most, each.count_memory());
    bool steady = false;
    bool over = false;
    for (const v_operation& each : in_order()) {
      steady = steady || (each.kind == v_kind::near_gradient && each.rank == 0);
      const bool moves = over || (!steady && with_weights);
      over = over || (each.kind == v_kind::near_forward && each.microbatch == microbatches_ - 1);
      if (moves) move_forward(each, most);
    }
    if (!with_weights) fill_weights(false);
    squeeze();
  }

  constexpr void move_forward(const v_operation& what, int most) {
    v_row& own = at(what.rank);
    for (int slot = own.free_from(last_need(what) + 1); slot < what.slot; slot = own.free_from(slot + 1)) {
      if (own.move(what.kind, what.microbatch, slot, most)) return;
    }
  }

  /// Moves every operation to the earliest slot that its inputs and the order of its rank allow.
  constexpr void squeeze() {
    const std::vector<v_operation> all = in_order();
    for (v_row& each : rows_) each = v_row(microbatches_);
    std::vector<int> next(rows_.size(), 0);
    for (const v_operation& each : all) {
      const auto rank = static_cast<std::size_t>(each.rank);
      const int slot = std::max(next[rank], last_need(each) + 1);
      at(each.rank).append(each.kind, each.microbatch, slot);
      next[rank] = slot + 1;
    }
  }

  int ranks_;
  int microbatches_;
  std::vector<v_row> rows_;
};

}  // namespace detail

/// Activations of P/2+1 microbatches (P even) or (P+1)/2 (P odd) on each rank. With unit costs and M > P:
/// 3M + (3P-7)/2 long for even P >= 4, 3M + (3P-4)/2 for odd P, 3M + 1/2 for P = 2.
constexpr schedule v_half(int ranks, int microbatches) {
  detail::require_sizes("v_half", ranks, microbatches);
  schedule made("v_half", placement::v_shape(ranks), microbatches);
  const int shift = ranks % 2 == 0 ? 3 : 0;
  detail::v_table(ranks, microbatches, [&](int r) {
    return detail::v_table::pattern{2 * r, 3 * ranks - r - 2, 3 * ranks + shift + 2 * r - 1, 6 * ranks + shift - r - 2};
  }).write(made);
  return made;
}

/// Activations of about P/3+1 microbatches on each rank. With unit costs and M > P: 3M + 2P-7/2 long if 3 divides P,
/// else 3M + 2P-5/2; 3M + 3/2 for P = 2. If the three costs differ much, `v_half` is faster.
constexpr schedule v_min(int ranks, int microbatches) {
  detail::require_sizes("v_min", ranks, microbatches);
  schedule made("v_min", placement::v_shape(ranks), microbatches);
  const int shift = ranks % 3 == 0 ? 2 : 0;
  detail::v_table(ranks, microbatches, [&](int r) {
    return detail::v_table::pattern{r, 2 * ranks - r - 1, 2 * ranks + shift + r, 4 * ranks + shift - r - 1};
  }).write(made);
  return made;
}

}  // namespace plan::pipeline
HOCKET_END_NAMESPACE
