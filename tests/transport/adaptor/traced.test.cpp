// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// needs: nlohmann_json
//
// The trace of all ranks is JSON, and contains each step and each message on one time axis.
#include "support/scratch.hpp"
#include "support/thread_ranks.hpp"
#include "transport/adaptor/last_call.hpp"
#include "transport/adaptor/trace_reader.hpp"

#include <hocket/group/adapted.hpp>
#include <hocket/hocket.hpp>
#include <hocket/observe/communication.hpp>
#include <hocket/observe/trace_counters.hpp>
#include <hocket/sim.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace hocket_test;

namespace {

/// Counts the steps that an observer receives.
struct counted_steps {
  std::size_t steps = 0;
  hocket::step_observer observer() {
    return {[](void* self, const hocket::completed_step&) { ++static_cast<counted_steps*>(self)->steps; }, this};
  }
};

}  // namespace

TEST_CASE("a trace contains each step once, and both ends of each message") {
  for (const int ranks : {1, 2, 3, 5}) {
    const scratch_directory scratch;
    const std::string path = scratch.path() + "/trace.json";
    std::vector<counted_steps> counted(static_cast<std::size_t>(ranks));
    on_ranks(ranks, [&](thread_rank& me) {
      auto comm = hocket::traced(me.comm());
      counted_steps& own = counted[static_cast<std::size_t>(me.rank())];
      std::vector<float> data(1000, 1.0F);
      const auto seen = hocket::observe_steps(own.observer());
      hocket::all_reduce(comm, hocket::in_place(data), std::plus<>{}, hocket::with(hocket::ring, seen));
      hocket::all_reduce(comm, hocket::in_place(data), std::plus<>{}, hocket::with(hocket::two_shot, seen));
      hocket::barrier(comm, hocket::with(seen));
      me.check(data[999] == static_cast<float>(ranks * ranks), "a wrong sum");
      const hocket::peer next{(me.rank() + 1) % ranks}, before{(me.rank() + ranks - 1) % ranks};
      int mine = me.rank(), theirs = -1;
      hocket::send_recv(comm, std::span<const int>(&mine, 1), next, std::span(&theirs, 1), before);
      hocket::write_trace(comm, path);
    });
    const trace_summary found = read_trace(path);
    INFO(ranks << " ranks");
    CHECK(found.problem == "");
    std::size_t steps = 0;
    for (const counted_steps& each : counted) steps += each.steps;
    CHECK(found.steps == steps);
    CHECK(found.ranks == static_cast<std::size_t>(ranks));
    CHECK(found.arrows_begun == found.arrows_ended);
    CHECK(found.arrows_begun > 0);
    CHECK(found.backward_arrows == 0);
  }
}

TEST_CASE("times begin with the job, and tracks have the bytes in flight and the values of metrics") {
  for (const int ranks : {1, 2, 3}) {
    const scratch_directory scratch;
    const std::string path = scratch.path() + "/trace.json";
    std::vector<double> sent(static_cast<std::size_t>(ranks)), seconds(sent.size());
    on_ranks(ranks, [&](thread_rank& me) {
      const auto begin = std::chrono::steady_clock::now();
      const auto comm = hocket::traced(me.comm());
      hocket::observe::registry metrics;
      hocket::observe::watch(metrics, comm);
      auto& loss = metrics.gauge("loss", "loss", {{"of", "\"a\\\""}});
      hocket::observe::trace_counters tracks(comm, metrics, {"loss", "hocket_collective_bytes", "no metric"});
      const std::uint64_t before = comm.traffic().sent;
      std::vector<float> data(1000, 1.0F);
      for (const double value : {2.5, std::numeric_limits<double>::quiet_NaN(), 1.25}) {
        hocket::all_reduce(comm, hocket::in_place(data), std::plus<>{}, hocket::with(hocket::ring));
        loss.set(value);
        tracks.write();
      }
      sent[static_cast<std::size_t>(me.rank())] = static_cast<double>(comm.traffic().sent - before);
      hocket::write_trace(comm, path);
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
      seconds[static_cast<std::size_t>(me.rank())] = took.count();
    });
    const trace_summary found = read_trace(path);
    INFO(ranks << " ranks");
    REQUIRE(found.problem == "");
    CHECK(found.earliest_microseconds >= 0);
    CHECK(found.latest_microseconds <= 1e6 * *std::max_element(seconds.begin(), seconds.end()));
    for (int r = 0; r < ranks; ++r) {
      const auto values = [&](const char* name) { return found.counters.at({r, name}); };
      CHECK(values(R"(loss{of="\"a\\\""})") == std::vector<double>{2.5, 1.25});
      const auto bytes = values("hocket_collective_bytes{collective=\"all_reduce\"}");
      REQUIRE(bytes.size() == 3);
      CHECK(3 * (bytes[2] - bytes[1]) == sent[static_cast<std::size_t>(r)]);
      if (ranks == 1) continue;
      const auto in_flight = values("bytes in flight");
      CHECK(*std::min_element(in_flight.begin(), in_flight.end()) == 0);
      CHECK(*std::max_element(in_flight.begin(), in_flight.end()) > 0);
      CHECK(in_flight.back() == 0);
    }
  }
}

TEST_CASE("the trace of short sums, which use a separate implementation, equals the push plan") {
  for (const int ranks : {2, 3, 5}) {
    on_ranks(ranks, [&](thread_rank& me) {
      const auto seen = hocket::traced(me.comm());
      me.check(hocket::detail::communicator_access::state(seen).pushes(), "short sums do not use push");
      for (const std::size_t size : {0U, 1U, 14U}) {
        const std::vector<float> in(size, 1.0F);
        std::vector<float> out(size);
        for (int i = 0; i < 20; ++i) {
          hocket::barrier(me.comm());
          if (i == 0 && me.rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(5));
          hocket::all_reduce(seen, in, out);
          me.check(size == 0 || out.back() == static_cast<float>(ranks), "a wrong sum");
          const std::string differs =
              difference_of_last_call(seen, {hocket::plan::push_all_reduce{}, ranks, me.rank(), size, sizeof(float)});
          me.check(differs.empty(), [&] { return differs; });
        }
      }
    });
  }
}

TEST_CASE("messages with tags have separate arrows, also after operations with the same numbers") {
  const scratch_directory scratch;
  on_ranks(2, [&](thread_rank& me) {
    const auto seen = hocket::traced(me.comm());
    int word = 1;
    for (int round = 0; round < 3; ++round) {
      for (const int tag : {1, 2, 1}) {
        if (me.rank() == 0) {
          hocket::send(seen, std::span(&word, 1), hocket::peer{1}, hocket::tag{tag});
        } else {
          hocket::recv(seen, std::span(&word, 1), hocket::peer{0}, hocket::tag{tag});
        }
      }
      hocket::barrier(seen);
    }
    hocket::write_trace(seen, scratch.path() + "/trace.json");
  });
  const trace_summary found = read_trace(scratch.path() + "/trace.json");
  CHECK(found.problem == "");
  CHECK(found.arrows_begun >= 9);
  CHECK(found.arrows_begun == found.arrows_ended);
}

TEST_CASE("the trace of a simulated world uses simulated time") {
  using traced_domain = hocket::adaptor::traced<hocket::sim::domain>;
  hocket::sim::world world(4);
  std::vector<std::shared_ptr<hocket::adaptor::trace_log>> logs;
  auto comms = world.group_on<traced_domain>({0, 1, 2, 3}, [&](const auto& domain, int rank) {
    logs.push_back(std::make_shared<hocket::adaptor::trace_log>(rank));
    return std::make_shared<traced_domain>(domain, logs.back());
  });
  std::vector<std::vector<double>> data(4, std::vector<double>(1000, 1.0));
  std::vector<hocket::request> requests;
  for (std::size_t rank = 0; rank < 4; ++rank) {
    requests.push_back(
        hocket::all_reduce_async(comms[rank], hocket::in_place(data[rank]), std::plus<>{}, hocket::with(hocket::ring)));
  }
  world.run();
  std::vector<std::string> parts;
  for (const auto& log : logs) parts.push_back(log->events());
  const scratch_directory scratch;
  scratch.write("trace.json", hocket::adaptor::trace_json(parts));
  const trace_summary found = read_trace(scratch.path() + "/trace.json");
  CHECK(found.problem == "");
  CHECK(found.steps == 4 * 2 * 6);  // on each rank: 2 (p-1) sends, and as many receives
  CHECK(found.arrows_begun == 4 * 6);
  CHECK(found.arrows_ended == 4 * 6);
  CHECK(found.latest_microseconds == Approx(world.now() * 1e6).epsilon(1e-3));
  CHECK(data[0][0] == 4);
}
