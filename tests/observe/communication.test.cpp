// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The figures of communicators agree with each other, with the calls that were made, and with the prices of the plans.
#include "observe/communication_laws.hpp"
#include "plan/every_plan.hpp"
#include "sim/message_plans.hpp"
#include "support/catch.hpp"
#include "support/thread_ranks.hpp"

#include <hocket/hocket.hpp>
#include <hocket/mesh/mesh.hpp>
#include <hocket/observe/over_ranks.hpp>
#include <hocket/sim.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace hocket::observe;
using hocket::plan::any_algorithm;
using hocket_test::on_ranks;
using hocket_test::thread_rank;
using observe_test::broken_law;
using observe_test::buffers;
using observe_test::expectation;
using observe_test::figures_of;

constexpr int rank_counts[] = {1, 2, 3, 5, 7, 8};

/// Returns lengths of blocks for a plan: a pushed vector has at most 56 bytes.
std::vector<std::size_t> blocks_for(const any_algorithm& chosen, int ranks) {
  if (chosen.collective().kind == hocket::plan::collective_kind::barrier) return {0};
  if (std::string(chosen.name()) == "push") return {0, 3, 14};
  return {0, 3, 2 * static_cast<std::size_t>(ranks) + 5, 5000};
}

/// Seconds of the metric of this name.
double seconds_of(const registry& metrics, const std::string& name) {
  double sum = 0;
  for (const family& each : metrics.read()) {
    for (const sample& one : each.samples) sum += each.name == name ? one.value : 0;
  }
  return sum;
}

using seconds = std::chrono::duration<double>;
using clock_type = std::chrono::steady_clock;

}  // namespace

TEST_CASE("figures of ranks that are threads: every plan, blocking, started, and messages") {
  for (const int ranks : rank_counts) {
    std::vector<any_algorithm> plans;
    hocket_test::for_every_plan(ranks, [&](const auto& each) { plans.emplace_back(each); });
    expectation expected;
    for (const any_algorithm& each : plans) {
      for (const std::size_t block : blocks_for(each, ranks)) expected.add(each, ranks, block);
    }
    constexpr std::uint64_t direct_calls = 1000;
    expected.add(any_algorithm(hocket::plan::push_all_reduce{}), ranks, 2, direct_calls);
    expected.add(any_algorithm(hocket::plan::ring_all_reduce{}), ranks, 300);
    const bool sends = ranks > 1;
    if (sends) expected.add("send_recv", static_cast<std::uint64_t>(ranks) * 40);
    std::vector<snapshot> found(static_cast<std::size_t>(ranks));
    on_ranks(ranks, [&](thread_rank& me) {
      registry metrics;
      watch(metrics, me.comm());
      for (const any_algorithm& each : plans) {
        for (const std::size_t block : blocks_for(each, ranks)) {
          me.at(each.name());
          buffers own(each, ranks, me.rank(), block);
          observe_test::start(me.comm(), each, own).wait();
        }
      }
      std::vector<float> in(300, 1), out(300);
      for (std::uint64_t i = 0; i < direct_calls; ++i)
        hocket::all_reduce(me.comm(), std::span<const float>(in).first(2), std::span(out).first(2));
      hocket::all_reduce(me.comm(), in, out, std::plus<>{}, hocket::with(hocket::ring));
      const int next = (me.rank() + 1) % ranks, last = (me.rank() + ranks - 1) % ranks;
      if (sends)
        hocket::send_recv(me.comm(), std::span<const float>(in).first(10), hocket::peer{next}, std::span(out).first(10),
                          hocket::peer{last});
      found[static_cast<std::size_t>(me.rank())] = metrics.read();
    });
    INFO(ranks << " ranks");
    CHECK(broken_law(figures_of(found), ranks, expected) == "");
  }
}

TEST_CASE("figures of simulated ranks") {
  for (const int ranks : rank_counts) {
    hocket::sim::world world(ranks);
    std::vector<std::unique_ptr<registry>> metrics;
    for (int r = 0; r < ranks; ++r) watch(*metrics.emplace_back(std::make_unique<registry>()), world.comm(r));
    expectation expected;
    for (const any_algorithm& each : hocket_test::message_plans(ranks)) {
      for (const std::size_t block : blocks_for(each, ranks)) {
        expected.add(each, ranks, block);
        std::vector<buffers> all;
        for (int r = 0; r < ranks; ++r) all.emplace_back(each, ranks, r, block);
        std::vector<hocket::request> requests;
        for (int r = 0; r < ranks; ++r)
          requests.push_back(observe_test::start(world.comm(r), each, all[static_cast<std::size_t>(r)]));
        world.run();
        for (auto& one : requests) one.wait();
      }
    }
    std::vector<snapshot> found;
    for (const auto& each : metrics) found.push_back(each->read());
    INFO(ranks << " ranks");
    CHECK(broken_law(figures_of(found), ranks, expected) == "");
    // Virtual time passes by no clock of this host.
    CHECK(seconds_of(*metrics[0], "hocket_communication_seconds") == 0);
    CHECK(seconds_of(*metrics[0], "hocket_exposed_seconds") == 0);
  }
}

TEST_CASE("communicators of one registry are added up, and peers have the numbers of the whole job") {
  std::vector<snapshot> found(6);
  on_ranks(6, [&](thread_rank& me) {
    registry metrics;
    const auto ranks = hocket::mesh<"dp", "tp">(me.comm(), {2, 3});
    watch(metrics, ranks);
    const snapshot start = metrics.read();
    std::vector<float> in(12, static_cast<float>(me.rank())), out(12);
    hocket::all_reduce(ranks.along<"dp">(), in, out, std::plus<>{}, hocket::with(hocket::ring));
    hocket::all_reduce(ranks.along<"tp">(), in, out, std::plus<>{}, hocket::with(hocket::ring));
    snapshot& end = found[static_cast<std::size_t>(me.rank())] = metrics.read();
    for (std::size_t f = 0; f < end.size(); ++f) {
      for (std::size_t i = 0; i < end[f].samples.size(); ++i) end[f].samples[i].value -= start[f].samples[i].value;
    }
  });
  expectation expected;  // a ring moves 2 (p - 1) times the 48 bytes of the vector
  expected.add("all_reduce", (3 * 2 + 2 * 4) * 48, 2);
  const auto figures = figures_of(found);
  CHECK(broken_law(figures, 6, expected) == "");
  // Rank 4 is at (1, 1): its peers are 1 along dp, and 3 and 5 along tp.
  for (const int peer : {0, 2, 4})
    CHECK(figures.at("hocket_sent_bytes{peer=\"" + std::to_string(peer) + "\"}")[4] == 0);
  CHECK(figures.at("hocket_sent_bytes{peer=\"1\"}")[4] == 48);
  CHECK(figures.at("hocket_sent_bytes{peer=\"5\"}")[4] == 64);  // to the next of the ring
}

TEST_CASE("figures can be read over ranks, and outlive their communicator") {
  for (const int ranks : {1, 3}) {
    on_ranks(ranks, [&](thread_rank& me) {
      registry metrics;
      {
        const auto half = hocket::split(me.comm(), hocket::color{me.rank() % 2}, hocket::key{me.rank()});
        watch(metrics, half);
        int value = 1;
        hocket::broadcast(half, std::span(&value, 1), hocket::root{0});
      }
      const auto all = read_over_ranks(me.comm(), metrics);
      for (const ranked_sample& each : all) {
        if (name_of(each.name, each.labels) == "hocket_collective_calls{collective=\"broadcast\"}")
          return me.check(each.sum == ranks, "the sum of the calls is wrong"), void();
      }
      me.complain("there is no number of calls");
    });
  }
}

TEST_CASE("a thread may read figures while another one communicates") {
  on_ranks(2, [&](thread_rank& me) {
    registry metrics;
    watch(metrics, me.comm());
    std::atomic<bool> over{false}, decreased{false};
    std::thread reader([&] {
      for (double before = 0; !over;) {
        const double now = seconds_of(metrics, "hocket_collective_calls");
        if (now < before) decreased = true;
        before = now;
      }
    });
    std::vector<float> in(1000, 1), out(1000);
    for (int i = 0; i < 500; ++i) {
      hocket::all_reduce(me.comm(), in, out);
      hocket::all_reduce(me.comm(), std::span<const float>(in).first(1), std::span(out).first(1));
    }
    over = true;
    reader.join();
    me.check(!decreased, "a counter has decreased");
    me.check(seconds_of(metrics, "hocket_collective_calls") == 1000, "calls are missing");
  });
}

TEST_CASE("time of a call that waits for a late rank is exposed; of one that computes meanwhile it is hidden") {
  on_ranks(2, [](thread_rank& me) {
    registry metrics;
    watch(metrics, me.comm());
    const double exposed_before = seconds_of(metrics, "hocket_exposed_seconds");
    const double spent_before = seconds_of(metrics, "hocket_communication_seconds");
    const auto exposed = [&] { return seconds_of(metrics, "hocket_exposed_seconds") - exposed_before; };
    const auto spent = [&] { return seconds_of(metrics, "hocket_communication_seconds") - spent_before; };
    std::vector<float> in(5000, 1), out(5000);
    constexpr auto pause = std::chrono::milliseconds(100);
    if (me.rank() == 1) std::this_thread::sleep_for(pause);
    const auto called = clock_type::now();
    hocket::all_reduce(me.comm(), in, out);
    const double waited = seconds(clock_type::now() - called).count();
    const double first_exposed = exposed(), first_spent = spent();
    me.check(first_exposed <= waited * 1.01, "more time is exposed than the call has taken");
    if (me.rank() == 0) me.check(first_exposed >= 0.8 * waited, "the wait for the other rank is not exposed");
    me.check(first_spent >= first_exposed * 0.99 && first_spent <= first_exposed * 1.01 + 1e-6,
             "a blocking call is hidden");

    const auto started = clock_type::now();
    hocket::request sum = hocket::all_reduce_async(me.comm(), in, out);
    std::this_thread::sleep_for(pause);
    const auto needed = clock_type::now();
    sum.wait();
    const auto end = clock_type::now();
    me.check(exposed() - first_exposed <= seconds(end - needed).count() * 1.01, "hidden time is exposed");
    const double second_spent = spent() - first_spent, took = seconds(end - started).count();
    me.check(second_spent >= 0.9 * seconds(pause).count() && second_spent <= took * 1.01,
             "the time of a started call is wrong");
  });
}

TEST_CASE("figures of a communicator that has ended are read once more, and then forgotten") {
  on_ranks(2, [](thread_rank& me) {
    const auto share = [](const auto& comm) {
      int value = 1;
      hocket::broadcast(comm, std::span(&value, 1), hocket::root{0});
    };
    registry metrics;
    watch(metrics, me.comm());
    std::weak_ptr<const hocket::detail::communication_counts> counted;
    {
      const auto copy = hocket::split(me.comm(), hocket::color{0}, hocket::key{me.rank()});
      watch(metrics, copy);
      counted = hocket::detail::communicator_access::state(copy).shared_counts();
      metrics.read();
      share(copy);
    }
    me.check(!counted.expired(), "the counts have ended before they were read");
    const auto calls = [&] {
      double result = 0;
      for (const family& each : metrics.read()) {
        if (each.name == "hocket_collective_calls")
          for (const sample& one : each.samples) result += one.labels[0].second == "broadcast" ? one.value : 0;
      }
      return result;
    };
    me.check(calls() == 1, "the last call is missing");
    me.check(counted.expired(), "the counts are not forgotten");
    share(me.comm());
    me.check(calls() == 2, "another communicator is not followed any more");
  });
}
