// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Limits of the engine on user-defined plans. The library's plans are proven to use only valid ranks, channels and
/// chunks; a plan with others would read or write memory outside the call's buffers.
#pragma once

#include <hocket/communicator/planned_call.hpp>
#include <hocket/communicator/window.hpp>
#include <hocket/core/config.hpp>
#include <hocket/engine/binding.hpp>
#include <hocket/plan/action.hpp>
#include <hocket/plan/layout.hpp>
#include <hocket/plan/plan.hpp>
#include <hocket/transport/concept.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// For plans on blocks whose lengths only two ranks know: true if an action moves one of this rank's blocks, or part of
/// it, directly from `in` of its sender to `out` of its receiver.
inline bool is_between_its_two(const plan::action& what, int rank, std::uint32_t chunks_per_block) noexcept {
  const bool local = what.kind == plan::action_kind::copy;
  const auto block = static_cast<std::uint64_t>(local ? rank : what.peer);
  const auto begin = block * chunks_per_block;
  if (what.chunk < begin || std::uint64_t{what.chunk} + what.count > begin + chunks_per_block) return false;
  const bool from_in = what.from == plan::region::in;
  const bool to_its_place = what.to == plan::region::out && what.to_at == what.chunk;
  switch (what.kind) {
    case plan::action_kind::send: return from_in && what.from_at == what.chunk;
    case plan::action_kind::receive: return to_its_place;
    case plan::action_kind::copy: return from_in && what.from_at == what.chunk && to_its_place;
    case plan::action_kind::load: {
      const std::uint64_t there = static_cast<std::uint64_t>(rank) * chunks_per_block + (what.chunk - begin);
      return from_in && what.from_at == there && to_its_place;
    }
    default: return false;
  }
}

/// For plans on blocks of different lengths: true if an action moves each block from and to its own place. The place of
/// another block may be shorter than `chunk`, which defines the action's length.
inline bool keeps_places(const plan::action& what) noexcept {
  const auto keeps = [&](plan::region where, std::uint32_t at) {
    return (where != plan::region::in && where != plan::region::out) || at == what.chunk;
  };
  return keeps(what.from, what.from_at) && keeps(what.to, what.to_at);
}

/// True if what an action reads or writes at `at` ends within the buffer of `rank`.
inline bool fits(plan::region where, std::uint32_t at, const plan::action& what, const plan::layout& layout,
                 const plan::collective& collective, std::uint32_t scratch, int rank) noexcept {
  if (where == plan::region::scratch) return at <= scratch && what.count <= scratch - at;
  if (where != plan::region::in && where != plan::region::out) return true;
  const plan::extent buffer = extent_of(collective, where, layout, rank);
  if (at > layout.chunk_count() || layout.begin(at) < buffer.begin) return false;
  return layout.begin(at) + layout.chunks(what.chunk, what.count).size <= buffer.begin + buffer.size;
}

/// Returns why an action is invalid on any communicator; null if it is valid.
inline const char* fault_of(const plan::action& what, int rank, bool peer_pointers) noexcept {
  using plan::action_kind;
  using plan::region;
  const bool flags =
      what.kind == action_kind::signal || what.kind == action_kind::wait || what.kind == action_kind::push;
  const bool messages =
      what.kind == action_kind::send || what.kind == action_kind::receive || what.kind == action_kind::receive_reduce;
  const bool loads = what.kind == action_kind::load || what.kind == action_kind::load_reduce;
  if (messages && what.peer == rank) return "the plan sends a message from a rank to itself: use a copy action";
  if ((flags || loads) && !peer_pointers) {
    return "the plan uses other ranks' memory or flags, but its shape does not set peer_pointers: set it to true";
  }
  if (what.count == 0 || what.kind == action_kind::wait) return nullptr;
  const bool writes = loads || what.kind == action_kind::copy || what.kind == action_kind::receive ||
                      what.kind == action_kind::receive_reduce;
  if (writes && what.to != region::out && what.to != region::scratch) {
    return "the plan writes to a region that is neither out nor scratch";
  }
  if (what.kind == action_kind::receive || what.kind == action_kind::signal) return nullptr;
  const bool from_vector = what.from == region::in || what.from == region::out;
  const bool from_elsewhere = what.kind == action_kind::load_reduce ? what.from == region::inbox
                              : what.kind == action_kind::load      ? false
                                                                    : what.from == region::scratch;
  if (!from_vector && !from_elsewhere)
    return "the plan reads from a region that this action can't read from: all actions can read in and out, "
           "load_reduce also the inbox, and all but load and load_reduce also scratch";
  return nullptr;
}

/// Returns which limit of the engine an action of this rank exceeds; empty if none. The library's own plans comply.
template <class State>
std::string exceeded_limit(const State& state, const call_request& asked, const plan::any_algorithm& chosen) {
  const plan::shape shape = chosen.shape(state.size());
  const plan::layout layout{asked.block_elements, static_cast<std::uint32_t>(asked.what.blocks(state.size())),
                            shape.chunks_per_block};
  for (unsigned lane = 0; lane < shape.lanes; ++lane) {
    const unsigned length = chosen.length(state.size(), state.rank(), lane);
    for (unsigned i = 0; i < length; ++i) {
      const plan::action each = chosen.at(state.size(), state.rank(), lane, i);
      const bool flags = each.kind == plan::action_kind::signal || each.kind == plan::action_kind::wait;
      const bool to_all = flags || each.kind == plan::action_kind::push || each.kind == plan::action_kind::copy ||
                          each.kind == plan::action_kind::load_reduce;
      if (each.peer >= state.size() || each.peer < (to_all ? plan::all_peers : 0)) {
        return "the plan uses a rank that this communicator does not have: a peer must be one of its ranks, or "
               "all_peers if the action accepts that";
      }
      if (each.channel >= transport::max_channels) return "the plan uses an invalid channel: channels must be 0 to 3";
      if (flags && each.tag >= signal_line::tags) return "the plan uses an invalid tag: tags must be 0 to 4";
      if (each.count > 0 && std::uint64_t{each.chunk} + each.count > layout.chunk_count()) {
        return "the plan uses a chunk that its shape does not have: a chunk must be less than blocks times pieces";
      }
      const bool loads = each.kind == plan::action_kind::load;
      const bool of_all = each.kind == plan::action_kind::load_reduce;
      const auto within = [&](plan::region where, std::uint32_t at, int rank) {
        return each.count == 0 || fits(where, at, each, layout, asked.what, shape.scratch, rank);
      };
      const int first_read = of_all ? 0 : loads ? each.peer : state.rank();
      const int end_read = of_all ? state.size() : first_read + 1;
      bool inside = within(each.to, each.to_at, state.rank());
      for (int rank = first_read; rank < end_read; ++rank) inside = inside && within(each.from, each.from_at, rank);
      if (!inside) {
        return "the plan reads or writes beyond the end of a buffer, or of the scratch memory that its shape "
               "requests";
      }
      if (each.count > 0 && asked.lengths == block_lengths::known_to_all && !keeps_places(each)) {
        return "the plan moves a block from or to the place of another block, but block lengths differ: each block "
               "must move between its own places";
      }
      if (each.count > 1 && asked.lengths != block_lengths::equal &&
          (each.from == plan::region::scratch || each.to == plan::region::scratch)) {
        return "the plan moves several slots of scratch in one action, but block lengths differ, so that slots are not "
               "adjacent: use an action for each slot";
      }
      if (each.count > 0 && asked.lengths == block_lengths::known_to_pairs &&
          !is_between_its_two(each, state.rank(), shape.chunks_per_block)) {
        return "the plan forwards or stores a block whose length only two ranks know: every block must move directly "
               "from in of its sender to out of its receiver";
      }
      if (each.count > 0 && (each.kind == plan::action_kind::push || (of_all && each.from == plan::region::inbox)) &&
          layout.chunks(each.chunk, each.count).size * asked.element_size > push_line::capacity) {
        return "the plan pushes, or reads from the inbox, more than the " + std::to_string(push_line::capacity) +
               " bytes that fit a push line; choose a plan for longer vectors";
      }
      if (const char* const fault = fault_of(each, state.rank(), shape.peer_pointers)) return fault;
    }
  }
  return {};
}

}  // namespace detail
HOCKET_END_NAMESPACE
