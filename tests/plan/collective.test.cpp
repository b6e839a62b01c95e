// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/catch.hpp"

#include "plan/every_plan.hpp"
#include "plan/interpreter.hpp"

#include <hocket/plan/listed.hpp>
#include <hocket/plan/prove.hpp>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <map>
#include <string>
#include <type_traits>

namespace plan = hocket::plan;
using hocket_test::for_every_plan;

namespace {

/// `Plan` in mixed form: odd ranks run the in-place form, even ranks the other form.
template <class Plan>
plan::listed mixed(const Plan& apart, int ranks) {
  const Plan together = plan::for_in_place(apart);
  plan::shape shape = apart.shape(ranks);
  shape.scratch = std::max(shape.scratch, together.shape(ranks).scratch);
  shape.symmetry = plan::rank_symmetry::none;
  plan::listed both(apart.name(), apart.collective(), ranks, shape);
  for (int rank = 0; rank < ranks; ++rank) {
    const Plan& form = rank % 2 == 1 ? together : apart;
    for (unsigned lane = 0; lane < shape.lanes; ++lane) {
      for (unsigned i = 0; i < form.length(ranks, rank, lane); ++i) {
        both.lane(rank, lane).push_back(form.at(ranks, rank, lane, i));
      }
    }
  }
  return both;
}

std::string title(const plan::any_algorithm& p, int ranks) {
  return std::string(to_string(p.collective().kind)) + " " + p.name() + " " + std::to_string(ranks) + " ranks, root " +
         std::to_string(p.collective().root);
}

/// Returns whether an action moves more than one slot of scratch.
bool moves_several_slots(const plan::any_algorithm& p, int ranks) {
  const plan::listed all = plan::materialise(p, ranks);
  for (int rank = 0; rank < ranks; ++rank) {
    for (unsigned lane = 0; lane < p.shape(ranks).lanes; ++lane) {
      for (const plan::action& each : all.lane(rank, lane)) {
        const bool has_slots = each.from == plan::region::scratch || each.to == plan::region::scratch;
        if (has_slots && each.count > 1) return true;
      }
    }
  }
  return false;
}

/// Proves a plan out of place, in place, and with ranks of both kinds.
template <class Plan>
void check_proofs(const Plan& p, int ranks) {
  INFO(title(p, ranks));
  const plan::proof apart = prove(plan::any_algorithm(p), ranks);
  const plan::proof together = prove(plan::for_in_place(p), ranks, {.in_place = true});
  const plan::proof either = prove(mixed(p, ranks), ranks, {.in_place = true, .odd_ranks_only = true});
  CHECK(apart.message().find("proven") != std::string::npos);
  CHECK(together.message().find("proven") != std::string::npos);
  CHECK(either.message().find("proven") != std::string::npos);
  CHECK(apart.same_on_all_ranks);
  CHECK(plan::prove(plan::for_in_place(p), ranks).ok);
  if (p.collective().reduces()) CHECK(apart.order == p.shape(ranks).order);  // the claimed order is exact
}

}  // namespace

TEST_CASE("every plan is proven for 1 to 64 ranks: out of place, in place and mixed") {
  for (int ranks = 1; ranks <= 64; ++ranks) {
    for_every_plan(ranks, [&](const auto& p) { check_proofs(p, ranks); });
  }
}

TEST_CASE("every plan with a root is proven for each root of 1 to 19 ranks: out of place, in place and mixed") {
  for (int ranks = 1; ranks <= 19; ++ranks) {
    for (int root = 0; root < ranks; ++root) {
      hocket_test::for_every_plan_with_root(root, [&](const auto& p) { check_proofs(p, ranks); });
    }
  }
}

TEST_CASE("plans that have a separate in-place form fail the proof in place without it") {
  CHECK(prove(plan::one_shot{}, 4, {.in_place = true}).what == plan::violation::read_races_write);
  CHECK(prove(plan::recursive_doubling{}, 2, {.in_place = true}).what == plan::violation::overwrites_send);
  CHECK(prove(plan::pairwise_all_to_all{}, 4, {.in_place = true}).what == plan::violation::overwrites_send);
  CHECK(prove(plan::direct_all_to_all{}, 4, {.in_place = true}).what == plan::violation::read_races_write);
}

TEST_CASE("plans compute correct results under random schedules, eager and rendezvous") {
  for (int ranks = 1; ranks <= 17; ++ranks) {
    for_every_plan(ranks, [&](const auto& p) {
      INFO(title(p, ranks));
      CHECK(hocket_test::first_fault(plan::materialise(p, ranks), 2, false) == "");
      CHECK(hocket_test::first_fault(plan::materialise(plan::for_in_place(p), ranks), 2, true) == "");
    });
  }
}

TEST_CASE("plans with blocks that move several slots of scratch in one action claim that blocks have equal lengths") {
  for (const int ranks : {1, 2, 3, 5, 7, 8, 16}) {
    for_every_plan(ranks, [&](const auto& p) {
      INFO(title(p, ranks));
      const bool may_have_lengths = p.collective().blocks(ranks) > 1;
      if (may_have_lengths && moves_several_slots(p, ranks)) CHECK(p.shape(ranks).equal_blocks);
      if (ranks == 16) CHECK(p.shape(ranks).equal_blocks == (may_have_lengths && moves_several_slots(p, ranks)));
    });
  }
}

TEST_CASE("plans are trivially copyable and have at most 16 bytes") {
  for_every_plan(2, [](const auto& p) {
    using type = std::remove_cvref_t<decltype(p)>;
    STATIC_REQUIRE(plan::algorithm<type>);
    STATIC_REQUIRE(std::is_trivially_copyable_v<type>);
    STATIC_REQUIRE(sizeof(type) <= 16);
  });
}

TEST_CASE("in ring and halving-doubling, each rank sends 2(p-1)/p of the vector") {
  // `sent` counts the chunks that a rank sends. A bandwidth-optimal algorithm sends 2(p-1)/p of the vector.
  for (const int ranks : {2, 3, 8, 13}) {
    for (int rank = 0; rank < ranks; ++rank) {
      unsigned sent = 0;
      for (unsigned i = 0; i < plan::ring_all_reduce::length(ranks, rank, 0); ++i) {
        const plan::action a = plan::ring_all_reduce::at(ranks, rank, 0, i);
        if (a.kind == plan::action_kind::send) sent += a.count;
      }
      CHECK(sent == 2 * static_cast<unsigned>(ranks - 1));
    }
  }
  for (int rank = 0; rank < 16; ++rank) {
    unsigned sent = 0;
    for (unsigned i = 0; i < plan::halving_doubling::length(16, rank, 0); ++i) {
      const plan::action a = plan::halving_doubling::at(16, rank, 0, i);
      if (a.kind == plan::action_kind::send) sent += a.count;
    }
    CHECK(sent == 2 * 15);
  }
}

TEST_CASE("in the double tree, no rank sends or receives more than two vectors") {
  const plan::double_tree tree{.chunks_per_half = 1};
  for (int ranks = 2; ranks <= 200; ++ranks) {
    for (int rank = 0; rank < ranks; ++rank) {
      unsigned sent = 0;
      unsigned received = 0;
      for (unsigned lane = 0; lane < 4; ++lane) {
        for (unsigned i = 0; i < tree.length(ranks, rank, lane); ++i) {
          const bool sends = tree.at(ranks, rank, lane, i).kind == plan::action_kind::send;
          ++(sends ? sent : received);
        }
      }
      CHECK(sent <= 4);  // halves of the vector
      CHECK(received <= 4);
    }
  }
}

TEST_CASE("actions for 100000 ranks are computed within 20 seconds") {
  constexpr int ranks = 100000;
  const auto begin = std::chrono::steady_clock::now();
  std::uint64_t steps = 0;
  for (const plan::any_algorithm& p :
       {plan::any_algorithm(plan::double_tree{}), plan::any_algorithm(plan::halving_doubling{}),
        plan::any_algorithm(plan::recursive_doubling{})}) {
    for (int rank = 0; rank < ranks; rank += 97) {
      for (unsigned lane = 0; lane < p.shape(ranks).lanes; ++lane) {
        for (unsigned i = 0; i < p.length(ranks, rank, lane); ++i) {
          const plan::action a = p.at(ranks, rank, lane, i);
          CHECK((a.peer >= 0 && a.peer < ranks && a.peer != rank));
          ++steps;
        }
      }
    }
  }
  CHECK(steps > 100000);
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(20));
}
