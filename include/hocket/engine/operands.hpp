// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Addresses of the operands of a plan's actions: in the caller's buffers, in scratch, or in a peer's memory.
#pragma once

#include <hocket/communicator/window.hpp>
#include <hocket/core/config.hpp>
#include <hocket/engine/binding.hpp>
#include <hocket/plan/action.hpp>
#include <hocket/transport/concept.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// Computes the addresses for one plan that is bound to buffers, and makes the buffers readable by peers.
///
/// Peers read this rank's `in` and `out` where they are if the transport can export these buffers, otherwise from a copy
/// in the window. This rank decides that, and sends a handle with the first flag; handle 0 means the copy.
template <class State>
class operands {
 public:
  /// Data of a rank that an action reads.
  struct source_place {
    const std::byte* mapped = nullptr;  ///< null if it must be copied
    std::uint64_t handle = 0;           ///< of memory that must be copied
    std::size_t offset = 0;             ///< in that memory
  };

  operands(State& state, const binding& bound, unsigned slot)
      : state_(state), bound_(bound), slot_(slot), collective_(bound.plan.collective()),
        in_origin_(origin_of(collective_, plan::region::in, bound.layout, state.rank())),
        out_origin_(origin_of(collective_, plan::region::out, bound.layout, state.rank())) {}

  std::uint64_t in_handle() const noexcept { return in_handle_; }
  /// If `in` and `out` have different layouts: publishes the block of `in` for `peer`, which always reads it directly.
  std::uint64_t publish_block_for(int peer) noexcept {
    const plan::extent block = block_for(peer);
    if (bound_.in == nullptr) return 0;
    return publish(bound_.in + block.begin * element_size(), block.size * element_size(), 0);
  }
  plan::extent block_for(int peer) const noexcept { return bound_.layout.block(static_cast<std::uint32_t>(peer)); }
  bool has_two_layouts() const noexcept { return bound_.out_layout != nullptr; }
  std::uint64_t out_handle() const noexcept { return out_handle_; }

  /// Makes this rank's buffers readable by peers. Call it before the first flag, and after earlier uses of the slot.
  void expose() {
    if (has_two_layouts()) return;  // each peer gets a handle of its block only
    const auto& layout = bound_.layout;
    const std::size_t in_bytes = extent_of(collective_, plan::region::in, layout, state_.rank()).size * element_size();
    const std::size_t out_bytes =
        extent_of(collective_, plan::region::out, layout, state_.rank()).size * element_size();
    const std::size_t most_staged = std::min(most_staged_bytes, state_.layout().staging_bytes);
    in_handle_ = bound_.in == nullptr ? 0 : publish(bound_.in, in_bytes, most_staged);
    out_handle_ = publish(bound_.out, out_bytes, most_staged);
    if (in_handle_ == 0 && bound_.in != nullptr && plan_loads(plan::region::in)) {
      std::memcpy(state_.layout().staged_in(state_.window(state_.rank()), slot_), bound_.in, in_bytes);
    }
    if (out_handle_ == 0 && plan_loads(plan::region::out)) {
      staged_out_ = state_.layout().staged_out(state_.window(state_.rank()), slot_);
      // Only a broadcast's `out` holds data that peers read before `copy_to_staging` has run.
      if (collective_.kind == plan::collective_kind::broadcast && out_bytes > 0)
        std::memcpy(staged_out_, bound_.out, out_bytes);
    }
  }

  std::size_t element_count(const plan::action& what) const noexcept {
    return what.count == 0 ? 0 : layout_of(what.to).chunks(what.chunk, what.count).size;
  }

  const std::byte* source(const plan::action& what) noexcept {
    switch (what.from) {
      case plan::region::in: return bound_.in + (bound_.layout.begin(what.from_at) - in_origin_) * element_size();
      case plan::region::out: return out_at(what.from_at);
      case plan::region::scratch: return scratch_at(what.from_at);
      default: return nullptr;
    }
  }

  std::byte* destination(const plan::action& what) noexcept {
    switch (what.to) {
      case plan::region::out: return out_at(what.to_at);
      case plan::region::scratch: return scratch_at(what.to_at);
      default: return nullptr;
    }
  }

  /// Returns where the data is that the action reads from `peer`.
  source_place source_at(int peer, const plan::action& what) noexcept {
    if (peer == state_.rank()) return {source(what)};
    const bool reads_in = what.from == plan::region::in;
    const signal_line& line = state_.signal_line_from(peer, slot_);
    const std::uint64_t handle = (reads_in ? line.in : line.out).load(std::memory_order_relaxed);
    if (has_two_layouts()) {
      // The peer's block for this rank is as long as block `peer` of this rank's `out`, so that offsets are equal.
      const plan::layout& own_out = *bound_.out_layout;
      const std::size_t begin = own_out.block(static_cast<std::uint32_t>(peer)).begin;
      return published_at(peer, handle, (own_out.begin(what.to_at) - begin) * element_size());
    }
    const std::size_t origin = origin_of(collective_, what.from, bound_.layout, peer);
    const std::size_t offset = (bound_.layout.begin(what.from_at) - origin) * element_size();
    if (handle != 0) return published_at(peer, handle, offset);
    const window_layout& window = state_.layout();
    std::byte* const there = state_.window(peer);
    return {(reads_in ? window.staged_in(there, slot_) : window.staged_out(there, slot_)) + offset};
  }

  /// Copies elements [first, first + count) that the action wrote to `out` to the staged copy, if peers read that.
  void copy_to_staging(const plan::action& what, std::size_t first, std::size_t count) noexcept {
    if (staged_out_ == nullptr || what.to != plan::region::out || count == 0) return;
    const std::size_t begin = (bound_.layout.begin(what.to_at) - out_origin_ + first) * element_size();
    std::memcpy(staged_out_ + begin, bound_.out + begin, count * element_size());
  }

 private:
  /// Up to this length, copying into the window is faster than having each peer call the kernel.
  static constexpr std::size_t most_staged_bytes = 4096;

  /// Returns 0 if peers read a copy, which is possible up to `most_staged` bytes even if all memory can be read.
  std::uint64_t publish(const std::byte* data, std::size_t bytes, [[maybe_unused]] std::size_t most_staged) noexcept {
    const std::uint64_t handle = state_.endpoints().publish(data, bytes);
    if (handle != 0) return handle;
    if constexpr (transport::copies_memory<typename State::endpoints_type>) {
      if (bytes > most_staged && state_.endpoints().copies_any_memory())
        return state_.endpoints().publish_unmapped(data);
    }
    return 0;
  }

  source_place published_at(int peer, std::uint64_t handle, std::size_t offset) const noexcept {
    if (handle == 0) return {};  // of an empty buffer
    if constexpr (transport::copies_memory<typename State::endpoints_type>) {
      if (!state_.endpoints().is_mapped(handle)) return {nullptr, handle, offset};
    }
    return {state_.endpoints().resolve(peer, handle) + offset};
  }

  std::size_t element_size() const noexcept { return bound_.element_kernel->size; }

  const plan::layout& layout_of(plan::region where) const noexcept {
    return where == plan::region::out && has_two_layouts() ? *bound_.out_layout : bound_.layout;
  }

  std::byte* out_at(std::uint32_t chunk) const noexcept {
    return bound_.out + (layout_of(plan::region::out).begin(chunk) - out_origin_) * element_size();
  }

  /// True if any rank's part of the plan loads from the region `where`, so that peers need to reach it.
  bool plan_loads(plan::region where) const {
    const unsigned lanes = bound_.plan.shape(state_.size()).lanes;
    for (unsigned i = 0; i < lanes; ++i) {
      for (int rank = 0; rank < state_.size(); ++rank) {
        const unsigned length = bound_.plan.length(state_.size(), rank, i);
        for (unsigned k = 0; k < length; ++k) {
          const plan::action each = bound_.plan.at(state_.size(), rank, i, k);
          const bool reads = each.kind == plan::action_kind::load || each.kind == plan::action_kind::load_reduce;
          if (reads && each.from == where) return true;
        }
      }
    }
    return false;
  }

  std::byte* scratch_at(std::uint32_t place) noexcept {
    return state_.scratch(slot_).get(0) + place * bound_.layout.largest_chunk() * element_size();
  }

  State& state_;
  const binding& bound_;
  const unsigned slot_;
  const plan::collective collective_;
  const std::size_t in_origin_;
  const std::size_t out_origin_;
  std::uint64_t in_handle_ = 0;
  std::uint64_t out_handle_ = 0;
  std::byte* staged_out_ = nullptr;  ///< the staged copy of `out`; null if peers do not read it
};

}  // namespace detail
HOCKET_END_NAMESPACE
