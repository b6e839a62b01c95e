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
/// Search over the placements, of all axes if these are few, else of the axes that change, each as at first, as at last
/// or whole: by what the way to one costs and the rest must cost at least (A*). Few are those of four dimensions along
/// four axes, or, over more than 64 ranks, of three along three.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/mesh/axis.hpp>
#include <hocket/shard/parts_of_ranks.hpp>
#include <hocket/shard/placement.hpp>
#include <hocket/shard/redistribution_move.hpp>

#include <array>
#include <bit>
#include <cstddef>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// The parts of so many ranks are looked at one by one.
inline constexpr std::size_t most_ranks_looked_at = 64;

/// Searches for one redistribution of a tensor of `Rank` dimensions over a mesh of `Axes` axes.
///
/// Looking at the parts of all ranks is what takes time. So parts are computed once for each state, and only where a
/// move could, by the least that it may cost, be part of a way cheaper than the cheapest one known.
template <std::size_t Rank, std::size_t Axes>
class redistribution_search {
 public:
  using state = std::array<placement, Axes>;
  using move = redistribution_move<Axes>;
  using plan_type = redistribution_plan<Axes>;

  constexpr redistribution_search(const std::array<std::size_t, Rank>& sizes, const std::array<int, Axes>& mesh_extents,
                                  std::size_t element_bytes, const move_costs& costs, std::size_t most_work)
      : ranks_(sizes, mesh_extents), mesh_extents_(mesh_extents), element_bytes_(static_cast<double>(element_bytes)),
        costs_(costs), most_work_(most_work) {}

  /// The cheapest sequence; of those as cheap, one of the fewest collectives. Axes of one rank change for nothing, and
  /// appear in no move.
  constexpr plan_type search(state from, const state& to) {
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
    if (nodes.size() < 2 || nodes[goal].at != to) return plan;  // no state on the way is `to`
    for (;;) {
      plan.given_up = gives_up();
      if (plan.given_up) return plan;
      const std::size_t next = cheapest_open(nodes);
      if (next == nodes.size()) return plan;
      nodes[next].settled = true;
      if (next == goal) return traced_back(nodes, next);
      relax(nodes, next);
    }
  }

 private:
  constexpr bool gives_up() const noexcept { return ranks_.work() > most_work_; }

  using geometry = parts_of_ranks<Rank, Axes>;
  static constexpr std::size_t start = 0;  ///< among the nodes
  static constexpr std::size_t goal = 1;

  /// What a way costs. Prices that differ by rounding alone are equal.
  struct cost {
    double seconds = 1e300;
    std::size_t collectives = 0;
    std::size_t moves = 0;

    constexpr bool reached() const noexcept { return seconds < 1e299; }
    constexpr bool less_than(const cost& other) const noexcept {
      if (seconds < other.seconds * (1 - 1e-9)) return true;
      if (seconds > other.seconds * (1 + 1e-9)) return false;
      return collectives != other.collectives ? collectives < other.collectives : moves < other.moves;
    }
  };

  struct node : placed_parts<Rank, Axes> {
    double rest = 0;  ///< the least that it costs to get from here to the goal
    cost least{};
    std::size_t before = 0;
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

  /// What kind of move leads from one state to another, and along which axes at most; whether there is one.
  constexpr bool classify(const state& from, const state& to, move& found) const {
    axis_set changed = 0;
    for (std::size_t a = 0; a < Axes; ++a) changed |= from[a] == to[a] ? 0U : 1U << a;
    found = {move_kind::slice, changed, to, 0, 0, 0};
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
    // An axis may cut, further right, what this move cuts. Then slices and gathers are widened to an exchange among
    // more ranks; and results can be shared out only if the parts are such that the inner cut changes nothing.
    const axis_set closed = with_inner_cuts(from, to, changed);
    const bool moves_elements = found.kind == move_kind::slice || found.kind == move_kind::gather;
    if (closed != changed && (moves_elements || found.kind == move_kind::exchange)) {
      found.kind = move_kind::exchange;
      found.along = closed;
    }
    return true;
  }

  /// Prices a move that `classify` found; whether it can be made.
  constexpr bool complete(node& from, node& to, move& found) {
    if (found.kind == move_kind::reduce_to_slices && with_inner_cuts(from.at, to.at, found.along) != found.along) {
      if (!can_look()) return false;
      look_at(from, to);
      if (!ranks_.shares_out(from, to, found.along)) return false;
    }
    if (found.kind == move_kind::exchange || (found.kind == move_kind::gather && can_look())) look_at(from, to);
    set_price(from, to, found);
    if (found.kind == move_kind::exchange || found.kind == move_kind::gather) narrow(from, to, found);
    return true;
  }

  constexpr void look_at(node& from, node& to) {
    ranks_.look_at_all(from);
    ranks_.look_at_all(to);
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

  /// Makes an exchange or a gather the cheapest one among ranks that have what each other need; a slice if every rank
  /// has that.
  constexpr void narrow(node& from, node& to, move& widest) {
    if (!can_look()) return;
    look_at(from, to);
    const axis_set along = widest.along;
    const axis_set needed = ranks_.needed_axes(from, to, along);
    for (axis_set group = needed; group < along; ++group) {
      if ((group & ~along) != 0 || (needed & ~group) != 0 || !ranks_.supplies(from, to, group)) continue;
      move narrower = widest;
      narrower.along = group;
      if (group == 0) narrower.kind = move_kind::slice;
      set_price(from, to, narrower);
      if (group == 0 || narrower.seconds < widest.seconds) widest = narrower;
      if (group == 0) return;
    }
  }

  /// The least that any sequence of moves to the goal costs. All axes that it needs must be in the group of some
  /// collective; one along two axes takes as many rounds as one along each, or fewer by one. And each rank must receive
  /// what it lacks; where there are summands of an element, all but one must reach who adds them.
  constexpr double least_rest(node& from, node& last) {
    if (from.at == last.at) return 0;
    if (!can_look()) return seconds_to_copy(last);
    look_at(from, last);
    axis_set reduced = 0;
    for (std::size_t a = 0; a < Axes; ++a) {
      reduced |= from.at[a].partial() && !last.at[a].partial() ? 1U << a : 0U;
    }
    std::size_t received = 0;
    for (std::size_t rank = 0; rank < last.parts.size(); ++rank) {
      received += last.parts[rank].volume();
      if (reduced == 0) received -= geometry::common(from.parts[rank], last.parts[rank]);
    }
    if (reduced != 0) received += ranks_.volume_of_all() * (ranks_.ranks_along(reduced) - 2);
    return seconds_to_copy(last) +
           latency(ranks_.ranks_along(ranks_.needed_axes(from, last, geometry::every_axis) | reduced)) +
           seconds_to_receive(received, ranks_.ranks_along(geometry::every_axis));
  }

  /// Whether there are so few ranks that all of them can be looked at. With more, rules must do, that are right and
  /// perhaps wider than needed where a dimension has fewer elements than ranks.
  constexpr bool can_look() const { return ranks_.ranks_along(geometry::every_axis) <= most_ranks_looked_at; }

  constexpr double seconds_to_copy(const node& to) const {
    return static_cast<double>(to.first.volume()) * element_bytes_ * costs_.copy_per_byte;
  }

  /// Of as many elements by `ranks` ranks together.
  constexpr double seconds_to_receive(std::size_t elements, std::size_t ranks) const {
    return static_cast<double>(elements) / static_cast<double>(ranks) * element_bytes_ * costs_.seconds_per_byte;
  }

  constexpr double latency(std::size_t ranks) const {
    return costs_.latency * static_cast<double>(std::bit_width(ranks - 1));
  }

  /// Whether a move adds up means, whose counts are added up first, by a collective of their own.
  constexpr bool adds_means(const node& from, const move& priced) const {
    return !all(from.at, priced.after, priced.along,
                [](placement before, placement) { return before.kind != placement_kind::partial_mean; });
  }

  /// Until the rank that receives most has all. A mean over the ranks of the group would make wider groups cheaper, by
  /// ranks that receive nothing. Sums are shared out evenly; so are gathers, where parts have not been looked at.
  constexpr double seconds_of_slowest(const node& from, const node& to, const move& priced) {
    const bool looked_at = priced.kind == move_kind::exchange || (priced.kind == move_kind::gather && can_look());
    if (looked_at) return seconds_to_receive(ranks_.most_lacking(from, to), 1);
    return seconds_to_receive(priced.elements, ranks_.ranks_along(priced.along));
  }

  constexpr void set_price(const node& from, const node& to, move& priced) {
    const std::size_t ranks = ranks_.ranks_along(priced.along);
    const std::size_t before = from.first.volume();
    switch (priced.kind) {
      case move_kind::slice:
      case move_kind::keep_on_first: priced.elements = 0; break;
      case move_kind::gather: priced.elements = (ranks - 1) * to.first.volume(); break;
      case move_kind::reduce_to_slices: priced.elements = (ranks - 1) * before; break;
      case move_kind::reduce: priced.elements = 2 * (ranks - 1) * before; break;
      case move_kind::exchange: priced.elements = ranks_.exchanged(from, to, priced.along); break;
    }
    priced.seconds = seconds_to_copy(to);
    if (!communicates(priced.kind)) return;
    priced.seconds += latency(ranks) + seconds_of_slowest(from, to, priced);
    if (adds_means(from, priced)) priced.counts = latency(ranks);
    priced.seconds += priced.counts;
  }

  /// The least that a move may cost, whatever it is narrowed to: looks at the first rank alone.
  constexpr double least_seconds(const node& from, const node& to, const move& classified) const {
    double seconds = seconds_to_copy(to);
    if (!communicates(classified.kind)) return seconds;
    if (classified.kind == move_kind::reduce || classified.kind == move_kind::reduce_to_slices) {
      return seconds + latency(ranks_.ranks_along(classified.along));
    }
    const std::size_t needed = to.first.volume();
    if (geometry::common(from.first, to.first) == needed) return seconds;  // others may need more; or it is a slice
    // It needs others, each of which has as much as itself at most.
    const std::size_t sources = (needed + from.first.volume() - 1) / from.first.volume();
    return seconds + latency(sources < 2 ? 2 : sources);
  }

  /// All placements of the axes that change: wholes, partial results where there are some already or at last, and
  /// slices. Where there are few, other axes may change on the way too; where there are many, an axis has no slices on
  /// the way but those at first and at last.
  constexpr std::vector<node> all_states(const state& from, const state& to) {
    std::size_t states = 1;
    for (std::size_t a = 0; a < Axes; ++a) states *= Rank + 2;
    const bool few = states <= (can_look() ? 1296U : 125U);  // some milliseconds
    std::vector<node> nodes(1);
    nodes[start].at = from;
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
      for (std::size_t d = 0; d < Rank; ++d) {
        const placement slices{placement_kind::shard, static_cast<int>(d)};
        if (few || slices == to[a]) add(slices);
      }
    }
    for (std::size_t i = 1; i < nodes.size(); ++i) {
      if (nodes[i].at == to) std::swap(nodes[i], nodes[goal]);
    }
    for (node& each : nodes) ranks_.look_at_first(each);
    for (node& each : nodes) {
      if (!gives_up()) each.rest = least_rest(each, nodes[goal]);
    }
    nodes[start].least.seconds = 0;
    return nodes;
  }

  /// What no move may touch that does not have to: varying data are no copies of a whole, so that a slice of one would
  /// stand for all; and only sums may be left to one rank.
  static constexpr bool stays(const placement& at) noexcept {
    return at.kind == placement_kind::varying || (at.partial() && at.kind != placement_kind::partial_sum);
  }

  /// The node through which the whole way may be the cheapest.
  static constexpr std::size_t cheapest_open(const std::vector<node>& nodes) {
    std::size_t best = nodes.size();
    cost least;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (nodes[i].settled || !nodes[i].least.reached()) continue;
      cost through = nodes[i].least;
      through.seconds += nodes[i].rest;
      if (best != nodes.size() && !through.less_than(least)) continue;
      best = i;
      least = through;
    }
    return best;
  }

  constexpr void relax(std::vector<node>& nodes, std::size_t from) {
    const cost so_far = nodes[from].least;
    if (so_far.moves == plan_type::most) return;
    // The goal is the first to be looked at: then no way needs to be looked at that can't be cheaper.
    for (std::size_t i = goal; i < nodes.size(); ++i) {
      node& each = nodes[i];
      move by;
      ranks_.add_work(4 * Axes);
      if (gives_up()) return;
      if (each.settled || !classify(nodes[from].at, each.at, by)) continue;
      const cost least{so_far.seconds + least_seconds(nodes[from], each, by), so_far.collectives, so_far.moves + 1};
      const cost least_at_goal{least.seconds + each.rest, so_far.collectives, least.moves};
      if (!least.less_than(each.least) || !least_at_goal.less_than(nodes[goal].least)) continue;
      if (!complete(nodes[from], each, by)) continue;
      const std::size_t collectives = (communicates(by.kind) ? 1U : 0U) + (by.counts > 0 ? 1U : 0U);
      const cost found{so_far.seconds + by.seconds, so_far.collectives + collectives, so_far.moves + 1};
      if (!found.less_than(each.least)) continue;
      each.least = found;
      each.before = from;
      each.by = by;
    }
  }

  static constexpr plan_type traced_back(const std::vector<node>& nodes, std::size_t last) {
    plan_type plan;
    plan.possible = true;
    plan.size = nodes[last].least.moves;
    std::size_t position = plan.size;
    for (std::size_t at = last; at != start; at = nodes[at].before) plan.moves[--position] = nodes[at].by;
    return plan;
  }

  geometry ranks_;
  std::array<int, Axes> mesh_extents_;
  double element_bytes_;
  move_costs costs_;
  std::size_t most_work_;
};

}  // namespace detail

/// The cheapest sequence of moves that brings a tensor of extents `sizes`, over a mesh of these extents, from one
/// placement to another; `possible` is false if there is none. `most_work`: after so much of it (see
/// `parts_of_ranks::work`) the search is given up.
template <std::size_t Rank, std::size_t Axes>
constexpr redistribution_plan<Axes> plan_redistribution(const std::array<std::size_t, Rank>& sizes,
                                                        const std::array<int, Axes>& mesh_extents,
                                                        const std::array<placement, Axes>& from,
                                                        const std::array<placement, Axes>& to,
                                                        std::size_t element_bytes, const move_costs& costs = {},
                                                        std::size_t most_work = static_cast<std::size_t>(-1)) {
  return detail::redistribution_search<Rank, Axes>(sizes, mesh_extents, element_bytes, costs, most_work)
      .search(from, to);
}

HOCKET_END_NAMESPACE
