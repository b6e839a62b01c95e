// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Another thread can immediately end start-up over UCX, calls, split, shrink and allocate, wherever they wait.
// needs: ucx
// unsanitized: it measures
#include "support/abort_latency.hpp"
#include "support/catch.hpp"
#include "ucx/ranks.hpp"

#include <hocket/bootstrap/connect_store.hpp>
#include <hocket/group/shrink.hpp>
#include <hocket/group/split.hpp>
#include <hocket/transport/ucx/arrival.hpp>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <functional>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <sys/wait.h>

namespace {

using namespace ucx_test;
using hocket::errc;
using hocket_test::abort_latency;
using hocket_test::abort_rounds;
using hocket_test::stopwatch;
using clock = std::chrono::steady_clock;

double milliseconds_since(clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(clock::now() - begin).count();
}

/// Calls `act`, which waits. Another thread calls `end`, `after` the return of `begins()`. Prints the time from `end`
/// until `act` failed.
template <class Act>
void print_time_to_end(findings& found, const std::function<void()>& begins, const std::function<void()>& end, Act act,
                       const std::vector<std::string>& says, std::chrono::milliseconds after = 100ms,
                       errc expected = errc::aborted) {
  stopwatch watch;
  watch.waits();
  std::thread other([&] {
    begins();
    std::this_thread::sleep_for(after);
    watch.start();
    end();
  });
  const hocket::failure cause = found.fails(expected, "a call", act);
  const hocket_test::latency took = watch.stop();
  other.join();
  std::printf("took %.3f %.3f\n", took.milliseconds, took.without_core);
  if (cause.reason.find("was not complete") != std::string::npos)
    return;  // the server did not answer in time to name the ranks
  for (const std::string& each : says) {
    found.expect(cause.message().find(each) != std::string::npos,
                 "the message lacks '" + each + "': " + cause.message());
  }
}

/// One rank waits until another one rings. Must be made before the ranks start.
class bell {
 public:
  void ring() const {
    const std::byte now{1};
    hocket::platform::write_all(ends_.write.get(), std::span(&now, 1));
  }
  void wait() const {
    static_cast<void>(hocket::platform::wait_ready(ends_.read.get(), POLLIN, hocket::deadline::after(20s)));
  }

 private:
  const hocket::platform::pipe_ends ends_ = hocket::platform::make_pipe();
};

/// Signals between ranks, independent of the tested calls.
struct bells {
  bell in_place;  ///< the wait that the test ends begins about now
  bell over;      ///< the test has ended it
};

/// Runs `body(world, findings, bells)` on `ranks` ranks several times, and reads the times that they print. Returns
/// whether any of them has printed `wanted`.
template <class Body>
bool measure(const std::string& name, int ranks, const route& way, Body body, const std::string& wanted = "took") {
  abort_latency latency(name + " over " + way.name);
  bool fine = true;
  bool found_wanted = false;
  while (fine && latency.wants_more()) {
    const bells tell;
    const auto results = results_of(ranks, way, [&](const world& where, findings& found) { body(where, found, tell); });
    INFO(name << " over " << way.name);
    const std::string failures = hocket::launch::describe_failures(results);
    CHECK(failures == "");
    fine = failures.empty();
    for (const auto& each : results) {
      found_wanted = found_wanted || each.output.find(wanted) != std::string::npos;
      const auto at = each.output.find("took ");
      if (at == std::string::npos) continue;
      std::size_t read = 0;
      const std::string figures = each.output.substr(at + 5);
      const double milliseconds = std::stod(figures, &read);
      latency.add({milliseconds, std::stod(figures.substr(read))});
    }
  }
  latency.check();
  return found_wanted;
}

/// Rank 2 of 3, which takes part in the first rounds of start-up, and arrives at the next one after the wait of another
/// rank has ended.
void stall_after(int rounds, const world& where, const bells& tell, findings& found) {
  namespace bootstrap = hocket::bootstrap;
  const auto within = [] { return hocket::deadline::after(20s); };
  auto store = bootstrap::connect_store(where, within());
  const auto own = hocket::ucx::own_arrival(hocket::ucx::connect_options().staging_bytes);
  const hocket::ucx::connection_settings by_memory{hocket::ucx::connection_way::memory};
  const auto through = std::make_shared<hocket::ucx::worker>(3, 3, true, by_memory);
  hocket::failure no_room;
  const hocket::platform::shared_pages piece(4 << 20, no_room);
  const std::byte yes{1};  // it may open the files of the others; it has reached all
  const auto arrival = hocket::ucx::encode_arrival(own);
  const auto ways = hocket::ucx::encode_address(*through);
  const auto ticket = piece.ticket();
  const bootstrap::byte_view says[] = {arrival, std::span(&yes, 1), ways, {}, ticket, std::span(&yes, 1)};
  const auto take_part = [&](int round) {
    bootstrap::exchange(store, "ucx." + std::to_string(round + 1), 2, 3, says[round], within());
  };
  for (int round = 0; round < rounds; ++round) take_part(round);
  tell.in_place.ring();
  tell.over.wait();
  const auto cause = found.fails(errc::aborted, "a late round", [&] { take_part(rounds); });
  found.expect(cause.reason.find("has cancelled start-up") != std::string::npos, "late: " + cause.message());
}

hocket::ucx::connect_options stopped_by(const std::stop_source& source) {
  hocket::ucx::connect_options options;
  options.stop = source.get_token();
  return options;
}

}  // namespace

TEST_CASE("start-up can be cancelled in each round, and the other ranks learn which rank cancelled it") {
  for (const route& way : {shared_memory, network}) {
    for (const int ended : {0, 1}) {
      for (const int rounds : {0, 1, 2, 3, 4, 5}) {
        const std::string name = "rank " + std::to_string(ended) + ", round " + std::to_string(rounds + 1);
        measure(name, 3, way, [&](const world& where, findings& found, const bells& tell) {
          if (where.rank == 2) return stall_after(rounds, where, tell, found);
          std::stop_source source;
          if (where.rank == ended) {
            print_time_to_end(
                found, [&] { tell.in_place.wait(); }, [&] { source.request_stop(); },
                [&] { hocket::ucx::connect(where, stopped_by(source)); },
                // On a busy machine, "ranks 0 and 2 of 3 have not shown up".
                {" 2 of 3 ha", " not shown up after ", "rank 2 is connected, but has not yet taken part in 'ucx."});
            tell.over.ring();
          } else {
            const auto cause = found.fails(errc::aborted, "connect", [&] { hocket::ucx::connect(where); });
            found.equal(cause.context.peer, ended, "the rank that cancelled start-up");
            const std::string who = "rank " + std::to_string(ended) + " of 3 has cancelled start-up";
            found.expect(cause.reason.find(who) != std::string::npos, "the message: " + cause.message());
          }
        });
      }
    }
  }
}

TEST_CASE("a stop request ends start-up if it precedes it, and has no effect after it") {
  CHECK(run_worlds(2, shared_memory, [](const world& where, findings& found) {
          std::stop_source source;
          auto comm = hocket::ucx::connect(where, stopped_by(source));
          source.request_stop();
          hocket::barrier(comm);
          found.equal(comm.revoked(), false, "revoked by the token of start-up");
        }) == "");
  CHECK(run_worlds(2, shared_memory, [](const world& where, findings& found) {
          std::stop_source source;
          if (where.rank == 1) source.request_stop();
          const auto begin = clock::now();
          found.fails(where.rank == 1 ? errc::aborted : errc::timeout, "connect", [&] {
            auto options = stopped_by(source);
            options.timeout = 500ms;
            hocket::ucx::connect(where, options);
          });
          found.expect(milliseconds_since(begin) < 5000, "it took too long");
        }) == "");
}

TEST_CASE("abort ends each waiting call of any size if the peer makes no progress") {
  using words = std::vector<std::uint64_t>;
  struct waiting {
    const char* name;
    void (*call)(communicator&, const words& in, words& out);
  };
  static const waiting calls[] = {
      {"send",
       [](communicator& comm, const words& in, words&) {
         for (;;) hocket::send(comm, in, hocket::peer{0});  // short messages are sent until the connection is full
       }},
      {"recv", [](communicator& comm, const words&, words& out) { hocket::recv(comm, out, hocket::peer{0}); }},
      {"send_recv", [](communicator& comm, const words& in,
                       words& out) { hocket::send_recv(comm, in, hocket::peer{0}, out, hocket::peer{0}); }},
      {"barrier", [](communicator& comm, const words&, words&) { hocket::barrier(comm); }},
      {"broadcast",
       [](communicator& comm, const words&, words& out) { hocket::broadcast(comm, out, hocket::root{0}); }},
      {"all_reduce", [](communicator& comm, const words& in, words& out) { hocket::all_reduce(comm, in, out); }},
      {"all_reduce_async",
       [](communicator& comm, const words& in, words& out) { hocket::all_reduce_async(comm, in, out).wait(); }},
      {"reduce_scatter", [](communicator& comm, const words& in,
                            words& out) { hocket::reduce_scatter(comm, in, std::span(out).first(out.size() / 2)); }},
      {"all_gather",
       [](communicator& comm, const words& in, words& out) {
         hocket::all_gather(comm, std::span(in).first(in.size() / 2), std::span(out).first(in.size() / 2 * 2));
       }},
      {"all_to_all", [](communicator& comm, const words& in, words& out) { hocket::all_to_all(comm, in, out); }},
  };
  for (const route& way : {shared_memory, network}) {
    for (const std::size_t size : {std::size_t{2}, std::size_t{8} << 10, std::size_t{1} << 20}) {
      for (const waiting& each : calls) {
        const std::string name = std::string(each.name) + ", " + std::to_string(size * 8) + " bytes";
        measure(name, 2, way, [&](const world& where, findings& found, const bells& tell) {
          auto comm = hocket::ucx::connect(where);
          const words in(size);
          words out(size);
          const hocket::peer other{1 - where.rank};
          hocket::send_recv(comm, in, other, out, other);  // so that UCX accepts long messages too
          if (where.rank == 0) return tell.over.wait();
          print_time_to_end(
              found, [] {}, [&] { comm.abort(); }, [&] { each.call(comm, in, out); }, {"abort() was called"}, 20ms);
          tell.over.ring();
        });
      }
    }
  }
}

// If UCX does not divide messages, a rank on a busy machine may not receive the pieces in transit within the
// milliseconds that an abort has: then the connection is closed, and each rank continues alone.
TEST_CASE("abort ends a call with long messages in transit, and the ranks continue together") {
  for (const route& way : {network, posix_memory, whole_messages}) {
    const auto options = hocket::with(hocket::ring);
    const auto body = [&](const world& where, findings& found, const bells& tell) {
      auto comm = hocket::ucx::connect(where);
      std::vector<float> values(std::size_t{1} << 24);
      const auto reduce = [&] {
        for (;;) hocket::all_reduce(comm, hocket::in_place(values), std::plus<>{}, options);
      };
      hocket::barrier(comm);
      std::error_code ended;
      if (where.rank == 0) {
        try {
          reduce();
        } catch (const hocket::error& cause) {
          ended = cause.code();
        }
      } else {
        print_time_to_end(
            found, [] {}, [&] { comm.abort(); }, reduce, {"abort() was called"}, 20ms);
      }
      auto next = hocket::shrink(comm);
      float one = 1;
      hocket::all_reduce(next, hocket::in_place(std::span(&one, 1)));
      found.equal(one, static_cast<float>(next.size()), "sum");
      if (next.size() == 2) {
        std::puts("together");
        found.expect(where.rank == 1 || ended == errc::aborted, "the error is not aborted: " + ended.message());
      }
      tell.over.ring();
    };
    bool together = false;
    for (int attempt = 0; attempt < 20 && !together; ++attempt) {
      together = measure("ring of 64 MB", 2, way, body, "together");
    }
    INFO(way.name);
    CHECK(together);
  }
}

TEST_CASE(
    "abort ends a call after its deadline, while it asks for the culprit or waits for its message to be received") {
  const auto ends = [](const std::string& name, const route& way, auto call, std::chrono::milliseconds after,
                       errc code) {
    measure(name, 2, way, [=](const world& where, findings& found, const bells& tell) {
      auto comm = hocket::ucx::connect(where);
      const std::vector<std::uint64_t> in(std::size_t{1} << 20);
      std::vector<std::uint64_t> out(in.size());
      const hocket::peer other{1 - where.rank};
      hocket::send_recv(comm, in, other, out, other);
      if (where.rank == 0) return tell.over.wait();
      print_time_to_end(
          found, [] {}, [&] { comm.abort(); }, [&] { call(comm, in); }, {}, after, code);
      tell.over.ring();
    });
  };
  const auto late = hocket::with(hocket::timeout(1s));  // and a quarter of that to wait for an answer
  for (const route& way : {shared_memory, network}) {
    ends(
        "a late barrier", way, [=](communicator& comm, const auto&) { hocket::barrier(comm, late); }, 1050ms,
        errc::aborted);
  }
  ends(
      "a late send", whole_messages,
      [=](communicator& comm, const auto& in) { hocket::send(comm, in, hocket::peer{0}, hocket::tag{0}, late); },
      1400ms, errc::timeout);
}

TEST_CASE("after an abort of shrink, all processes can call it again") {
  for (const route& way : {shared_memory, network}) {
    INFO(way.name);
    CHECK(run_worlds(3, way, [](const world& where, findings& found) {
            auto comm = hocket::ucx::connect(where);
            hocket::barrier(comm);
            std::thread other([&] {
              if (where.rank != 0) return;
              std::this_thread::sleep_for(100ms);
              comm.abort();
            });
            if (where.rank == 1) std::this_thread::sleep_for(300ms);
            const auto begin = clock::now();
            found.fails(errc::aborted, "shrink", [&] { hocket::shrink(comm); });
            found.expect(milliseconds_since(begin) < 2000, "took " + std::to_string(milliseconds_since(begin)) + " ms");
            other.join();
            auto next = hocket::shrink(comm);
            found.expect(next.size() == 3, "not all ranks survived");
            hocket::barrier(next);
          }) == "");
  }
}

TEST_CASE("abort ends split, shrink and allocate") {
  for (const route& way : {shared_memory, network}) {
    const auto ends = [&](const std::string& name, auto call) {
      measure(name, 2, way, [call](const world& where, findings& found, const bells& tell) {
        auto comm = hocket::ucx::connect(where);
        if (where.rank == 1) {
          tell.over.wait();
          return;
        }
        print_time_to_end(
            found, [] {}, [&] { comm.abort(); }, [&] { call(comm); }, {"abort() was called"});
        tell.over.ring();
      });
    };
    ends("split", [](communicator& comm) { hocket::split(comm, hocket::color{0}); });
    ends("shrink", [](communicator& comm) { hocket::shrink(comm); });
    ends("allocate", [](communicator& comm) { hocket::allocate<int>(comm, 1000); });
  }
}

TEST_CASE("a communicator is destroyed within 1.5 s if a peer is stopped") {
  for (const route& way : {shared_memory, network}) {
    INFO(way.name);
    const auto results = results_of(2, way, [](const world& where, findings& found) {
      std::optional<communicator> comm(hocket::ucx::connect(where));
      const std::vector<int> own{static_cast<int>(::getpid())};
      std::vector<int> pids(2);
      hocket::all_gather(*comm, own, pids);
      if (where.rank == 1) {
        ::raise(SIGSTOP);
        return;
      }
      std::this_thread::sleep_for(50ms);
      if (found.any()) return;
      comm->abort();
      found.fails(errc::aborted, "barrier", [&] { hocket::barrier(*comm); });
      const auto begin = clock::now();
      comm.reset();
      std::printf("took %.3f\n", milliseconds_since(begin));
      found.expect(milliseconds_since(begin) < 1500, "destruction took " + std::to_string(milliseconds_since(begin)));
      ::kill(pids[1], SIGKILL);
    });
    CHECK(results[0].output.find("took ") != std::string::npos);
    CHECK(results[0].exit_code == 0);
    CHECK(results[1].signal == SIGKILL);
    if (abort_rounds() >= 10) std::printf("destruction over %s: %s", way.name, results[0].output.c_str());
  }
}
