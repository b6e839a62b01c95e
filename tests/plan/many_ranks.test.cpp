// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Prices and sizes of proofs for many ranks: what one rank stands for, what is only a bound, and how the number of
/// steps grows with the number of ranks.
#include <hocket/plan/price.hpp>

#include <hocket/core/error.hpp>
#include <hocket/plan/listed.hpp>
#include <hocket/plan/proof_size.hpp>
#include <hocket/plan/prove.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "every_plan.hpp"
#include "support/catch.hpp"

namespace {

namespace plan = hocket::plan;

constexpr plan::cost_model machines[] = {plan::example_machine,
                                         {.latency = 1.7e-6, .seconds_per_byte = 3.1e-10},
                                         {.latency = 1e-6,
                                          .seconds_per_byte = 1e-10,
                                          .reduce_seconds_per_byte = 9e-10,
                                          .copy_seconds_per_byte = 5e-11,
                                          .peer_latency = 2e-7,
                                          .peer_seconds_per_byte = 7e-11,
                                          .flag_latency = 1.5e-7,
                                          .overhead = 3e-8,
                                          .latency_overlap = 0.5}};

bool close(double x, double y) { return std::abs(x - y) <= 1e-12 * std::max(std::abs(x), std::abs(y)); }

template <class Plan>
std::uint64_t longest_rank(const Plan& of, int ranks) {
  std::uint64_t longest = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    longest = std::max(longest, plan::detail::actions_of_rank(of, ranks, rank, of.shape(ranks).lanes));
  }
  return longest;
}

/// A plan that counts how often its actions are computed.
template <class Plan>
struct looked_at {
  Plan of;
  std::uint64_t* count;

  const char* name() const { return of.name(); }
  plan::collective collective() const { return of.collective(); }
  plan::shape shape(int ranks) const { return of.shape(ranks); }
  unsigned length(int ranks, int rank, unsigned lane) const { return of.length(ranks, rank, lane); }
  plan::action at(int ranks, int rank, unsigned lane, unsigned i) const {
    ++*count;
    return of.at(ranks, rank, lane, i);
  }
};

void check_equal_counts(const plan::cost& found, const plan::cost& all) {
  CHECK(found.actions == all.actions);
  CHECK(found.messages == all.messages);
  CHECK(found.bytes == all.bytes);
  CHECK(found.messages_most == all.messages_most);
  CHECK(found.bytes_out_most == all.bytes_out_most);
  CHECK(found.bytes_in_most == all.bytes_in_most);
}

}  // namespace

TEST_CASE("the price from a few ranks is the price of all ranks, or the bound that it states", "[plan][price][law]") {
  int exact = 0, bounds = 0;
  for (const int ranks : {1, 2, 3, 5, 8, 12, 16, 33}) {
    hocket_test::for_every_plan(ranks, [&](const auto& each) {
      const plan::listed whole = plan::materialise(each, ranks);  // claims no symmetry: all ranks are simulated
      const std::uint64_t least = longest_rank(each, ranks);
      for (const std::size_t bytes : {std::size_t{0}, std::size_t{1000003}, std::size_t{64 * 33 * 1000}}) {
        for (const plan::cost_model& machine : machines) {
          INFO(to_string(each.collective().kind) << ' ' << each.name() << " over " << ranks << " ranks, " << bytes
                                                 << " bytes, latency " << machine.latency);
          const plan::cost all = plan::price(whole, ranks, bytes, machine);
          REQUIRE(all.bound == plan::cost_bound::exact);
          const plan::cost usual = plan::price(each, ranks, bytes, machine);
          CHECK(usual.bound == plan::cost_bound::exact);
          CHECK(close(usual.seconds, all.seconds));
          check_equal_counts(usual, all);

          const plan::cost few = plan::price(each, ranks, bytes, machine, least);
          CHECK(few.actions == all.actions);
          ++(few.bound == plan::cost_bound::exact ? exact : bounds);
          switch (few.bound) {
            case plan::cost_bound::exact:
              CHECK(close(few.seconds, all.seconds));
              check_equal_counts(few, all);
              break;
            case plan::cost_bound::at_most:
              CHECK(few.seconds >= all.seconds * (1 - 1e-12));
              CHECK(few.bytes >= all.bytes);
              CHECK(few.messages == all.messages);
              break;
            case plan::cost_bound::at_least:
              CHECK(few.seconds <= all.seconds * (1 + 1e-12));
              CHECK(few.seconds >= all.seconds / 2);
              check_equal_counts(few, all);
              break;
            case plan::cost_bound::at_least_of_some:
              CHECK(few.seconds <= all.seconds * (1 + 1e-12));
              CHECK(few.messages <= all.messages);
              CHECK(few.bytes <= all.bytes);
              CHECK(few.bytes_out_most <= all.bytes_out_most);
              break;
          }
        }
      }
    });
  }
  CHECK(exact > 0);
  CHECK(bounds > 0);
}

// 10 times as many ranks may be 16 times as many members, if these are a power of two, with 13 rounds instead of 9: this
// is less than 25 times. Actions that grow with the square of the ranks would be 100 times as many.
TEST_CASE("a price for 10 times as many ranks looks at less than 25 times as many actions", "[plan][price]") {
  constexpr int ranks = 1000;
  constexpr std::uint64_t most = 1'000'000;
  hocket_test::for_every_plan(ranks, [&](const auto& each) {
    std::uint64_t looks[2] = {};
    for (const int more : {0, 1}) {
      const looked_at counted{each, &looks[more]};
      const int all = more == 0 ? ranks : 10 * ranks;
      plan::price(counted, all, std::size_t{1} << 20, plan::example_machine, most);
    }
    INFO(to_string(each.collective().kind) << ' ' << each.name() << ": " << looks[0] << ", then " << looks[1]);
    CHECK(looks[0] > 0);
    CHECK(looks[1] < 25 * looks[0]);
  });
}

TEST_CASE("the size of a proof for 10 times as many ranks is found in less than 25 times as many steps",
          "[plan][proof]") {
  constexpr int ranks = 1000;
  hocket_test::for_every_plan(ranks, [&](const auto& each) {
    std::uint64_t looks[2] = {};
    for (const int more : {0, 1}) {
      const looked_at counted{each, &looks[more]};
      plan::size_of_proof(counted, more == 0 ? ranks : 10 * ranks, 16U << 20);
    }
    INFO(to_string(each.collective().kind) << ' ' << each.name() << ": " << looks[0] << ", then " << looks[1]);
    CHECK(looks[1] < 25 * std::max<std::uint64_t>(looks[0], 1));
  });
}

TEST_CASE("the size of a proof counts actions and transfers of all ranks, and grows with the ranks", "[plan][proof]") {
  constexpr std::uint64_t unlimited = std::numeric_limits<std::uint64_t>::max();
  for (const int ranks : {1, 2, 7, 16}) {
    hocket_test::for_every_plan(ranks, [&](const auto& each) {
      INFO(to_string(each.collective().kind) << ' ' << each.name() << " over " << ranks << " ranks");
      const plan::proof_size size = plan::size_of_proof(each, ranks, unlimited);
      const plan::listed whole = plan::materialise(each, ranks);
      std::uint64_t actions = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        for (unsigned lane = 0; lane < whole.shape(ranks).lanes; ++lane) actions += whole.lane(rank, lane).size();
      }
      CHECK(size.actions == actions);
      CHECK(size.transfers == plan::size_of_proof(whole, ranks, unlimited).transfers);
      CHECK(size.bytes >= actions * sizeof(plan::action));
      CHECK(plan::size_of_proof(each, 10 * ranks + 1, unlimited).bytes > size.bytes);
      CHECK(plan::size_of_proof(each, 10 * ranks + 1, 0).bytes > 0);
    });
  }
  CHECK(plan::size_of_proof(plan::ring_all_reduce{}, plan::most_ranks, 1).bytes == unlimited);
}

TEST_CASE("the proof rejects a plan whose ranks do not correspond as it claims", "[plan][proof]") {
  using plan::rank_symmetry;
  const auto claims = [](const auto& of, int ranks, rank_symmetry claim) {
    plan::shape shape = of.shape(ranks);
    shape.symmetry = claim;
    plan::listed made(of.name(), of.collective(), ranks, shape);
    for (int rank = 0; rank < ranks; ++rank) {
      for (unsigned lane = 0; lane < shape.lanes; ++lane) {
        for (unsigned i = 0; i < of.length(ranks, rank, lane); ++i) {
          made.lane(rank, lane).push_back(of.at(ranks, rank, lane, i));
        }
      }
    }
    return plan::prove(made, ranks).what;
  };
  constexpr auto overclaimed = plan::violation::symmetry_overclaimed;
  constexpr auto none = plan::violation::none;
  CHECK(claims(plan::ring_all_reduce{}, 8, rank_symmetry::rotation) == none);
  CHECK(claims(plan::ring_all_reduce{}, 8, rank_symmetry::exclusive_or) == overclaimed);
  CHECK(claims(plan::ring_all_reduce{}, 8, rank_symmetry::rotated_sends) == overclaimed);
  CHECK(claims(plan::ring_all_reduce{}, 8, rank_symmetry::exchange) == overclaimed);
  CHECK(claims(plan::recursive_doubling{}, 8, rank_symmetry::exclusive_or) == none);
  CHECK(claims(plan::recursive_doubling{}, 8, rank_symmetry::rotation) == overclaimed);
  CHECK(claims(plan::recursive_doubling{}, 7, rank_symmetry::exclusive_or) == overclaimed);
  CHECK(claims(plan::pairwise_reduce_scatter{}, 5, rank_symmetry::rotated_sends) == none);
  CHECK(claims(plan::pairwise_reduce_scatter{}, 5, rank_symmetry::rotation) == overclaimed);
  CHECK(claims(plan::pairwise_all_to_all{}, 5, rank_symmetry::exchange) == none);
  CHECK(claims(plan::pairwise_all_to_all{}, 5, rank_symmetry::rotation) == overclaimed);
  CHECK(claims(plan::binomial_broadcast{}, 4, rank_symmetry::rotation) == overclaimed);
  CHECK(claims(plan::double_tree{}, 6, rank_symmetry::exclusive_or) == overclaimed);
}

TEST_CASE("a proof of a plan with more chunks than it can number is refused, not begun", "[plan][proof]") {
  CHECK(plan::prove(plan::ring_all_reduce{}, 1'000'000).what == plan::violation::too_large);
  CHECK(plan::prove(plan::binomial_broadcast{}, std::numeric_limits<int>::max()).what == plan::violation::too_large);
}

TEST_CASE("counts of a price stay at the largest number instead of overflowing", "[plan][price]") {
  const plan::cost found = plan::price(plan::one_shot{}, 1'000'000, std::size_t{1} << 50, plan::example_machine);
  CHECK(found.bytes == std::numeric_limits<std::uint64_t>::max());
  CHECK(found.bytes_in_most > std::uint64_t{1} << 62);
}

#if HOCKET_HAS_EXCEPTIONS
TEST_CASE("price rejects numbers that it cannot compute with, and the error names the limit", "[plan][price]") {
  using Catch::Matchers::Contains;
  const plan::ring_all_gather ring;
  const plan::cost_model& machine = plan::example_machine;
  const std::size_t huge = std::numeric_limits<std::size_t>::max();
  CHECK_THROWS_WITH(plan::price(ring, std::numeric_limits<int>::max(), std::size_t{8}, machine),
                    Contains("must be from 1 to 1000000000"));
  CHECK_THROWS_WITH(plan::price(ring, 3, huge, machine), Contains("at most 2^62 bytes"));
  CHECK_THROWS_WITH(plan::price(ring, 2, plan::layout{huge / 4, 2, 1}, 16, machine), Contains("at most 2^62 bytes"));
  CHECK_THROWS_WITH(plan::price(ring, 1000, std::size_t{8}, machine, 100),
                    Contains("1999 actions on one rank") && Contains("100 at most"));
}
#endif
