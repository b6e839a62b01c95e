// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A word that one rank sets and another rank resets must be reset before it is set again, for random sequences of plans
// and random schedules. With the same words for all signals this fails.
#include "plan/every_plan.hpp"
#include "support/catch.hpp"

#include <hocket/plan/listed.hpp>
#include <hocket/plan/prove.hpp>
#include <hocket/plan/signal_reuse.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

using namespace hocket_test;
namespace plan = hocket::plan;
using plan::signal_class;

namespace {

/// The word of a signal: bank, tag, from, to.
using word = std::tuple<int, unsigned, int, int>;
struct act {
  bool sets = false;  ///< otherwise waits and resets
  word at;
};
using programs = std::vector<std::vector<act>>;  ///< one for each rank

/// How banks are chosen.
enum class banks { by_class, one_for_all, without_acknowledgements };

void append(programs& to, const plan::any_algorithm& what, int ranks, banks how) {
  const plan::signal_reuse reuse(what, ranks);
  REQUIRE(reuse.complete());
  const auto bank = [&](int from, int target, unsigned tag) {
    return how != banks::one_for_all && reuse.of(from, target, tag) == signal_class::late ? 1 : 0;
  };
  for (int rank = 0; rank < ranks; ++rank) {
    std::vector<act>& mine = to[static_cast<std::size_t>(rank)];
    for (unsigned i = 0; i < what.length(ranks, rank, 0); ++i) {
      const plan::action each = what.at(ranks, rank, 0, i);
      const bool sets = each.kind == plan::action_kind::signal;
      if (!sets && each.kind != plan::action_kind::wait) continue;
      for (int peer = 0; peer < ranks; ++peer) {
        if (peer == rank || (each.peer != plan::all_peers && each.peer != peer)) continue;
        const int from = sets ? rank : peer;
        const int target = sets ? peer : rank;
        mine.push_back({sets, {bank(from, target, each.tag), each.tag, from, target}});
      }
    }
    if (how == banks::without_acknowledgements) continue;
    for (int peer = 0; peer < ranks; ++peer) {
      if (peer != rank && reuse.acknowledged(peer, rank)) mine.push_back({true, {2, 0, rank, peer}});
    }
    for (int peer = 0; peer < ranks; ++peer) {
      if (peer != rank && reuse.acknowledged(rank, peer)) mine.push_back({false, {2, 0, peer, rank}});
    }
  }
}

/// Runs the ranks in random order. Returns true if all end, and no word is set before it was reset.
bool runs(const programs& all, std::mt19937& random) {
  std::map<word, bool> set;
  std::vector<std::size_t> at(all.size());
  for (;;) {
    std::vector<std::size_t> ready;
    bool ended = true;
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
      if (at[rank] == all[rank].size()) continue;
      ended = false;
      const act& next = all[rank][at[rank]];
      if (next.sets || set[next.at]) ready.push_back(rank);
    }
    if (ended) return true;
    if (ready.empty()) return false;
    // One rank runs several steps, so that others fall behind.
    const std::size_t rank = ready[random() % ready.size()];
    for (unsigned turns = 1 + random() % 8; turns > 0 && at[rank] < all[rank].size(); --turns) {
      const act& next = all[rank][at[rank]];
      if (next.sets == set[next.at]) {
        if (next.sets) return false;
        break;
      }
      set[next.at] = next.sets;
      ++at[rank];
    }
  }
}

/// Each rank signals the next rank, which does not answer.
plan::listed hint_to_the_next(int ranks) {
  plan::listed made("hint", {plan::collective_kind::all_gather}, ranks, {.peer_pointers = true});
  for (int rank = 0; rank < ranks; ++rank) {
    if (rank + 1 < ranks) made.lane(rank).push_back(plan::signal(rank + 1, 0));
    if (rank > 0) made.lane(rank).push_back(plan::wait(rank - 1, 0));
  }
  return made;
}

/// The flags of one_shot with their tags in reverse order.
plan::listed tags_downwards(int ranks) {
  plan::listed made("downwards", {plan::collective_kind::all_gather}, ranks, {.peer_pointers = true});
  for (int rank = 0; rank < ranks; ++rank) {
    made.lane(rank) = {plan::signal(plan::all_peers, 1), plan::wait(plan::all_peers, 1),
                       plan::signal(plan::all_peers, 0), plan::wait(plan::all_peers, 0)};
  }
  return made;
}

std::vector<plan::any_algorithm> plans_for_streams(int ranks) {
  std::vector<plan::any_algorithm> all;
  for_every_plan(ranks, [&](const auto& each) {
    bool flags_only = each.shape(ranks).lanes == 1;
    for (int rank = 0; rank < ranks && flags_only; ++rank) {
      for (unsigned i = 0; i < each.length(ranks, rank, 0); ++i) {
        const plan::action_kind what = each.at(ranks, rank, 0, i).kind;
        flags_only = flags_only && what != plan::action_kind::send && what != plan::action_kind::receive &&
                     what != plan::action_kind::receive_reduce && what != plan::action_kind::push;
      }
    }
    if (flags_only) all.emplace_back(each);
  });
  return all;
}

bool all_sequences_run(int ranks, banks how, bool with_own) {
  std::vector<plan::any_algorithm> all = plans_for_streams(ranks);
  if (with_own) {
    all.emplace_back(hint_to_the_next(ranks));
    all.emplace_back(tags_downwards(ranks));
  }
  std::mt19937 random(static_cast<unsigned>(ranks));
  for (int round = 0; round < 60; ++round) {
    programs sequence(static_cast<std::size_t>(ranks));
    for (int i = 0; i < 6; ++i) append(sequence, all[random() % all.size()], ranks, how);
    for (int schedule = 0; schedule < 10; ++schedule) {
      if (!runs(sequence, random)) return false;
    }
  }
  return true;
}

}  // namespace

TEST_CASE("no plan of the library that a stream can run needs acknowledgements") {
  for (int ranks = 2; ranks <= 9; ++ranks) {
    const auto all = plans_for_streams(ranks);
    CHECK(all.size() >= 5 + 6);
    for (const plan::any_algorithm& each : all) {
      INFO(each.name() << " on " << ranks);
      const plan::signal_reuse reuse(each, ranks);
      CHECK(reuse.complete());
      for (int from = 0; from < ranks; ++from) {
        for (int to = 0; to < ranks; ++to) CHECK_FALSE(reuse.acknowledged(from, to));
      }
    }
  }
}

TEST_CASE("the first flags of a plan are early, its last flags are late, and unanswered flags are acknowledged") {
  const plan::signal_reuse two_shot(plan::two_shot{}, 4);
  CHECK(two_shot.of(1, 2, 0) == signal_class::early);
  CHECK(two_shot.of(1, 2, 1) == signal_class::early);
  CHECK(two_shot.of(1, 2, 2) == signal_class::late);
  const plan::signal_reuse broadcast(plan::direct_broadcast{1}, 4);
  CHECK(broadcast.of(1, 2, 0) == signal_class::early);
  CHECK(broadcast.of(2, 1, 1) == signal_class::late);
  const plan::signal_reuse hint(hint_to_the_next(3), 3);
  CHECK(hint.acknowledged(0, 1));
  CHECK_FALSE(hint.acknowledged(1, 0));
}

TEST_CASE("words are reset before they are set again in random sequences of plans") {
  for (const int ranks : {2, 3, 5, 8}) {
    CHECK(all_sequences_run(ranks, banks::by_class, false));
    CHECK(all_sequences_run(ranks, banks::by_class, true));
  }
}

TEST_CASE("with the same words for all signals, or without acknowledgements, some sequences of plans fail") {
  CHECK_FALSE(all_sequences_run(3, banks::one_for_all, true));
  CHECK_FALSE(all_sequences_run(3, banks::without_acknowledgements, true));
}

TEST_CASE("signal_reuse is incomplete if a wait has no signal or a signal has no wait") {
  plan::listed deaf("deaf", {plan::collective_kind::all_gather}, 2, {.peer_pointers = true});
  deaf.lane(0) = {plan::wait(1, 0)};
  CHECK_FALSE(plan::signal_reuse(deaf, 2).complete());
  deaf.lane(0) = {plan::signal(1, 0)};
  CHECK_FALSE(plan::signal_reuse(deaf, 2).complete());
}
