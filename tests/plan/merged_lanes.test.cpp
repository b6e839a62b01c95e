// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Merging the lanes of a rank preserves the order of each lane, and ranks that run the merged lane finish under random
// schedules. A slot never signals two messages at the same time.
#include "plan/every_plan.hpp"
#include "support/catch.hpp"

#include <hocket/plan/listed.hpp>
#include <hocket/plan/merged_lanes.hpp>
#include <hocket/plan/plan.hpp>

#include <cstddef>
#include <map>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

using namespace hocket_test;
namespace plan = hocket::plan;
using plan::action_kind;

namespace {

/// Returns true if the merged steps of each lane are the steps of the plan, in order.
bool lists_the_lanes(const plan::merged_lanes& merged, const plan::any_algorithm& what, int ranks) {
  const unsigned lanes = what.shape(ranks).lanes;
  for (int rank = 0; rank < ranks; ++rank) {
    std::vector<unsigned> at(lanes);
    for (const plan::merged_step& each : merged.steps[static_cast<std::size_t>(rank)]) {
      if (each.position != at[each.lane]++) return false;
      if (!(each.what == what.at(ranks, rank, each.lane, each.position))) return false;
    }
    for (unsigned lane = 0; lane < lanes; ++lane) {
      if (at[lane] != what.length(ranks, rank, lane)) return false;
    }
  }
  return true;
}

/// A step of a rank on a stream: it sets a word, or waits until the word is set and resets it.
struct word_act {
  enum { sets, awaits } what;
  std::tuple<int, unsigned, int, int> word;  ///< arrival or receipt, slot, from, to
};

/// Steps of `rank`: each message is signalled and acknowledged; its sender waits for this when it must, and at the end.
std::vector<word_act> words_of(const plan::merged_lanes& merged, int rank) {
  std::vector<word_act> result;
  std::vector<std::uint32_t> undrained;
  const auto drain = [&](auto wanted) {
    std::erase_if(undrained, [&](std::uint32_t number) {
      const plan::merged_message& each = merged.messages[number];
      if (!wanted(number, each)) return false;
      result.push_back({word_act::awaits, {1, each.slot, each.to, rank}});
      return true;
    });
  };
  for (const plan::merged_step& step : merged.steps[static_cast<std::size_t>(rank)]) {
    if (step.what.join) drain([&](std::uint32_t, const auto& each) { return each.lane == step.lane; });
    if (step.message == plan::no_message) continue;
    const plan::merged_message& each = merged.messages[step.message];
    if (step.what.kind == action_kind::send) {
      drain([&](std::uint32_t number, const auto&) { return number == each.before; });
      result.push_back({word_act::sets, {0, each.slot, rank, each.to}});
      undrained.push_back(step.message);
    } else {
      result.push_back({word_act::awaits, {0, each.slot, each.from, rank}});
      result.push_back({word_act::sets, {1, each.slot, rank, each.from}});
    }
  }
  drain([](std::uint32_t, const auto&) { return true; });
  return result;
}

/// Runs the plan twice, with the ranks in random order. Returns the fault, or an empty string.
std::string run(const plan::merged_lanes& merged, int ranks, std::mt19937& random) {
  std::vector<std::vector<word_act>> all;
  for (int rank = 0; rank < ranks; ++rank) {
    all.push_back(words_of(merged, rank));
    all.back().insert(all.back().end(), all.back().begin(), all.back().begin() + static_cast<long>(all.back().size()));
  }
  std::map<std::tuple<int, unsigned, int, int>, bool> set;
  std::vector<std::size_t> at(all.size());
  for (;;) {
    std::vector<std::size_t> ready;
    bool ended = true;
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
      if (at[rank] == all[rank].size()) continue;
      ended = false;
      const word_act& next = all[rank][at[rank]];
      if (next.what == word_act::sets || set[next.word]) ready.push_back(rank);
    }
    if (ended) return "";
    if (ready.empty()) return "all ranks wait";
    const std::size_t rank = ready[random() % ready.size()];
    const word_act& next = all[rank][at[rank]++];
    if (next.what == word_act::sets && set[next.word]) return "a word is set twice";
    set[next.word] = next.what == word_act::sets;
  }
}

}  // namespace

TEST_CASE("ranks that run one merged lane finish every plan under random schedules") {
  std::mt19937 random(7);
  for (int ranks = 1; ranks <= 17; ++ranks) {
    for_every_plan(ranks, [&](const plan::any_algorithm& what) {
      for (const plan::any_algorithm& form : {what, what.for_in_place()}) {
        INFO(form.name() << " on " << ranks);
        const plan::merged_lanes merged = plan::merge_lanes(form, ranks);
        REQUIRE(merged.complete);
        CHECK(lists_the_lanes(merged, form, ranks));
        for (int i = 0; i < 5; ++i) CHECK(run(merged, ranks, random) == "");
      }
    });
  }
}

TEST_CASE("merge_lanes reports plans with deadlocks, lost messages or unequal lengths as incomplete") {
  plan::listed circle("circle", {plan::collective_kind::all_reduce}, 2, {});
  circle.lane(0) = {plan::receive(1, {0}, plan::out(0)), plan::send(1, {0}, plan::in(0))};
  circle.lane(1) = {plan::receive(0, {0}, plan::out(0)), plan::send(0, {0}, plan::in(0))};
  CHECK_FALSE(plan::merge_lanes(circle, 2).complete);
  plan::listed lost("lost", {plan::collective_kind::all_reduce}, 2, {});
  lost.lane(0) = {plan::send(1, {0}, plan::in(0))};
  CHECK_FALSE(plan::merge_lanes(lost, 2).complete);
  plan::listed shorter("shorter", {plan::collective_kind::all_reduce}, 2, {.chunks_per_block = 2});
  shorter.lane(0) = {plan::send(1, {0, 2}, plan::in(0))};
  shorter.lane(1) = {plan::receive(0, {0, 1}, plan::out(0))};
  CHECK_FALSE(plan::merge_lanes(shorter, 2).complete);
}

TEST_CASE("messages that outnumber the slots reuse them without conflict") {
  // Four lanes with one channel each send ahead of a receiver that receives one lane after the other.
  plan::listed ahead("ahead", {plan::collective_kind::all_reduce}, 2, {.lanes = 4});
  for (unsigned lane = 0; lane < 4; ++lane) {
    for (int i = 0; i < 9; ++i) {
      ahead.lane(0, lane).push_back(plan::send(1, {0}, plan::in(0), lane));
      ahead.lane(1).push_back(plan::receive(0, {0}, plan::out(0), lane));
    }
  }
  const plan::merged_lanes merged = plan::merge_lanes(ahead, 2);
  REQUIRE(merged.complete);
  CHECK(merged.messages.size() == 36);
  std::mt19937 random(8);
  for (int i = 0; i < 20; ++i) CHECK(run(merged, 2, random) == "");
}
