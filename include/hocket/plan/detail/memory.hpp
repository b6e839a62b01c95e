// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The memory of all ranks while a plan is being proven: what each chunk and slot holds, which step wrote it, and which
/// steps may still be reading it.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/plan/detail/action_table.hpp>
#include <hocket/plan/detail/clocks.hpp>
#include <hocket/plan/proof.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace plan::detail {

/// A message, from the step that sends it to the step that receives it. Its source may be read at any time in between.
struct in_flight_message {
  event sent;
  event received;
  std::uint32_t joined_at = none;  ///< the step of the sending lane that waited until it had drained
  std::uint32_t knowledge = none;  ///< what the sender knew: see `clocks::keep`
  std::uint32_t first_value = 0;
  std::uint32_t chunk = 0;
  std::uint32_t count = 0;
  std::uint32_t next = none;  ///< on the same channel
};

/// A forbidden access, and the step that it conflicts with.
struct hazard {
  violation what = violation::none;
  event other;
};

class memory {
 public:
  memory(const memory&) = delete;
  memory& operator=(const memory&) = delete;

  template <class Aliased>
  constexpr memory(const action_table& table, const clocks& known, const std::vector<in_flight_message>& flights,
                   Aliased aliased)
      : chunks_(table.chunks()), chunks_per_block_(table.shape.chunks_per_block),
        inbox_places_(static_cast<std::uint32_t>(table.ranks)), known_(known), in_flight_(flights) {
    for (const action& a : table.actions) {
      if (a.kind == action_kind::push) pushed_ = std::max(pushed_, a.count);
    }
    stride_ = 2 * std::size_t{chunks_} + table.shape.scratch + std::size_t{inbox_places_} * pushed_;
    cells_.resize(stride_ * static_cast<std::size_t>(table.ranks));
    for (int rank = 0; rank < table.ranks; ++rank) aliased_.push_back(aliased(rank) ? 1 : 0);
  }

  constexpr bool aliased(int rank) const noexcept { return aliased_[static_cast<std::size_t>(rank)] != 0; }

  constexpr std::size_t cell_of(int rank, place at) const noexcept {
    const std::size_t base = stride_ * static_cast<std::size_t>(rank);
    switch (at.where) {
      case region::in: return base + at.at + (aliased(rank) ? chunks_ : 0U);
      case region::scratch: return base + 2 * std::size_t{chunks_} + at.at;
      default: return base + chunks_ + at.at;
    }
  }

  /// Returns the first cell of `rank`'s inbox to which `writer` pushes.
  constexpr std::size_t inbox_of(int rank, int writer) const noexcept {
    return stride_ * static_cast<std::size_t>(rank + 1) -
           std::size_t{pushed_} * (inbox_places_ - static_cast<std::uint32_t>(writer));
  }

  constexpr std::uint32_t pushed() const noexcept { return pushed_; }
  constexpr std::uint32_t value(std::size_t index) const noexcept { return cells_[index].value; }

  /// Sets the value of a cell before the plan runs.
  constexpr void begin_with(std::size_t index, std::uint32_t value) noexcept { cells_[index].value = value; }

  /// Reads cell `i` of those that `a` covers, which begin at position `base` of a region. `packed`: the region holds
  /// chunks one after the other, not each at its own position. `carrier` is the message that reads the cell, if any.
  constexpr hazard read(event now, std::size_t first_cell, std::uint32_t i, const action& a, std::uint32_t base,
                        bool packed, std::uint32_t carrier = none) {
    cell& c = cells_[first_cell + i];
    if (c.value == none) return {violation::reads_nothing, {}};
    if (c.written.happened() && !known_.knows(now.lane, c.written)) return {violation::read_races_write, c.written};
    if (packed && chunks_per_block_ > 1 && (c.base != base || c.first != a.chunk % chunks_per_block_)) {
      return {violation::repacked_slot, c.written};
    }
    reads_.push_back({now, carrier, c.reads});
    c.reads = static_cast<std::uint32_t>(reads_.size() - 1);
    return {};
  }

  constexpr hazard write(event now, std::size_t first_cell, std::uint32_t i, const action& a, std::uint32_t base,
                         bool packed, std::uint32_t value) {
    cell& c = cells_[first_cell + i];
    if (c.written.happened() && !known_.knows(now.lane, c.written)) return {violation::write_races_write, c.written};
    for (std::uint32_t r = c.reads; r != none; r = reads_[r].next) {
      const access& past = reads_[r];
      if (!known_.knows(now.lane, past.when)) return {violation::overwrites_read, past.when};
      if (past.carrier != none && !drained(now.lane, in_flight_[past.carrier])) {
        return {violation::overwrites_send, past.when};
      }
    }
    if (packed && chunks_per_block_ > 1) {
      const std::uint32_t first = a.chunk % chunks_per_block_;
      const bool alone = i == 0 && a.count == 1 && !c.together;
      if (c.base != none && (c.base != base || (!alone && c.first != first)))
        return {violation::repacked_slot, c.written};
      c.base = base;
      c.first = first;
      c.together = c.together || a.count > 1;
    }
    c.value = value;
    c.written = now;
    c.reads = none;
    return {};
  }

  /// Bytes for one chunk or slot of a rank.
  static constexpr std::size_t cell_bytes() noexcept { return sizeof(cell); }

 private:
  struct cell {
    std::uint32_t value = none;
    event written;
    std::uint32_t reads = none;  // accesses since the last write
    std::uint32_t base = none;   // packed regions: first slot of the run of chunks that fills this slot
    std::uint32_t first = 0;     // packed regions: first piece of that run
    bool together = false;       // packed regions: whether a run of more than one chunk has filled this slot
  };

  struct access {
    event when;
    std::uint32_t carrier;
    std::uint32_t next;
  };

  /// A message drains when it has been received, or when the sender has joined.
  constexpr bool drained(std::uint32_t lane, const in_flight_message& f) const noexcept {
    return (f.received.happened() && known_.knows(lane, f.received)) ||
           (f.joined_at != none && known_.knows(lane, {f.sent.lane, f.joined_at}));
  }

  std::uint32_t chunks_;
  std::uint32_t chunks_per_block_;
  std::uint32_t inbox_places_;
  std::uint32_t pushed_ = 0;
  std::size_t stride_ = 0;
  const clocks& known_;
  const std::vector<in_flight_message>& in_flight_;
  std::vector<cell> cells_;
  std::vector<access> reads_;
  std::vector<std::uint8_t> aliased_;
};

}  // namespace plan::detail
HOCKET_END_NAMESPACE
