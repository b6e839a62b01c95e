// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Plans of redistributions: no other sequence of moves is cheaper, or has the same cost with fewer collectives.
// unsanitized: it searches every sequence of moves
#include "shard/every_move.hpp"
#include "shard/every_placement.hpp"
#include "support/catch.hpp"

#include <hocket/shard/redistribution_plan.hpp>

#include <array>
#include <cstddef>
#include <random>
#include <vector>

using namespace hocket_test;

namespace {

using sizes_type = std::array<std::size_t, 2>;

/// Compares the plans of all legal pairs of placements, or each `step`-th, with the cheapest of all sequences.
template <std::size_t Rank, std::size_t Axes>
std::size_t compare_with_every_sequence(const std::array<std::size_t, Rank>& sizes,
                                        const std::array<int, Axes>& mesh_extents, std::size_t step = 1) {
  std::size_t pairs = 0;
  const every_move<Axes, Rank> moves(sizes, mesh_extents, sizeof(double));
  for (std::size_t from = 0; from < moves.states().size(); ++from) {
    const auto best_to = moves.find(from);
    for (std::size_t to = 0; to < moves.states().size(); ++to) {
      if (from == to || !legal(moves.states()[from], moves.states()[to]) || pairs++ % step != 0) continue;
      INFO(to_text(moves.states()[from]) << " to " << to_text(moves.states()[to]) << " of "
                                         << text_of(sizes, mesh_extents));
      const auto found =
          hocket::plan_redistribution(sizes, mesh_extents, moves.states()[from], moves.states()[to], sizeof(double));
      const auto& best = best_to[to];
      CHECK(found.possible);
      CHECK(found.seconds() <= best.seconds * (1 + 1e-9));
      CHECK(found.seconds() >= best.seconds * (1 - 1e-9));
      CHECK(found.collectives() == best.collectives);
    }
  }
  return pairs / step;
}

}  // namespace

TEST_CASE("no sequence of moves is cheaper than the plan") {
  std::size_t pairs = 0;
  for (int ranks = 2; ranks <= 8; ++ranks) {
    for (const sizes_type& sizes : std::vector<sizes_type>{{12, 24}, {13, 23}, {1, 3}, {2, 1}, {0, 5}, {4, 0}}) {
      pairs += compare_with_every_sequence(sizes, std::array<int, 1>{ranks});
    }
  }
  for (const auto& mesh_extents : std::vector<std::array<int, 2>>{{2, 2}, {2, 3}, {2, 4}, {3, 2}}) {
    for (const sizes_type& sizes :
         std::vector<sizes_type>{{12, 24}, {13, 23}, {7, 5}, {5, 7}, {1, 3}, {0, 5}, {4, 0}, {1200, 2400}}) {
      pairs += compare_with_every_sequence(sizes, mesh_extents);
    }
  }
  CHECK(pairs > 1000);
}

TEST_CASE("no sequence of moves is cheaper than the plan for extents that leave some ranks few or no elements") {
  std::size_t pairs = 0;
  for (const auto& mesh_extents : std::vector<std::array<int, 2>>{{2, 2}, {2, 3}, {2, 4}, {3, 2}}) {
    for (const sizes_type& sizes :
         std::vector<sizes_type>{{13, 10001}, {1, 100000}, {100001, 100001}, {1201, 2401}, {3, 5001}, {1000001, 13}}) {
      pairs += compare_with_every_sequence(sizes, mesh_extents);
    }
  }
  CHECK(pairs > 1000);
}

TEST_CASE("no sequence of moves is cheaper than the plan for one and three dimensions, and along three axes") {
  const std::array<int, 2> two{2, 3};
  const std::array<int, 3> three{2, 2, 2};
  std::size_t pairs = 0;
  for (const std::size_t size : std::vector<std::size_t>{12, 13, 2, 0}) {
    pairs += compare_with_every_sequence(std::array<std::size_t, 1>{size}, two);
    pairs += compare_with_every_sequence(std::array<std::size_t, 1>{size}, three);
  }
  pairs += compare_with_every_sequence(std::array<std::size_t, 3>{6, 4, 12}, two);
  pairs += compare_with_every_sequence(std::array<std::size_t, 3>{5, 3, 700}, two);
  pairs += compare_with_every_sequence(std::array<std::size_t, 3>{3, 0, 4}, two);
  pairs += compare_with_every_sequence(sizes_type{8, 12}, three, 4);
  pairs += compare_with_every_sequence(sizes_type{0, 7}, three, 4);
  pairs += compare_with_every_sequence(sizes_type{900, 7}, three, 4);
  CHECK(pairs > 1000);
}

// A row names the bytes at the rank that receives most, in all moves of the plan together. One reduce_scatter to slices
// of uneven sizes sends the largest slice from each rank; one along each axis sends less, if the first cuts the dimension
// whose slices are less uneven.
TEST_CASE("sums become uneven slices by the moves with the fewest bytes at the rank that receives most") {
  constexpr hocket::placement P{hocket::placement_kind::partial_sum};
  constexpr hocket::placement S0{hocket::placement_kind::shard, 0};
  constexpr hocket::placement S1{hocket::placement_kind::shard, 1};
  struct row {
    sizes_type sizes;
    std::array<hocket::placement, 2> to;
    std::size_t collectives;
    std::size_t bytes;
  };
  const std::vector<row> rows{
      {{7, 5}, {S0, S1}, 2, 128},  // 5 elements of 4 rows, then 3 of them: 20 + 12
      {{7, 5}, {S1, S0}, 2, 128},  // the rows first, too
      {{7, 5}, {S1, S1}, 2, 140},  // 3 columns of 7 elements, then 2 of them: 21 + 14
      {{7, 5}, {S0, S0}, 1, 120},  // 2 rows from each of 3 ranks
      {{5, 7}, {S0, S1}, 2, 128},  // 4 columns of 5 elements, then 3 of each: 20 + 12
      {{8, 6}, {S0, S1}, 1, 144},  // 12 elements from each of 3 ranks, as many as 24 + 12
      {{8, 6}, {S1, S0}, 1, 144}, {{8, 8}, {S1, S1}, 1, 192},
  };
  for (const row& each : rows) {
    const std::array<int, 2> mesh_extents{2, 2};
    INFO("PP to " << to_text(each.to) << " of " << text_of(each.sizes, mesh_extents));
    const auto plan = hocket::plan_redistribution(each.sizes, mesh_extents, {P, P}, each.to, sizeof(float));
    REQUIRE(plan.possible);
    std::size_t bytes = 0;
    for (const auto& move : plan) {
      REQUIRE(move.kind == hocket::move_kind::reduce_to_slices);
      const std::size_t ranks = move.along == 3U ? 4 : 2;
      bytes += (ranks - 1) * hocket::part_of<2>(each.sizes, move.after, mesh_extents, std::array{0, 0}).volume() * 4;
    }
    CHECK(plan.collectives() == each.collectives);
    CHECK(bytes == each.bytes);
  }
}

TEST_CASE("slices become sums without a collective if each rank's slice is within its new part") {
  constexpr hocket::placement R{hocket::placement_kind::replicated};
  constexpr hocket::placement P{hocket::placement_kind::partial_sum};
  constexpr hocket::placement S0{hocket::placement_kind::shard, 0};
  constexpr hocket::placement S1{hocket::placement_kind::shard, 1};
  struct row {
    std::array<hocket::placement, 2> from;
    std::array<hocket::placement, 2> to;
    std::size_t collectives;
  };
  const std::vector<row> rows{
      {{S0, R}, {P, R}, 0},   {{R, S1}, {R, P}, 0},   {{S0, S1}, {P, P}, 0},  {{S0, S0}, {P, P}, 0},
      {{S0, S0}, {S0, P}, 0}, {{S0, S1}, {P, S1}, 0}, {{S0, R}, {P, P}, 0},   {{S1, R}, {P, S0}, 0},
      {{S0, P}, {P, P}, 0},   {{S0, S0}, {P, S0}, 1}, {{S1, S1}, {P, S1}, 1}, {{S0, S0}, {P, S1}, 1},
  };
  for (const sizes_type& sizes : std::vector<sizes_type>{{8, 12}, {7, 5}, {64, 3}}) {
    for (const row& each : rows) {
      INFO(to_text(each.from) << " to " << to_text(each.to) << " of " << text_of(sizes, std::array{2, 2}));
      const auto plan = hocket::plan_redistribution(sizes, {2, 2}, each.from, each.to, sizeof(float));
      CHECK(plan.possible);
      CHECK(plan.collectives() == each.collectives);
    }
  }
}

// A sequence of moves may temporarily change the placement along an axis.
TEST_CASE("no sequence of moves is cheaper than the plan for three dimensions along three axes") {
  std::size_t pairs = 0;
  pairs += compare_with_every_sequence(std::array<std::size_t, 3>{1 << 12, 1 << 10, 64}, std::array<int, 3>{2, 2, 2});
  pairs += compare_with_every_sequence(std::array<std::size_t, 3>{7, 500, 3}, std::array<int, 3>{2, 2, 2}, 4);
  CHECK(pairs > 10000);
}

// For these, only exchanges consider all ranks.
TEST_CASE("on more than 64 ranks there is a plan, and slices need no collective") {
  const std::array<std::size_t, 3> sizes{512, 65, 64};
  const std::array<int, 3> mesh_extents{8, 8, 8};
  const auto placed = hocket_test::placements_over<3, 3>();
  std::size_t pairs = 0;
  for (std::size_t from = 0; from < placed.size(); from += 7) {
    for (std::size_t to = from % 11; to < placed.size(); to += 11) {
      if (!legal(placed[from], placed[to])) continue;
      INFO(to_text(placed[from]) << " to " << to_text(placed[to]));
      const auto found = hocket::plan_redistribution(sizes, mesh_extents, placed[from], placed[to], sizeof(float));
      REQUIRE(found.possible);
      bool slices = true;
      for (std::size_t a = 0; a < 3; ++a) slices = slices && (placed[from][a].whole() && !placed[to][a].partial());
      CHECK((!slices || found.collectives() == 0));
      ++pairs;
    }
  }
  CHECK(pairs > 100);
}

TEST_CASE("a plan along six axes exists and ends at the wanted placements") {
  const std::array<std::size_t, 4> sizes{4096, 5, 33, 4097};
  const std::array<int, 6> mesh_extents{2, 3, 2, 2, 4, 2};
  std::mt19937 random(11);
  using state = std::array<hocket::placement, 6>;
  const auto draw = [&](unsigned kinds) {
    state drawn{};
    for (auto& each : drawn) {
      const auto which = static_cast<int>(random() % kinds);
      using enum hocket::placement_kind;
      each = which < 4 ? hocket::placement{shard, which} : hocket::placement{which == 4 ? replicated : partial_sum};
    }
    return drawn;
  };
  for (int i = 0; i < 40; ++i) {
    const state from = draw(6);
    const state to = draw(5);
    const auto found = hocket::plan_redistribution(sizes, mesh_extents, from, to, sizeof(float));
    INFO(to_text(from) << " to " << to_text(to));
    REQUIRE(found.possible);
    state at = from;
    for (const auto& move : found) at = move.after;
    for (std::size_t a = 0; a < at.size(); ++a) CHECK((at[a] == to[a] || (at[a].whole() && to[a].whole())));
  }
}
