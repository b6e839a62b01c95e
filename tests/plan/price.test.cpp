// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <hocket/plan/price.hpp>

#include <hocket/core/error.hpp>
#include <hocket/plan/collective/all_gather.hpp>
#include <hocket/plan/collective/all_to_all.hpp>
#include <hocket/plan/collective/barrier.hpp>
#include <hocket/plan/collective/broadcast.hpp>
#include <hocket/plan/collective/double_tree.hpp>
#include <hocket/plan/collective/halving_doubling.hpp>
#include <hocket/plan/collective/one_shot.hpp>
#include <hocket/plan/collective/push.hpp>
#include <hocket/plan/collective/recursive_doubling.hpp>
#include <hocket/plan/collective/reduce_scatter.hpp>
#include <hocket/plan/collective/ring_all_reduce.hpp>
#include <hocket/plan/collective/two_shot.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include "support/catch.hpp"

namespace {

namespace plan = hocket::plan;

constexpr double a = 1.7e-6;
constexpr double b = 3.1e-10;
constexpr double g = 0.9e-10;
constexpr plan::cost_model textbook{.latency = a, .seconds_per_byte = b, .reduce_seconds_per_byte = g};

int ceil_log2(int ranks) { return static_cast<int>(std::bit_width(static_cast<unsigned>(ranks - 1))); }

bool same(double x, double y) { return std::abs(x - y) <= 1e-12 * std::max(std::abs(x), std::abs(y)); }

template <class Plan>
double seconds(const Plan& algorithm, int ranks, std::size_t bytes, const plan::cost_model& model = textbook) {
  return plan::price(algorithm, ranks, bytes, model).seconds;
}

/// Calls `check` with every plan of the library that has a different price.
template <class Check>
void for_each_plan(Check check) {
  check(plan::any_algorithm(plan::ring_all_reduce{}));
  check(plan::any_algorithm(plan::recursive_doubling{}));
  check(plan::any_algorithm(plan::halving_doubling{}));
  check(plan::any_algorithm(plan::double_tree{4}));
  check(plan::any_algorithm(plan::one_shot{}));
  check(plan::any_algorithm(plan::two_shot{}));
  check(plan::any_algorithm(plan::push_all_reduce{}));
  check(plan::any_algorithm(plan::ring_reduce_scatter{}));
  check(plan::any_algorithm(plan::pairwise_reduce_scatter{}));
  check(plan::any_algorithm(plan::recursive_halving_reduce_scatter{}));
  check(plan::any_algorithm(plan::direct_reduce_scatter{}));
  check(plan::any_algorithm(plan::ring_all_gather{}));
  check(plan::any_algorithm(plan::pairwise_all_gather{}));
  check(plan::any_algorithm(plan::direct_all_gather{}));
  check(plan::any_algorithm(plan::pairwise_all_to_all{}));
  check(plan::any_algorithm(plan::direct_all_to_all{}));
  check(plan::any_algorithm(plan::binomial_broadcast{}));
  check(plan::any_algorithm(plan::direct_broadcast{}));
  check(plan::any_algorithm(plan::dissemination_barrier{}));
}

constexpr plan::cost_model everything_costs{.latency = 1e-6,
                                            .seconds_per_byte = 1e-10,
                                            .reduce_seconds_per_byte = 2e-10,
                                            .copy_seconds_per_byte = 5e-11,
                                            .peer_latency = 2e-7,
                                            .peer_seconds_per_byte = 7e-11,
                                            .flag_latency = 1.5e-7,
                                            .overhead = 3e-9};

/// All-to-all in which rank r sends to r + 1, r + 2, … and receives from r - 1, r - 2, …: no two ranks exchange.
struct shifted_all_to_all {
  static constexpr const char* name() { return "shifted"; }
  static constexpr plan::collective collective() { return {plan::collective_kind::all_to_all, 0}; }
  static constexpr plan::shape shape(int) { return {}; }
  static constexpr unsigned length(int ranks, int, unsigned) { return 2 * static_cast<unsigned>(ranks - 1); }
  static constexpr plan::action at(int ranks, int rank, unsigned, unsigned i) {
    const int distance = static_cast<int>(i / 2) + 1;
    const int to = (rank + distance) % ranks;
    const int from = (rank + ranks - distance) % ranks;
    return i % 2 == 0 ? plan::send(to, {static_cast<unsigned>(to)}, plan::in(static_cast<unsigned>(to)))
                      : plan::receive(from, {static_cast<unsigned>(from)}, plan::out(static_cast<unsigned>(from)));
  }
};

/// A plan with the given actions. All ranks have the same number of lanes.
struct written_down {
  std::vector<std::vector<std::vector<plan::action>>> actions;  // rank, lane, position
  unsigned pieces = 1;

  static const char* name() { return "written_down"; }
  static plan::collective collective() { return {plan::collective_kind::all_reduce, 0}; }
  plan::shape shape(int) const {
    return {.chunks_per_block = pieces, .lanes = static_cast<unsigned>(actions[0].size())};
  }
  unsigned length(int, int rank, unsigned lane) const {
    return static_cast<unsigned>(actions[static_cast<std::size_t>(rank)][lane].size());
  }
  plan::action at(int, int rank, unsigned lane, unsigned i) const {
    return actions[static_cast<std::size_t>(rank)][lane][i];
  }
};

}  // namespace

TEST_CASE("the prices of ring and halving-doubling match the textbook formulas", "[plan][price]") {
  for (int ranks = 1; ranks <= 33; ++ranks) {
    const std::size_t chunk = 4096;
    const double n = static_cast<double>(chunk) * ranks;
    const double p = ranks;
    INFO(ranks << " ranks");
    const double ring = 2 * (p - 1) * (a + n / p * b) + (p - 1) * n / p * g;
    CHECK(same(seconds(plan::ring_all_reduce{}, ranks, chunk * static_cast<std::size_t>(ranks)), ring));
    const double gather = (p - 1) * (a + n / p * b);
    CHECK(same(seconds(plan::ring_all_gather{}, ranks, chunk * static_cast<std::size_t>(ranks)), gather));
    const double scatter = (p - 1) * (a + n / p * b + n / p * g);
    CHECK(same(seconds(plan::ring_reduce_scatter{}, ranks, chunk * static_cast<std::size_t>(ranks)), scatter));
    if (!std::has_single_bit(static_cast<unsigned>(ranks))) continue;
    const double halving = 2 * ceil_log2(ranks) * a + 2 * (p - 1) / p * n * b + (p - 1) / p * n * g;
    CHECK(same(seconds(plan::halving_doubling{}, ranks, chunk * static_cast<std::size_t>(ranks)), halving));
  }
}

TEST_CASE("the prices of logarithmic algorithms match the textbook formulas", "[plan][price]") {
  constexpr std::size_t bytes = 65536;
  constexpr double n = bytes;
  for (int ranks = 1; ranks <= 70; ++ranks) {
    INFO(ranks << " ranks");
    CHECK(same(seconds(plan::dissemination_barrier{}, ranks, 0), ceil_log2(ranks) * a));
    CHECK(same(seconds(plan::binomial_broadcast{}, ranks, bytes), ceil_log2(ranks) * (a + n * b)));
    CHECK(same(seconds(plan::binomial_broadcast{ranks / 2}, ranks, bytes), ceil_log2(ranks) * (a + n * b)));
    if (std::has_single_bit(static_cast<unsigned>(ranks)))
      CHECK(same(seconds(plan::recursive_doubling{}, ranks, bytes), ceil_log2(ranks) * (a + n * b + n * g)));
  }
}

TEST_CASE("all-to-all costs one round per peer if no two messages compete for a port", "[plan][price]") {
  constexpr std::size_t block = 1000;
  for (int ranks = 2; ranks <= 20; ++ranks) {
    INFO(ranks << " ranks");
    const std::size_t bytes = block * static_cast<std::size_t>(ranks);
    const double round = a + static_cast<double>(block) * b;
    CHECK(same(seconds(shifted_all_to_all{}, ranks, bytes), (ranks - 1) * round));
    const double paired = seconds(plan::pairwise_all_to_all{}, ranks, bytes);
    CHECK(paired >= (ranks - 1) * round * (1 - 1e-12));
    // Each rank is once its own partner, and is one round ahead from then on: messages compete for the peers' ports.
    CHECK(paired <= 1.5 * ranks * round * (1 + 1e-12));
  }
}

TEST_CASE("prices of peer-pointer plans are sums of flags, loads and pushes as in cost_model.hpp", "[plan][price]") {
  constexpr std::size_t bytes = 4096;
  constexpr double n = bytes;
  constexpr plan::cost_model m{
      .reduce_seconds_per_byte = g, .peer_latency = 2e-7, .peer_seconds_per_byte = 7e-11, .flag_latency = 1.5e-7};
  for (int ranks : {2, 4, 8, 16}) {
    INFO(ranks << " ranks");
    const double others = ranks - 1;
    CHECK(same(seconds(plan::one_shot{}, ranks, bytes, m),
               2 * m.flag_latency + m.peer_latency + others * n * (m.peer_seconds_per_byte + g)));
    CHECK(same(seconds(plan::push_all_reduce{}, ranks, bytes, m),
               others * n * m.peer_seconds_per_byte + m.flag_latency + others * n * g));
    CHECK(same(seconds(plan::two_shot{}, ranks, bytes, m),
               3 * m.flag_latency + ranks * m.peer_latency + others * n / ranks * (2 * m.peer_seconds_per_byte + g)));
  }
}

TEST_CASE("price counts actions, messages and bytes exactly", "[plan][price]") {
  const plan::cost ring = plan::price(plan::ring_all_reduce{}, 8, 8192, textbook);
  CHECK(ring.actions == 8 * 4 * 7);
  CHECK(ring.messages == 8 * 2 * 7);
  CHECK(ring.messages_most == 2 * 7);
  CHECK(ring.bytes_out_most == 2 * 7 * 1024);
  CHECK(ring.bytes_in_most == 2 * 7 * 1024);
  CHECK(ring.bytes == 8 * 2 * 7 * 1024);

  const plan::cost push = plan::price(plan::push_all_reduce{}, 5, 100, textbook);
  CHECK(push.messages == 0);
  CHECK(push.bytes == 5 * 4 * 100);
  CHECK(push.bytes_out_most == 4 * 100);
  CHECK(push.bytes_in_most == 4 * 100);

  const plan::cost one_shot = plan::price(plan::one_shot{}, 5, 100, textbook);
  CHECK(one_shot.bytes == 5 * 4 * 100);
  CHECK(one_shot.bytes_out_most == 0);

  const plan::cost uneven = plan::price(plan::ring_all_reduce{}, 4, plan::layout{10, 1, 4}, 4, textbook);
  CHECK(uneven.bytes == 2 * 3 * 10 * 4);  // each element is sent 2 (p - 1) times, independent of the chunks
  CHECK(uneven.bytes_out_most <= 2 * 3 * 3 * 4);
}

TEST_CASE("the price is a constant expression, and equal for equal arguments", "[plan][price]") {
  constexpr plan::cost ring = plan::price(plan::ring_all_reduce{}, 4, std::size_t{4096}, {.latency = 1});
  static_assert(ring.seconds == 6);
  static_assert(ring.messages == 24);
  for_each_plan([](const plan::any_algorithm& algorithm) {
    INFO(algorithm.name());
    CHECK(plan::price(algorithm, 7, 5000, everything_costs) == plan::price(algorithm, 7, 5000, everything_costs));
  });
}

TEST_CASE("the price does not fall beyond a tolerance if a cost grows, and scales with all", "[plan][price][law]") {
  using member = double plan::cost_model::*;
  constexpr member costs[] = {&plan::cost_model::latency,
                              &plan::cost_model::seconds_per_byte,
                              &plan::cost_model::reduce_seconds_per_byte,
                              &plan::cost_model::copy_seconds_per_byte,
                              &plan::cost_model::peer_latency,
                              &plan::cost_model::peer_seconds_per_byte,
                              &plan::cost_model::flag_latency,
                              &plan::cost_model::overhead};
  for_each_plan([&](const plan::any_algorithm& algorithm) {
    // If lanes or senders compete for a port, another order of service can be cheaper.
    const std::string name = algorithm.name();
    const bool competes = name == "double_tree" || name == "recursive_doubling" || name == "pairwise";
    const double slack = competes ? 0.25 : 1e-12;
    for (const int ranks : {1, 2, 3, 5, 8, 13}) {
      for (const std::size_t bytes : {std::size_t{0}, std::size_t{8}, std::size_t{100000}}) {
        INFO(name << " over " << ranks << " ranks, " << bytes << " bytes");
        const double base = seconds(algorithm, ranks, bytes, everything_costs);
        CHECK(same(seconds(algorithm, ranks, bytes, everything_costs.scaled(4)), 4 * base));
        for (const member cost : costs) {
          double before = base;
          for (const double factor : {1.5, 3.0, 50.0}) {
            plan::cost_model dearer = everything_costs;
            dearer.*cost *= factor;
            const double now = seconds(algorithm, ranks, bytes, dearer);
            CHECK(now >= before * (1 - slack));
            before = now;
          }
        }
      }
    }
  });
}

TEST_CASE("each algorithm is cheaper than its alternative in the range that it is meant for", "[plan][price]") {
  CHECK(seconds(plan::double_tree{}, 64, 65536) < seconds(plan::ring_all_reduce{}, 64, 65536));
  CHECK(seconds(plan::double_tree{1}, 256, 8) < seconds(plan::ring_all_reduce{}, 256, 8) / 5);
  CHECK(seconds(plan::ring_all_reduce{}, 4, 1 << 26) < seconds(plan::double_tree{}, 4, 1 << 26));
  CHECK(seconds(plan::recursive_doubling{}, 16, 8) < seconds(plan::halving_doubling{}, 16, 8));
  CHECK(seconds(plan::halving_doubling{}, 16, 1 << 20) < seconds(plan::recursive_doubling{}, 16, 1 << 20));
  CHECK(seconds(plan::push_all_reduce{}, 2, 8, everything_costs) < seconds(plan::one_shot{}, 2, 8, everything_costs));
  CHECK(seconds(plan::two_shot{}, 8, 1 << 20, everything_costs) <
        seconds(plan::one_shot{}, 8, 1 << 20, everything_costs));
}

TEST_CASE("pieces overlap: a double tree of 16 pieces costs less than half of one with one piece", "[plan][price]") {
  constexpr std::size_t bytes = 1 << 22;
  CHECK(seconds(plan::double_tree{16}, 64, bytes) < seconds(plan::double_tree{1}, 64, bytes) / 2);
}

TEST_CASE("a port serves one message at a time; the two directions work at the same time", "[plan][price]") {
  const plan::action out0 = plan::send(1, {0}, plan::in(0));
  const plan::action out1 = plan::send(1, {0}, plan::in(0), 1);
  const plan::action in0 = plan::receive(1, {0}, plan::out(0));
  constexpr double hop = a + 1000 * b;
  SECTION("lanes of a rank share its outgoing port") {
    const written_down both{
        {{{out0}, {out1}}, {{plan::receive(0, {0}, plan::out(0))}, {plan::receive(0, {0}, plan::out(0), 1)}}}};
    CHECK(same(seconds(both, 2, 1000), 2 * hop));
  }
  SECTION("senders share the receiver's incoming port") {
    const written_down fan_in{{{{in0, plan::receive(2, {0}, plan::out(0))}},
                               {{plan::send(0, {0}, plan::in(0))}},
                               {{plan::send(0, {0}, plan::in(0))}}}};
    CHECK(same(seconds(fan_in, 3, 1000), 2 * hop));
    plan::cost_model overlapping = textbook;
    overlapping.latency_overlap = 1;
    CHECK(same(seconds(fan_in, 3, 1000, overlapping), a + 2 * 1000 * b));
  }
  SECTION("an exchange takes no longer than one message") {
    const written_down exchange{
        {{{out0, in0}}, {{plan::send(0, {0}, plan::in(0)), plan::receive(0, {0}, plan::out(0))}}}};
    CHECK(same(seconds(exchange, 2, 1000), hop));
  }
  SECTION("a join waits until the peer has received") {
    const plan::action late = plan::copy({0}, plan::in(0), plan::out(0));
    const written_down joins{{{{out0, plan::joined(late)}}, {{late, plan::receive(0, {0}, plan::out(0))}}}};
    plan::cost_model slow_copy = textbook;
    slow_copy.copy_seconds_per_byte = 1e-6;
    CHECK(same(seconds(joins, 2, 1000, slow_copy), 2 * 1000 * 1e-6));
  }
}

#if HOCKET_HAS_EXCEPTIONS
TEST_CASE("price rejects a plan that cannot complete, and the error names the fault", "[plan][price]") {
  const plan::action from1 = plan::receive(1, {0}, plan::out(0));
  const plan::action from0 = plan::receive(0, {0}, plan::out(0));
  const auto reason = [](const written_down& bad) {
    try {
      seconds(bad, 2, 8);
    } catch (const hocket::error& caught) {
      CHECK(caught.code() == hocket::errc::invalid_argument);
      return std::string(caught.what());
    }
    return std::string("no error was raised");
  };
  using Catch::Matchers::Contains;
  CHECK_THAT(reason({{{{from1}}, {{from0}}}}), Contains("on rank 0 of 2") && Contains("receive out[0] from rank 1"));
  CHECK_THAT(reason({{{{}}, {{plan::send(0, {0}, plan::in(0))}}}}), Contains("not all received"));
  CHECK_THAT(reason({{{{plan::wait(1, 3)}}, {{}}}}), Contains("never completes") && Contains("tag 3"));
  CHECK_THAT(reason({{{{plan::send(5, {0}, plan::in(0))}}, {{}}}}), Contains("must name another rank"));
  CHECK_THAT(reason({{{{plan::copy({0, 2}, plan::in(0), plan::out(0))}}, {{}}}}), Contains("beyond the last chunk"));
}
#endif

TEST_CASE("price rejects invalid rank counts and cost models") {
  const auto refused = [](int ranks, const plan::cost_model& model) {
    try {
      plan::price(plan::ring_all_gather{}, ranks, std::size_t{1000}, model);
    } catch (const hocket::error& cause) {
      return cause.code() == hocket::errc::invalid_argument;
    }
    return false;
  };
  CHECK(refused(0, {.latency = 1}));
  CHECK(refused(-1, {.latency = 1}));
  CHECK(refused(2, {.latency = std::numeric_limits<double>::quiet_NaN()}));
  CHECK(refused(2, {.seconds_per_byte = -1}));
  CHECK(refused(2, {.latency_overlap = 1.5}));
  CHECK_THROWS_WITH(
      plan::price(plan::ring_all_gather{}, 2, std::size_t{1000}, plan::cost_model{.copy_seconds_per_byte = -1}),
      Catch::Matchers::Contains("the cost model is invalid: copy_seconds_per_byte must be a number, 0 or more"));
  CHECK_FALSE(refused(2, {.latency = 1, .latency_overlap = 1}));
}
