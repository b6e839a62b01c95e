// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <hocket/bootstrap/tcp_store.hpp>

#include <atomic>
#include <memory>
#include <string>

#include "bootstrap/ranks.hpp"
#include "support/catch.hpp"
#include "support/text.hpp"

using hocket_test::contains;
using namespace bootstrap_test;
using bootstrap::exchange;
using bootstrap::tcp_store;
using hocket::errc;

namespace {

/// A server with the given limits, without a store.
struct bare_server {
  explicit bare_server(int ranks, bootstrap::detail::server_limits limits = {}) {
    hocket::failure cause;
    platform::file_descriptor listener;
    if (platform::listen_on("127.0.0.1", 0, listener, cause) != 0) hocket::raise(cause);
    port = platform::local_address(listener.get()).port();
    server = std::make_unique<bootstrap::detail::tcp_server>(std::move(listener), ranks, "secret", limits);
  }
  std::uint16_t port = 0;
  std::unique_ptr<bootstrap::detail::tcp_server> server;
};

bootstrap::detail::hello hello_of(int rank, int ranks, std::string token = "secret") {
  bootstrap::detail::hello greeting;
  greeting.rank = rank;
  greeting.ranks = ranks;
  greeting.token = std::move(token);
  return greeting;
}

constexpr std::size_t hello_answer_size = bootstrap::detail::hello_magic.size() + 4 + bootstrap::detail::reply_size;

}  // namespace

TEST_CASE("exchange gives every rank the blobs of all ranks, over TCP") {
  for (const int ranks : {1, 2, 3, 5, 7, 8}) {
    const tcp_place place(ranks);
    const auto outcomes = as_ranks(first_ranks(ranks), [&](int rank, outcome& mine) {
      tcp_store store(place.options(rank), within(5s));
      for (int round = 0; round < 3; ++round) {
        mine.all = exchange(store, "round" + std::to_string(round), rank, ranks, blob_of(rank), within(5s));
        if (mine.all != blobs_of(ranks)) return;
      }
    });
    for (const outcome& each : outcomes) {
      INFO(ranks << " ranks: " << each.cause.message());
      CHECK_FALSE(each.cause);
      CHECK(each.all == blobs_of(ranks));
    }
  }
}

TEST_CASE("a rank knows by which addresses it has reached the store, except rank 0, which needs no network for that") {
  const tcp_place place(2);
  std::vector<bootstrap::store_connection> connections(2);
  const auto outcomes = as_ranks(first_ranks(2), [&](int rank, outcome& mine) {
    tcp_store store(place.options(rank), within(5s));
    connections[static_cast<std::size_t>(rank)] = store.connection();
    mine.all = exchange(store, "end", rank, 2, {}, within(5s));
  });
  for (const outcome& each : outcomes) CHECK_FALSE(each.cause);
  CHECK_FALSE(connections[0].local);
  CHECK_FALSE(connections[0].remote);
  CHECK(connections[1].local.text() == "127.0.0.1");
  CHECK(connections[1].remote.text() == "127.0.0.1");
}

TEST_CASE("get waits for set, a later set replaces the value, and add returns the new sum") {
  const tcp_place place(3);
  std::atomic<std::int64_t> sum{0};
  std::atomic<bool> replaced{false};
  const auto outcomes = as_ranks(first_ranks(3), [&](int rank, outcome& mine) {
    tcp_store store(place.options(rank), within(5s));
    if (rank == 2) {
      std::this_thread::sleep_for(50ms);
      store.set("key", bootstrap::text_bytes("first"), within(5s));
    }
    mine.all = {store.get("key", within(5s))};
    sum += store.add("counter", 10, within(5s));
    exchange(store, "all have read", rank, 3, {}, within(5s));
    if (rank == 2) {
      store.set("key", bootstrap::text_bytes("second"), within(5s));
      replaced = bootstrap::blob_text(store.get("key", within(5s))) == "second";
    }
    exchange(store, "end", rank, 3, {}, within(5s));
  });
  for (const outcome& each : outcomes) {
    INFO(each.cause.message());
    REQUIRE(each.all.size() == 1);
    CHECK(bootstrap::blob_text(each.all[0]) == "first");
  }
  CHECK(sum == 10 + 20 + 30);
  CHECK(replaced);
}

TEST_CASE("large blobs are exchanged completely") {
  const tcp_place place(3);
  const bootstrap::blob large(5000000, std::byte{42});
  const auto outcomes = as_ranks(first_ranks(3), [&](int rank, outcome& mine) {
    tcp_store store(place.options(rank), within(10s));
    mine.all = exchange(store, "large", rank, 3, large, within(10s));
  });
  for (const outcome& each : outcomes) CHECK(each.all == std::vector<bootstrap::blob>(3, large));
}

TEST_CASE("at the deadline, every rank that arrived names the missing ranks") {
  const tcp_place place(8);
  const auto outcomes = as_ranks({0, 1, 3, 4, 6, 7}, [&](int rank, outcome& mine) {
    tcp_store store(place.options(rank), within(500ms));
    mine.all = exchange(store, "address", rank, 8, blob_of(rank), within(500ms));
  });
  for (const outcome& each : outcomes) {
    INFO(each.cause.message());
    CHECK(each.cause.code == errc::timeout);
    CHECK(each.cause.context.peer == 2);
    CHECK(contains(each.cause.reason, "ranks 2 and 5 of 8 have not shown up after 0.5 s"));
    CHECK(each.seconds.count() > 0.4);
    CHECK(each.seconds.count() < 1.5);
  }
}

TEST_CASE("a rank that is connected but does not take part in an exchange is reported as such") {
  const tcp_place place(3);
  const auto outcomes = as_ranks({0, 1, 2}, [&](int rank, outcome&) {
    tcp_store store(place.options(rank), within(2s));
    if (rank == 1) {
      std::this_thread::sleep_for(600ms);
    } else {
      exchange(store, "address", rank, 3, {}, within(200ms));
    }
  });
  CHECK_FALSE(outcomes[1].cause);
  for (const std::size_t rank : {0U, 2U}) {
    CHECK(outcomes[rank].cause.context.peer == 1);
    CHECK(contains(outcomes[rank].cause.reason, "rank 1 is connected, but has not yet taken part in 'address'"));
  }
}

TEST_CASE("a missing rank 0 is named, with its address") {
  tcp_place place(2);
  place.close();
  const auto outcomes = as_ranks({1}, [&](int rank, outcome&) { tcp_store store(place.options(rank), within(200ms)); });
  CHECK(outcomes[0].cause.code == errc::timeout);
  CHECK(outcomes[0].cause.context.peer == 0);
  CHECK(contains(outcomes[0].cause.reason, "127.0.0.1:" + std::to_string(place.port())));
  CHECK(outcomes[0].seconds.count() < 1);
}

TEST_CASE("rank 0 is gone only if its port was open and refuses connections, not if no route leads to it") {
  tcp_place place(2);
  place.close();
  struct {
    const char* host;
    bool was_open;
    errc expected;
    const char* stated;
  } const cases[] = {
      {"127.0.0.1", false, errc::timeout, "Connection refused"},
      {"127.0.0.1", true, errc::peer_lost, "is closed now"},
      {"255.255.255.255", false, errc::timeout, "Network is unreachable"},  // no TCP leads to a broadcast address
      {"255.255.255.255", true, errc::timeout, "Network is unreachable"},
  };
  for (const auto& each : cases) {
    CAPTURE(each.host, each.was_open);
    const auto outcomes = as_ranks({1}, [&](int rank, outcome&) {
      auto how = place.options(rank);
      how.host = each.host;
      how.open = each.was_open;
      tcp_store store(how, within(100ms));
    });
    CHECK(outcomes[0].cause.code == each.expected);
    CHECK(contains(outcomes[0].cause.reason, each.stated));
  }
}

TEST_CASE("a rank that leaves before the others have finished is reported long before the deadline") {
  const tcp_place place(3);
  const auto outcomes = as_ranks({0, 1, 2}, [&](int rank, outcome&) {
    tcp_store store(place.options(rank), within(10s));
    exchange(store, "first", rank, 3, {}, within(10s));
    if (rank != 1) exchange(store, "second", rank, 3, {}, within(10s));
  });
  for (const std::size_t rank : {0U, 2U}) {
    INFO(outcomes[rank].cause.message());
    CHECK(outcomes[rank].cause.code == errc::peer_lost);
    CHECK(outcomes[rank].cause.context.peer == 1);
    CHECK(outcomes[rank].seconds.count() < 2);
  }
}

TEST_CASE("a rank that is late to a failed exchange gets the original cause") {
  const tcp_place place(4);
  const auto outcomes = as_ranks({0, 1, 2, 3}, [&](int rank, outcome&) {
    tcp_store store(place.options(rank), within(5s));
    exchange(store, "first", rank, 4, {}, within(5s));
    if (rank == 3) std::this_thread::sleep_for(200ms);
    if (rank != 1) exchange(store, "second", rank, 4, {}, within(5s));
  });
  for (const std::size_t rank : {0U, 2U, 3U}) {
    INFO(outcomes[rank].cause.message());
    CHECK(outcomes[rank].cause.code == errc::peer_lost);
    CHECK(outcomes[rank].cause.context.peer == 1);
  }
}

TEST_CASE("ranks that start before rank 0 wait for it") {
  tcp_place place(3);
  place.close();
  const auto outcomes = as_ranks(first_ranks(3), [&](int rank, outcome& mine) {
    auto options = place.options(rank);
    if (rank == 0) std::this_thread::sleep_for(300ms);
    tcp_store store(options, within(5s));
    mine.all = exchange(store, "a", rank, 3, blob_of(rank), within(5s));
  });
  for (const outcome& each : outcomes) {
    INFO(each.cause.message());
    CHECK(each.all == blobs_of(3));
  }
}

TEST_CASE("stores can follow each other at the same port without a pause") {
  tcp_place place(3);
  place.close();
  const auto outcomes = as_ranks(first_ranks(3), [&](int rank, outcome& mine) {
    for (int round = 0; round < 10; ++round) {
      tcp_store store(place.options(rank), within(5s));
      mine.all = exchange(store, "a", rank, 3, blob_of(rank + round), within(5s));
    }
  });
  for (const outcome& each : outcomes) {
    INFO(each.cause.message());
    CHECK_FALSE(each.cause);
  }
}

TEST_CASE("with port 0, rank 0 picks a port and reports it; other ranks refuse port 0") {
  bootstrap::tcp_store_options options{0, 1, "127.0.0.1", 0, "", -1};
  tcp_store store(options, within(5s));
  CHECK(store.port() != 0);
  options.rank = 1;
  options.ranks = 2;
  CHECK_THROWS_WITH(tcp_store(options, within(1s)), Catch::Contains("port 0"));
}

TEST_CASE("IPv6 addresses and host names work") {
  for (const char* host : {"localhost", "::1"}) {
    hocket::failure cause;
    platform::file_descriptor probe;
    if (platform::listen_on(host, 0, probe, cause) != 0) {
      WARN("left out, because this machine has none: " << host);
      continue;
    }
    tcp_store server({0, 2, host, 0, "", -1}, within(5s));
    tcp_store client({1, 2, host, server.port(), "", -1}, within(5s));
    client.set("k", bootstrap::text_bytes("v"), within(5s));
    CHECK(bootstrap::blob_text(server.get("k", within(5s))) == "v");
  }
}

TEST_CASE("rank 0 opens no port for a host name that has no address, and names it at its deadline") {
  tcp_place place(2);
  place.close();
  for (const char* const host : {"no-such-host.invalid", "300.1.1.1", "1:2:3"}) {
    INFO(host);
    bool was_open = false;
    const auto outcomes = as_ranks({0, 1}, [&](int rank, outcome&) {
      if (rank == 1) {  // watches
        std::this_thread::sleep_for(100ms);
        platform::file_descriptor socket;
        was_open = !platform::connect_to("127.0.0.1", place.port(), within(1s), socket);
        return;
      }
      auto how = place.options(rank);
      how.host = host;
      tcp_store store(how, within(300ms));
    });
    CHECK(!was_open);
    CHECK(outcomes[0].cause.code == errc::bad_environment);
    CHECK(contains(outcomes[0].cause.reason, std::string("cannot resolve host name '") + host + "'"));
    CHECK(contains(outcomes[0].cause.reason, "set HOCKET_STORE"));
    CHECK(outcomes[0].seconds.count() < 2);
  }
}

TEST_CASE("the error about a port in use names the port and the variables to set") {
  const tcp_place other(1);
  try {
    tcp_store store({0, 2, "127.0.0.1", other.port(), "", -1}, within(5s));
    FAIL("two servers at one port");
  } catch (const hocket::error& cause) {
    INFO(cause.what());
    CHECK(cause.code() == errc::bad_environment);
    CHECK(contains(cause.reason(), "port " + std::to_string(other.port()) + " is in use"));
    CHECK(contains(cause.reason(), "HOCKET_STORE=tcp://"));
    CHECK(contains(cause.reason(), "MASTER_PORT"));
  }
}

TEST_CASE("a wrong token is refused with advice, and the other rank learns of the refusal") {
  const tcp_place place(2);
  const auto outcomes = as_ranks({0, 1}, [&](int rank, outcome&) {
    auto options = place.options(rank);
    if (rank == 1) options.token = "Secret";
    tcp_store store(options, within(500ms));
    exchange(store, "a", rank, 2, {}, within(500ms));
  });
  CHECK(outcomes[1].cause.code == errc::refused);
  CHECK(contains(outcomes[1].cause.reason, "HOCKET_TOKEN"));
  CHECK_FALSE(contains(outcomes[1].cause.reason, "ecret"));
  CHECK(outcomes[0].cause.code == errc::timeout);
  CHECK(outcomes[0].cause.context.peer == 1);
  CHECK(contains(outcomes[0].cause.reason, "refused"));
}

TEST_CASE("tokens are equal only if all their bytes are") {
  using bootstrap::detail::equal_in_constant_time;
  CHECK(equal_in_constant_time("", ""));
  CHECK(equal_in_constant_time("abc", "abc"));
  for (const char* other : {"", "a", "ab", "abd", "abcabc", "xbc", "abc "}) {
    CHECK_FALSE(equal_in_constant_time(other, "abc"));
    CHECK_FALSE(equal_in_constant_time("abc", other));
  }
}

TEST_CASE("a different version, protocol or byte order is refused, and the error gives the values") {
  const bare_server here(2);
  auto greeting = hello_of(1, 2);
  SECTION("version") {
    greeting.version = 7003001;
    raw_client client(here.port);
    client.send(encode(greeting));
    const std::string answer = client.read_to_end();
    CHECK(contains(answer, "rank 1 runs hocket 7.3.1 (protocol 1)"));
    const std::string own = bootstrap::detail::version_text(bootstrap::detail::library_version);
    CHECK(contains(answer, "rank 0 runs hocket " + own));
  }
  SECTION("protocol") {
    greeting.protocol = 2;
    raw_client client(here.port);
    client.send(encode(greeting));
    CHECK(contains(client.read_to_end(), "(protocol 2)"));
  }
  SECTION("byte order") {
    greeting.byte_order = 0x04030201;
    raw_client client(here.port);
    client.send(encode(greeting));
    const std::string answer = client.read_to_end();
    CHECK(contains(answer, "little-endian"));
    CHECK(contains(answer, "big-endian"));
  }
}

TEST_CASE("a client reports a refusal by a server of another version") {
  platform::file_descriptor listener;
  hocket::failure cause;
  REQUIRE(platform::listen_on("127.0.0.1", 0, listener, cause) == 0);
  const std::uint16_t port = platform::local_address(listener.get()).port();
  std::thread other([&] {
    static_cast<void>(platform::wait_ready(listener.get(), POLLIN, within(5s)));
    const platform::file_descriptor socket(::accept(listener.get(), nullptr, nullptr));
    bootstrap::blob hello(bootstrap::detail::hello_size);
    static_cast<void>(platform::receive_all(socket.get(), hello, within(5s)));
    const auto status = static_cast<std::uint32_t>(errc::refused);
    const auto refusal = bootstrap::detail::make_refusal(status, "rank 0 runs 9.9.9");
    bootstrap::blob answer = bootstrap::detail::encode_hello_answer();
    bootstrap::detail::append_bytes(answer, encode_head(refusal));
    bootstrap::detail::append_bytes(answer, *refusal.body);
    static_cast<void>(platform::send_all(socket.get(), answer, within(5s)));
  });
  const auto outcomes = as_ranks({1}, [&](int, outcome&) { tcp_store({1, 2, "127.0.0.1", port, "", -1}, within(5s)); });
  other.join();
  CHECK(outcomes[0].cause.code == errc::refused);
  CHECK(contains(outcomes[0].cause.reason, "9.9.9"));
}

TEST_CASE("a port of another service is recognised") {
  platform::file_descriptor listener;
  hocket::failure cause;
  REQUIRE(platform::listen_on("127.0.0.1", 0, listener, cause) == 0);
  const std::uint16_t port = platform::local_address(listener.get()).port();
  SECTION("it sends other bytes") {
    std::thread other([&] {
      static_cast<void>(platform::wait_ready(listener.get(), POLLIN, within(5s)));
      const platform::file_descriptor socket(::accept(listener.get(), nullptr, nullptr));
      const auto page = bootstrap::text_bytes("HTTP/1.1 400 Bad Request\r\n");
      static_cast<void>(platform::send_all(socket.get(), page, within(5s)));
      std::this_thread::sleep_for(50ms);
    });
    const auto outcomes = as_ranks({1}, [&](int, outcome&) {
      tcp_store({1, 2, "127.0.0.1", port, "", -1}, within(5s));
    });
    other.join();
    CHECK(outcomes[0].cause.code == errc::refused);
    CHECK(contains(outcomes[0].cause.reason, "not a hocket store"));
  }
  SECTION("it sends nothing") {
    const auto outcomes = as_ranks({1}, [&](int, outcome&) {
      tcp_store({1, 2, "127.0.0.1", port, "", -1}, within(200ms));
    });
    CHECK(outcomes[0].cause.code == errc::timeout);
    CHECK(contains(outcomes[0].cause.reason, "does not answer"));
    CHECK(outcomes[0].seconds.count() < 1);
  }
}

TEST_CASE("a duplicate rank and a different number of ranks are refused") {
  const tcp_place place(3);
  tcp_store zero(place.options(0), within(5s));
  tcp_store one(place.options(1), within(5s));
  const auto twin = as_ranks({1}, [&](int rank, outcome&) { tcp_store(place.options(rank), within(5s)); });
  CHECK(twin[0].cause.code == errc::mismatch);
  CHECK(contains(twin[0].cause.reason, "two processes claim to be rank 1"));
  auto options = place.options(2);
  options.ranks = 4;
  const auto stranger = as_ranks({2}, [&](int, outcome&) { tcp_store(options, within(5s)); });
  CHECK(stranger[0].cause.code == errc::mismatch);
  CHECK(contains(stranger[0].cause.reason, "expects 3 ranks, but rank 2 of 4 connected"));
}

TEST_CASE("all ranks learn soon of a duplicate rank and of a different number of ranks") {
  for (const bool twin : {true, false}) {
    const tcp_place place(3);
    const auto outcomes = as_ranks({0, 1, 2}, [&](int rank, outcome&) {
      auto options = place.options(rank);
      if (rank == 2) std::this_thread::sleep_for(100ms);
      if (rank == 2 && twin) options.rank = 1;
      if (rank == 2 && !twin) options.ranks = 4;
      tcp_store store(options, within(20s));
      exchange(store, "a", options.rank, options.ranks, {}, within(20s));
    });
    for (const outcome& each : outcomes) {
      INFO(each.cause.reason);
      CHECK(each.cause.code == errc::mismatch);
      CHECK(contains(each.cause.reason, twin ? "two processes claim to be rank 1, at 127.0.0.1:"
                                             : "expects 3 ranks, but rank 2 of 4 connected"));
      CHECK(each.seconds.count() < 5);
    }
  }
}

TEST_CASE("both processes that are rank 0 learn of the duplicate") {
  const tcp_place place(2);
  const auto outcomes = as_ranks({0, 1}, [&](int rank, outcome&) {
    auto options = place.options(0);
    if (rank == 1) std::this_thread::sleep_for(100ms);
    if (rank == 1) options.listener = -1;
    tcp_store store(options, within(20s));
    exchange(store, "a", 0, 2, {}, within(20s));
  });
  for (const outcome& each : outcomes) {
    INFO(each.cause.reason);
    CHECK(each.cause.code == errc::mismatch);
    CHECK(contains(each.cause.reason, "two processes claim to be rank 0"));
    CHECK(each.seconds.count() < 5);
  }
}

TEST_CASE("unknown clients neither block nor end the server") {
  const tcp_place place(2);
  tcp_store zero(place.options(0), within(5s));
  raw_client silent(place.port());
  raw_client web(place.port());
  web.send(bootstrap::text_bytes("GET / HTTP/1.1\r\n\r\n"));
  CHECK(web.read_to_end().empty());
  raw_client half(place.port());
  half.send(bootstrap::text_bytes("hocket\r\n"));
  raw_client impatient(place.port());
  impatient.send(bootstrap::text_bytes("hock"));
  impatient.close();
  bootstrap::blob long_token = bootstrap::text_blob(bootstrap::detail::hello_magic);
  long_token.resize(bootstrap::detail::hello_size, std::byte{0xff});
  raw_client greedy(place.port());
  greedy.send(long_token);
  CHECK(greedy.read_to_end().empty());
  unsigned seed = 12345;
  for (int i = 0; i < 50; ++i) {
    bootstrap::blob noise = i % 2 == 0 ? bootstrap::blob() : encode(hello_of(1, 2, "guess"));
    for (int k = 0; k < 300; ++k) noise.push_back(static_cast<std::byte>((seed = seed * 1103515245U + 12345U) >> 16));
    raw_client fuzz(place.port());
    fuzz.send(noise);
  }
  tcp_store one(place.options(1), within(5s));
  one.set("k", bootstrap::text_bytes("v"), within(5s));
  CHECK(bootstrap::blob_text(zero.get("k", within(5s))) == "v");
}

TEST_CASE("connections without a timely hello message, and excess connections, are closed") {
  const bare_server here(2, {100ms, 100ms, 4});
  raw_client silent(here.port);
  CHECK(silent.read_to_end(2s).empty());
  std::vector<std::unique_ptr<raw_client>> crowd;
  for (int i = 0; i < 40; ++i) crowd.push_back(std::make_unique<raw_client>(here.port));
  for (auto& each : crowd) CHECK(each->read_to_end(2s).empty());
}

TEST_CASE("a member that sends an oversized, invalid or incomplete message loses its connection") {
  const bare_server here(2, {1s, 100ms, 4});
  raw_client member(here.port);
  member.send(encode(hello_of(1, 2)));
  REQUIRE(member.read(hello_answer_size).substr(0, 6) == "hocket");
  bootstrap::detail::request what;
  what.kind = bootstrap::detail::request_kind::set;
  SECTION("oversized") { member.send(encode_head(what, "k", std::uint64_t{1} << 60)); }
  SECTION("invalid") { member.send(bootstrap::blob(100, std::byte{0xee})); }
  SECTION("incomplete") { member.send(encode_head(what, "k", 1000)); }
  CHECK(member.read_to_end(2s).empty());
}

TEST_CASE("a member that crashes is reported as lost and cannot rejoin") {
  const tcp_place place(2);
  tcp_store zero(place.options(0), within(5s));
  {
    raw_client one(place.port());
    one.send(encode(hello_of(1, 2)));
    REQUIRE(one.read(hello_answer_size).substr(0, 6) == "hocket");
  }
  const auto outcomes = as_ranks({0}, [&](int rank, outcome&) { exchange(zero, "a", rank, 2, {}, within(5s)); });
  CHECK(outcomes[0].cause.code == errc::peer_lost);
  CHECK(outcomes[0].cause.context.peer == 1);
  const auto again = as_ranks({1}, [&](int rank, outcome&) { tcp_store(place.options(rank), within(5s)); });
  CHECK(again[0].cause.code == errc::peer_lost);
}

TEST_CASE("an abort ends get and the wait for rank 0") {
  const tcp_place place(2);
  std::atomic<bool> off{false};
  const auto cancelled = [&] { return off.load(); };
  std::thread later([&] {
    std::this_thread::sleep_for(100ms);
    off = true;
  });
  const auto outcomes = as_ranks({0}, [&](int rank, outcome&) {
    tcp_store store(place.options(rank), within(5s));
    store.get("never", hocket::wait_limit(within(5s), cancelled));
  });
  later.join();
  CHECK(outcomes[0].cause.code == errc::aborted);
  CHECK(outcomes[0].seconds.count() < 1);
  tcp_place nobody(2);
  nobody.close();
  const auto connecting = as_ranks({1}, [&](int rank, outcome&) {
    tcp_store store(nobody.options(rank), hocket::wait_limit(within(5s), cancelled));
  });
  CHECK(connecting[0].cause.code == errc::aborted);
}

TEST_CASE("get of a key that no rank sets ends at its deadline, and the store stays usable") {
  const tcp_place place(1);
  tcp_store store(place.options(0), within(5s));
  const auto outcomes = as_ranks({0}, [&](int, outcome&) { store.get("never", within(100ms)); });
  CHECK(outcomes[0].cause.code == errc::timeout);
  CHECK(contains(outcomes[0].cause.reason, "no rank set 'never' within 0.1 s"));
  store.set("never", {}, within(5s));
  CHECK(store.get("never", within(5s)).empty());
  CHECK(store.get("never", within(0s)).empty());
}

TEST_CASE("misuse raises an error that explains it") {
  const tcp_place place(2);
  tcp_store store(place.options(0), within(5s));
  CHECK_THROWS_WITH(exchange(store, "a", 1, 2, {}, within(1s)), Catch::Contains("opened as another"));
  CHECK_THROWS_WITH(exchange(store, "a", 2, 2, {}, within(1s)), Catch::Contains("not a rank"));
  CHECK_THROWS_WITH(store.set(std::string(5000, 'k'), {}, within(1s)), Catch::Contains("at most 4096"));
  CHECK_THROWS_WITH(tcp_store({0, 1, "127.0.0.1", 0, std::string(2000, 't'), -1}, within(1s)),
                    Catch::Contains("at most 1024"));
}

TEST_CASE("a store leaks no descriptor and no thread") {
  const process_resources before;
  for (int i = 0; i < 5; ++i) {
    const tcp_place place(2);
    tcp_store zero(place.options(0), within(5s));
    tcp_store one(place.options(1), within(5s));
    raw_client stranger(place.port());
  }
  CHECK(process_resources() == before);
}
