// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <hocket/bootstrap/directory_store.hpp>
#include <hocket/bootstrap/launch.hpp>
#include <hocket/core/deadline.hpp>
#include <hocket/core/platform/shared_pages.hpp>

#include <atomic>
#include <csignal>
#include <ctime>
#include <new>
#include <string>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bootstrap/ranks.hpp"
#include "support/catch.hpp"
#include "support/text.hpp"

using hocket_test::contains;
using namespace bootstrap_test;
using bootstrap::directory_store;
using bootstrap::exchange;
using hocket::errc;

namespace {

/// Runs a job whose processes are all killed, which leaves a complete session with the files of every rank.
void leave_a_crashed_job(const std::string& directory, const std::string& token, int ranks) {
  hocket::failure no_room;
  const hocket::platform::shared_pages page(4096, no_room);
  REQUIRE(!no_room);
  auto& arrived = *new (page.data()) std::atomic<int>(0);
  const auto results = hocket::launch::run_processes(ranks, [&](const bootstrap::world_description& world) {
    directory_store store({world.rank, ranks, directory, token}, within(5s));
    exchange(store, "address", world.rank, ranks, bootstrap::text_bytes("stale"), within(5s));
    ++arrived;  // a rank that still read would report that a peer has ended, and not be killed itself
    for (const auto last = hocket::deadline::after(5s); arrived < ranks && !last.passed();) ::usleep(1000);
    return ::raise(SIGKILL);
  });
  for (const auto& each : results) REQUIRE(each.signal == SIGKILL);
}

}  // namespace

TEST_CASE("exchange gives every rank the blobs of all ranks, through a directory") {
  for (const int ranks : {1, 2, 3, 5, 7, 8}) {
    const scratch_directory place;
    const auto outcomes = as_ranks(first_ranks(ranks), [&](int rank, outcome& mine) {
      directory_store store({rank, ranks, place.path(), "token"}, within(5s));
      for (const char* round : {"a", "a b/c.d%", "ä"}) {
        mine.all = exchange(store, round, rank, ranks, blob_of(rank), within(5s));
        if (mine.all != blobs_of(ranks)) return;
      }
    });
    for (const outcome& each : outcomes) {
      INFO(ranks << " ranks: " << each.cause.message());
      CHECK_FALSE(each.cause);
      CHECK(each.all == blobs_of(ranks));
    }
    CHECK(place.entries() == 0);
  }
}

TEST_CASE("jobs can follow each other in one directory without a pause") {
  const scratch_directory place;
  const auto outcomes = as_ranks(first_ranks(3), [&](int rank, outcome& mine) {
    for (int round = 0; round < 10; ++round) {
      directory_store store({rank, 3, place.path(), "token"}, within(5s));
      mine.all = exchange(store, "a", rank, 3, blob_of(rank + round), within(5s));
      if (mine.all[0] != blob_of(round)) return;
      mine.all.clear();
    }
  });
  for (const outcome& each : outcomes) {
    INFO(each.cause.message());
    CHECK_FALSE(each.cause);
    CHECK(each.all.empty());
  }
}

TEST_CASE("files of a crashed job are ignored and removed") {
  const scratch_directory place;
  leave_a_crashed_job(place.path(), "token", 3);
  leave_a_crashed_job(place.path(), "token", 3);
  CHECK(place.entries() == 1);
  // Rank 0 arrives last, so the others find only the stale session at first.
  const auto outcomes = as_ranks(first_ranks(3), [&](int rank, outcome& mine) {
    if (rank == 0) std::this_thread::sleep_for(200ms);
    directory_store store({rank, 3, place.path(), "token"}, within(5s));
    mine.all = exchange(store, "address", rank, 3, blob_of(rank), within(5s));
  });
  for (const outcome& each : outcomes) {
    INFO(each.cause.message());
    CHECK(each.all == blobs_of(3));
  }
  CHECK(place.entries() == 0);
}

TEST_CASE("files of a crashed job with another token are removed only when they are old") {
  const scratch_directory place;
  leave_a_crashed_job(place.path(), "old", 2);
  REQUIRE(place.entries() == 1);
  const auto start_another = [&] {
    const auto outcomes = as_ranks(first_ranks(2), [&](int rank, outcome&) {
      directory_store store({rank, 2, place.path(), "new"}, within(5s));
    });
    for (const outcome& each : outcomes) CHECK_FALSE(each.cause);
  };
  start_another();
  CHECK(place.entries() == 1);

  const std::string base = place.path() + '/' + hocket::platform::list_directory(place.path()).front();
  const std::string session = base + '/' + hocket::platform::list_directory(base).front();
  const timespec eight_days_ago{::time(nullptr) - 8 * 24 * 3600, 0};
  const timespec times[] = {eight_days_ago, eight_days_ago};
  REQUIRE(::utimensat(AT_FDCWD, session.c_str(), times, 0) == 0);
  start_another();
  CHECK(place.entries() == 0);
}

TEST_CASE("jobs with different tokens can share a directory without interference") {
  const scratch_directory place;
  const auto outcomes = as_ranks(first_ranks(6), [&](int rank, outcome& mine) {
    const std::string token = rank < 3 ? "one" : "two";
    directory_store store({rank % 3, 3, place.path(), token}, within(5s));
    mine.all = exchange(store, "a", rank % 3, 3, bootstrap::text_bytes(token), within(5s));
  });
  for (std::size_t rank = 0; rank < 6; ++rank) {
    INFO(outcomes[rank].cause.message());
    REQUIRE(outcomes[rank].all.size() == 3);
    for (const auto& each : outcomes[rank].all) CHECK(bootstrap::blob_text(each) == (rank < 3 ? "one" : "two"));
  }
}

TEST_CASE("every rank that opens a directory store names the ranks that are missing") {
  const scratch_directory place;
  const auto outcomes = as_ranks({0, 1, 3, 4}, [&](int rank, outcome&) {
    directory_store store({rank, 6, place.path(), ""}, within(300ms));
  });
  for (const outcome& each : outcomes) {
    INFO(each.cause.message());
    CHECK(each.cause.code == errc::timeout);
    CHECK(each.cause.context.peer == 2);
    CHECK(contains(each.cause.reason, "ranks 2 and 5 of 6 have not shown up after 0.3 s"));
    CHECK(each.seconds.count() < 1.5);
  }
  CHECK(place.entries() == 0);  // the last rank has removed all files
}

TEST_CASE("every rank that takes part in an exchange names a rank that does not") {
  const scratch_directory place;
  const auto outcomes = as_ranks(first_ranks(4), [&](int rank, outcome&) {
    directory_store store({rank, 4, place.path(), ""}, within(5s));
    if (rank == 2) {
      std::this_thread::sleep_for(500ms);
    } else {
      exchange(store, "a", rank, 4, {}, within(200ms));
    }
  });
  for (const std::size_t rank : {0U, 1U, 3U}) {
    INFO(outcomes[rank].cause.message());
    CHECK(outcomes[rank].cause.code == errc::timeout);
    CHECK(outcomes[rank].cause.context.peer == 2);
    CHECK(contains(outcomes[rank].cause.reason, "rank 2 of 4 has not shown up"));
  }
  CHECK(place.entries() == 0);
}

TEST_CASE("a missing rank 0 is named, with and without the files of a stale job") {
  const scratch_directory place;
  const bool stale = GENERATE(false, true);
  if (stale) leave_a_crashed_job(place.path(), "", 2);
  const auto outcomes = as_ranks({1}, [&](int rank, outcome&) {
    directory_store store({rank, 2, place.path(), ""}, within(200ms));
  });
  CHECK(outcomes[0].cause.code == errc::timeout);
  CHECK(outcomes[0].cause.context.peer == 0);
  CHECK(contains(outcomes[0].cause.reason, place.path()));
}

TEST_CASE("different numbers of ranks fail with a mismatch on both ranks") {
  const scratch_directory place;
  const auto outcomes = as_ranks({0, 1}, [&](int rank, outcome&) {
    directory_store store({rank, rank == 0 ? 2 : 3, place.path(), ""}, within(5s));
  });
  for (const outcome& each : outcomes) {
    CHECK(each.cause.code == errc::mismatch);
    CHECK(contains(each.cause.reason, "expects 2 ranks, but rank 1 of 3 connected"));
    CHECK(each.seconds.count() < 2);
  }
}

TEST_CASE("get of a directory store waits until its deadline or until it is cancelled") {
  const scratch_directory place;
  directory_store store({0, 1, place.path(), ""}, within(5s));
  std::atomic<bool> off{false};
  const auto cancelled = [&] { return off.load(); };
  const auto late = as_ranks({0}, [&](int, outcome&) { store.get("never", within(100ms)); });
  CHECK(late[0].cause.code == errc::timeout);
  CHECK(contains(late[0].cause.reason, "no rank set 'never' within 0.1 s"));
  off = true;
  const auto aborted =
      as_ranks({0}, [&](int, outcome&) { store.get("never", hocket::wait_limit(within(5s), cancelled)); });
  CHECK(aborted[0].cause.code == errc::aborted);
  store.set("never", bootstrap::text_bytes("now"), within(5s));
  CHECK(bootstrap::blob_text(store.get("never", within(0s))) == "now");
  CHECK_THROWS_WITH(store.set(std::string(300, 'k'), {}, within(1s)), Catch::Contains("too long"));
}

TEST_CASE("a directory without a parent, or in the root, is refused and not created") {
  const scratch_directory scratch;
  const auto refused = [](const std::string& directory) -> std::string {
    try {
      bootstrap::directory_store store({.rank = 0, .ranks = 1, .directory = directory, .token = {}}, within(1s));
    } catch (const hocket::error& cause) {
      CHECK(cause.code() == errc::bad_environment);
      return cause.what();
    }
    return "not refused";
  };
  CHECK_THAT(refused("/hocket-test-typo"), Catch::Contains("creates none in the root"));
  CHECK_THAT(refused("/hocket-test-typo//"), Catch::Contains("creates none in the root"));
  CHECK(::access("/hocket-test-typo", F_OK) != 0);
  ::rmdir("/hocket-test-typo");
  CHECK_THAT(refused(scratch.path() + "/typo/jobs"), Catch::Contains("there is no '" + scratch.path() + "/typo'"));
  CHECK(scratch.entries() == 0);
  CHECK(refused(scratch.path() + "/jobs/") == "not refused");
}

TEST_CASE("a directory that cannot be created raises bad_environment") {
  try {
    directory_store store({0, 1, "/proc/no/such/place", ""}, within(5s));
    FAIL("created a directory in /proc");
  } catch (const hocket::error& cause) {
    INFO(cause.what());
    CHECK(cause.code() == errc::bad_environment);
    CHECK(contains(cause.reason(), "HOCKET_STORE=dir:///"));
  }
}
