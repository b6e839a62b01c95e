// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Search for the cheapest path from one placement of a tensor to another, along all axes of a mesh together. A greedy
/// path can gather slices only to cut them again; this search considers all sequences of moves, with the same code at
/// compile time and at run time.
///
/// A move changes the placements along some axes by one collective among the ranks along these axes, or by none: it
/// gathers slices, or exchanges them for other slices; it reduces partial results, or reduces and scatters them; it
/// takes slices of wholes; or it puts wholes or slices among zeros, which makes summands of them. If two axes cut one
/// dimension, the right axis cuts the slices of the left axis. So a move along the left axis also changes the parts
/// along the right axis, and is an exchange among the ranks along both.
///
/// The search (A*) is over placements: of all axes if there are few, else of the axes that change, each with its first
/// or last placement, or whole. Few are those of four dimensions along four axes, or, with more than 64 ranks, of three
/// along three.
///
/// The price of a move is the time of the rank that receives, combines and copies most: in a reduce_scatter, the one
/// with the largest slice. Uneven slices along two axes can make one reduce_scatter along both dearer than one each.
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

/// Up to this number of ranks, the search examines the parts of all ranks.
inline constexpr std::size_t max_ranks_compared = 64;

/// Searches for one redistribution of a tensor of `Rank` dimensions over a mesh of `Axes` axes.
///
/// Examining the parts of all ranks takes most of the time. So parts are computed once for each state, and only if a
/// move, by a lower bound of its cost, could be part of a path cheaper than the cheapest known one.
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

  /// Returns the cheapest sequence; among equally cheap ones, one with the fewest collectives. Axes of one rank change
  /// at no cost, and appear in no move.
  constexpr plan_type search(state from, const state& to) {
    for (std::size_t a = 0; a < Axes; ++a) {
      if (mesh_extents_[a] == 1) from[a] = to[a];
      // Replicated and invariant data are the same in memory.
      if (from[a].whole() && to[a].whole()) from[a] = to[a];
    }
    plan_type plan;
    if (from == to) {
      plan.possible = true;
      return plan;
    }
    for (const placement& each : from) combines_ = combines_ || each.partial();
    std::vector<node> nodes = all_states(from, to);
    if (nodes.size() < 2 || nodes[goal].at != to) return plan;  // `to` is not among the states
    for (;;) {
      plan.search_abandoned = is_over_budget();
      if (plan.search_abandoned) return plan;
      const std::size_t next = cheapest_open(nodes);
      if (next == nodes.size()) return plan;
      nodes[next].settled = true;
      if (next == goal) return traced_back(nodes, next);
      relax(nodes, next);
    }
  }

 private:
  constexpr bool is_over_budget() const noexcept { return ranks_.work() > most_work_; }

  using geometry = parts_of_ranks<Rank, Axes>;
  static constexpr std::size_t start = 0;  ///< position in the nodes
  static constexpr std::size_t goal = 1;

  /// Cost of a path. Costs that differ only by rounding are equal.
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
    double rest = -1;  ///< lower bound of the cost from here to the goal; negative until it is needed
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

  /// Finds the kind of move from one state to another, and the most axes that it needs. Returns false if there is none.
  constexpr bool classify(const state& from, const state& to, move& found) const {
    axis_set changed = 0;
    for (std::size_t a = 0; a < Axes; ++a) changed |= from[a] == to[a] ? 0U : 1U << a;
    found = {move_kind::slice, changed, to, 0, 0, 0};
    if (all(from, to, changed, [](placement b, placement a) { return b.partial() && a.whole(); })) {
      found.kind = move_kind::reduce_to_all;
    } else if (all(from, to, changed, [](placement b, placement a) { return b.partial() && a.sharded(); })) {
      found.kind = move_kind::reduce_to_slices;
    } else if (all(from, to, changed, [](placement b, placement a) { return b.whole() && a.partial(); })) {
      found.kind = move_kind::keep_on_first;
    } else if (all(from, to, changed, [](placement b, placement a) { return holds_once(b) && a.partial(); })) {
      found.kind = move_kind::pad_with_zeros;
    } else if (all(from, to, changed, [](placement b, placement a) { return b.whole() && a.sharded(); })) {
      found.kind = move_kind::slice;
    } else if (all(from, to, changed, [](placement b, placement a) { return !b.partial() && !a.partial(); })) {
      const bool whole = all(from, to, changed, [](placement, placement a) { return a.whole(); });
      found.kind = whole ? move_kind::gather_to_all : move_kind::exchange;
    } else {
      return false;
    }
    if (!combines_ && (found.kind == move_kind::reduce_to_all || found.kind == move_kind::reduce_to_slices))
      return false;
    // An axis further right may cut a dimension that this move cuts. Then slices and gathers become an exchange among
    // more ranks; a reduce_scatter, and zeros around slices, are possible only if the inner cut does not affect the
    // parts: see `complete`.
    const axis_set closed = with_inner_cuts(from, to, changed);
    const bool moves_elements = found.kind == move_kind::slice || found.kind == move_kind::gather_to_all;
    if (closed != changed && (moves_elements || found.kind == move_kind::exchange)) {
      found.kind = move_kind::exchange;
      found.along = closed;
    }
    return true;
  }

  /// Computes the cost of a move that `classify` found. Returns whether the move is possible.
  constexpr bool complete(node& from, node& to, move& found) {
    const bool pads = found.kind == move_kind::pad_with_zeros;
    if ((pads || found.kind == move_kind::reduce_to_slices) &&
        with_inner_cuts(from.at, to.at, found.along) != found.along) {
      if (!can_compute_parts()) return false;
      compute_parts_of_both(from, to);
      const bool fits = pads ? ranks_.shares_out(to, from, cut_along(from.at, found.along))
                             : ranks_.shares_out(from, to, found.along);
      if (!fits) return false;
    }
    if (found.kind == move_kind::exchange || (found.kind == move_kind::gather_to_all && can_compute_parts()))
      compute_parts_of_both(from, to);
    set_price(from, to, found);
    if (found.kind == move_kind::exchange || found.kind == move_kind::gather_to_all) narrow(from, to, found);
    return true;
  }

  constexpr void compute_parts_of_both(node& from, node& to) {
    ranks_.compute_parts(from);
    ranks_.compute_parts(to);
  }

  /// Returns whether data with this placement can become summands: wholes, of which one rank keeps its copy, or slices.
  static constexpr bool holds_once(placement before) noexcept { return before.whole() || before.sharded(); }

  /// Returns the axes of `along` that cut the tensor.
  static constexpr axis_set cut_along(const state& at, axis_set along) {
    axis_set cut = 0;
    for (std::size_t a = 0; a < Axes; ++a) cut |= at[a].sharded() ? along & (1U << a) : 0U;
    return cut;
  }

  /// Returns `changed`, and the axes further right that cut a dimension that one of these cuts before or after.
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

  /// Narrows an exchange or a gather to the cheapest group of ranks that together have what each of them needs; to a
  /// slice if every rank has this already.
  constexpr void narrow(node& from, node& to, move& widest) {
    if (!can_compute_parts()) return;
    compute_parts_of_both(from, to);
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

  /// What is left to do on the way to the goal, by axes.
  struct remaining {
    axis_set reduced = 0;  ///< summands must be added
    axis_set open = 0;  ///< data must become partial: one rank must have each element, and zeros serve for the others
    axis_set kept = 0;  ///< summands may stay, or be added and become partial again
  };
  static constexpr remaining remaining_between(const state& from, const state& last) {
    remaining left;
    for (std::size_t a = 0; a < Axes; ++a) {
      const axis_set axis = 1U << a;
      if (from[a].partial()) {
        (last[a].partial() ? left.kept : left.reduced) |= axis;
      } else if (last[a].partial()) {
        left.open |= axis;
      }
    }
    return left;
  }

  /// Returns the least number of elements that all ranks together receive if summands are added: of the summands of an
  /// element, all but one must reach a rank that adds them, and the sum must reach the ranks that need it.
  constexpr std::size_t least_received_to_add(const remaining& left) const {
    std::size_t least = static_cast<std::size_t>(-1);
    for (axis_set also = left.kept;; also = (also - 1) & left.kept) {
      const axis_set added = left.reduced | also;
      if (added == 0) return least;
      const std::size_t received = needed_at_goal_ / ranks_.ranks_along(left.open | also) +
                                   ranks_.volume_of_all() * (ranks_.ranks_along(added) - 2);
      if (received < least) least = received;
      if (also == 0) return least;
    }
  }

  /// Returns a lower bound of the cost of any sequence of moves to the goal, without examining parts.
  constexpr double simple_rest(const remaining& left, const node& last) const {
    const double seconds = seconds_to_handle(last.first.volume()) + latency(ranks_.ranks_along(left.reduced));
    if (left.reduced == 0) return seconds;
    return seconds + seconds_to_receive(least_received_to_add(left), ranks_.ranks_along(geometry::every_axis));
  }

  /// Returns a lower bound of the cost of any sequence of moves to the goal. All axes that it needs must be in the
  /// group of a collective; a collective along two axes takes as many rounds as one along each, or one fewer. Each rank
  /// must receive what it lacks, or what must be added.
  constexpr double least_rest(node& from, node& last, const remaining& left) {
    compute_parts_of_both(from, last);
    const axis_set needed = ranks_.needed_axes(from, last, geometry::every_axis) & ~left.open;
    std::size_t received = least_received_to_add(left);
    if (left.reduced == 0) {
      const std::size_t missing =
          ranks_.missing_elements(from, last, cut_along(from.at, left.open)) / ranks_.ranks_along(left.open);
      if (missing < received) received = missing;
    }
    return seconds_to_handle(last.first.volume()) + latency(ranks_.ranks_along(needed | left.reduced)) +
           seconds_to_receive(received, ranks_.ranks_along(geometry::every_axis));
  }

  /// Returns whether there are few enough ranks to examine the parts of all. With more, the search uses rules, which
  /// may involve more ranks than necessary if a dimension has fewer elements than ranks.
  constexpr bool can_compute_parts() const { return ranks_.ranks_along(geometry::every_axis) <= max_ranks_compared; }

  /// Returns the time in which a rank copies or combines `elements` elements.
  constexpr double seconds_to_handle(std::size_t elements) const {
    return static_cast<double>(elements) * element_bytes_ * costs_.copy_per_byte;
  }

  /// Returns the time in which `ranks` ranks together receive `elements` elements.
  constexpr double seconds_to_receive(std::size_t elements, std::size_t ranks) const {
    return static_cast<double>(elements) / static_cast<double>(ranks) * element_bytes_ * costs_.seconds_per_byte;
  }

  constexpr double latency(std::size_t ranks) const {
    return costs_.latency * static_cast<double>(std::bit_width(ranks - 1));
  }

  /// Returns whether a move combines means, whose counts another collective adds first.
  constexpr bool adds_means(const node& from, const move& priced) const {
    return !all(from.at, priced.after, priced.along,
                [](placement before, placement) { return before.kind != placement_kind::partial_mean; });
  }

  /// Returns the time until the rank that receives most has all its elements. An average would make wider groups seem
  /// cheaper, by ranks that receive less. Gathers receive evenly if the parts are not examined.
  constexpr double seconds_of_slowest(const node& from, const node& to, const move& priced) {
    const std::size_t ranks = ranks_.ranks_along(priced.along);
    if (priced.kind == move_kind::reduce_to_slices) {
      return seconds_to_receive((ranks - 1) * to.first.volume(), 1);
    }
    if (priced.kind == move_kind::reduce_to_all)
      return seconds_to_receive(2 * (ranks - 1) * largest_share(from, ranks), 1);
    const bool looked_at = priced.kind == move_kind::exchange || can_compute_parts();
    if (looked_at) return seconds_to_receive(ranks_.most_missing_elements(from, to), 1);
    return seconds_to_receive(priced.elements, ranks);
  }

  /// Returns the elements that one of `ranks` ranks combines in an all_reduce, at most.
  static constexpr std::size_t largest_share(const node& from, std::size_t ranks) {
    return (from.first.volume() + ranks - 1) / ranks;
  }

  /// Returns the elements that a rank copies or combines in a move, at most: a reduction combines what others send.
  constexpr std::size_t handled(const node& from, const node& to, const move& priced) const {
    const std::size_t others = ranks_.ranks_along(priced.along) - 1;
    if (priced.kind == move_kind::reduce_to_all) return to.first.volume() + others * largest_share(from, others + 1);
    return (priced.kind == move_kind::reduce_to_slices ? others : 1) * to.first.volume();
  }

  constexpr void set_price(const node& from, const node& to, move& priced) {
    const std::size_t ranks = ranks_.ranks_along(priced.along);
    const std::size_t before = from.first.volume();
    switch (priced.kind) {
      case move_kind::slice:
      case move_kind::keep_on_first:
      case move_kind::pad_with_zeros: priced.elements = 0; break;
      case move_kind::gather_to_all: priced.elements = (ranks - 1) * to.first.volume(); break;
      case move_kind::reduce_to_slices: priced.elements = (ranks - 1) * before; break;
      case move_kind::reduce_to_all: priced.elements = 2 * (ranks - 1) * before; break;
      case move_kind::exchange: priced.elements = ranks_.exchanged(from, to, priced.along); break;
    }
    priced.seconds = seconds_to_handle(handled(from, to, priced));
    if (!communicates(priced.kind)) return;
    priced.seconds += latency(ranks) + seconds_of_slowest(from, to, priced);
    if (adds_means(from, priced)) priced.counts = latency(ranks);
    priced.seconds += priced.counts;
  }

  /// Returns a lower bound of the cost of a move, however far it is narrowed; examines only the first rank.
  constexpr double least_seconds(const node& from, const node& to, const move& classified) const {
    const double seconds = seconds_to_handle(to.first.volume());
    if (!communicates(classified.kind)) return seconds;
    if (classified.kind == move_kind::reduce_to_all || classified.kind == move_kind::reduce_to_slices) {
      return seconds + latency(ranks_.ranks_along(classified.along));
    }
    const std::size_t needed = to.first.volume();
    if (geometry::common(from.first, to.first) == needed) return seconds;  // others may need more; or it is a slice
    // The first rank needs elements of others, each of which has at most as many as itself.
    const std::size_t sources = (needed + from.first.volume() - 1) / from.first.volume();
    return seconds + latency(sources < 2 ? 2 : sources);
  }

  /// Returns all combinations of placements of the axes that change: whole, slices, and partial if the axis is so at
  /// the start or at the goal. If there are few, other axes may change in between, too; if there are many, an axis has
  /// no slices except those of the start and the goal. If there are very few, sums that stay may be reduced in between,
  /// and data may become partial in between, to be reduced together with the sums along another axis.
  constexpr std::vector<node> all_states(const state& from, const state& to) {
    std::size_t states = 1;
    for (std::size_t a = 0; a < Axes; ++a) states *= Rank + 2;
    const bool very_few = states <= 125;
    const bool few = very_few || (states <= 1296 && can_compute_parts());  // some milliseconds
    bool joins = false;  // whether data may become partial to be reduced together with the sums of the start
    for (const placement& each : from) joins = joins || each.kind == placement_kind::partial_sum;
    joins = joins && very_few && can_compute_parts();
    std::vector<node> nodes(1);
    nodes[start].at = from;
    for (std::size_t a = 0; a < Axes; ++a) {
      if (mesh_extents_[a] == 1 || (from[a] == to[a] && (!few || stays(from[a]) || (from[a].partial() && !very_few))))
        continue;
      const std::size_t known = nodes.size();
      const auto add = [&](placement other) {
        if (other == from[a]) return;  // included already
        for (std::size_t i = 0; i < known; ++i) {
          nodes.push_back(nodes[i]);
          nodes.back().at[a] = other;
        }
      };
      if (!from[a].whole()) add(to[a].whole() ? to[a] : placement{placement_kind::replicated});
      if (!from[a].partial() && (to[a].partial() || joins)) add(placement{placement_kind::partial_sum});
      for (std::size_t d = 0; d < Rank; ++d) {
        const placement slices{placement_kind::shard, static_cast<int>(d)};
        if (few || slices == to[a]) add(slices);
      }
    }
    for (std::size_t i = 1; i < nodes.size(); ++i) {
      if (nodes[i].at == to) std::swap(nodes[i], nodes[goal]);
    }
    for (node& each : nodes) ranks_.compute_first_part(each);
    nodes[start].least.seconds = 0;
    nodes[start].rest = 0;
    nodes[goal].rest = 0;
    if (can_compute_parts()) {
      ranks_.compute_parts(nodes[goal]);
      for (const auto& each : nodes[goal].parts) needed_at_goal_ += each.volume();
    }
    return nodes;
  }

  /// Returns whether a placement must not change on the path unless it differs at the goal. Varying data are not copies
  /// of a whole, so that a slice of them is not part of one; and only sums can become zeros on all ranks except one.
  static constexpr bool stays(const placement& at) noexcept {
    return at.kind == placement_kind::varying || (at.partial() && at.kind != placement_kind::partial_sum);
  }

  /// Returns the open node with the lowest bound for the cost of a path through it.
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
    // Starts with the goal, whose cost then excludes paths that can't be cheaper.
    for (std::size_t i = goal; i < nodes.size(); ++i) {
      node& each = nodes[i];
      move by;
      ranks_.add_work(4 * Axes);
      if (is_over_budget()) return;
      if (each.settled || !classify(nodes[from].at, each.at, by)) continue;
      const cost least{so_far.seconds + least_seconds(nodes[from], each, by), so_far.collectives, so_far.moves + 1};
      if (!least.less_than(each.least) || !may_be_cheapest(each, nodes[goal], least)) continue;
      if (!complete(nodes[from], each, by)) continue;
      const std::size_t collectives = (communicates(by.kind) ? 1U : 0U) + (by.counts > 0 ? 1U : 0U);
      const cost found{so_far.seconds + by.seconds, so_far.collectives + collectives, so_far.moves + 1};
      if (!found.less_than(each.least)) continue;
      each.least = found;
      each.before = from;
      each.by = by;
    }
  }

  /// Returns whether a path to the goal through a node, of cost `least` up to there, may be cheaper than the known one.
  /// Examines the parts for the bound of the rest only if a simpler bound does not exclude the path.
  constexpr bool may_be_cheapest(node& through, node& last, const cost& least) {
    const auto is_cheaper_with = [&](double rest) {
      return cost{least.seconds + rest, least.collectives, least.moves}.less_than(last.least);
    };
    if (through.rest < 0) {
      const remaining left = remaining_between(through.at, last.at);
      const double simple = simple_rest(left, last);
      if (!is_cheaper_with(simple)) return false;
      through.rest = can_compute_parts() ? least_rest(through, last, left) : simple;
    }
    return is_cheaper_with(through.rest);
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
  bool combines_ = false;           ///< the start has partial results; data that become partial are not combined
  std::size_t needed_at_goal_ = 0;  ///< elements of all ranks together; 0 if the parts are not examined
};

}  // namespace detail

/// Returns the cheapest sequence of moves for a tensor of extents `sizes`, over a mesh of these extents, from one
/// placement to another; `possible` is false if there is none. The search is abandoned after `most_work` units of work
/// (see `parts_of_ranks::work`).
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
