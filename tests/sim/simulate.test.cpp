// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <hocket/engine/simulate.hpp>
#include <hocket/plan/listed.hpp>
#include <hocket/plan/price.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <string>

#include "sim/message_plans.hpp"
#include "support/catch.hpp"

namespace {

namespace plan = hocket::plan;
namespace sim = hocket::sim;

constexpr double a = 1.7e-6;
constexpr double b = 3.1e-10;
constexpr double g = 0.9e-10;
constexpr plan::cost_model textbook{.latency = a, .seconds_per_byte = b, .reduce_seconds_per_byte = g};
constexpr plan::cost_model everything_costs{.latency = 1.3e-6,
                                            .seconds_per_byte = 1.1e-10,
                                            .reduce_seconds_per_byte = 2e-10,
                                            .copy_seconds_per_byte = 5e-11,
                                            .overhead = 3.7e-9,
                                            .latency_overlap = 0.4};

bool same(double x, double y) { return std::abs(x - y) <= 1e-9 * std::max(std::abs(x), std::abs(y)); }

double seconds(const plan::any_algorithm& chosen, int ranks, std::size_t bytes) {
  const auto blocks = static_cast<std::size_t>(chosen.collective().blocks(ranks));
  return sim::simulate(chosen, ranks, bytes / blocks, 1, textbook).seconds;
}

/// A plan in which ranks 0 and 1 first wait for each other, and rank 2 does not wait.
plan::listed deadlocked() {
  plan::listed made("deadlocked", {plan::collective_kind::all_reduce, 0}, 3, {});
  made.lane(0) = {plan::receive(1, {0}, plan::out(0)), plan::send(1, {0}, plan::in(0))};
  made.lane(1) = {plan::receive(0, {0}, plan::out(0)), plan::send(0, {0}, plan::in(0))};
  made.lane(2) = {plan::copy({0}, plan::in(0), plan::out(0))};
  return made;
}

template <class Run>
std::string complaint(Run run) {
  try {
    run();
  } catch (const hocket::error& caught) {
    return caught.what();
  }
  return "no error was raised";
}

/// Processor time of `run` in seconds. Wall time would depend on other load on the machine.
template <class Run>
double cost_of(Run run) {
  const std::clock_t begin = std::clock();
  run();
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

#if defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
constexpr bool full_speed = true;
#else
constexpr bool full_speed = false;
#endif

}  // namespace

TEST_CASE("the simulated time of every plan with messages is its price", "[sim][simulate][law]") {
  for (const int ranks : {1, 2, 3, 4, 5, 7, 8, 12, 13, 16, 31, 33, 64, 100}) {
    for (const plan::any_algorithm& chosen : hocket_test::message_plans(ranks)) {
      for (const std::size_t elements : {std::size_t{0}, std::size_t{1}, std::size_t{999}, std::size_t{65536}}) {
        for (const plan::cost_model& model : {textbook, everything_costs}) {
          INFO(chosen.name() << " over " << ranks << " ranks, " << elements << " elements");
          const plan::layout where{elements, static_cast<std::uint32_t>(chosen.collective().blocks(ranks)),
                                   chosen.shape(ranks).chunks_per_block};
          const plan::cost price = plan::price(chosen, ranks, where, 4, model);
          const sim::result run = sim::simulate(chosen, ranks, elements, 4, model);
          CHECK(same(run.seconds, price.seconds));
          CHECK(run.messages == price.messages);
          CHECK(run.bytes == price.bytes);
        }
      }
    }
  }
}

TEST_CASE("messages that exceed the caches are simulated without data", "[sim][simulate]") {
  const std::size_t bytes = std::size_t{1} << 30;
  for (const plan::any_algorithm& chosen :
       {plan::any_algorithm(plan::binomial_broadcast{}), plan::any_algorithm(plan::ring_all_gather{})}) {
    CHECK(sim::simulate(chosen, 4, bytes, 1, textbook).seconds > 0);
  }
}

TEST_CASE("simulated times match the textbook formulas", "[sim][simulate]") {
  constexpr std::size_t bytes = 64 * 3 * 5 * 7 * 1024;
  constexpr double n = bytes;
  for (const int ranks : {2, 3, 4, 5, 7, 8, 16, 32, 64}) {
    INFO(ranks << " ranks");
    const double p = ranks;
    const double steps = std::bit_width(static_cast<unsigned>(ranks - 1));
    CHECK(same(seconds(plan::ring_all_reduce{}, ranks, bytes), 2 * (p - 1) * (a + n / p * b) + (p - 1) * n / p * g));
    CHECK(same(seconds(plan::ring_all_gather{}, ranks, bytes), (p - 1) * (a + n / p * b)));
    CHECK(same(seconds(plan::ring_reduce_scatter{}, ranks, bytes), (p - 1) * (a + n / p * b + n / p * g)));
    CHECK(same(seconds(plan::binomial_broadcast{ranks / 2}, ranks, bytes), steps * (a + n * b)));
    CHECK(same(seconds(plan::dissemination_barrier{}, ranks, 0), steps * a));
    if (!std::has_single_bit(static_cast<unsigned>(ranks))) continue;
    CHECK(same(seconds(plan::recursive_doubling{}, ranks, bytes), steps * (a + n * b + n * g)));
    CHECK(same(seconds(plan::halving_doubling{}, ranks, bytes),
               2 * steps * a + 2 * (p - 1) / p * n * b + (p - 1) / p * n * g));
  }
}

TEST_CASE("jitter is a function of the seed, and adds time but no messages", "[sim][simulate][law]") {
  for (const plan::any_algorithm& chosen : hocket_test::message_plans(24)) {
    INFO(chosen.name());
    const auto run = [&](double jitter, std::uint64_t seed) {
      return sim::simulate(chosen, 24, 100000, 4, {.model = textbook, .jitter = jitter, .seed = seed});
    };
    CHECK(run(0, 1) == run(0, 2));
    CHECK(run(0.5, 1) == run(0.5, 1));
    CHECK(run(0.5, 1).seconds != run(0.5, 2).seconds);
    CHECK(run(0.5, 1).messages == run(0, 1).messages);
    CHECK(run(0.5, 1).bytes == run(0, 1).bytes);
    CHECK(run(0.5, 1).seconds < run(0, 1).seconds * 1.6);
  }
  const auto ring = [](double jitter) {
    const sim::conditions how{.model = textbook, .jitter = jitter, .seed = 7};
    return sim::simulate(plan::ring_all_reduce{}, 24, 100000, 4, how).seconds;
  };
  CHECK(ring(0.25) > ring(0));
  CHECK(ring(0.5) > ring(0.25));
}

TEST_CASE("draws are evenly distributed from 0 to 1", "[sim][simulate]") {
  double sum = 0;
  double least = 1;
  double most = 0;
  constexpr int draws = 10000;
  for (std::uint64_t i = 0; i < draws; ++i) {
    const double u = sim::detail::draw(3, i % 100, i / 100, i % 7);
    sum += u;
    least = std::min(least, u);
    most = std::max(most, u);
  }
  CHECK(std::abs(sum / draws - 0.5) < 0.02);
  CHECK(least >= 0);
  CHECK(least < 0.01);
  CHECK(most < 1);
  CHECK(most > 0.99);
}

TEST_CASE("simulate names the ranks that wait in a plan without end, and rejects invalid plans", "[sim][simulate]") {
  using Catch::Matchers::Contains;
  CHECK_THAT(complaint([] { sim::simulate(deadlocked(), 3, 8, 4, textbook); }),
             Contains("timed out") && Contains("rank 0 in operation #1 waits for a message of rank 1") &&
                 Contains("rank 1 in operation #1 waits for a message of rank 0") && !Contains("rank 2"));
  plan::listed unread("unread", {plan::collective_kind::all_reduce, 0}, 2, {});
  unread.lane(1) = {plan::send(0, {0}, plan::in(0))};
  CHECK_THAT(complaint([&] { sim::simulate(unread, 2, 8, 4, textbook); }),
             Contains("rank 1 in operation #1 waits until what it sent is received"));
  CHECK_THAT(complaint([] { sim::simulate(plan::two_shot{}, 4, 8, 4, textbook); }), Contains("two_shot"));
  CHECK_THAT(complaint([] { sim::simulate(plan::ring_all_reduce{}, 0, 8, 4, textbook); }),
             Contains("ranks must be at least 1"));
  plan::listed astray("astray", {plan::collective_kind::all_reduce, 0}, 2, {});
  astray.lane(0) = {plan::send(5, {0}, plan::in(0))};
  CHECK_THAT(complaint([&] { sim::simulate(astray, 2, 8, 4, textbook); }), Contains("rank 5"));
}

TEST_CASE("thousands of ranks are simulated in less than 10 seconds", "[sim][simulate][scale]") {
  const auto report = [](const char* what, int ranks, double cost) {
    std::printf("simulate: %s over %d ranks took %.2f s of processor time\n", what, ranks, cost);
    if (full_speed) CHECK(cost < 10);
  };
  const int many = full_speed ? 100000 : 2000;
  const plan::any_algorithm logarithmic[] = {plan::recursive_doubling{}, plan::halving_doubling{},
                                             plan::dissemination_barrier{}};
  for (const plan::any_algorithm& chosen : logarithmic) {
    report(chosen.name(), many, cost_of([&] {
             const std::size_t bytes =
                 chosen.collective().kind == plan::collective_kind::barrier ? 0 : std::size_t{1} << 30;
             CHECK(sim::simulate(chosen, many, bytes, 1, textbook).seconds > 0);
           }));
  }
  const int around = full_speed ? 4096 : 256;
  report("ring", around, cost_of([&] {
           const double n = 1024.0 * around;
           const double ring = 2 * (around - 1) * (a + n / around * b) + (around - 1) * n / around * g;
           CHECK(same(seconds(plan::ring_all_reduce{}, around, 1024 * static_cast<std::size_t>(around)), ring));
         }));
}
