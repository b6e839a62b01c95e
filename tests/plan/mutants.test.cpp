// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Mutation test of the prover. Each step of each plan is damaged in turn. The prover must reject the mutant, unless it
// is still correct: then random schedules on concrete values must not find a fault either.
#include "support/catch.hpp"

#include "plan/every_plan.hpp"
#include "plan/interpreter.hpp"

#include <hocket/plan/listed.hpp>
#include <hocket/plan/prove.hpp>

#include <cstdio>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace plan = hocket::plan;

namespace {

struct tally {
  int mutants = 0;
  int rejected = 0;
  int shown_wrong = 0;  // rejected mutants for which a failing schedule was found
  int equivalent = 0;
  std::map<std::string, int> kinds;  // kinds of damage of the equivalent mutants
};

/// The mutants of one lane that differ at one step, each with its kind of damage.
std::vector<std::pair<const char*, std::vector<plan::action>>> damage(const std::vector<plan::action>& lane,
                                                                      std::size_t i, int rank, int ranks) {
  std::vector<std::pair<const char*, std::vector<plan::action>>> all;
  const auto begin = [&](std::size_t n) { return static_cast<std::ptrdiff_t>(n); };
  const auto changed = [&](const char* kind, auto change) {
    std::vector<plan::action> copy = lane;
    change(copy[i]);
    if (!(copy[i] == lane[i])) all.emplace_back(kind, copy);
  };
  std::vector<plan::action> copy = lane;
  copy.erase(copy.begin() + begin(i));
  all.emplace_back("deleted", copy);
  copy = lane;
  copy.insert(copy.begin() + begin(i), lane[i]);
  all.emplace_back("doubled", copy);
  if (i + 1 < lane.size() && !(lane[i] == lane[i + 1])) {
    copy = lane;
    std::swap(copy[i], copy[i + 1]);
    all.emplace_back("swapped", copy);
  }
  const bool has_peer = lane[i].kind != plan::action_kind::copy && lane[i].kind != plan::action_kind::load_reduce;
  if (has_peer) {
    changed("other peer", [&](plan::action& a) {
      do a.peer = (a.peer + 1) % ranks;
      while (a.peer == rank);
    });
  }
  if (lane[i].count > 0) {
    changed("other chunk", [](plan::action& a) { ++a.chunk, ++a.from_at, ++a.to_at; });
    changed("other chunk", [](plan::action& a) { --a.chunk, --a.from_at, --a.to_at; });
    changed("other length", [](plan::action& a) { ++a.chunk; });
    changed("other length", [](plan::action& a) { ++a.count; });
    changed("other source", [](plan::action& a) { a.from_at += a.from == plan::region::none ? 0U : 1U; });
    changed("other destination", [](plan::action& a) { a.to_at += a.to == plan::region::none ? 0U : 1U; });
  }
  changed("join dropped", [](plan::action& a) { a.join = false; });
  if (lane[i].kind == plan::action_kind::receive_reduce) {
    changed("operands exchanged", [](plan::action& a) { a.message_first = !a.message_first; });
  }
  if (lane[i].kind == plan::action_kind::signal || lane[i].kind == plan::action_kind::wait) {
    changed("other tag", [](plan::action& a) { ++a.tag; });
  }
  return all;
}

template <class Plan>
tally try_mutants(const Plan& original, int ranks, bool in_place) {
  tally count;
  const plan::listed whole = plan::materialise(original, ranks);
  const plan::shape shape = original.shape(ranks);
  for (int rank = 0; rank < ranks; ++rank) {
    for (unsigned lane = 0; lane < shape.lanes; ++lane) {
      for (std::size_t i = 0; i < whole.lane(rank, lane).size(); ++i) {
        for (const auto& [kind, actions] : damage(whole.lane(rank, lane), i, rank, ranks)) {
          plan::listed mutant = whole;
          mutant.lane(rank, lane) = actions;
          ++count.mutants;
          const plan::proof verdict = plan::prove(mutant, ranks, {.in_place = in_place});
          const std::string fault = hocket_test::first_fault(mutant, verdict ? 15 : 2, in_place);
          if (verdict) {
            INFO(original.name() << " on " << ranks << " ranks, rank " << rank << ", lane " << lane << ", step " << i
                                 << ": " << kind << " (" << to_string(whole.lane(rank, lane)[i]) << ")");
            CHECK(fault == "");
            ++count.equivalent;
            ++count.kinds[kind];
          } else {
            ++count.rejected;
            if (!fault.empty()) ++count.shown_wrong;
          }
        }
      }
    }
  }
  return count;
}

template <class Plan>
void check_mutants(const Plan& original) {
  for (const int ranks : {5, 8}) {
    for (const bool in_place : {false, true}) {
      if (in_place && ranks == 8) continue;  // to save time
      const Plan form = in_place ? plan::for_in_place(original) : original;
      REQUIRE(plan::prove(form, ranks, {.in_place = in_place}));
      const tally count = try_mutants(form, ranks, in_place);
      std::printf("%-15s %-20s %d ranks%s: %5d mutants, %5d rejected (%5d of them seen to fail), %3d equivalent\n",
                  to_string(form.collective().kind), form.name(), ranks, in_place ? ", in place" : "          ",
                  count.mutants, count.rejected, count.shown_wrong, count.equivalent);
      for (const auto& [kind, how_many] : count.kinds) std::printf("    %s: %d\n", kind.c_str(), how_many);
      CHECK(count.shown_wrong * 10 >= count.rejected * 8);  // most rejections are justified by a failing schedule
      CHECK(count.kinds.count("other peer") == 0);
    }
  }
}

}  // namespace

TEST_CASE("the proof rejects damaged all-reduce plans over messages") {
  check_mutants(plan::ring_all_reduce{});
  check_mutants(plan::recursive_doubling{});
  check_mutants(plan::halving_doubling{});
  check_mutants(plan::double_tree{.chunks_per_half = 2});
}

TEST_CASE("the proof rejects damaged all-reduce plans over peer pointers") {
  check_mutants(plan::one_shot{});
  check_mutants(plan::two_shot{});
  check_mutants(plan::push_all_reduce{});
}

TEST_CASE("the proof rejects damaged plans of the other collectives") {
  check_mutants(plan::ring_reduce_scatter{});
  check_mutants(plan::pairwise_reduce_scatter{});
  check_mutants(plan::recursive_halving_reduce_scatter{});
  check_mutants(plan::direct_reduce_scatter{});
  check_mutants(plan::ring_all_gather{});
  check_mutants(plan::pairwise_all_gather{});
  check_mutants(plan::direct_all_gather{});
  check_mutants(plan::pairwise_all_to_all{});
  check_mutants(plan::direct_all_to_all{});
  check_mutants(plan::binomial_broadcast{2});
  check_mutants(plan::direct_broadcast{2});
  check_mutants(plan::dissemination_barrier{});
}
