// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Checks of a single action that need no other action: whether its peers, chunks and slots exist.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/plan/detail/action_table.hpp>
#include <hocket/plan/proof.hpp>

#include <cstdint>

HOCKET_BEGIN_NAMESPACE
namespace plan::detail {

class form {
 public:
  constexpr explicit form(const action_table& table) noexcept : table_(table) {}

  constexpr violation of_plan() const noexcept {
    if (table_.ranks < 1) return violation::bad_rank_count;
    if (table_.shape.lanes == 0 || table_.shape.chunks_per_block == 0) return violation::bad_shape;
    if (table_.collective.root < 0 || table_.collective.root >= table_.ranks) return violation::bad_shape;
    return violation::none;
  }

  /// Checks one action. `aliased`: `in` and `out` of this rank are the same memory.
  constexpr violation of(int rank, const action& a, bool aliased) const noexcept {
    if (!peer_fits(rank, a)) return violation::no_such_peer;
    if (a.kind >= action_kind::load && !table_.shape.peer_pointers) return violation::undeclared_peer_pointers;
    if (a.to == region::in) return violation::writes_in;
    if (!regions_fit(a)) return violation::malformed;
    if (a.count == 0) return violation::none;
    if (std::uint64_t{a.chunk} + a.count > table_.chunks()) return violation::no_such_place;
    for (const violation v : {source(rank, a), destination(rank, a)}) {
      if (v != violation::none) return v;
    }
    return overlaps(a, aliased) ? violation::overlap : violation::none;
  }

 private:
  constexpr bool peer_fits(int rank, const action& a) const noexcept {
    const bool several = a.kind == action_kind::push || a.kind == action_kind::signal || a.kind == action_kind::wait;
    if (a.kind == action_kind::copy || a.kind == action_kind::load_reduce) return true;
    if (several && a.peer == all_peers) return true;
    return a.peer >= 0 && a.peer < table_.ranks && a.peer != rank;
  }

  static constexpr bool readable(region r) noexcept {
    return r == region::in || r == region::out || r == region::scratch;
  }
  static constexpr bool writable(region r) noexcept { return r == region::out || r == region::scratch; }

  static constexpr bool regions_fit(const action& a) noexcept {
    const bool data = a.count > 0;
    switch (a.kind) {
      case action_kind::copy:
      case action_kind::load: return data && readable(a.from) && writable(a.to);
      case action_kind::send: return data ? readable(a.from) : true;
      case action_kind::receive: return data ? writable(a.to) : true;
      case action_kind::receive_reduce: return data && readable(a.from) && writable(a.to);
      case action_kind::load_reduce: return data && (readable(a.from) || a.from == region::inbox) && writable(a.to);
      case action_kind::push: return data && readable(a.from) && a.to == region::inbox;
      case action_kind::signal:
      case action_kind::wait: return !data;
    }
    return false;
  }

  constexpr violation source(int rank, const action& a) const noexcept {
    switch (a.kind) {
      case action_kind::receive: return violation::none;
      case action_kind::load: return exists(a.peer, {a.from, a.from_at}, a);
      case action_kind::load_reduce: break;
      default: return exists(rank, {a.from, a.from_at}, a);
    }
    if (a.from == region::inbox) {
      return a.from_at == 0 ? exists(rank, {region::in, a.chunk}, a) : violation::no_such_place;
    }
    for (int each = 0; each < table_.ranks; ++each) {
      if (const violation v = exists(each, {a.from, a.from_at}, a); v != violation::none) return v;
    }
    return violation::none;
  }

  constexpr violation destination(int rank, const action& a) const noexcept {
    if (a.kind == action_kind::send) return violation::none;
    if (a.kind == action_kind::push) return a.to_at == 0 ? violation::none : violation::no_such_place;
    return exists(rank, {a.to, a.to_at}, a);
  }

  constexpr violation exists(int rank, place at, const action& a) const noexcept {
    if (at.where == region::scratch) {
      return std::uint64_t{at.at} + a.count <= table_.shape.scratch ? violation::none : violation::no_such_place;
    }
    if (std::uint64_t{at.at} + a.count > table_.chunks()) return violation::no_such_place;
    const buffer_part held =
        at.where == region::in ? table_.collective.in_part(rank) : table_.collective.out_part(rank);
    if (held == buffer_part::nothing) return violation::no_such_place;
    const std::uint32_t chunks_per_block = table_.shape.chunks_per_block;
    const auto own = static_cast<std::uint32_t>(rank);
    if (held == buffer_part::own_block &&
        (at.at / chunks_per_block != own || (at.at + a.count - 1) / chunks_per_block != own)) {
      return violation::no_such_place;
    }
    return at.at % chunks_per_block == a.chunk % chunks_per_block ? violation::none : violation::wrong_length;
  }

  /// Returns whether source and destination within this rank's memory overlap with a shift; the same place is allowed.
  static constexpr bool overlaps(const action& a, bool aliased) noexcept {
    if (a.kind != action_kind::copy && a.kind != action_kind::receive_reduce && a.kind != action_kind::load_reduce)
      return false;
    const bool from_inbox = a.from == region::inbox;
    const region from = from_inbox ? region::in : a.from;
    const std::uint32_t from_at = from_inbox ? a.chunk : a.from_at;
    const bool same_region = from == a.to || (aliased && from == region::in && a.to == region::out);
    const std::uint32_t shift = from_at > a.to_at ? from_at - a.to_at : a.to_at - from_at;
    return same_region && shift != 0 && shift < a.count;
  }

  const action_table& table_;
};

}  // namespace plan::detail
HOCKET_END_NAMESPACE
