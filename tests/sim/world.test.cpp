// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <hocket/sim.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "sim/message_plans.hpp"
#include "support/catch.hpp"
#include "support/reference.hpp"

namespace {

namespace plan = hocket::plan;
namespace sim = hocket::sim;
using kind = plan::collective_kind;
using hocket_test::evaluate;
using hocket_test::layout_for;

template <class T>
using per_rank = std::vector<std::vector<T>>;

/// Values of both signs and very different magnitudes, so that another order of summation gives other bits.
per_rank<float> ill_conditioned(int ranks, std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  per_rank<float> all(static_cast<std::size_t>(ranks), std::vector<float>(count));
  for (auto& each : all) {
    for (float& x : each) {
      const auto mantissa = static_cast<float>(static_cast<int>(random() % 2000001) - 1000000);
      x = std::ldexp(mantissa, static_cast<int>(random() % 40) - 20);
    }
  }
  return all;
}

std::size_t index(int rank) { return static_cast<std::size_t>(rank); }

/// Starts `chosen` on one rank. `in` and `out` are the buffers of its collective.
template <class Op>
hocket::request start(const sim::communicator& comm, const plan::any_algorithm& chosen, std::vector<float>& in,
                      std::vector<float>& out, const Op& op) {
  const auto how = hocket::with(hocket::algorithm(chosen));
  const hocket::root root{chosen.collective().root};
  switch (chosen.collective().kind) {
    case kind::all_reduce: return hocket::all_reduce_async(comm, in, out, op, how);
    case kind::reduce_scatter: return hocket::reduce_scatter_async(comm, in, out, op, how);
    case kind::all_gather: return hocket::all_gather_async(comm, in, out, how);
    case kind::all_to_all: return hocket::all_to_all_async(comm, in, out, how);
    case kind::broadcast: out = in; return hocket::broadcast_async(comm, out, root, how);
    case kind::reduce: return hocket::reduce_async(comm, in, out, op, root, how);
    case kind::gather: return hocket::gather_async(comm, in, out, root, how);
    case kind::scatter: return hocket::scatter_async(comm, in, out, root, how);
    default: return hocket::barrier_async(comm, how);
  }
}

struct outcome {
  per_rank<float> out;
  double seconds = 0;
};

template <class Op>
outcome run(const plan::any_algorithm& chosen, int ranks, std::size_t block, per_rank<float> in, const Op& op,
            const sim::conditions& how = {}) {
  sim::world world(ranks, how);
  const plan::layout layout = layout_for(chosen, ranks, block);
  per_rank<float> out(index(ranks));
  std::vector<hocket::request> requests;
  for (int rank = 0; rank < ranks; ++rank) {
    out[index(rank)].resize(hocket_test::held(chosen.collective(), plan::region::out, layout, rank).size, -1.0F);
    in[index(rank)].reserve(1);  // empty buffers must not have the same address
    out[index(rank)].reserve(1);
    requests.push_back(start(world.comm(rank), chosen, in[index(rank)], out[index(rank)], op));
  }
  world.run();
  for (auto& each : requests) each.wait();
  return {std::move(out), world.now()};
}

double price(const plan::any_algorithm& chosen, int ranks, const plan::layout& layout) {
  return plan::price(chosen, ranks, layout, sizeof(float), plan::example_machine).seconds;
}

hocket::request start_ring(const sim::communicator& comm, const std::vector<float>& in, std::vector<float>& out) {
  return hocket::all_reduce_async(comm, in, out, std::plus<>{}, hocket::with(hocket::ring));
}

/// Returns the input of each rank, which some collectives do not have.
per_rank<float> inputs_for(const plan::any_algorithm& chosen, int ranks, const plan::layout& layout, unsigned seed) {
  per_rank<float> all = ill_conditioned(ranks, layout.size(), seed);
  for (int rank = 0; rank < ranks; ++rank) all[index(rank)].resize(hocket_test::input_size(chosen, layout, rank));
  return all;
}

template <class Call>
hocket::failure failure_of(Call call) {
  try {
    call();
  } catch (const hocket::error& caught) {
    return caught.cause();
  }
  return {};
}

}  // namespace

TEST_CASE("the engine gives the bits of its plan's evaluation, in the time of its price", "[sim][world]") {
  for (const int ranks : {1, 2, 3, 5, 7, 8, 16, 33, 64}) {
    for (const plan::any_algorithm& chosen : hocket_test::message_plans(ranks)) {
      for (std::size_t block : {std::size_t{0}, std::size_t{1}, std::size_t{2 * index(ranks) + 5}}) {
        if (chosen.collective().kind == kind::barrier && block != 0) continue;
        INFO(chosen.name() << " over " << ranks << " ranks, " << block << " elements");
        const plan::layout layout = layout_for(chosen, ranks, block);
        const auto in = inputs_for(chosen, ranks, layout, static_cast<unsigned>(ranks + 1));
        const outcome found = run(chosen, ranks, block, in, std::plus<>{});
        CHECK(found.out == evaluate<float>(chosen, ranks, layout, in, std::plus<>{}));
        CHECK(std::abs(found.seconds - price(chosen, ranks, layout)) <= 1e-9 * found.seconds);
      }
    }
  }
}

TEST_CASE("average, minimum and in-place calls give the bits of the plan's evaluation", "[sim][world]") {
  for (const int ranks : {1, 2, 3, 6, 8}) {
    for (const plan::any_algorithm& chosen : hocket_test::message_plans(ranks)) {
      if (chosen.collective().kind != kind::all_reduce) continue;
      INFO(chosen.name() << " over " << ranks << " ranks");
      const plan::layout layout = layout_for(chosen, ranks, 37);
      const auto in = ill_conditioned(ranks, 37, 5);
      CHECK(run(chosen, ranks, 37, in, hocket::average{}).out ==
            evaluate<float>(chosen, ranks, layout, in, hocket::average{}));
      CHECK(run(chosen, ranks, 37, in, hocket::minimum{}).out ==
            evaluate<float>(chosen, ranks, layout, in, hocket::minimum{}));
      per_rank<float> both = in;
      sim::world world(ranks);
      std::vector<hocket::request> requests;
      for (int rank = 0; rank < ranks; ++rank) {
        const auto how = hocket::with(hocket::algorithm(chosen));
        requests.push_back(
            hocket::all_reduce_async(world.comm(rank), hocket::in_place(both[index(rank)]), std::plus<>{}, how));
      }
      world.run();
      CHECK(both == evaluate<float>(chosen, ranks, layout, in, std::plus<>{}, true));
    }
  }
}

TEST_CASE("jitter changes times but no results, and equal seeds give equal times", "[sim][world][law]") {
  for (const plan::any_algorithm& chosen : hocket_test::message_plans(13)) {
    INFO(chosen.name());
    const std::size_t block = chosen.collective().kind == kind::barrier ? 0 : 50;
    const auto in = inputs_for(chosen, 13, layout_for(chosen, 13, block), 3);
    const auto with_seed = [&](double jitter, std::uint64_t seed) {
      return run(chosen, 13, block, in, std::plus<>{}, {.jitter = jitter, .seed = seed});
    };
    const outcome even = with_seed(0, 0);
    const outcome first = with_seed(0.9, 1);
    const outcome again = with_seed(0.9, 1);
    const outcome other = with_seed(0.9, 2);
    CHECK(first.seconds == again.seconds);
    CHECK(first.seconds != other.seconds);
    CHECK(first.seconds != even.seconds);
    CHECK(first.out == even.out);
    CHECK(other.out == even.out);
  }
}

TEST_CASE("many operations at the same time are correct, and share the ports", "[sim][world]") {
  constexpr int ranks = 6;
  constexpr int operations = 30;  // more than the window
  sim::world world(ranks);
  std::vector<per_rank<float>> in, out;
  for (unsigned k = 0; k < operations; ++k) {
    in.push_back(ill_conditioned(ranks, 64, k));
    out.emplace_back(index(ranks), std::vector<float>(64));
  }
  const plan::any_algorithm chosen[] = {plan::ring_all_reduce{}, plan::recursive_doubling{}, plan::double_tree{4}};
  std::vector<hocket::request> requests;
  for (int rank = ranks - 1; rank >= 0; --rank) {
    for (std::size_t k = 0; k < operations; ++k) {
      requests.push_back(
          start(world.comm(rank), chosen[k % 3], in[k][index(rank)], out[k][index(rank)], std::plus<>{}));
    }
  }
  world.run();
  double alone = 0;
  for (std::size_t k = 0; k < operations; ++k) {
    const plan::layout layout = layout_for(chosen[k % 3], ranks, 64);
    CHECK(out[k] == evaluate<float>(chosen[k % 3], ranks, layout, in[k], std::plus<>{}));
    alone += price(chosen[k % 3], ranks, layout);
  }
  CHECK(world.now() <= alone);
  CHECK(world.now() > alone / operations);
}

TEST_CASE("the times of consecutive operations and of other work add up", "[sim][world]") {
  constexpr int ranks = 5;
  sim::world world(ranks);
  std::vector<float> in(100, 1.0F);
  per_rank<float> out(ranks, std::vector<float>(100));
  const auto once = [&] {
    std::vector<hocket::request> requests;
    for (int rank = 0; rank < ranks; ++rank) {
      requests.push_back(start_ring(world.comm(rank), in, out[index(rank)]));
    }
    world.run();
    return world.now();
  };
  const double first = once();
  CHECK(once() == Approx(2 * first));
  for (int rank = 0; rank < ranks; ++rank) world.spend(rank, 1.0);
  CHECK(once() == Approx(1.0 + 3 * first));
  for (int rank = 0; rank < ranks; ++rank) CHECK(world.time_of(rank) <= world.now());
}

TEST_CASE("groups of a world are separate communicators", "[sim][world]") {
  sim::world world(6);
  auto even = world.group({4, 2, 0});
  auto odd = world.group({1, 3, 5});
  std::vector<int> own(6);
  std::iota(own.begin(), own.end(), 0);
  std::vector<std::vector<int>> all(6, std::vector<int>(3));
  std::vector<hocket::request> requests;
  for (std::size_t r = 0; r < 3; ++r) {
    requests.push_back(hocket::all_gather_async(even[r], std::span(&own[4 - 2 * r], 1), all[4 - 2 * r]));
    requests.push_back(hocket::all_gather_async(odd[r], std::span(&own[2 * r + 1], 1), all[2 * r + 1]));
  }
  world.run();
  for (std::size_t rank = 0; rank < 6; ++rank) {
    CHECK(all[rank] == (rank % 2 == 0 ? std::vector<int>{4, 2, 0} : std::vector<int>{1, 3, 5}));
  }
}

TEST_CASE("messages between two ranks match by tag", "[sim][world]") {
  sim::world world(3);
  const std::vector<int> sent{1, 2, 3};
  const std::vector<int> sent_second{4, 5, 6};
  std::vector<int> first(3), second(3), other(1);
  const int nine = 9;
  std::vector<hocket::request> requests;
  requests.push_back(hocket::recv_async(world.comm(1), second, hocket::peer{0}, hocket::tag{2}));
  requests.push_back(hocket::send_async(world.comm(0), sent, hocket::peer{1}, hocket::tag{1}));
  requests.push_back(hocket::send_async(world.comm(0), sent_second, hocket::peer{1}, hocket::tag{2}));
  requests.push_back(hocket::recv_async(world.comm(1), first, hocket::peer{0}, hocket::tag{1}));
  requests.push_back(hocket::recv_async(world.comm(2), other, hocket::peer{0}));
  CHECK(failure_of([&] { world.run(); }).code == hocket::errc::timeout);  // no rank has sent to rank 2 yet
  requests.push_back(hocket::send_async(world.comm(0), std::span(&nine, 1), hocket::peer{2}));
  world.run();
  for (auto& each : requests) each.wait();
  CHECK(first == sent);
  CHECK(second == sent_second);
  CHECK(other == std::vector<int>{9});
  CHECK(world.time_of(2) >= plan::example_machine.latency);
}

TEST_CASE("blocking calls: on a single rank, after all others have started, and before", "[sim][world]") {
  SECTION("a single rank may block") {
    sim::world world(1);
    std::vector<int> in{3}, out{0};
    hocket::all_reduce(world.comm(0), in, out);
    hocket::barrier(world.comm(0));
    CHECK(out == in);
  }
  SECTION("the last rank may block, because all others have started") {
    sim::world world(4);
    std::vector<int> in{3};
    std::vector<std::vector<int>> out(4, std::vector<int>(1));
    std::vector<hocket::request> requests;
    for (int rank = 0; rank < 3; ++rank) {
      requests.push_back(hocket::all_reduce_async(world.comm(rank), in, out[index(rank)]));
    }
    hocket::all_reduce(world.comm(3), in, out[3]);
    for (auto& each : requests) each.wait();
    for (const auto& each : out) CHECK(each == std::vector<int>{12});
  }
  SECTION("the first rank fails immediately, and the error names the wait") {
    sim::world world(4);
    std::vector<int> in{3}, out{0};
    const auto begin = std::chrono::steady_clock::now();
    const hocket::failure cause =
        failure_of([&] { hocket::all_reduce(world.comm(2), in, out, std::plus<>{}, hocket::with(hocket::ring)); });
    CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(10));
    CHECK(cause.code == hocket::errc::timeout);
    CHECK_THAT(cause.message(), Catch::Matchers::Contains("rank 2 in operation #1 waits for a message of rank 1") &&
                                    Catch::Matchers::Contains("_async") && Catch::Matchers::Contains("on rank 2 of 4"));
    CHECK(world.comm(2).revoked());
    int value = 0;
    CHECK(failure_of([&] { hocket::recv(world.comm(0), std::span(&value, 1), hocket::peer{1}); }).code ==
          hocket::errc::timeout);
  }
}

TEST_CASE("calls that cannot make progress fail without a wait", "[sim][world]") {
  using Catch::Matchers::Contains;
  sim::world world(3);
  std::vector<float> in(4, 1.0F);
  per_rank<float> out(3, std::vector<float>(4));
  SECTION("a plan that deadlocks") {
    plan::listed bad("bad", {kind::all_reduce, 0}, 3, {});
    bad.lane(0) = {plan::receive(1, {0}, plan::out(0))};
    bad.lane(1) = {plan::receive(0, {0}, plan::out(0)), plan::send(0, {0}, plan::in(0))};
    std::vector<hocket::request> requests;
    for (int rank = 0; rank < 3; ++rank) {
      requests.push_back(start(world.comm(rank), bad, in, out[index(rank)], std::plus<>{}));
    }
    const hocket::failure cause = failure_of([&] { world.run(); });
    CHECK(cause.code == hocket::errc::timeout);
    CHECK_THAT(cause.message(), Contains("rank 0 in operation #1 waits for a message of rank 1") &&
                                    Contains("rank 1 in operation #1 waits for a message of rank 0"));
    CHECK(failure_of([&] { requests[0].wait(); }).code == hocket::errc::timeout);
    CHECK_NOTHROW(requests[2].wait());
  }
  SECTION("ranks that pass different counts") {
    std::vector<float> longer(8, 1.0F), result(8);
    std::vector<hocket::request> requests;
    requests.push_back(start_ring(world.comm(0), longer, result));
    for (int rank = 1; rank < 3; ++rank) {
      requests.push_back(start_ring(world.comm(rank), in, out[index(rank)]));
    }
    CHECK(failure_of([&] { world.run(); }).code == hocket::errc::mismatch);
  }
  SECTION("a rank that aborted: its buffer is not read") {
    std::vector<hocket::request> requests;
    for (int rank = 1; rank < 3; ++rank) {
      requests.push_back(start_ring(world.comm(rank), in, out[index(rank)]));
    }
    {
      std::vector<float> gone(4, 1.0F);
      auto request = start_ring(world.comm(0), gone, out[0]);
      world.comm(0).abort();
    }
    const hocket::failure cause = failure_of([&] { world.run(); });
    CHECK((cause.code == hocket::errc::aborted || cause.code == hocket::errc::timeout));
  }
  SECTION("an algorithm that needs peers' memory") {
    CHECK_THAT(failure_of([&] { start(world.comm(0), plan::two_shot{}, in, out[0], std::plus<>{}).wait(); }).message(),
               Contains("choose one that sends messages"));
  }
}

TEST_CASE("a communicator takes less than 2048 bytes for each rank", "[sim][world]") {
  CHECK(sizeof(hocket::detail::communicator_state<sim::domain>) + sizeof(sim::endpoint_group) + sizeof(sim::domain) <
        2048);
}

TEST_CASE("invalid worlds and groups are rejected with the reason") {
  const auto refused = [](const std::string& words, const std::function<void()>& call) {
    try {
      call();
    } catch (const hocket::error& cause) {
      return cause.code() == hocket::errc::invalid_argument &&
             std::string(cause.what()).find(words) != std::string::npos;
    }
    return false;
  };
  CHECK(refused("at least 1 rank", [] { sim::world world(0); }));
  CHECK(refused("latency must be a number of seconds, 0 or more",
                [] { sim::world world(2, {.latency = std::numeric_limits<double>::quiet_NaN()}); }));
  const double infinity = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(refused("latency must be a number", [&] { sim::world world(2, {.latency = infinity}); }));
  for (const double jitter : {nan, infinity, -0.1}) {
    CHECK(
        refused("jitter must be a number, 0 or more", [&] { sim::world world(2, sim::conditions{.jitter = jitter}); }));
  }
  sim::world world(3);
  world.spend(0, std::numeric_limits<double>::max());
  for (const double seconds : {nan, infinity, -1., std::numeric_limits<double>::max()}) {
    CHECK(refused("rank 0 can't spend", [&] { world.spend(0, seconds); }));
  }
  CHECK(refused("there is no rank 3", [&] { world.spend(3, 1); }));
  CHECK(refused("there is no rank -1", [&] { world.spend(-1, 1); }));
  for (const int rank : {-1, 3}) {
    CHECK(refused("there is no rank " + std::to_string(rank), [&] { static_cast<void>(world.time_of(rank)); }));
  }
  CHECK(world.now() == std::numeric_limits<double>::max());
  CHECK(refused("rank 3 is not in this world", [&] { world.group({0, 3}); }));
  CHECK(refused("rank -1 is not in this world", [&] { world.group({-1}); }));
  CHECK(refused("rank 1 is listed twice", [&] { world.group({1, 0, 1}); }));
  CHECK(world.group({2, 0}).size() == 2);
}

TEST_CASE("calls that differ in a world are reported with operation, number and source file") {
  sim::world world(2);
  std::vector<float> four(4), five(5);
  const auto begin = [&](int rank, std::vector<float>& data) {
    return hocket::all_reduce_async(world.comm(rank), hocket::in_place(data), std::plus<>{});
  };
  hocket::request first = begin(0, four), second = begin(1, five);
  const hocket::failure found = failure_of([&] { world.run(); });
  CHECK(found.code == hocket::errc::mismatch);
  CHECK_THAT(found.message(), Catch::Contains("all_reduce #1 on rank"));
  CHECK_THAT(found.message(), Catch::Contains("world.test.cpp:"));
}
