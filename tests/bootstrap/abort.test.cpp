// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Another thread cancels start-up: each wait ends soon, the error names the missing ranks, and the ranks that are
/// present learn which rank has cancelled.
#include <hocket/bootstrap/directory_store.hpp>
#include <hocket/bootstrap/launch.hpp>
#include <hocket/bootstrap/tcp_store.hpp>

#include <atomic>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>

#include "bootstrap/ranks.hpp"
#include "support/abort_latency.hpp"
#include "support/catch.hpp"
#include "support/text.hpp"

using hocket_test::contains;
using namespace bootstrap_test;
using bootstrap::directory_store;
using bootstrap::exchange;
using bootstrap::tcp_store;
using hocket::errc;
using hocket::wait_limit;
using hocket_test::abort_latency;
using hocket_test::stopwatch;

namespace {

using clock = std::chrono::steady_clock;

/// A rank's part of start-up, within a limit.
using part = std::function<void(const wait_limit&)>;

/// A rank in its own thread, which can be cancelled.
class rank_thread {
 public:
  explicit rank_thread(part act) : act_(std::move(act)), thread_([this] { run(); }) {}
  rank_thread(const rank_thread&) = delete;
  rank_thread& operator=(const rank_thread&) = delete;
  ~rank_thread() { join(); }

  void cancel() {
    watch_.start();
    stop_.request_stop();
  }
  void join() {
    if (thread_.joinable()) thread_.join();
  }
  /// Call after `join`.
  const hocket::failure& cause() const { return cause_; }
  /// Call after `cancel` and `join`.
  hocket_test::latency took() const { return took_; }
  double milliseconds_since(clock::time_point begin) const {
    return std::chrono::duration<double, std::milli>(end_ - begin).count();
  }

 private:
  void run() {
    const std::stop_token token = stop_.get_token();
    watch_.waits();
    try {
      act_(wait_limit(within(60s), token));
    } catch (const hocket::error& cause) {
      cause_ = cause.cause();
    }
    if (token.stop_requested()) took_ = watch_.stop();
    end_ = clock::now();
  }

  part act_;
  std::stop_source stop_;
  hocket::failure cause_;
  stopwatch watch_;
  hocket_test::latency took_;
  clock::time_point end_{};
  std::thread thread_;
};

/// Number of ranks of the scene that have reached their last wait.
std::atomic<int> in_place{0};

std::function<bool()> ranks_in_place(int count) {
  return [count] { return in_place.load() >= count; };
}

/// Ranks of one start-up, one of which is cancelled while it waits.
struct scene {
  std::map<int, part> ranks;
  int cancelled = 0;
  std::string says;                    ///< part of the error of the cancelled rank
  std::vector<int> informed = {};      ///< ranks that learn of the cancellation
  std::function<void()> wake = [] {};  ///< wakes the ranks that stall outside the store
  /// Returns true when the wait may be cancelled, after a short sleep.
  std::function<bool()> ready = [] { return true; };
};

/// Runs a scene several times. Every rank must end soon.
void play(const std::string& name, const std::function<scene()>& set_up) {
  abort_latency own("cancelled " + name);
  abort_latency others("  the others learn of it", 60);  // a directory is polled every 50 ms
  bool anybody_hears = false;
  for (int round = 0; own.wants_more() || (anybody_hears && others.wants_more()); ++round) {
    INFO(name << ", round " << round);
    in_place = 0;
    scene now = set_up();
    std::map<int, std::unique_ptr<rank_thread>> threads;
    for (auto& [rank, act] : now.ranks) threads[rank] = std::make_unique<rank_thread>(act);
    const auto patience = within(20s);
    while (!now.ready() && !patience.passed()) std::this_thread::sleep_for(1ms);
    std::this_thread::sleep_for(60ms + 7ms * (round % 5));
    rank_thread& ended = *threads.at(now.cancelled);
    ended.cancel();
    ended.join();
    own.add(ended.took());
    CHECK(ended.cause().code == errc::aborted);
    CHECK(contains(ended.cause().reason, "start-up was cancelled"));
    if (contains(ended.cause().reason, "was not complete") ||
        contains(ended.cause().reason, "there was no time to check")) {
      WARN("finding the missing ranks took too long");
    } else {
      CHECK_THAT(ended.cause().reason, Catch::Contains(now.says));
    }
    const auto woken = clock::now();
    now.wake();
    for (auto& [rank, thread] : threads) {
      if (rank != now.cancelled) thread->join();
    }
    for (const int rank : now.informed) {
      INFO("rank " << rank << ": " << threads.at(rank)->cause().message());
      anybody_hears = true;
      CHECK(threads.at(rank)->cause().code == errc::aborted);
      CHECK(threads.at(rank)->cause().context.peer == now.cancelled);
      CHECK(contains(threads.at(rank)->cause().reason,
                     "rank " + std::to_string(now.cancelled) + " of 3 has cancelled start-up"));
      others.add({std::max(0.0, threads.at(rank)->milliseconds_since(woken))});
    }
  }
  own.check();
  if (anybody_hears) others.check();
}

/// Opens the store and takes part in `rounds` exchanges.
template <typename Store, typename Options>
part takes_part(const Options& options, int rounds) {
  return [options, rounds](const wait_limit& limit) {
    Store store(options, limit);
    for (int round = 0; round < rounds; ++round) {
      if (round + 1 == rounds) ++in_place;
      exchange(store, "round" + std::to_string(round), options.rank, options.ranks, blob_of(options.rank), limit);
    }
  };
}

void wait_for(const std::atomic<bool>& flag) {
  while (!flag.load()) std::this_thread::sleep_for(1ms);
}

/// True if rank 0 has admitted `rank` in the directory.
bool rank_is_seen(const scratch_directory& place, int rank) {
  for (const std::string& base : platform::list_directory(place.path())) {
    for (const std::string& session : platform::list_directory(place.path() + '/' + base)) {
      const std::string note = place.path() + '/' + base + '/' + session + "/seen." + std::to_string(rank);
      if (::access(note.c_str(), F_OK) == 0) return true;
    }
  }
  return false;
}

/// Takes part in one exchange, stalls until it is woken, and takes part in the next.
template <typename Store, typename Options>
part stalls(const Options& options, std::shared_ptr<std::atomic<bool>> woken) {
  return [options, woken](const wait_limit& limit) {
    Store store(options, limit);
    exchange(store, "round0", options.rank, options.ranks, blob_of(options.rank), limit);
    ++in_place;
    wait_for(*woken);
    exchange(store, "round1", options.rank, options.ranks, blob_of(options.rank), limit);
  };
}

}  // namespace

TEST_CASE("a rank that connects to rank 0 can be cancelled") {
  tcp_place place(3);
  place.close();
  const std::string address = "rank 0 has not served the store at 127.0.0.1:" + std::to_string(place.port());
  play("while no process serves the store", [&] {
    return scene{{{1, takes_part<tcp_store>(place.options(1), 1)}}, 1, address};
  });
  platform::file_descriptor listener;
  hocket::failure cause;
  REQUIRE(platform::listen_on("127.0.0.1", 0, listener, cause) == 0);
  const std::uint16_t port = platform::local_address(listener.get()).port();
  const part joins = [port](const wait_limit& limit) { tcp_store({1, 3, "127.0.0.1", port, "", -1}, limit); };
  play("while the listener does not answer", [&] { return scene{{{1, joins}}, 1, "rank 0 has not served"}; });
  REQUIRE(::listen(listener.get(), 0) == 0);
  std::vector<platform::file_descriptor> crowd;  // never accepted, so that the backlog is full
  for (int i = 0; i < 3; ++i) {
    crowd.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const auto there = platform::local_address(listener.get());
    ::connect(crowd.back().get(), there.get(), there.size);
  }
  play("while its connection is not accepted", [&] { return scene{{{1, joins}}, 1, "no answer yet"}; });
}

TEST_CASE("a rank that waits for a silent name server can be cancelled") {
  const auto results = hocket::launch::run_processes(1, [](const bootstrap::world_description&) {
    // A separate network namespace, in which the name server is a socket that no process reads.
    const scratch_directory files;
    const std::string text = "nameserver 127.0.0.1\n";
    const std::string order = "hosts: dns\n";
    const auto as_bytes = [](const std::string& words) { return bootstrap::text_bytes(words); };
    if (platform::write_file(files.path(), "resolv.conf", as_bytes(text)) ||
        platform::write_file(files.path(), "nsswitch.conf", as_bytes(order))) {
      return 3;
    }
    if (::unshare(CLONE_NEWNET | CLONE_NEWNS) != 0 ||
        ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount((files.path() + "/resolv.conf").c_str(), "/etc/resolv.conf", nullptr, MS_BIND, nullptr) != 0 ||
        ::mount((files.path() + "/nsswitch.conf").c_str(), "/etc/nsswitch.conf", nullptr, MS_BIND, nullptr) != 0) {
      return 2;
    }
    const platform::file_descriptor server(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    ifreq loopback{};
    loopback.ifr_name[0] = 'l';
    loopback.ifr_name[1] = 'o';
    loopback.ifr_flags = IFF_UP;
    sockaddr_in here{};
    here.sin_family = AF_INET;
    here.sin_port = htons(53);
    here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::ioctl(server.get(), SIOCSIFFLAGS, &loopback) != 0 ||
        ::bind(server.get(), reinterpret_cast<const sockaddr*>(&here), sizeof here) != 0) {
      return 2;
    }
    abort_latency latency("cancelled while a name is looked up");
    while (latency.wants_more()) {
      rank_thread joins([](const wait_limit& limit) { tcp_store({1, 3, "no-such-host.invalid.", 1, "", -1}, limit); });
      std::this_thread::sleep_for(50ms);
      joins.cancel();
      joins.join();
      latency.add(joins.took());
      if (joins.cause().code != errc::aborted) {
        std::fprintf(stderr, "%s\n", joins.cause().message().c_str());
        return 1;
      }
    }
    std::printf("%s\n", latency.text().c_str());
    // The deadline also ends the lookup.
    const auto begin = clock::now();
    const auto late = as_ranks({1}, [](int, outcome&) {
      tcp_store({1, 3, "no-such-host.invalid.", 1, "", -1}, within(200ms));
    });
    if (late[0].cause.code != errc::timeout || clock::now() - begin > 2s) {
      std::fprintf(stderr, "%s\n", late[0].cause.message().c_str());
      return 1;
    }
    return latency.keeps_promise() ? 0 : 1;
  });
  REQUIRE(results.size() == 1);
  if (results[0].exit_code == 2) {
    WARN("left out: this user may not create a network namespace");
    return;
  }
  CHECK(hocket::launch::describe_failures(results) == "");
}

TEST_CASE("a rank that waits for the others over TCP can be cancelled, and they learn of it") {
  std::unique_ptr<tcp_place> place;
  for (const int ended : {0, 1}) {
    const std::string who = "as rank " + std::to_string(ended) + " over TCP, while rank 2 ";
    play(who + "has not arrived", [&] {
      place = std::make_unique<tcp_place>(3);
      return scene{{{0, takes_part<tcp_store>(place->options(0), 1)}, {1, takes_part<tcp_store>(place->options(1), 1)}},
                   ended,
                   "rank 2 of 3 has not shown up",
                   {1 - ended},
                   [] {},
                   ranks_in_place(2)};
    });
    play(who + "stalls", [&] {
      place = std::make_unique<tcp_place>(3);
      const auto woken = std::make_shared<std::atomic<bool>>(false);
      return scene{{{0, takes_part<tcp_store>(place->options(0), 2)},
                    {1, takes_part<tcp_store>(place->options(1), 2)},
                    {2, stalls<tcp_store>(place->options(2), woken)}},
                   ended,
                   "rank 2 is connected, but has not yet taken part in 'round1'",
                   {1 - ended, 2},
                   [woken] { *woken = true; },
                   ranks_in_place(3)};
    });
  }
}

TEST_CASE("cancelling ends the wait for a key, and the next call of a rank that was not waiting") {
  std::unique_ptr<tcp_place> place;
  play("while it waits for a key over TCP", [&] {
    place = std::make_unique<tcp_place>(3);
    const auto options = place->options(0);
    return scene{{{0,
                   [options](const wait_limit& limit) {
                     tcp_store store(options, limit);
                     ++in_place;
                     store.get("key", limit);
                   }}},
                 0,
                 "no rank has set 'key' after 0.",
                 {},
                 [] {},
                 ranks_in_place(1)};
  });
  play("while it does something else", [&] {
    place = std::make_unique<tcp_place>(3);
    const auto options = place->options(0);
    return scene{{{0,
                   [options](const wait_limit& limit) {
                     tcp_store store(options, limit);
                     ++in_place;
                     while (!limit.aborted()) std::this_thread::sleep_for(1ms);
                     exchange(store, "a", 0, 3, {}, limit);
                   }}},
                 0,
                 "ranks 1 and 2 of 3 have not shown up",
                 {},
                 [] {},
                 ranks_in_place(1)};
  });
}

TEST_CASE("a rank that waits in a directory can be cancelled, and the others learn of it") {
  std::unique_ptr<scratch_directory> place;
  const auto options = [&](int rank) { return bootstrap::directory_store_options{rank, 3, place->path(), "t"}; };
  play("while it waits for rank 0 in a directory", [&] {
    place = std::make_unique<scratch_directory>();
    return scene{{{1, takes_part<directory_store>(options(1), 1)}}, 1, "rank 0 has not shown up in '" + place->path()};
  });
  for (const int ended : {0, 1}) {
    const std::string who = "as rank " + std::to_string(ended) + " in a directory, while rank 2 ";
    play(who + "has not arrived", [&] {
      place = std::make_unique<scratch_directory>();
      return scene{{{0, takes_part<directory_store>(options(0), 1)}, {1, takes_part<directory_store>(options(1), 1)}},
                   ended,
                   "rank 2 of 3 has not shown up",
                   {1 - ended},
                   [] {},
                   [&] { return rank_is_seen(*place, 1); }};
    });
    play(who + "stalls", [&] {
      place = std::make_unique<scratch_directory>();
      const auto woken = std::make_shared<std::atomic<bool>>(false);
      return scene{{{0, takes_part<directory_store>(options(0), 2)},
                    {1, takes_part<directory_store>(options(1), 2)},
                    {2, stalls<directory_store>(options(2), woken)}},
                   ended,
                   "rank 2 of 3 has not shown up",
                   {1 - ended, 2},
                   [woken] { *woken = true; },
                   ranks_in_place(3)};
    });
  }
}
