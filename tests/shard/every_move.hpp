// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// All moves between placements of a small tensor on a small mesh, derived from the elements that each rank has and
/// needs, independent of the library's planning rules; and the cheapest sequence of moves, found by exhaustive search.
#pragma once

#include <hocket/shard/redistribution_plan.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <set>
#include <utility>
#include <vector>

namespace hocket_test {

/// The moves of a tensor of `Rank` dimensions on a mesh of `Axes` axes.
template <std::size_t Axes, std::size_t Rank = 2>
class every_move {
 public:
  using sizes_type = std::array<std::size_t, Rank>;
  using extents_type = std::array<int, Axes>;
  using state = std::array<hocket::placement, Axes>;

  every_move(const sizes_type& sizes, const extents_type& extents, std::size_t element_bytes)
      : sizes_(sizes), extents_(extents), element_bytes_(static_cast<double>(element_bytes)) {
    int ranks = 1;
    for (const int each : extents) ranks *= each;
    for (int rank = 0; rank < ranks; ++rank) coordinates_.push_back(coordinates_of(rank));
    list_states(0, {});
    prices_.assign(states_.size() * states_.size(), {});
    for (std::size_t from = 0; from < states_.size(); ++from) {
      for (std::size_t to = 0; to < states_.size(); ++to) prices_[from * states_.size() + to] = price(from, to);
    }
  }

  const std::vector<state>& states() const { return states_; }

  struct cheapest {
    double seconds = impossible;
    std::size_t collectives = 0;
  };

  /// Returns the cheapest sequence of up to seven moves from `from` to each state. Adds sums only if `from` has some.
  std::vector<cheapest> find(std::size_t from) const {
    std::vector<cheapest> best(states_.size());
    best[from] = {0, 0};
    const bool has_sums = std::any_of(states_[from].begin(), states_[from].end(), [](auto at) { return at.partial(); });
    for (int moves = 0; moves < 7; ++moves) {
      const std::vector<cheapest> shorter = best;
      for (std::size_t at = 0; at < states_.size(); ++at) {
        for (std::size_t to = 0; to < states_.size(); ++to) {
          const priced move = prices_[at * states_.size() + to];
          if (shorter[at].seconds >= impossible || move.seconds >= impossible) continue;
          if (move.adds && !has_sums) continue;
          const double seconds = shorter[at].seconds + move.seconds;
          const std::size_t collectives = shorter[at].collectives + (move.communicates ? 1U : 0U);
          const bool as_cheap = seconds <= best[to].seconds * (1 + 1e-9) && seconds >= best[to].seconds * (1 - 1e-9);
          if (as_cheap ? collectives < best[to].collectives : seconds < best[to].seconds)
            best[to] = {seconds, collectives};
        }
      }
    }
    return best;
  }

  static constexpr double impossible = 1e300;

 private:
  using rank_box = hocket::box<Rank>;

  struct priced {
    double seconds = impossible;
    bool communicates = false;
    bool adds = false;
  };

  extents_type coordinates_of(int rank) const {
    extents_type at{};
    for (std::size_t a = Axes; a-- > 0; rank /= extents_[a]) at[a] = rank % extents_[a];
    return at;
  }

  void list_states(std::size_t axis, state made) {
    if (axis == Axes) {
      states_.push_back(made);
      return;
    }
    using enum hocket::placement_kind;
    std::vector<hocket::placement> all{{replicated}, {partial_sum}};
    for (int d = 0; d < static_cast<int>(Rank); ++d) all.push_back({shard, d});
    for (const hocket::placement& each : all) {
      made[axis] = each;
      list_states(axis + 1, made);
    }
  }

  rank_box part(const state& placed, std::size_t rank) const {
    return hocket::part_of<Rank>(sizes_, placed, extents_, coordinates_[rank]);
  }

  /// Returns the cheapest move from one state to another in any group of axes that contains the changed ones.
  priced price(std::size_t from, std::size_t to) const {
    if (from == to) return {0, false};
    unsigned changed = 0;
    for (std::size_t a = 0; a < Axes; ++a) changed |= states_[from][a] == states_[to][a] ? 0U : 1U << a;
    priced best;
    for (unsigned group = 0; group < 1U << Axes; ++group) {
      const priced found = price_in(group, changed, states_[from], states_[to]);
      if (found.seconds < best.seconds) best = found;
    }
    return best;
  }

  priced price_in(unsigned group, unsigned changed, const state& from, const state& to) const {
    bool partial_before = true;
    bool partial_after = true;
    bool some_partial = false;
    for (std::size_t a = 0; a < Axes; ++a) {
      if ((changed >> a & 1U) == 0) continue;
      partial_before = partial_before && from[a].partial();
      partial_after = partial_after && to[a].partial() && !from[a].partial();
      some_partial = some_partial || from[a].partial() || to[a].partial();
    }
    const double copied = handled(largest(to));
    if (partial_after) return puts_each_element_once(changed, from, to) ? priced{copied, false} : priced{};
    if (some_partial && !partial_before) return {};
    if (partial_before && group != changed) return {};
    if (partial_before) return reduction(group, from, to);
    return movement(group, from, to, copied);
  }

  /// Returns whether, in each group, each element of a rank's new part is on exactly one rank, copies not counted.
  bool puts_each_element_once(unsigned group, const state& from, const state& to) const {
    for (std::size_t rank = 0; rank < coordinates_.size(); ++rank) {
      const rank_box whole = part(to, rank);
      std::size_t found = 0;
      for (const std::size_t member : members(group, rank)) {
        bool first = true;
        for (std::size_t a = 0; a < Axes; ++a) {
          first = first && ((group >> a & 1U) == 0 || !from[a].whole() || coordinates_[member][a] == 0);
        }
        if (!first) continue;
        const rank_box own = part(from, member);
        if (hocket::intersection(own, whole).volume() != own.volume()) return false;
        found += own.volume();
      }
      if (found != whole.volume()) return false;
    }
    return true;
  }

  /// Sums over the ranks of each group: each rank gets the whole sum, or a part of it.
  priced reduction(unsigned group, const state& from, const state& to) const {
    bool everything = true;
    bool shared_out = true;
    std::size_t ranks = 0;
    std::size_t longest = 0;
    for (std::size_t rank = 0; rank < coordinates_.size(); ++rank) {
      const rank_box own = part(from, rank);
      const std::vector<std::size_t> all = members(group, rank);
      ranks = all.size();
      std::size_t sum = 0;
      for (const std::size_t member : all) {
        const rank_box theirs = part(to, member);
        if (part(from, member) != own) return {};
        everything = everything && theirs == own;
        shared_out = shared_out && hocket::intersection(theirs, own).volume() == theirs.volume();
        sum += theirs.volume();
        longest = std::max(longest, theirs.volume());
      }
      shared_out = shared_out && sum == own.volume();
    }
    bool whole = true;
    bool cut = true;
    for (std::size_t a = 0; a < Axes; ++a) {
      whole = whole && ((group >> a & 1U) == 0 || to[a].whole());
      cut = cut && ((group >> a & 1U) == 0 || to[a].sharded());
    }
    const std::size_t volume = largest(from);
    if (everything && whole) {
      const std::size_t share = (ranks - 1) * ((volume + ranks - 1) / ranks);
      return {handled(share + volume) + collective(ranks, static_cast<double>(2 * share)), true, true};
    }
    if (!shared_out || !cut) return {};
    const std::size_t received = (ranks - 1) * longest;
    return {handled(received) + collective(ranks, static_cast<double>(received)), true, true};
  }

  /// Moves elements from the ranks that have them to the ranks that need them.
  priced movement(unsigned group, const state& from, const state& to, double copied) const {
    std::size_t most = 0;
    bool at_hand = true;
    for (std::size_t rank = 0; rank < coordinates_.size(); ++rank) {
      const std::size_t lacking =
          part(to, rank).volume() - hocket::intersection(part(to, rank), part(from, rank)).volume();
      for (const std::size_t member : members(group, rank)) {
        const rank_box needed = part(to, member);
        std::set<std::pair<sizes_type, sizes_type>> sources;  // distinct boxes: copies count once
        std::size_t found = 0;
        for (const std::size_t source : members(group, rank)) {
          const rank_box theirs = part(from, source);
          if (!sources.insert({theirs.begin, theirs.size}).second) continue;
          found += hocket::intersection(needed, theirs).volume();
        }
        if (found < needed.volume()) return {};
      }
      at_hand = at_hand && lacking == 0;
      most = std::max(most, lacking);
    }
    // The move is a slice if each changed axis goes from a whole to a shard.
    bool slices = true;
    for (std::size_t a = 0; a < Axes; ++a)
      slices = slices && (from[a] == to[a] || (from[a].whole() && to[a].sharded()));
    if (slices && at_hand) return {copied, false};
    return {copied + collective(members(group, 0).size(), static_cast<double>(most)), group != 0};
  }

  /// Time in which a rank copies or combines `elements` elements.
  double handled(std::size_t elements) const {
    return static_cast<double>(elements) * element_bytes_ * hocket::move_costs().copy_per_byte;
  }

  /// Cost of a collective; `received`: number of elements received by the rank that receives most.
  double collective(std::size_t ranks, double received) const {
    const hocket::move_costs costs;
    return costs.latency * static_cast<double>(std::bit_width(ranks - 1)) +
           received * element_bytes_ * costs.seconds_per_byte;
  }

  std::size_t largest(const state& placed) const { return part(placed, 0).volume(); }

  /// Returns the ranks that differ from `rank` only along the axes of `group`.
  std::vector<std::size_t> members(unsigned group, std::size_t rank) const {
    std::vector<std::size_t> result;
    for (std::size_t other = 0; other < coordinates_.size(); ++other) {
      bool same = true;
      for (std::size_t a = 0; a < Axes; ++a) {
        same = same && ((group >> a & 1U) != 0 || coordinates_[other][a] == coordinates_[rank][a]);
      }
      if (same) result.push_back(other);
    }
    return result;
  }

  sizes_type sizes_;
  extents_type extents_;
  double element_bytes_;
  std::vector<extents_type> coordinates_;
  std::vector<state> states_;
  std::vector<priced> prices_;
};

}  // namespace hocket_test
