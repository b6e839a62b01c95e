// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The cheapest way from one placement of a tensor to another, along all axes of a mesh at once. A greedy way can
/// gather what it then cuts again; this searches all sequences of moves, with the same code when compiling and when
/// running.
///
/// A move changes the placements along some axes by one collective among the ranks along these axes, or by none:
/// slices are gathered, or exchanged for slices of another kind; partial results are reduced, or reduced and scattered;
/// wholes are sliced. Where two axes cut one dimension, the right one cuts the slices of the left one; so a move along
/// the left one takes the right one with it, as an exchange among the ranks along both.
///
/// Uniform-cost search (Dijkstra) over the placements: of all axes if these are few, else of the axes that change.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/mesh/axis.hpp>
#include <hocket/shard/extents.hpp>
#include <hocket/shard/placement.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <vector>

HOCKET_BEGIN_NAMESPACE

/// What a move of a redistribution does.
enum class move_kind { slice, keep_on_first, gather, exchange, reduce, reduce_to_slices };

constexpr const char* to_string(move_kind kind) noexcept {
  switch (kind) {
    case move_kind::slice: return "slice";
    case move_kind::keep_on_first: return "keep on first rank";
    case move_kind::gather: return "all_gather";
    case move_kind::exchange: return "all_to_all";
    case move_kind::reduce: return "all_reduce";
    case move_kind::reduce_to_slices: return "reduce_scatter";
  }
  return "unknown";
}

/// Whether a move needs a collective.
constexpr bool communicates(move_kind kind) noexcept { return kind > move_kind::keep_on_first; }

/// What moves are priced with: by default, the costs of processes of one host.
struct move_costs {
  double latency = 2e-6;            ///< seconds per round of messages; a collective among p ranks has log2 p
  double seconds_per_byte = 2e-10;  ///< received from other ranks
  double copy_per_byte = 5e-11;     ///< within a rank
};

/// One move: `after` are the placements that it leads to; its collective is among the ranks along the axes `along`.
template <std::size_t Axes>
struct redistribution_move {
  move_kind kind = move_kind::slice;
  detail::axis_set along = 0;
  std::array<placement, Axes> after{};
  std::size_t elements = 0;  ///< received from other ranks by all ranks along the axes, together
  double seconds = 0;        ///< by the model
};

/// A sequence of moves: at most two per axis, as every axis can go by way of the whole.
template <std::size_t Axes>
struct redistribution_plan {
  static constexpr std::size_t most = 2 * Axes + 1;
  std::array<redistribution_move<Axes>, most> moves{};
  std::size_t size = 0;
  bool possible = false;

  constexpr const redistribution_move<Axes>* begin() const noexcept { return moves.data(); }
  constexpr const redistribution_move<Axes>* end() const noexcept { return moves.data() + size; }

  constexpr std::size_t collectives() const noexcept {
    std::size_t count = 0;
    for (const auto& each : *this) count += communicates(each.kind) ? 1U : 0U;
    return count;
  }
  constexpr double seconds() const noexcept {
    double total = 0;
    for (const auto& each : *this) total += each.seconds;
    return total;
  }
};

namespace detail {

/// Searches for one redistribution of a tensor of `Rank` dimensions over a mesh of `Axes` axes.
template <std::size_t Rank, std::size_t Axes>
class redistribution_search {
 public:
  using state = std::array<placement, Axes>;
  using move = redistribution_move<Axes>;
  using plan_type = redistribution_plan<Axes>;

  constexpr redistribution_search(const std::array<std::size_t, Rank>& sizes, const std::array<int, Axes>& mesh_extents,
                                  std::size_t element_bytes, const move_costs& costs)
      : sizes_(sizes), mesh_extents_(mesh_extents), element_bytes_(static_cast<double>(element_bytes)), costs_(costs) {}

  /// The move from one state to another, if it is one move.
  constexpr bool find_move(const state& from, const state& to, move& found) const {
    axis_set changed = 0;
    for (std::size_t a = 0; a < Axes; ++a) changed |= from[a] == to[a] ? 0U : 1U << a;
    found = {move_kind::slice, changed, to, 0, 0};
    if (all(from, to, changed, [](placement b, placement a) { return b.partial() && a.whole(); })) {
      found.kind = move_kind::reduce;
    } else if (all(from, to, changed, [](placement b, placement a) { return b.partial() && a.sharded(); })) {
      found.kind = move_kind::reduce_to_slices;
    } else if (all(from, to, changed, [](placement b, placement a) { return b.whole() && a.partial(); })) {
      found.kind = move_kind::keep_on_first;
    } else if (all(from, to, changed, [](placement b, placement a) { return b.whole() && a.sharded(); })) {
      found.kind = move_kind::slice;
    } else if (all(from, to, changed, [](placement b, placement a) { return !b.partial() && !a.partial(); })) {
      const bool whole = all(from, to, changed, [](placement, placement a) { return a.whole(); });
      found.kind = whole ? move_kind::gather : move_kind::exchange;
    } else {
      return false;
    }
    if (with_inner_cuts(from, to, changed) != changed && !fits(from, found)) return false;
    set_price(from, found);
    if (found.kind == move_kind::exchange) narrow(from, found);
    return true;
  }

  /// The cheapest sequence. Axes of one rank change for nothing, and appear in no move.
  constexpr plan_type search(state from, const state& to) const {
    for (std::size_t a = 0; a < Axes; ++a) {
      if (mesh_extents_[a] == 1) from[a] = to[a];
      // What is whole on all ranks may be replicated or invariant: to memory, that is one.
      if (from[a].whole() && to[a].whole()) from[a] = to[a];
    }
    plan_type plan;
    if (from == to) {
      plan.possible = true;
      return plan;
    }
    std::vector<node> nodes = all_states(from, to);
    for (;;) {
      const std::size_t next = cheapest_open(nodes);
      if (next == nodes.size()) return plan;
      nodes[next].settled = true;
      if (nodes[next].at == to) return traced_back(nodes, next);
      relax(nodes, next);
    }
  }

 private:
  static constexpr double unreached = 1e300;

  struct node {
    state at{};
    double seconds = unreached;
    std::size_t before = 0;
    std::size_t moves = 0;
    std::size_t collectives = 0;
    move by{};
    bool settled = false;
  };

  template <class Holds>
  static constexpr bool all(const state& from, const state& to, axis_set changed, Holds holds) {
    for (std::size_t a = 0; a < Axes; ++a) {
      if ((changed >> a & 1U) != 0 && !holds(from[a], to[a])) return false;
    }
    return true;
  }

  /// `changed`, and the axes that cut, further right, a dimension that one of these cuts before or after.
  static constexpr axis_set with_inner_cuts(const state& from, const state& to, axis_set changed) {
    axis_set closed = changed;
    for (std::size_t a = 0; a < Axes; ++a) {
      if ((changed >> a & 1U) == 0) continue;
      for (std::size_t later = a + 1; later < Axes; ++later) {
        if (!to[later].sharded() || (changed >> later & 1U) != 0) continue;
        if (to[later] == from[a] || to[later] == to[a]) closed |= 1U << later;
      }
    }
    return closed;
  }

  /// Whether a move can be made although an axis cuts, further right, what it cuts: by an exchange among more ranks, to
  /// which slices and gathers are widened; or where the parts are such that the cut changes nothing.
  constexpr bool fits(const state& from, move& widened) const {
    if (widened.kind == move_kind::keep_on_first || widened.kind == move_kind::reduce) return true;
    if (widened.kind == move_kind::reduce_to_slices) return can_look() && shares_out(from, widened);
    widened.kind = move_kind::exchange;
    widened.along = with_inner_cuts(from, widened.after, widened.along);
    return true;
  }

  /// Makes an exchange the cheapest one among ranks that have what each other need; a slice if every rank has that.
  constexpr void narrow(const state& from, move& exchange) const {
    if (!can_look()) return;
    const move widest = exchange;
    for (axis_set group = 0; group < widest.along; ++group) {
      if ((group & ~widest.along) != 0 || !supplies(from, widest.after, group)) continue;
      move narrower = widest;
      narrower.along = group;
      if (group == 0) narrower.kind = move_kind::slice;
      set_price(from, narrower);
      if (narrower.seconds < exchange.seconds) exchange = narrower;
      if (group == 0) return;
    }
  }

  /// Whether there are so few ranks that all of them can be looked at. With more, rules must do, that are right and
  /// perhaps wider than needed where a dimension has fewer elements than ranks.
  constexpr bool can_look() const { return ranks_along(every_axis) <= 64; }

  using coordinates = std::array<int, Axes>;
  static constexpr axis_set every_axis = (1U << Axes) - 1;

  constexpr std::size_t ranks_along(axis_set set) const {
    std::size_t ranks = 1;
    for (std::size_t a = 0; a < Axes; ++a) {
      if ((set >> a & 1U) != 0) ranks *= static_cast<std::size_t>(mesh_extents_[a]);
    }
    return ranks;
  }

  template <class Visit>
  constexpr bool for_all_along(axis_set set, const coordinates& at, const Visit& visit) const {
    return detail::for_all_along(mesh_extents_, at, set, visit);
  }

  template <class Holds>
  constexpr bool holds_everywhere(const Holds& holds) const {
    return for_all_along(every_axis, {}, holds);
  }

  /// Whether the ranks along `group` have together what each of them needs. Of copies, those count that share the
  /// coordinates of who needs it.
  constexpr bool supplies(const state& from, const state& to, axis_set group) const {
    axis_set copies = 0;
    for (std::size_t a = 0; a < Axes; ++a) copies |= from[a].whole() ? 1U << a : 0U;
    return holds_everywhere([&](const coordinates& at) {
      const auto needed = part_of<Rank>(sizes_, to, mesh_extents_, at);
      std::size_t found = 0;
      for_all_along(group & ~copies, at, [&](const coordinates& other) {
        found += intersection(needed, part_of<Rank>(sizes_, from, mesh_extents_, other)).volume();
        return true;
      });
      return found == needed.volume();
    });
  }

  /// Whether the parts after the move are, in every group, those of the one before it.
  constexpr bool shares_out(const state& from, const move& shared) const {
    return holds_everywhere([&](const coordinates& at) {
      const auto whole = part_of<Rank>(sizes_, from, mesh_extents_, at);
      std::size_t found = 0;
      const bool inside = for_all_along(shared.along, at, [&](const coordinates& other) {
        const auto part = part_of<Rank>(sizes_, shared.after, mesh_extents_, other);
        found += part.volume();
        return intersection(part, whole).volume() == part.volume();
      });
      return inside && found == whole.volume();
    });
  }

  constexpr void set_price(const state& from, move& priced) const {
    const std::size_t ranks = ranks_along(priced.along);
    const std::array<int, Axes> first{};  // the rank whose parts are the largest
    const std::size_t before = part_of<Rank>(sizes_, from, mesh_extents_, first).volume();
    const std::size_t after = part_of<Rank>(sizes_, priced.after, mesh_extents_, first).volume();
    switch (priced.kind) {
      case move_kind::slice:
      case move_kind::keep_on_first: break;
      case move_kind::gather: priced.elements = (ranks - 1) * after; break;
      case move_kind::reduce_to_slices: priced.elements = (ranks - 1) * before; break;
      case move_kind::reduce: priced.elements = 2 * (ranks - 1) * before; break;
      case move_kind::exchange: priced.elements = exchanged(from, priced); break;
    }
    priced.seconds = static_cast<double>(after) * element_bytes_ * costs_.copy_per_byte;
    if (!communicates(priced.kind)) return;
    priced.seconds +=
        costs_.latency * static_cast<double>(std::bit_width(ranks - 1)) +
        static_cast<double>(priced.elements) / static_cast<double>(ranks) * element_bytes_ * costs_.seconds_per_byte;
  }

  /// What all ranks of a group lack of their parts; of the group that lacks most.
  constexpr std::size_t exchanged(const state& from, const move& priced) const {
    std::size_t most = 0;
    for_all_along(every_axis & ~priced.along, {}, [&](const coordinates& group) {
      std::size_t total = 0;
      for_all_along(priced.along, group, [&](const coordinates& at) {
        const auto before = part_of<Rank>(sizes_, from, mesh_extents_, at);
        const auto after = part_of<Rank>(sizes_, priced.after, mesh_extents_, at);
        total += after.volume() - intersection(before, after).volume();
        return true;
      });
      most = std::max(most, total);
      return true;
    });
    return most;
  }

  /// All placements of the axes that change: wholes, partial results where there are some already or at last, and
  /// slices. Where there are few, other axes may change on the way too.
  constexpr std::vector<node> all_states(const state& from, const state& to) const {
    std::size_t states = 1;
    for (std::size_t a = 0; a < Axes; ++a) states *= Rank + 2;
    const bool few = states <= 64;
    std::vector<node> nodes(1);
    nodes[0].at = from;
    for (std::size_t a = 0; a < Axes; ++a) {
      if (mesh_extents_[a] == 1 || (from[a] == to[a] && (!few || stays(from[a])))) continue;
      const std::size_t known = nodes.size();
      const auto add = [&](placement other) {
        if (other == from[a]) return;  // there already
        for (std::size_t i = 0; i < known; ++i) {
          nodes.push_back(nodes[i]);
          nodes.back().at[a] = other;
        }
      };
      if (!from[a].whole()) add(to[a].whole() ? to[a] : placement{placement_kind::replicated});
      if (to[a].partial() && !from[a].partial()) add(to[a]);
      for (std::size_t d = 0; d < Rank; ++d) add({placement_kind::shard, static_cast<int>(d)});
    }
    nodes[0].seconds = 0;
    return nodes;
  }

  /// What no move may touch that does not have to: varying data are no copies of a whole, so that a slice of one would
  /// stand for all; and only sums may be left to one rank.
  static constexpr bool stays(const placement& at) noexcept {
    return at.kind == placement_kind::varying || (at.partial() && at.kind != placement_kind::partial_sum);
  }

  static constexpr std::size_t cheapest_open(const std::vector<node>& nodes) {
    std::size_t best = nodes.size();
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (nodes[i].settled || nodes[i].seconds >= unreached) continue;
      if (best == nodes.size() || nodes[i].seconds < nodes[best].seconds) best = i;
    }
    return best;
  }

  constexpr void relax(std::vector<node>& nodes, std::size_t from) const {
    if (nodes[from].moves == plan_type::most) return;
    for (node& each : nodes) {
      move by;
      if (each.settled || !find_move(nodes[from].at, each.at, by)) continue;
      const double seconds = nodes[from].seconds + by.seconds;
      const bool as_cheap = seconds < each.seconds * (1 + 1e-9) && seconds > each.seconds * (1 - 1e-9);
      const std::size_t collectives = nodes[from].collectives + (communicates(by.kind) ? 1U : 0U);
      if (as_cheap ? collectives >= each.collectives : seconds > each.seconds) continue;
      each.seconds = seconds;
      each.before = from;
      each.moves = nodes[from].moves + 1;
      each.collectives = collectives;
      each.by = by;
    }
  }

  static constexpr plan_type traced_back(const std::vector<node>& nodes, std::size_t last) {
    plan_type plan;
    plan.possible = true;
    plan.size = nodes[last].moves;
    std::size_t position = plan.size;
    for (std::size_t at = last; at != 0; at = nodes[at].before) plan.moves[--position] = nodes[at].by;
    return plan;
  }

  std::array<std::size_t, Rank> sizes_;
  std::array<int, Axes> mesh_extents_;
  double element_bytes_;
  move_costs costs_;
};

}  // namespace detail

/// The cheapest sequence of moves that brings a tensor of extents `sizes`, over a mesh of these extents, from one
/// placement to another; `possible` is false if there is none.
template <std::size_t Rank, std::size_t Axes>
constexpr redistribution_plan<Axes> plan_redistribution(const std::array<std::size_t, Rank>& sizes,
                                                        const std::array<int, Axes>& mesh_extents,
                                                        const std::array<placement, Axes>& from,
                                                        const std::array<placement, Axes>& to,
                                                        std::size_t element_bytes, const move_costs& costs = {}) {
  return detail::redistribution_search<Rank, Axes>(sizes, mesh_extents, element_bytes, costs).search(from, to);
}

HOCKET_END_NAMESPACE
