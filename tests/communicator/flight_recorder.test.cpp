// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// After a failure, each rank writes a record of its last calls to the directory that the user has set, and nowhere
// else. Writing it never changes the failure itself.
#include "support/scratch.hpp"
#include "support/thread_ranks.hpp"

#include <hocket/hocket.hpp>
#include <hocket/sim.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

using namespace hocket_test;
using namespace std::chrono_literals;
using hocket::errc;
namespace plan = hocket::plan;

namespace {

/// Start of the file name of a record, before the time at which the communicator was made.
std::string name_of(int communicator, int rank) {
  return "hocket-flight-communicator" + std::to_string(communicator) + "-rank" + std::to_string(rank) + '-';
}

/// The record in `folder` whose name begins with `name`; empty if there is not exactly one.
std::string record_in(const std::string& folder, const std::string& name) {
  std::vector<std::string> found;
  for (const auto& each : std::filesystem::directory_iterator(folder)) {
    if (each.path().filename().string().rfind(name, 0) == 0) found.push_back(each.path().string());
  }
  return found.size() == 1 ? read_file(found[0]) : "";
}

int count_of(const std::string& text, const std::string& what) {
  int count = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
  return count;
}

bool has(const std::string& text, const std::string& what) { return text.find(what) != std::string::npos; }

/// The line of `text` that contains `what`; empty if there is none.
std::string line_with(const std::string& text, const std::string& what) {
  const std::size_t at = text.find(what);
  if (at == std::string::npos) return "";
  const std::size_t begin = text.rfind('\n', at) + 1;
  return text.substr(begin, text.find('\n', at) - begin);
}

/// The number after `"name":` in `line`; -1 if there is none.
std::int64_t number(const std::string& line, const std::string& name) {
  const std::size_t at = line.find('"' + name + "\":");
  return at == std::string::npos ? -1 : std::stoll(line.substr(at + name.size() + 3));
}

void reduce(const hocket::local::communicator& comm, std::size_t size = 1000, std::chrono::nanoseconds timeout = 30s) {
  std::vector<float> data(size, 1.0F);
  hocket::all_reduce(comm, hocket::in_place(data), std::plus<>{}, hocket::with(hocket::timeout(timeout)));
}

/// An algorithm with the actions of recursive doubling, and a name in memory that it owns.
plan::listed named(const std::string& name, int ranks) {
  const plan::listed actions = plan::materialise(plan::recursive_doubling{}, ranks);
  plan::listed made(name, actions.collective(), ranks, actions.shape(ranks));
  for (int rank = 0; rank < ranks; ++rank) made.lane(rank) = actions.lane(rank);
  return made;
}

}  // namespace

TEST_CASE("flight recorder: the log retains the last calls, and its length is bounded") {
  hocket::detail::call_log log;
  CHECK(log.find(1) == nullptr);
  for (std::uint32_t i = 0; i < 100; ++i) log.add({1 + 3 * i, 3, i});
  CHECK(log.calls().count() == 100);
  CHECK(log.calls().count() - log.calls().oldest() == hocket::detail::call_log::retained_calls);
  CHECK(log.find(1) == nullptr);
  CHECK(log.find(301) == nullptr);
  for (std::uint32_t sequence = 300; sequence > 300 - 3 * 32; --sequence) {
    REQUIRE(log.find(sequence) != nullptr);
    CHECK(log.find(sequence)->signature == (sequence - 1) / 3);
  }
  CHECK(log.times_of_call(3) == nullptr);  // overwritten long ago
  CHECK(log.times_of_call(100) == nullptr);
  CHECK(log.times_of_call(99) != nullptr);
}

TEST_CASE("flight recorder: the log retains the names of its calls' plans, and their number is bounded") {
  hocket::detail::call_log log;
  const auto name_of_call = [](std::uint32_t i) {
    return "a plan whose name owns memory, number " + std::to_string(i);
  };
  for (std::uint32_t i = 1; i <= 1000; ++i) {
    std::string name = name_of_call(i);
    hocket::detail::call_record call{.sequence = i, .operations = 1};
    call.plan = log.plan_name(name);
    name.assign(name.size(), '?');
    log.add(call);
    REQUIRE(log.plan_name_count() <= hocket::detail::call_log::most_plan_names);
    for (std::uint64_t k = log.calls().oldest(); k < log.calls().count(); ++k) {
      REQUIRE(log.calls().at(k)->plan == name_of_call(static_cast<std::uint32_t>(k + 1)));
    }
  }
  const std::size_t count = log.plan_name_count();
  CHECK(log.plan_name(name_of_call(1000)) == log.last()->plan);
  CHECK(log.plan_name_count() == count);
}

TEST_CASE("flight recorder: a record has the name of a plan that has been destroyed") {
  for (const bool is_async : {false, true}) {
    for (const std::size_t size : {1U, 1000U}) {  // short enough to run without an operation state, and longer
      on_ranks(2, [&](thread_rank& me) {
        const std::vector<float> in(size, 1.0F);
        std::vector<float> out(size);
        {
          const plan::listed own = named("a plan whose name owns memory", 2);
          const auto how = hocket::with(hocket::algorithm(own));
          if (is_async) hocket::all_reduce_async(me.comm(), in, out, std::plus<>{}, how).wait();
          if (!is_async) hocket::all_reduce(me.comm(), in, out, std::plus<>{}, how);
        }
        const plan::listed next = named("the plan of another call", 2);  // replaces the plan that is remembered
        hocket::all_reduce(me.comm(), in, out, std::plus<>{}, hocket::with(hocket::algorithm(next)));
        const std::string text = hocket::flight_record(me.comm());
        me.check(count_of(text, "\"plan\":\"a plan whose name owns memory\"") == 1, text);
      });
    }
  }
}

TEST_CASE("flight recorder: nothing is written unless a directory was set") {
  const scratch_directory here;
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(here.path());
  on_ranks(3, [](thread_rank& me) {
    me.check(me.comm().flight_recorder().empty(), "a directory is set");
    if (me.rank() == 1) me.comm().abort();
    me.expect(errc::aborted, [&] { reduce(me.comm()); });
  });
  std::filesystem::current_path(before);
  CHECK(here.names().empty());
}

TEST_CASE("flight recorder: nothing is written if nothing has failed") {
  const scratch_directory here;
  on_ranks(3, [&](thread_rank& me) {
    me.comm().set_flight_recorder(here.path());
    reduce(me.comm());
    std::vector<float> in(2), out(3);
    me.expect(errc::invalid_argument, [&] { hocket::all_reduce(me.comm(), in, out); });
    auto next = hocket::shrink(me.comm());
    me.check(next.flight_recorder() == here.path(), "shrink does not pass the directory on");
    auto part = hocket::split(next, hocket::color{me.rank() % 2});
    me.check(part.flight_recorder() == here.path(), "split does not pass the directory on");
    reduce(part);
    me.expect(errc::revoked, [&] { reduce(me.comm()); });  // it has been shrunk, and has not failed
  });
  CHECK(here.names().empty());
}

TEST_CASE("flight recorder: all ranks write a record of a timeout, with the position of each rank") {
  for (const int ranks : {2, 3, 5}) {
    const scratch_directory here;
    std::atomic<int> failed{0};
    const auto begin = std::chrono::system_clock::now().time_since_epoch();
    on_ranks(ranks, [&](thread_rank& me) {
      me.comm().set_flight_recorder(here.path() + "/records");
      for (int i = 0; i < 40; ++i) reduce(me.comm(), 2);  // more than are retained, and short
      reduce(me.comm());
      while (me.rank() == 1 && failed < ranks - 1) std::this_thread::sleep_for(1ms);
      me.expect(errc::timeout, [&] { reduce(me.comm(), 1000, me.rank() == 1 ? 30s : 100ms); });
      ++failed;
      me.expect(errc::revoked, [&] { reduce(me.comm()); });
    });
    const std::int64_t now = std::chrono::nanoseconds(std::chrono::system_clock::now().time_since_epoch()).count();
    for (int rank = 0; rank < ranks; ++rank) {
      const std::string text = record_in(here.path() + "/records", name_of(0, rank));
      INFO(text);
      CHECK(number(text, "rank") == rank);
      CHECK(number(text, "ranks") == ranks);
      CHECK(has(text, "\"transport\":\"local\""));
      CHECK(number(text, "culprit") == 1);
      CHECK(number(text, "code") == static_cast<int>(errc::timeout));
      CHECK(has(text, "flight_recorder.test.cpp"));
      CHECK(count_of(text, "\"call\":") == 32);
      CHECK(count_of(text, "{\"end_of_record\":1,\"checksum\":\"") == 1);
      const std::string last = line_with(text, "\"call\":42");
      CHECK(last.empty() == (rank == 1));  // it has not reached that call
      if (rank != 1) CHECK(number(last, "over") == 0);
      if (rank != 1) CHECK(number(last, "awaits") == 1);
      CHECK(number(line_with(text, "\"call\":41"), "over") == 1);
      const std::string head = line_with(text, "hocket_flight_record");
      CHECK(number(head, "made") <= number(head, "written"));
      const std::int64_t second = 1'000'000'000;
      CHECK(number(head, "made") > std::chrono::nanoseconds(begin).count() - second);
      CHECK(number(head, "written") < now + second);
    }
    CHECK(here.names().size() == 1);
    CHECK(std::filesystem::exists(here.path() + "/records"));
  }
}

TEST_CASE("flight recorder: the first failure is recorded, whatever its cause") {
  SECTION("aborted from another thread") {
    const scratch_directory here;
    on_ranks(3, [&](thread_rank& me) {
      me.comm().set_flight_recorder(here.path());
      std::thread other;
      if (me.rank() == 2) other = std::thread([&] { std::this_thread::sleep_for(20ms), me.comm().abort(); });
      me.expect(errc::aborted, [&] {
        for (;;) reduce(me.comm());
      });
      if (other.joinable()) other.join();
    });
    for (int rank = 0; rank < 3; ++rank) CHECK(number(record_in(here.path(), name_of(0, rank)), "first_on") == 2);
  }
  SECTION("an operation that throws") {
    const scratch_directory here;
    on_ranks(3, [&](thread_rank& me) {
      me.comm().set_flight_recorder(here.path());
      const bool throws = me.rank() == 0;
      const auto add = [throws](float a, float b) { return throws ? throw 7 : a + b; };
      me.expect(errc::invalid_argument, [&] {
        std::vector<float> data(1);
        hocket::all_reduce(me.comm(), hocket::in_place(data), add);
        hocket::barrier(me.comm());
      });
    });
    for (int rank = 0; rank < 3; ++rank) CHECK(number(record_in(here.path(), name_of(0, rank)), "code") == 6);
  }
  SECTION("an asynchronous operation") {
    const scratch_directory here;
    std::atomic<int> failed{0};
    on_ranks(2, [&](thread_rank& me) {
      me.comm().set_flight_recorder(here.path());
      std::vector<float> data(1000);
      if (me.rank() == 1) {
        while (failed < 1) std::this_thread::sleep_for(1ms);
        me.expect(errc::timeout, [&] { hocket::barrier(me.comm()); });
        return;
      }
      hocket::request begun = hocket::all_reduce_async(me.comm(), hocket::in_place(data), std::plus<>{},
                                                       hocket::with(hocket::timeout(50ms)));
      const auto text = hocket::flight_record(me.comm());
      me.check(number(line_with(text, "\"call\":1,"), "awaits") == 1, [&] { return "no call in flight: " + text; });
      while (!begun.test()) std::this_thread::yield();
      ++failed;
      me.expect(errc::timeout, [&] { begun.wait(); });
    });
    for (int rank = 0; rank < 2; ++rank) CHECK(number(record_in(here.path(), name_of(0, rank)), "first_on") == 0);
    CHECK(number(line_with(record_in(here.path(), name_of(0, 0)), "\"call\":1,"), "over") == 0);
  }
  SECTION("a rank that makes no more calls") {
    const scratch_directory here;
    std::atomic<int> failed{0};
    on_ranks(3, [&](thread_rank& me) {
      me.comm().set_flight_recorder(here.path());
      hocket::barrier(me.comm());
      if (me.rank() == 0) {
        while (failed < 2) std::this_thread::sleep_for(1ms);
        return;
      }
      me.expect(errc::timeout, [&] { reduce(me.comm(), 1000, 50ms); });
      ++failed;
    });
    for (int rank = 0; rank < 3; ++rank) {
      CHECK(number(record_in(here.path(), name_of(0, rank)), "on_leaving") == (rank == 0 ? 1 : -1));
      CHECK(number(record_in(here.path(), name_of(0, rank)), "culprit") == 0);
    }
  }
  SECTION("a message") {
    const scratch_directory here;
    on_ranks(2, [&](thread_rank& me) {
      me.comm().set_flight_recorder(here.path());
      std::vector<int> data(5);
      for (int i = 0; i < 20; ++i) {
        hocket::send_recv(me.comm(), data, hocket::peer{1 - me.rank()}, data, hocket::peer{1 - me.rank()},
                          hocket::tag{3});
      }
      me.expect(errc::timeout, [&] {
        hocket::recv(me.comm(), data, hocket::peer{1 - me.rank()}, hocket::tag{7}, hocket::with(hocket::timeout(50ms)));
      });
    });
    for (int rank = 0; rank < 2; ++rank) {
      const std::string text = record_in(here.path(), name_of(0, rank));
      CHECK(count_of(text, "\"operation\":\"send_recv\"") == 15);
      const std::string last = line_with(text, "\"message\":21");
      INFO(text);
      CHECK(number(last, "tag") == 7);
      CHECK(number(last, "awaits") == 1 - rank);
      CHECK(number(last, "room") == 20);
      CHECK(number(last, "over") == 0);
    }
  }
}

TEST_CASE("flight recorder: a directory that can't be written does not change the errors") {
  for (const std::string place : {"/proc/self/nowhere", "/dev/null", "/nowhere/at/all"}) {
    on_ranks(2, [&](thread_rank& me) {
      me.comm().set_flight_recorder(place);
      if (me.rank() == 0) me.comm().abort();
      me.expect(errc::aborted, [&] { reduce(me.comm()); });
      me.expect(errc::revoked, [&] { reduce(me.comm()); });
    });
  }
}

TEST_CASE("flight recorder: parts of a communicator have their own records, named by the ranks of the world") {
  const scratch_directory here;
  on_ranks(4, [&](thread_rank& me) {
    me.comm().set_flight_recorder(here.path());
    auto part = hocket::split(me.comm(), hocket::color{me.rank() % 2});
    hocket::barrier(me.comm());  // all ranks have their part
    if (me.rank() == 3) part.abort();
    if (me.rank() % 2 == 1) me.expect(errc::aborted, [&] { reduce(part); });
    hocket::barrier(me.comm());  // the whole has not failed
  });
  CHECK(here.names().size() == 2);
  CHECK(number(record_in(here.path(), name_of(1, 1)), "rank") == 0);
  const std::string text = record_in(here.path(), name_of(1, 3));
  CHECK(number(text, "rank") == 1);
  CHECK(number(text, "world_rank") == 3);
  CHECK(has(text, "\"members\":[1,3]"));
}

TEST_CASE("flight recorder: simulated ranks write records, too") {
  const scratch_directory here;
  {
    hocket::sim::world world(2);
    std::vector<float> data(1000), less(900);
    std::vector<hocket::request> requests;
    for (int rank = 0; rank < 2; ++rank) {
      world.comm(rank).set_flight_recorder(here.path());
      requests.push_back(hocket::all_reduce_async(world.comm(rank), hocket::in_place(rank == 0 ? data : less),
                                                  std::plus<>{}, hocket::with(hocket::ring)));
    }
    CHECK_THROWS_AS(world.run(), hocket::error);
    std::error_code ignored;
    for (hocket::request& each : requests) each.wait(ignored);
  }
  INFO(record_in(here.path(), name_of(0, 0)));
  CHECK(here.names().size() == 2);
  CHECK(number(record_in(here.path(), name_of(0, 0)), "code") == static_cast<int>(errc::mismatch));
  CHECK(has(record_in(here.path(), name_of(0, 1)), "\"transport\":\"sim\""));
}
