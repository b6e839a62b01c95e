// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// needs: ucx nlohmann_json
//
// Processes that are killed, stopped, late or disconnected, and the reports of hocket-flight about them.
#include "support/catch.hpp"
#include "support/scratch.hpp"
#include "tools/hocket_flight/stories.hpp"
#include "ucx/ranks.hpp"

#include <hocket/core/platform/directory.hpp>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace {

using namespace ucx_test;
using hocket_test::lacks;
using hocket_test::scratch_directory;

/// Runs `body(comm)` on each rank until it fails or returns true. Returns the tool's report, or unexpected failures of
/// ranks; killed ranks are expected.
template <class Body>
std::string story_of(int ranks, const route& way, Body body) {
  const scratch_directory here;
  auto results = results_of(ranks, way, [&](world where, findings& found) {
    where.flight_recorder = here.path() + "/records";
    auto comm = hocket::ucx::connect(where);
    try {
      for (int i = 0; i < 3; ++i) hocket::barrier(comm);
      if constexpr (std::is_void_v<decltype(body(comm))>) {
        body(comm);
      } else if (body(comm)) {
        return;
      }
    } catch (const hocket::error&) {
      return;
    }
    found.expect(false, "nothing failed");
  });
  for (auto& each : results) {
    if (each.signal == SIGKILL && !each.timed_out) each = {}, each.exit_code = 0;
  }
  const std::string unexpected = hocket::launch::describe_failures(results);
  return unexpected.empty() ? hocket_test::told_of(here.path() + "/records") : unexpected;
}

void reduce(communicator& comm, std::size_t size = 5000) {
  std::vector<float> data(size, 1.0F);
  hocket::all_reduce(comm, hocket::in_place(data));
}

/// Waits until `count` ranks have failed and written their records.
void await_records(const communicator& comm, std::size_t count) {
  const auto written = [&] {
    const auto names = hocket::platform::list_directory(comm.flight_recorder());
    return std::count_if(names.begin(), names.end(), [](const auto& name) { return name.ends_with(".jsonl"); });
  };
  while (static_cast<std::size_t>(written()) < count) std::this_thread::sleep_for(5ms);
}

/// Breaks every TCP connection of this process immediately.
void cut_all_connections() {
  for (const std::string& name : hocket::platform::list_directory("/proc/self/fd")) {
    const int descriptor = std::atoi(name.c_str());
    sockaddr_storage peer{};
    socklen_t size = sizeof peer;
    const bool connected = ::getpeername(descriptor, reinterpret_cast<sockaddr*>(&peer), &size) == 0;
    if (connected && peer.ss_family == AF_INET) ::shutdown(descriptor, SHUT_RDWR);
  }
}

}  // namespace

TEST_CASE("hocket-flight reports a killed process as missing") {
  for (const route& way : {shared_memory, network}) {
    for (const int ranks : {2, 3, 5}) {
      INFO(way.name << ", " << ranks << " ranks");
      const std::string text = story_of(ranks, way, [](communicator& comm) {
        reduce(comm);
        if (comm.rank() == 1) ::raise(SIGKILL);
        for (;;) reduce(comm);
      });
      CHECK(lacks(text, {"ranks over ucx: missing rank", "Rank 1 is missing: it has left no record",
                         "rank 1: no record", "peer lost", "processes.test.cpp:"}) == "");
    }
  }
}

TEST_CASE("hocket-flight reports that a rank left while others waited, even if it wrote no record") {
  for (const route& way : {shared_memory, network}) {
    INFO(way.name);
    const std::string text = story_of(3, way, [](communicator& comm) {
      reduce(comm);
      if (comm.rank() != 1) reduce(comm);
      return comm.rank() == 1;
    });
    CHECK(lacks(text, {"ranks over ucx: rank left", "Rank 1 has left the communicator while others waited for it",
                       "It knew of no failure, and left no record"}) == "");
  }
}

TEST_CASE("hocket-flight reports two killed processes as missing") {
  const std::string text = story_of(4, shared_memory, [](communicator& comm) {
    reduce(comm);
    if (comm.rank() % 2 == 1) ::raise(SIGKILL);
    for (;;) reduce(comm);
  });
  CHECK(lacks(text, {"missing rank", "rank 1: no record", "rank 3: no record"}) == "");
}

TEST_CASE("hocket-flight reports a failure after shrink as a separate incident of the same run") {
  const std::string text = story_of(4, shared_memory, [](communicator& comm) {
    const int name = comm.rank();
    reduce(comm);
    if (name == 1) ::raise(SIGKILL);
    try {
      for (;;) reduce(comm);
    } catch (const hocket::error&) {
      comm = hocket::shrink(comm);
    }
    reduce(comm);
    if (name == 3) ::raise(SIGKILL);
    for (;;) reduce(comm);
  });
  const std::size_t second = text.find("Communicator ", 1);
  INFO(text);
  REQUIRE(second != std::string::npos);
  CHECK(lacks(text.substr(0, second), {", made at 20", "4 ranks over ucx: missing rank", "Rank 1 is missing"}) == "");
  CHECK(lacks(text.substr(second), {", made at 20", "3 ranks over ucx: missing rank", "Rank 2 is missing",
                                    "rank 1 (rank 2 of the world)"}) == "");
  CHECK(text.find("earlier run") == std::string::npos);
}

TEST_CASE("hocket-flight reports a stopped process as missing and not seen to exit") {
  for (const route& way : {shared_memory, network}) {
    INFO(way.name);
    const std::string text = story_of(2, way, [](communicator& comm) {
      const std::vector<int> own{static_cast<int>(::getpid())};
      std::vector<int> pids(2);
      hocket::all_gather(comm, own, pids);
      if (comm.rank() == 1) ::raise(SIGSTOP);
      comm.set_timeout(500ms);
      try {
        hocket::barrier(comm);
      } catch (const hocket::error&) {
        ::kill(pids[1], SIGKILL);
        throw;
      }
    });
    CHECK(lacks(text, {"missing rank", "Rank 1 is missing", "did not answer", "not seen to exit", "in barrier #5"}) ==
          "");
  }
}

TEST_CASE("hocket-flight reports a late process as slow and names its last call") {
  for (const route& way : {shared_memory, network}) {
    INFO(way.name);
    const std::string text = story_of(3, way, [](communicator& comm) {
      reduce(comm);
      if (comm.rank() == 2) await_records(comm, 2);
      comm.set_timeout(500ms);
      hocket::barrier(comm);
      hocket::barrier(comm);
    });
    CHECK(lacks(text, {"slow rank", "Rank 2 was slow", "Rank 2 reached barrier", "its last call was all_reduce #4"}) ==
          "");
  }
}

TEST_CASE("hocket-flight reports both calls of processes whose calls differ") {
  for (const route& way : {shared_memory, network}) {
    INFO(way.name);
    const std::string text = story_of(3, way, [](communicator& comm) {
      if (comm.rank() == 0) reduce(comm, 4000);
      reduce(comm);
      hocket::barrier(comm);
    });
    CHECK(
        lacks(text, {"mismatch", "calls number 4 do not match", "Rank 0 called all_reduce #4 (4000 elements of (float",
                     " called all_reduce #4 (5000 elements"}) == "");
  }
}

TEST_CASE("hocket-flight reports a broken link between live processes whose connection broke") {
  const std::string text = story_of(2, network, [](communicator& comm) {
    reduce(comm);
    if (comm.rank() == 1) cut_all_connections();
    comm.set_timeout(2s);
    for (;;) reduce(comm);
  });
  CHECK(lacks(text, {"ranks over ucx: link", "The link between ranks 0 and 1 is broken", "UCX_NET_DEVICES"}) == "");
}
