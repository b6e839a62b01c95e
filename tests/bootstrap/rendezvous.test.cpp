// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <hocket/bootstrap/rendezvous.hpp>

#include <string>

#include "support/catch.hpp"

namespace bootstrap = hocket::bootstrap;
using namespace std::chrono_literals;
using bootstrap::detail::hello;
using bootstrap::detail::leave_kind;
using bootstrap::detail::rendezvous;
using bootstrap::detail::request;
using bootstrap::detail::request_kind;
using hocket::errc;

namespace {

const auto start = hocket::deadline::clock::now();

/// A rendezvous that all of its `ranks` have joined.
struct meeting {
  explicit meeting(int ranks) : state(ranks, "") {
    for (int rank = 0; rank < ranks; ++rank) {
      hello greeting;
      greeting.rank = rank;
      greeting.ranks = ranks;
      REQUIRE(state.greet(greeting).status == 0);
    }
  }
  void ask(int rank, request_kind kind, std::string key, std::chrono::nanoseconds patience = 1s) {
    request what;
    what.kind = kind;
    what.key = std::move(key);
    what.value = bootstrap::text_blob(std::to_string(rank));
    what.nanoseconds = static_cast<std::uint64_t>(patience.count());
    what.number = 1;
    state.handle(rank, std::move(what), start);
  }
  /// "rank:status:peer" for each pending answer, in order.
  std::string answers() {
    std::string text;
    for (const auto& each : state.take_answers()) {
      text += std::to_string(each.rank) + ':' + std::to_string(each.what.status) + ':' +
              std::to_string(each.what.peer) + ' ';
    }
    return text;
  }
  rendezvous state;
};

}  // namespace

TEST_CASE("a gather is answered when the last rank has arrived, and its name can be used again") {
  meeting here(3);
  for (int round = 0; round < 2; ++round) {
    here.ask(2, request_kind::gather, "a");
    here.ask(0, request_kind::gather, "a");
    CHECK(here.answers().empty());
    here.ask(1, request_kind::gather, "a");
    CHECK(here.answers() == "2:0:-1 0:0:-1 1:0:-1 ");
  }
  CHECK(here.state.next_deadline().never());
}

TEST_CASE("the first deadline of a gather ends it for all ranks, including those that arrive later") {
  meeting here(4);
  here.ask(0, request_kind::gather, "a", 10s);
  here.ask(3, request_kind::gather, "a", 1s);
  CHECK(here.state.next_deadline().when() == start + 1s);
  here.state.expire(start + 999ms);
  CHECK(here.answers().empty());
  here.state.expire(start + 1s);
  CHECK(here.answers() == "3:1:1 0:1:1 ");
  here.ask(1, request_kind::gather, "a");
  CHECK(here.answers() == "1:1:1 ");
  // Gathers with other names are not affected.
  for (int rank = 0; rank < 4; ++rank) here.ask(rank, request_kind::gather, "b");
  CHECK(here.answers() == "0:0:-1 1:0:-1 2:0:-1 3:0:-1 ");
}

TEST_CASE("a lost rank ends all gathers and waits; a rank that left ends only the gathers that need it") {
  const std::string lost = std::to_string(static_cast<int>(errc::peer_lost));
  const bool goodbye = GENERATE(true, false);
  meeting here(3);
  here.ask(0, request_kind::gather, "a");
  here.ask(1, request_kind::get, "k");
  here.state.leave(2, goodbye ? leave_kind::goodbye : leave_kind::lost);
  CHECK(here.answers() == "0:" + lost + ":2 " + (goodbye ? "" : "1:" + lost + ":2 "));
  here.ask(0, request_kind::gather, "b");
  CHECK(here.answers() == "0:" + lost + ":2 ");
}

TEST_CASE("a launcher's report of a failed rank counts only with the right token and if the rank has not connected") {
  hello in_its_place;
  in_its_place.ranks = 3;
  in_its_place.rank = bootstrap::detail::encode_failed_rank(2);
  for (const bool has_come : {false, true}) {
    rendezvous state(3, "");
    for (const int rank : {0, 1, 2}) {
      hello greeting;
      greeting.rank = rank;
      greeting.ranks = 3;
      if (rank < 2 || has_come) REQUIRE(state.greet(greeting).status == 0);
    }
    request what;
    what.kind = request_kind::gather;
    what.key = "a";
    what.nanoseconds = ~std::uint64_t{0};
    state.handle(0, std::move(what), start);
    hello stranger = in_its_place;
    stranger.token = "guess";
    for (const int rank : {in_its_place.rank, bootstrap::detail::encode_failed_rank(3)}) {
      stranger.rank = rank;
      state.note_peer_failure(stranger);
    }
    CHECK(state.take_answers().empty());
    state.note_peer_failure(in_its_place);
    CHECK(state.take_answers().size() == (has_come ? 0 : 1));
    CHECK((state.first_failure().status == static_cast<std::uint32_t>(errc::peer_lost)) == !has_come);
    if (has_come) continue;
    CHECK(bootstrap::blob_text(*state.first_failure().body) ==
          "rank 2 of 3 failed before it joined, as its launcher reports");
    hello late;
    late.rank = 2;
    late.ranks = 3;
    CHECK(bootstrap::blob_text(*state.greet(late).body) ==
          "rank 2 failed before it joined, as its launcher reports: start the whole job again");
  }
}

TEST_CASE("a rank that leaves because of a failure is not named as its cause") {
  const std::string lost = std::to_string(static_cast<int>(errc::peer_lost));
  meeting here(4);
  CHECK(here.state.first_failure().status == 0);
  here.state.leave(2, leave_kind::lost);
  here.ask(0, request_kind::gather, "a");
  CHECK(here.answers() == "0:" + lost + ":2 ");
  here.state.leave(0, leave_kind::goodbye);
  here.ask(1, request_kind::gather, "a");
  here.ask(3, request_kind::gather, "b");
  CHECK(here.answers() == "1:" + lost + ":2 3:" + lost + ":2 ");
  CHECK(here.state.first_failure().peer == 2);
}

TEST_CASE("a cancelled rank learns which ranks it waited for, and the others learn of the cancellation") {
  const std::string aborted = std::to_string(static_cast<int>(errc::aborted));
  meeting here(4);
  here.ask(1, request_kind::gather, "a");
  here.ask(2, request_kind::gather, "a");
  here.ask(0, request_kind::get, "k");
  const auto told = here.state.cancel(1, start + 1500ms);
  CHECK(told.status == static_cast<std::uint32_t>(errc::aborted));
  CHECK(told.peer == 0);
  CHECK(bootstrap::blob_text(*told.body) ==
        "start-up was cancelled: ranks 0 and 3 of 4 have not shown up after 1.5 s; rank 0 is connected, but has not "
        "yet taken part "
        "in 'a'; rank 3 is connected, but has not yet taken part in 'a'");
  CHECK(here.answers().empty());
  here.state.leave(1, leave_kind::cancelled);
  CHECK(bootstrap::blob_text(*here.state.first_failure().body) == "rank 1 of 4 has cancelled start-up");
  CHECK(here.answers() == "2:" + aborted + ":1 0:" + aborted + ":1 ");
  here.state.leave(2, leave_kind::goodbye);  // because of the cancellation
  here.ask(3, request_kind::gather, "a");
  here.ask(0, request_kind::gather, "b");
  CHECK(here.answers() == "3:" + aborted + ":1 0:" + aborted + ":1 ");
  hello again;
  again.rank = 1;
  again.ranks = 4;
  CHECK(here.state.greet(again).status == static_cast<std::uint32_t>(errc::peer_lost));
}

TEST_CASE("the error of a cancelled rank names the key that it waits for, or only the cancellation") {
  meeting here(2);
  CHECK(bootstrap::blob_text(*here.state.cancel(0, start).body) == "start-up was cancelled");
  here.ask(1, request_kind::get, "k");
  const auto told = here.state.cancel(1, start + 100ms);
  CHECK(bootstrap::blob_text(*told.body) == "start-up was cancelled: no rank has set 'k' after 0.1 s");
  CHECK(told.peer == -1);
}

TEST_CASE("a duplicate rank, or a different number of ranks, ends the job for all ranks immediately") {
  for (const bool twin : {true, false}) {
    rendezvous state(3, "secret");
    hello greeting;
    greeting.token = "secret";
    greeting.ranks = 3;
    for (const int rank : {0, 1}) {
      greeting.rank = rank;
      REQUIRE(state.greet(greeting, "host:" + std::to_string(rank)).status == 0);
      request what;
      what.kind = rank == 0 ? request_kind::gather : request_kind::get;
      what.key = "k";
      what.nanoseconds = ~std::uint64_t{0};
      state.handle(rank, std::move(what), start);
    }
    hello stranger = greeting;
    stranger.token = "guess";
    CHECK(state.greet(stranger, "elsewhere:7").status == static_cast<std::uint32_t>(errc::refused));
    CHECK(state.take_answers().empty());
    if (!twin) greeting.ranks = 4;
    if (!twin) greeting.rank = 2;
    const auto verdict = state.greet(greeting, "host:9");
    CHECK(verdict.status == static_cast<std::uint32_t>(errc::mismatch));
    CHECK(bootstrap::blob_text(*verdict.body) ==
          (twin ? "two processes claim to be rank 1, at host:1 and at host:9: give each process its own rank"
                : "rank 0 expects 3 ranks, but rank 2 of 4 connected: set the same HOCKET_RANKS in all processes, and "
                  "HOCKET_RANK to 0 up to HOCKET_RANKS - 1"));
    const auto told = state.take_answers();
    REQUIRE(told.size() == 2);
    for (const auto& each : told) CHECK(each.what.body == verdict.body);
    CHECK(state.must_wait_to_report_failure());
    request late;
    late.kind = request_kind::get;
    state.handle(0, std::move(late), start);
    REQUIRE(state.take_answers().size() == 1);
  }
}

TEST_CASE("a rank out of range is refused with the numbers that are allowed") {
  rendezvous state(4, "");
  hello greeting;
  greeting.rank = 5;
  greeting.ranks = 4;
  const auto verdict = state.greet(greeting);
  CHECK(verdict.status == static_cast<std::uint32_t>(errc::mismatch));
  CHECK(
      bootstrap::blob_text(*verdict.body) ==
      "rank 0 expects 4 ranks, but rank 5 of 4 connected: set the same HOCKET_RANKS in all processes, and HOCKET_RANK "
      "to 0 up to HOCKET_RANKS - 1");
}

TEST_CASE("closing the server answers a waiting rank") {
  meeting here(2);
  here.ask(1, request_kind::get, "k");
  here.state.close();
  CHECK(here.answers() == "1:" + std::to_string(static_cast<int>(errc::peer_lost)) + ":0 ");
}

TEST_CASE("set wakes all ranks that wait for its key, and no others") {
  meeting here(4);
  here.ask(1, request_kind::get, "k");
  here.ask(2, request_kind::get, "other");
  here.ask(3, request_kind::get, "k");
  here.ask(0, request_kind::set, "k");
  CHECK(here.answers() == "1:0:-1 3:0:-1 0:0:-1 ");
  here.state.expire(start + 1s);
  CHECK(here.answers() == "2:1:-1 ");
}

TEST_CASE("the text about missing ranks names them, or the first ones and a count") {
  using bootstrap::detail::missing_text;
  CHECK(missing_text({2}, 8, 10s) == "rank 2 of 8 has not shown up after 10 s");
  CHECK(missing_text({2, 5}, 8, 9999ms) == "ranks 2 and 5 of 8 have not shown up after 10 s");
  CHECK(missing_text({1, 2, 5}, 8, 1500ms) == "ranks 1, 2 and 5 of 8 have not shown up after 1.5 s");
  std::vector<int> many;
  for (int rank = 0; rank < 100; ++rank) many.push_back(rank);
  CHECK_THAT(missing_text(many, 200, 20ms), Catch::Contains("15 and 84 more of 200 have not shown up after 0.02 s"));
}
