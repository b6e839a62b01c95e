// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ranks tear down in two phases: memory is not freed while a live rank has it mapped, and all waits have a time limit.
#include "support/catch.hpp"
#include "support/text.hpp"
#include "transport/cuda_ipc/processes.hpp"
#include "transport/cuda_ipc/silent_calls.hpp"

#include <hocket/transport/cuda_ipc/memory_handle.hpp>
#include <hocket/transport/cuda_ipc/teardown.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace ipc = hocket::cuda_ipc;
using hocket_test::host_driver;
using hocket_test::host_machine;
using hocket_test::processes;
using hocket_test::where_rank_runs;
using ipc::status;

namespace {

/// The words and the liveness that ranks on one host see of each other.
struct board {
  std::vector<ipc::teardown_words::word> words;
  std::vector<std::atomic<bool>> dead;

  explicit board(std::size_t ranks) : words(ranks), dead(ranks) {}

  ipc::teardown_words of(std::size_t rank) {
    std::vector<ipc::teardown_words::word*> all;
    for (auto& each : words) all.push_back(&each);
    return {static_cast<int>(rank), all, [this](int peer) { return dead[static_cast<std::size_t>(peer)].load(); }};
  }
};

/// A rank with memory for its peers, and mappings of peers' memory.
struct member {
  ipc::mapping_cache<host_driver> kept;
  ipc::peer_visible_memory<host_driver> lent;
  ipc::teardown_words peers;
  ipc::teardown<host_driver> end{kept, lent};
  ipc::memory_handle handle;

  member(processes& all, board& seen, std::size_t rank)
      : kept(all.driver(rank), all.place(rank).where, all.driver(rank).mark()), lent(all.place(rank)),
        peers(seen.of(rank)) {
    ipc::address at = 0;
    failure = lent.allocate(4096, at);
    if (!failure) failure = ipc::describe(all.driver(rank), at, 4096, all.driver(rank).mark(), handle);
  }

  hocket::failure use(const member& peer) {
    ipc::mapping_cache<host_driver>::lease used;
    return kept.open(peer.handle, used);
  }
  hocket::failure leave(std::chrono::nanoseconds limit = {}) { return end(peers, hocket::deadline::after(limit)); }

  hocket::failure failure;
};

/// Ranks in separate processes that have opened each other's memory.
struct company {
  host_machine machine;
  processes all;
  board seen;
  std::vector<std::unique_ptr<member>> members;

  explicit company(std::size_t ranks) : all(machine, places(ranks)), seen(ranks) {
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      members.push_back(std::make_unique<member>(all, seen, rank));
      REQUIRE_FALSE(members.back()->failure);
    }
    for (auto& each : members) {
      for (auto& peer : members) REQUIRE_FALSE(each->use(*peer));
    }
  }
  member& operator[](std::size_t rank) { return *members[rank]; }

  static std::vector<where_rank_runs> places(std::size_t ranks) {
    std::vector<where_rank_runs> result;
    for (std::size_t rank = 0; rank < ranks; ++rank) result.push_back({static_cast<int>(rank) + 1, 0});
    return result;
  }
};

}  // namespace

TEST_CASE("ranks that leave at different times free no mapped memory, and all memory at the end") {
  for (std::size_t ranks = 1; ranks <= 5; ++ranks) {
    for (std::size_t late = 0; late < ranks; ++late) {
      company all(ranks);
      std::vector<hocket::failure> found(ranks);
      all.all.run([&](std::size_t rank) {
        if (rank == late) std::this_thread::sleep_for(std::chrono::milliseconds(3));
        found[rank] = all[rank].leave(std::chrono::seconds(20));
      });
      for (std::size_t rank = 0; rank < ranks; ++rank) {
        CHECK(found[rank].message() == hocket::failure().message());
        CHECK_FALSE(found[rank]);
        CHECK(all[rank].end.done());
      }
      hocket_test::check_clean(all.machine, all.all);
    }
  }
}

TEST_CASE("a teardown that times out names the missing peer and frees no memory, and can be continued later") {
  company all(3);
  CHECK(all[0].leave().code == hocket::errc::timeout);
  const auto late = all[1].leave(std::chrono::milliseconds(20));
  CHECK(late.code == hocket::errc::timeout);
  CHECK(late.context.peer == 2);
  CHECK_FALSE(all[1].end.done());
  CHECK(all.machine.allocated() == 3);
  CHECK(all.all.driver(1).open_now() == 0);  // it has closed its own mappings

  CHECK_FALSE(all[2].leave());
  CHECK(all.machine.allocated() == 2);
  CHECK_FALSE(all[0].leave());
  CHECK_FALSE(all[1].leave());
  hocket_test::check_clean(all.machine, all.all);
}

TEST_CASE("a cancelled teardown waits for the streams' time limit, returns the reason, and can be continued later") {
  company all(2);
  const auto cancelled = [] { return hocket::make_failure(hocket::errc::aborted, "cancelled"); };
  const auto begun = std::chrono::steady_clock::now();
  const auto found = all[0].end(all[0].peers, hocket::deadline::after(std::chrono::seconds(20)), cancelled,
                                std::chrono::milliseconds(30));
  const auto took = std::chrono::steady_clock::now() - begun;
  CHECK(found.code == hocket::errc::aborted);
  CHECK(took >= std::chrono::milliseconds(30));
  CHECK(took < std::chrono::seconds(10));
  CHECK_FALSE(all[0].end.done());
  CHECK_FALSE(all[1].leave());
  CHECK_FALSE(all[0].leave());
  hocket_test::check_clean(all.machine, all.all);
}

TEST_CASE("a peer that has exited is named, and does not prevent that memory is freed") {
  company all(4);
  all.seen.dead[2] = true;
  CHECK(all[0].leave().context.peer == 1);  // which is alive, and still has it mapped
  CHECK(all.machine.allocated() == 4);
  CHECK(all[1].leave().context.peer == 3);
  const auto last = all[3].leave();
  CHECK(last.code == hocket::errc::peer_lost);
  CHECK(last.context.peer == 2);
  CHECK(last.message().find("it is freed") != std::string::npos);
  CHECK(all[0].leave().code == hocket::errc::peer_lost);
  CHECK(all[1].leave().code == hocket::errc::peer_lost);
  CHECK(all[0].end.done());
  CHECK(all.machine.allocated() == 1);  // that of the exited rank
  CHECK(all.all.driver(0).open_now() == 0);
  CHECK_FALSE(all[0].leave());  // the loss is reported only once
}

TEST_CASE("a peer that exits after it has left is not reported as lost") {
  company all(2);
  CHECK(all[1].leave().code == hocket::errc::timeout);
  all.seen.dead[1] = true;
  CHECK_FALSE(all[0].leave());

  // The word changes while the caller checks whether the peer has exited.
  board seen(2);
  std::vector<ipc::teardown_words::word*> words{&seen.words[0], &seen.words[1]};
  ipc::teardown_words peers(0, words, [&](int) {
    seen.words[1] = 1;
    return true;
  });
  CHECK(peers.mapping_state_of(1) == ipc::mapping_state::unmapped);
}

TEST_CASE("a rank that still uses a peer's memory gets an error, and does not announce that it has unmapped") {
  company all(2);
  {
    ipc::mapping_cache<host_driver>::lease used;
    REQUIRE_FALSE(all[0].kept.open(all[1].handle, used));
    CHECK(all[0].leave().code == hocket::errc::invalid_argument);
    CHECK(all[1].leave().code == hocket::errc::timeout);
    CHECK(all.machine.allocated() == 2);
  }
  CHECK_FALSE(all[0].leave());
  CHECK_FALSE(all[1].leave());
  hocket_test::check_clean(all.machine, all.all);
}

TEST_CASE("a rank announces only once that it has unmapped, even if teardown is repeated") {
  struct counting {
    int said = 0;
    ipc::mapping_state other = ipc::mapping_state::mapped;
    int rank() const { return 0; }
    int size() const { return 2; }
    void announce() { ++said; }
    ipc::mapping_state mapping_state_of(int) const { return other; }
  };
  company all(2);
  counting peers;
  const hocket::deadline now = hocket::deadline::after({});
  CHECK(all[0].end(peers, now).code == hocket::errc::timeout);
  CHECK(all[0].end(peers, now).code == hocket::errc::timeout);
  peers.other = ipc::mapping_state::ended;
  CHECK(all[0].end(peers, now).code == hocket::errc::peer_lost);
  CHECK_FALSE(all[0].end(peers, now));
  CHECK(peers.said == 1);
}

TEST_CASE("without a teardown, memory that a peer has mapped is not freed") {
  company all(2);
  all.members[0].reset();
  CHECK(all.machine.freed_while_open == 0);
  CHECK(all.machine.allocated() == 2);
  CHECK(all.all.driver(0).open_now() == 0);  // the peer's memory was unmapped
}

TEST_CASE("if any call fails with any code, all memory is unmapped and freed, and failures of clean-up are reported") {
  for (const status code : hocket_test::every_code()) {
    for (int call = 0;; ++call) {
      company all(2);
      all.all.driver(0).inject(call, code);
      CHECK(all[0].leave().code == hocket::errc::timeout);
      const hocket::failure other = all[1].leave();
      const hocket::failure found = all[0].leave();
      const bool failed = all.all.driver(0).has_failed();
      INFO("call " << call << ", " << all.all.driver(0).failed_call() << ", code " << static_cast<int>(code));
      CHECK_FALSE(other);
      if (found) CHECK(found.code.category() == hocket::error_category());
      if (found) CHECK_FALSE(found.reason.empty());
      // A teardown is only clean-up, and reports its failures.
      const std::string_view lost = all.all.driver(0).failed_call();
      if (failed && hocket_test::cleans_up(lost))
        CHECK(hocket_test::contains(found.reason, hocket_test::words_for_failed(all.all.driver(0), code)));
      CHECK(all[0].end.done());
      hocket_test::check_clean(all.machine, all.all);
      if (!failed) {
        CHECK_FALSE(found);
        CHECK(call >= 4);
        break;
      }
    }
  }
}
