// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// needs: nlohmann_json
//
// Ranks on threads fail in different ways, and hocket-flight determines the cause from their records.
#include "support/scratch.hpp"
#include "support/thread_ranks.hpp"
#include "tools/hocket_flight/stories.hpp"

#include <hocket/hocket.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <string>
#include <thread>
#include <vector>

using namespace hocket_test;
using namespace std::chrono_literals;
using hocket::peer;
using hocket::with;

namespace {

/// The number of ranks that have failed.
using failures = std::atomic<int>;

/// Runs `body` until it fails on all ranks, and returns the tool's report.
template <class Body>
std::string story_of(int ranks, Body body) {
  const scratch_directory here;
  failures failed{0};
  on_ranks(ranks, [&](thread_rank& me) {
    me.comm().set_flight_recorder(here.path());
    try {
      hocket::barrier(me.comm());
      body(me.comm(), failed);
    } catch (const hocket::error&) {
      ++failed;
    }
  });
  return told_of(here.path());
}

/// Timeout of ranks that wait for others that do not arrive.
constexpr auto soon = 200ms;

void await(const failures& failed, int count) {
  while (failed < count) std::this_thread::sleep_for(1ms);
}

void reduce(hocket::local::communicator& comm, std::size_t size = 1000) {
  std::vector<float> data(size, 1.0F);
  hocket::all_reduce(comm, hocket::in_place(data));
}

}  // namespace

TEST_CASE("hocket-flight reports which rank made which call if calls differ") {
  const std::string text = story_of(3, [](auto& comm, const failures&) {
    reduce(comm);
    if (comm.rank() == 1) reduce(comm, 900);
    reduce(comm);
    hocket::barrier(comm);
  });
  CHECK(lacks(text, {"mismatch", "calls number 3 do not match", " called all_reduce #3 (1000 elements of (float",
                     "Rank 1 called all_reduce #3 (900 elements of (float", "threads.test.cpp:"}) == "");
}

TEST_CASE("hocket-flight reports a slow rank, its last call, and the rank that waited for it") {
  const std::string text = story_of(3, [](auto& comm, const failures& failed) {
    reduce(comm);
    if (comm.rank() == 2) await(failed, 2);
    hocket::barrier(comm, with(hocket::timeout(soon)));
  });
  CHECK(lacks(text, {"slow rank", "Rank 2 was slow", "Rank 2 reached barrier at ", "its last call was all_reduce #2",
                     "in no call for ", "waits for rank 2", "reported by rank"}) == "");
}

TEST_CASE("hocket-flight reports a slow rank after many short calls") {
  const std::string text = story_of(2, [](auto& comm, const failures& failed) {
    for (int i = 0; i < 50; ++i) reduce(comm, 2);
    if (comm.rank() == 1) await(failed, 1);
    comm.set_timeout(soon);
    reduce(comm, 2);
  });
  CHECK(lacks(text, {"slow rank", "Rank 1 was slow", "Rank 1 reached all_reduce #52",
                     "its last call was all_reduce #51 (2 elements", "in no call for ", "waits for rank 1"}) == "");
}

TEST_CASE("hocket-flight reports that a slow rank waited on another communicator") {
  const scratch_directory here;
  std::atomic<bool> all_failed{false};
  on_ranks(3, [&](thread_rank& me) {
    me.comm().set_flight_recorder(here.path());
    auto other = hocket::split(me.comm(), hocket::color{me.rank() == 0 ? 0 : 1});
    const auto use = [&](auto& comm, auto timeout) {
      me.expect(hocket::errc::timeout, [&] { hocket::barrier(comm, with(hocket::timeout(timeout))); });
    };
    if (me.rank() == 0) use(me.comm(), 100ms);
    if (me.rank() == 2) {  // for which rank 0 waits in a barrier of three
      use(other, 400ms);
      all_failed = true;
      use(me.comm(), 30s);
    }
    while (!all_failed) std::this_thread::sleep_for(1ms);
  });
  const std::string text = told_of(here.path());
  CHECK(lacks(text, {"Rank 2 was slow", "Meanwhile it was in barrier #", "on communicator 1"}) == "");
}

TEST_CASE("hocket-flight reports a deadlock of ranks that call two communicators in different orders") {
  for (const bool leaves_at_once : {true, false}) {
    const scratch_directory here;
    on_ranks(2, [&](thread_rank& me) {
      me.comm().set_flight_recorder(here.path());
      me.comm().set_timeout(soon);
      auto one = hocket::split(me.comm(), hocket::color{0}), two = hocket::split(me.comm(), hocket::color{0});
      me.expect(hocket::errc::timeout, [&] { hocket::barrier(me.rank() == 0 ? one : two); });
      if (leaves_at_once) return;
      try {
        hocket::barrier(me.rank() == 0 ? two : one);
      } catch (const hocket::error&) {}
    });
    const std::string text = told_of(here.path());
    CHECK(lacks(text,
                {"deadlock", "Ranks 0 and 1 of the world waited for each other in a circle, on several communicators",
                 "Rank 0 of the world waited for rank 1 in barrier #", "on communicator 1", "on communicator 2",
                 "must call them in the same order"}) == "");
    CHECK(text.find("missing rank") == std::string::npos);
  }
}

TEST_CASE("hocket-flight reports a rank that left the communicator") {
  const std::string text = story_of(3, [](auto& comm, const failures& failed) {
    reduce(comm);
    if (comm.rank() == 1) return await(failed, 2);
    hocket::barrier(comm, with(hocket::timeout(soon)));
  });
  CHECK(lacks(text, {"slow rank", "Rank 1 made no further call", "Rank 1 left the communicator",
                     "its last call was all_reduce #2"}) == "");
}

TEST_CASE("hocket-flight reports a deadlock of receives that wait for each other") {
  const std::string text = story_of(3, [](auto& comm, const failures&) {
    std::vector<int> data(10);
    comm.set_timeout(soon);
    hocket::recv(comm, data, peer{(comm.rank() + 1) % 3});
    hocket::send(comm, data, peer{(comm.rank() + 2) % 3});
  });
  CHECK(lacks(text, {"deadlock", "Ranks 0, 1 and 2 waited for each other in a circle",
                     "Rank 1 waited for rank 2 in recv", "Their calls do not match"}) == "");
}

TEST_CASE("hocket-flight reports an abort") {
  const std::string text = story_of(2, [](auto& comm, const failures&) {
    if (comm.rank() == 1) comm.abort();
    hocket::barrier(comm);
  });
  CHECK(lacks(text, {"aborted", "Rank 1 was asked to end"}) == "");
}

TEST_CASE("hocket-flight reports a message that is too long for the buffer of its receiver") {
  const std::string text = story_of(2, [](auto& comm, const failures&) {
    std::vector<int> data(10), less(5);
    if (comm.rank() == 0) hocket::send(comm, data, peer{1}, hocket::tag{4});
    if (comm.rank() == 1) hocket::recv(comm, less, peer{0}, hocket::tag{4});
    hocket::barrier(comm);
  });
  CHECK(lacks(text, {"mismatch", "did not fit the buffer of its receiver, rank 1",
                     "recv of up to 20 bytes from rank 0 (tag 4)", "send of 40 bytes to rank 1 (tag 4)"}) == "");
}
