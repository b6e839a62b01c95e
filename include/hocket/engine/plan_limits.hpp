// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// What the engine asks of a plan of the caller's own. It trusts the plans of the library, whose actions are proven to
/// name ranks, channels and chunks that there are; one that does not would read or write memory that is not the call's.
#pragma once

#include <hocket/communicator/last_call.hpp>
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

/// Of a plan for blocks whose lengths only two ranks know: whether an action moves one of theirs, or part of it, from
/// `in` of the one to `out` of the other, at once.
inline bool is_between_its_two(const plan::action& what, int rank, std::uint32_t pieces) noexcept {
  const bool local = what.what == plan::action_kind::copy;
  const auto block = static_cast<std::uint64_t>(local ? rank : what.peer);
  const auto begin = block * pieces;
  if (what.chunk < begin || std::uint64_t{what.chunk} + what.count > begin + pieces) return false;
  const bool from_in = what.from == plan::region::in;
  const bool to_its_place = what.to == plan::region::out && what.to_at == what.chunk;
  switch (what.what) {
    case plan::action_kind::send: return from_in && what.from_at == what.chunk;
    case plan::action_kind::receive: return to_its_place;
    case plan::action_kind::copy: return from_in && what.from_at == what.chunk && to_its_place;
    case plan::action_kind::load: {
      const std::uint64_t there = static_cast<std::uint64_t>(rank) * pieces + (what.chunk - begin);
      return from_in && what.from_at == there && to_its_place;
    }
    default: return false;
  }
}

/// Of a plan for blocks of different lengths: whether an action moves each of them from and to its own place. It is as long
/// as its `chunk` says, which the place of another block is not.
inline bool keeps_places(const plan::action& what) noexcept {
  const auto keeps = [&](plan::region where, std::uint32_t at) {
    return (where != plan::region::in && where != plan::region::out) || at == what.chunk;
  };
  return keeps(what.from, what.from_at) && keeps(what.to, what.to_at);
}

/// Whether what an action reads or writes at `at` ends within the buffer of `rank`.
inline bool fits(plan::region where, std::uint32_t at, const plan::action& what, const plan::layout& layout,
                 plan::collective_kind collective, std::uint32_t scratch, int rank) noexcept {
  if (where == plan::region::scratch) return at <= scratch && what.count <= scratch - at;
  if (where != plan::region::in && where != plan::region::out) return true;
  const plan::extent buffer = extent_of(collective, where, layout, rank);
  if (at > layout.chunk_count() || layout.begin(at) < buffer.begin) return false;
  return layout.begin(at) + layout.chunks(what.chunk, what.count).size <= buffer.begin + buffer.size;
}

/// What is wrong with an action on any communicator; null if nothing.
inline const char* fault_of(const plan::action& what, int rank, bool peer_pointers) noexcept {
  using plan::action_kind;
  using plan::region;
  const bool flags =
      what.what == action_kind::signal || what.what == action_kind::wait || what.what == action_kind::push;
  const bool messages =
      what.what == action_kind::send || what.what == action_kind::receive || what.what == action_kind::receive_reduce;
  const bool loads = what.what == action_kind::load || what.what == action_kind::load_reduce;
  if (messages && what.peer == rank) return "the plan has a message from a rank to itself: it is to copy instead";
  if ((flags || loads) && !peer_pointers) {
    return "the plan reads other ranks' memory, or flags of theirs, and its shape does not say peer_pointers";
  }
  if (what.count == 0 || what.what == action_kind::wait) return nullptr;
  const bool writes = loads || what.what == action_kind::copy || what.what == action_kind::receive ||
                      what.what == action_kind::receive_reduce;
  if (writes && what.to != region::out && what.to != region::scratch) {
    return "the plan writes to a region that is neither out nor scratch";
  }
  if (what.what == action_kind::receive || what.what == action_kind::signal) return nullptr;
  const bool from_vector = what.from == region::in || what.from == region::out;
  const bool from_elsewhere = what.what == action_kind::load_reduce ? what.from == region::inbox
                              : what.what == action_kind::load      ? false
                                                                    : what.from == region::scratch;
  if (!from_vector && !from_elsewhere) return "the plan reads from a region that this action can't read from";
  return nullptr;
}

/// Which limit of the engine an action of this rank exceeds; empty if none. Plans that the library chooses keep to them.
template <class State>
std::string exceeded_limit(const State& state, const call_request& asked, const plan::any_algorithm& chosen) {
  const plan::shape shape = chosen.shape(state.size());
  const plan::layout layout{asked.block_elements, static_cast<std::uint32_t>(asked.what.blocks(state.size())),
                            shape.pieces};
  for (unsigned lane = 0; lane < shape.lanes; ++lane) {
    const unsigned length = chosen.length(state.size(), state.rank(), lane);
    for (unsigned i = 0; i < length; ++i) {
      const plan::action each = chosen.at(state.size(), state.rank(), lane, i);
      const bool flags = each.what == plan::action_kind::signal || each.what == plan::action_kind::wait;
      const bool to_all = flags || each.what == plan::action_kind::push || each.what == plan::action_kind::copy ||
                          each.what == plan::action_kind::load_reduce;
      if (each.peer >= state.size() || each.peer < (to_all ? plan::all_peers : 0)) {
        return "the plan names a rank that this communicator does not have";
      }
      if (each.channel >= transport::max_channels) return "the plan uses a channel beyond the 4 that there are: 0 to 3";
      if (flags && each.tag >= signal_line::tags) return "the plan uses a tag beyond the 5 that there are: 0 to 4";
      if (each.count > 0 && std::uint64_t{each.chunk} + each.count > layout.chunk_count()) {
        return "the plan names a chunk that its own shape does not have";
      }
      const bool loads = each.what == plan::action_kind::load;
      const bool of_all = each.what == plan::action_kind::load_reduce;
      const auto within = [&](plan::region where, std::uint32_t at, int rank) {
        return each.count == 0 || fits(where, at, each, layout, asked.what.kind, shape.scratch, rank);
      };
      bool inside = within(each.to, each.to_at, state.rank());
      for (int rank = 0; rank < state.size(); ++rank) {
        const bool is_read = of_all || rank == (loads ? each.peer : state.rank());
        inside = inside && (!is_read || within(each.from, each.from_at, rank));
      }
      if (!inside) {
        return "the plan reads or writes at a place beyond the end of its buffer, or of the scratch that its shape "
               "asks for";
      }
      if (each.count > 0 && asked.lengths == block_lengths::known_to_all && !keeps_places(each)) {
        return "the plan moves a block from or to the place of another one, whose length differs";
      }
      if (each.count > 0 && asked.lengths == block_lengths::known_to_pairs &&
          !is_between_its_two(each, state.rank(), shape.pieces)) {
        return "the plan passes on, or keeps, what only two ranks know the length of: every block must go from in of "
               "the one to out of the other at once";
      }
      if (each.count > 0 && (each.what == plan::action_kind::push || (of_all && each.from == plan::region::inbox)) &&
          layout.chunks(each.chunk, each.count).size * asked.element_size > push_line::capacity) {
        return "the plan pushes, or takes from the inbox, more than the " + std::to_string(push_line::capacity) +
               " bytes that fit a line; choose one for longer vectors";
      }
      if (const char* const fault = fault_of(each, state.rank(), shape.peer_pointers)) return fault;
    }
  }
  return {};
}

}  // namespace detail
HOCKET_END_NAMESPACE
