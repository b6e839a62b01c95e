// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Ranks that are killed, exit, stop or make no call: the waits of the other ranks end with an error that names them.
#include "support/catch.hpp"
#include "ucx/ranks.hpp"

#include <hocket/core/deadline.hpp>
#include <hocket/core/platform/directory.hpp>
#include <hocket/core/platform/file_descriptor.hpp>
#include <hocket/core/platform/shared_pages.hpp>
#include <hocket/core/platform/wait_ready.hpp>
#include <hocket/group/shrink.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <new>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

namespace {

using namespace ucx_test;
using hocket::errc;
using hocket::with;
using clock = std::chrono::steady_clock;

/// Runs `body(comm, findings)` on all ranks, and checks that SIGKILL has ended the rank `victim`.
template <class Body>
std::string run_with_victim(int ranks, int victim, const route& way, Body body) {
  auto text = run_ranks(ranks, way, body);
  const std::string expected = "rank " + std::to_string(victim) + " was ended by signal 9\n";
  const auto at = text.find(expected);
  if (at == std::string::npos) return text + "the victim was not killed\n";
  return text.erase(at, expected.size());
}

/// Expects that `act` fails with peer_lost within a second, and names `culprit` except if that is -1.
template <class Act>
void expect_loss(findings& found, int culprit, const std::string& what, Act act) {
  const auto begin = clock::now();
  const hocket::failure cause = found.fails(errc::peer_lost, what, act);
  found.expect(clock::now() - begin < 1s, what + " detected the loss after more than a second");
  if (culprit >= 0) found.equal(cause.context.peer, culprit, what + " names the culprit");
}

/// Returns a socket of this process with more than `bytes` bytes to send; -1 if there is none.
int crowded_socket(int bytes) {
  for (const std::string& name : hocket::platform::list_directory("/proc/self/fd")) {
    const int descriptor = std::atoi(name.c_str());
    int waiting = 0;
    if (::ioctl(descriptor, SIOCOUTQ, &waiting) == 0 && waiting > bytes) return descriptor;
  }
  return -1;
}

/// Fills `socket`, which has bytes to send, so that it accepts no more. Does nothing if the socket is closed.
void fill_up(int socket, findings& found) {
  const std::byte byte{};
  const int least = 1;
  if (::send(socket, &byte, 1, MSG_EOR | MSG_DONTWAIT | MSG_NOSIGNAL) != 1) return;
  ::setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &least, sizeof least);
  found.expect(::send(socket, &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL) == -1, "the socket is not full");
}

/// A sum that throws on one rank.
struct refusing {
  bool fails = false;
  static constexpr bool commutative = true;
  double operator()(double a, double b) const { return fails ? throw std::runtime_error("refused") : a + b; }
};

/// A sum whose `throws`-th call in this process throws, once.
struct refusing_once {
  int* calls;
  int throws;
  static constexpr bool commutative = true;
  double operator()(double a, double b) const { return ++*calls == throws ? throw std::runtime_error("once") : a + b; }
};

}  // namespace

TEST_CASE("an operation that throws once, in the middle of a short message, fails the call") {
  for (const route& way : {shared_memory, posix_memory, network}) {
    INFO(way.name);
    CHECK(run_ranks(3, way, [](communicator& comm, findings& found) {
            meet_all(comm);
            const std::vector<double> in(3 * 16, 1);
            std::vector<double> out(16);
            int calls = 0;
            const auto reduce = [&] {
              hocket::reduce_scatter(comm, in, out, refusing_once{&calls, comm.rank() == 1 ? 20 : 0});
            };
            if (comm.rank() == 1) {
              const hocket::failure cause = found.fails(errc::invalid_argument, "reduce_scatter", reduce);
              found.expect(cause.message().find("it threw: once") != std::string::npos, cause.message());
            } else {
              try {
                reduce();
              } catch (const hocket::error&) {}  // unless this rank was done before
            }
          }) == "");
  }
}

TEST_CASE("a killed peer is detected within a second in messages and in shared memory") {
  for (const route& way : {shared_memory, posix_memory, network}) {
    for (const int ranks : {2, 4}) {
      INFO(way.name << ", " << ranks << " ranks");
      const auto killed_in = [&](auto options) {
        return run_with_victim(ranks, 1, way, [&](communicator& comm, findings& found) {
          const auto in = vector_of(comm.rank(), 5000);
          std::vector<std::uint64_t> out(in.size());
          meet_all(comm);
          if (comm.rank() == 1) {
            hocket::all_reduce(comm, in, out, std::plus<>{}, options);
            ::raise(SIGKILL);
          }
          expect_loss(found, way.windows || ranks == 2 ? 1 : -1, "all_reduce", [&] {
            for (;;) hocket::all_reduce(comm, in, out, std::plus<>{}, options);
          });
        });
      };
      CHECK(killed_in(with(hocket::ring)) == "");
      CHECK(killed_in(with(hocket::halving_doubling)) == "");
      CHECK(killed_in(with()) == "");
      if (way.windows) CHECK(killed_in(with(hocket::two_shot)) == "");
    }
  }
}

TEST_CASE("ranks that only send, and so never wait, learn which peer was killed") {
  for (const route& way : {shared_memory, network}) {
    for (const bool gathers : {true, false}) {
      INFO(way.name << ", " << (gathers ? "gather" : "reduce"));
      CHECK(run_with_victim(4, 1, way, [&](communicator& comm, findings& found) {
              const auto in = vector_of(comm.rank(), 8);
              std::vector<std::uint64_t> out(comm.rank() == 0 ? 32U : 0U), sum(comm.rank() == 0 ? 8U : 0U);
              const auto call = [&] {
                if (gathers) hocket::gather(comm, in, out, hocket::root{0});
                else hocket::reduce(comm, in, sum, std::plus<>{}, hocket::root{0});
              };
              meet_all(comm);
              for (int i = 0; comm.rank() == 1; ++i) i < 20 ? call() : static_cast<void>(::raise(SIGKILL));
              expect_loss(found, 1, gathers ? "gather" : "reduce", [&] {
                for (;;) call();
              });
            }) == "");
    }
  }
}

TEST_CASE("the reason of a failed peer that is killed arrives, even if the peer has left messages unread") {
  for (const route& way : {shared_memory, network}) {
    for (const int messages : {1, 200}) {
      INFO(way.name << ", " << messages << " unread messages");
      hocket::failure no_memory;
      const hocket::platform::shared_pages pages(sizeof(std::atomic<int>), no_memory);
      REQUIRE(!no_memory);
      auto& stage = *new (pages.data()) std::atomic<int>(0);  // 1: all is sent, 2: rank 1 ends
      const auto await = [&](int wanted) {
        while (stage < wanted) std::this_thread::sleep_for(1ms);
      };
      CHECK(run_with_victim(2, 1, way, [&](communicator& comm, findings& found) {
              const auto data = vector_of(comm.rank(), 256);
              const std::vector<std::vector<std::uint64_t>> unread(static_cast<std::size_t>(messages), data);
              meet_all(comm);
              if (comm.rank() == 1) {
                await(1);
                comm.abort();
                found.fails(hocket::errc::aborted, "a call after abort()", [&] { hocket::barrier(comm); });
                stage = 2;
                ::raise(SIGKILL);
              }
              std::deque<decltype(hocket::send_async(comm, data, hocket::peer{1}))> sends;
              for (const auto& each : unread) sends.push_back(hocket::send_async(comm, each, hocket::peer{1}));
              stage = 1;
              await(2);
              std::this_thread::sleep_for(100ms);  // the rank reads no message while it computes
              const auto cause = found.fails(hocket::errc::aborted, "a send to a rank that has failed",
                                             [&] { hocket::send(comm, data, hocket::peer{1}); });
              found.expect(cause.context.peer == 1, "the error does not name rank 1: " + cause.message());
            }) == "");
    }
  }
}

TEST_CASE("a peer that is killed while large messages are in flight is detected within a second") {
  for (const route& way : {shared_memory, network}) {
    INFO(way.name);
    CHECK(run_with_victim(2, 1, way, [](communicator& comm, findings& found) {
            const auto in = vector_of(comm.rank(), 4 << 20);
            std::vector<std::uint64_t> out(in.size());
            meet_all(comm);
            int met = 1;
            if (comm.rank() == 0) hocket::send(comm, std::span(&met, 1), hocket::peer{1});
            if (comm.rank() == 1) {
              hocket::recv(comm, std::span(&met, 1), hocket::peer{0});
              auto begun = hocket::all_reduce_async(comm, in, out, std::plus<>{}, with(hocket::ring));
              for (int i = 0; i < 20; ++i) begun.test();
              ::raise(SIGKILL);
            }
            expect_loss(found, 1, "all_reduce", [&] {
              for (;;) hocket::all_reduce(comm, in, out, std::plus<>{}, with(hocket::ring));
            });
          }) == "");
  }
}

TEST_CASE("a connection whose socket is full is closed within four seconds") {
  ::setenv("UCX_KEEPALIVE_INTERVAL", "20s", 1);  // bytes to send keep UCX out of the loop that this test is about
  for (const int sender : {0, 1}) {              // one rank has made the connection, the other has accepted it
    INFO("rank " << sender << " sends");
    const auto over = hocket::platform::make_pipe();
    CHECK(run_worlds(2, network, [&](const world& where, findings& found) {
            auto comm = std::make_optional(hocket::ucx::connect(where));
            const auto large = vector_of(where.rank, 1 << 20), small = vector_of(where.rank, 512);
            auto out = large;
            const hocket::peer other{1 - where.rank};
            hocket::send_recv(*comm, large, other, out, other);
            if (where.rank != sender) {  // receives nothing, and sends no goodbye message
              static_cast<void>(hocket::platform::wait_ready(over.read.get(), POLLIN, hocket::deadline::after(20s)));
              ::_exit(0);
            }
            int crowded = -1;
            for (int tries = 0; crowded < 0 && tries < 100; ++tries) {
              for (int i = 0; i < 100; ++i) hocket::send(*comm, small, other);
              std::this_thread::sleep_for(100ms);  // until the other rank's socket is full
              crowded = crowded_socket(200'000);
            }
            const auto begin = clock::now();
            // By then, the call has failed, and hocket waits for the peer to receive what was sent.
            std::thread filling([&] {
              std::this_thread::sleep_for(750ms);
              fill_up(crowded, found);
            });
            found.fails(errc::timeout, "send",
                        [&] { hocket::send(*comm, large, other, hocket::tag{7}, with(hocket::timeout(500ms))); });
            filling.join();
            comm.reset();
            found.expect(clock::now() - begin < 4s, "the connection was closed after more than four seconds");
            const std::byte now{};
            found.expect(hocket::platform::write_all(over.write.get(), std::span(&now, 1)), "no signal to the peer");
          }) == "");
  }
  ::unsetenv("UCX_KEEPALIVE_INTERVAL");
}

TEST_CASE("ranks that wait for a rank that ended by an exception get peer_lost") {
  for (const route& way : {shared_memory, network}) {
    INFO(way.name);
    CHECK(run_worlds(3, way, [](const world& where, findings& found) {
            try {
              auto comm = hocket::ucx::connect(where);
              const auto in = vector_of(comm.rank(), 1000);
              std::vector<std::uint64_t> out(1000);
              const auto reduce = [&] {
                hocket::all_reduce(comm, in, out, std::plus<>{}, with(hocket::recursive_doubling));
              };
              if (where.rank == 2) {
                reduce();
                throw 7;
              }
              expect_loss(found, 2, "recv", [&] {
                reduce();
                hocket::recv(comm, out, hocket::peer{2});
              });
            } catch (int) {}
          }) == "");
  }
}

TEST_CASE("ranks report why the first rank failed, not that another rank has exited for that reason") {
  for (const route& way : {posix_memory, network}) {
    INFO(way.name);
    const auto ended = results_of(4, way, [](const world& where, findings& found) {
      auto comm = hocket::ucx::connect(where);
      if (!has_windows(comm)) meet_all(comm);
      // Rank 3 computes for a while, and then communicates with rank 1, to which it has not been connected.
      const auto slow_on_three = [&](int a, int b) {
        if (comm.rank() == 3) std::this_thread::sleep_for(500ms);
        return a + b;
      };
      if (comm.rank() == 0) std::this_thread::sleep_for(100ms), comm.abort();
      int one = 1;
      try {
        hocket::all_reduce(comm, hocket::in_place(std::span(&one, 1)), slow_on_three, with(hocket::recursive_doubling));
        found.expect(false, "the call did not fail");
      } catch (const hocket::error& cause) {
        found.expect(std::string(cause.what()).find("abort() was called") != std::string::npos, cause.what());
      }
    });
    CHECK(hocket::launch::describe_failures(ended) == "");
  }
}

TEST_CASE("the next call reports a failure that a started operation has received") {
  CHECK(run_ranks(2, network, [](communicator& comm, findings& found) {
          meet_all(comm);
          const auto own = vector_of(comm.rank(), 200'000);  // copied in several steps
          std::vector<std::uint64_t> all(2 * own.size());
          if (comm.rank() == 1) {
            comm.abort();
            found.fails(errc::aborted, "barrier", [&] { hocket::barrier(comm); });
            std::this_thread::sleep_for(500ms);
            return;
          }
          std::this_thread::sleep_for(200ms);
          hocket::request begun = hocket::all_gather_async(comm, own, all);
          found.fails(errc::aborted, "the next call", [&] { hocket::barrier(comm); });
          found.fails(errc::revoked, "the one after it", [&] { hocket::barrier(comm); });
        }) == "");
}

TEST_CASE("ranks that wait for a rank that has left get an error that names it, by messages and by flags") {
  for (const route& way : {shared_memory, network}) {
    for (const std::size_t size : {std::size_t{2}, std::size_t{3000}, std::size_t{200'000}}) {
      INFO(way.name << ", " << size << " words");
      const auto left = [&](auto leave, errc expected) {
        return run_worlds(3, way, [&](const world& where, findings& found) {
          auto comm = hocket::ucx::connect(where);
          const auto in = vector_of(comm.rank(), size);
          std::vector<std::uint64_t> out(size);
          hocket::all_reduce(comm, in, out);
          if (comm.rank() == 1) return leave(comm);
          const auto begin = clock::now();
          const auto cause = found.fails(expected, "all_reduce", [&] { hocket::all_reduce(comm, in, out); });
          found.expect(clock::now() - begin < 4s, "detected after more than four seconds");
          found.equal(cause.context.peer, 1, "the rank that has left");
        });
      };
      CHECK(left([](communicator&) {}, errc::peer_lost) == "");
      const auto abort = [](communicator& comm) {
        std::this_thread::sleep_for(500ms);  // until the others have left the previous call
        comm.abort();
      };
      CHECK(left(abort, errc::aborted) == "");
    }
  }
}

TEST_CASE("a rank may exit after its last call while others continue") {
  for (const route& way : {shared_memory, posix_memory, network}) {
    INFO(way.name);
    CHECK(run_worlds(4, way, [](const world& where, findings& found) {
            auto comm = hocket::ucx::connect(where);
            auto data = vector_of(comm.rank(), 3000);
            hocket::broadcast(comm, data, hocket::root{0}, with(hocket::binomial));
            found.equal(data, vector_of(0, 3000), "data from rank 0");
            if (comm.rank() == 0) return;
            const hocket::peer after{comm.rank() == 3 ? 1 : comm.rank() + 1};
            const hocket::peer before{comm.rank() == 1 ? 3 : comm.rank() - 1};
            if (comm.rank() == 2) std::this_thread::sleep_for(700ms);
            hocket::send_recv(comm, vector_of(comm.rank(), 3000), after, data, before);
            found.equal(data, vector_of(before.rank, 3000), "data from a neighbour");
          }) == "");
  }
}

TEST_CASE("the last messages of a rank that leaves arrive") {
  for (const route& way : {shared_memory, posix_memory, network}) {
    INFO(way.name);
    CHECK(run_worlds(2, way, [](const world& where, findings& found) {
            auto comm = hocket::ucx::connect(where);
            constexpr std::size_t size = 500;
            if (comm.rank() == 0) {
              for (int i = 0; i < 20; ++i) hocket::send(comm, vector_of(i, size), hocket::peer{1});
              return;
            }
            std::this_thread::sleep_for(300ms);
            std::vector<std::uint64_t> in(size);
            for (int i = 0; i < 20; ++i) {
              hocket::recv(comm, in, hocket::peer{0});
              found.equal(in, vector_of(i, size), "message " + std::to_string(i));
            }
            expect_loss(found, 0, "recv", [&] { hocket::recv(comm, in, hocket::peer{0}); });
          }) == "");
  }
}

TEST_CASE("a call that waits for a stopped process times out and names its rank") {
  for (const route& way : {shared_memory, network}) {
    INFO(way.name);
    CHECK(run_with_victim(2, 1, way, [](communicator& comm, findings& found) {
            const std::vector<int> own{static_cast<int>(::getpid())};
            std::vector<int> pids(2);
            hocket::all_gather(comm, own, pids);
            if (comm.rank() == 1) {
              ::raise(SIGSTOP);
              return;
            }
            const auto in = vector_of(0, 5000);
            std::vector<std::uint64_t> out(in.size());
            const auto cause = found.fails(errc::timeout, "all_reduce", [&] {
              for (;;) hocket::all_reduce(comm, in, out, std::plus<>{}, with(hocket::ring, hocket::timeout(1500ms)));
            });
            found.equal(cause.context.peer, 1, "the culprit");
            ::kill(pids[1], SIGKILL);
          }) == "");
  }
}

TEST_CASE("a message of another length is an error, and does not write beyond the buffer") {
  for (const route& way : {shared_memory, network}) {
    INFO(way.name);
    CHECK(run_ranks(2, way, [](communicator& comm, findings& found) {
            const hocket::peer other{1 - comm.rank()};
            const auto hundred = vector_of(comm.rank(), 100);
            const auto ten = vector_of(comm.rank(), 10);
            auto longer = hocket::send_async(comm, hundred, other, hocket::tag{1});
            auto next = hocket::split(comm, hocket::color{0});
            auto shorter = hocket::send_async(next, ten, other);
            hocket::barrier(hocket::split(comm, hocket::color{0}));  // both ranks arrive before one of them fails
            std::vector<std::uint64_t> in(60, 7);
            found.fails(errc::truncated, "a longer message",
                        [&] { hocket::recv(comm, std::span(in).first(50), other, hocket::tag{1}); });
            found.equal(in[50], std::uint64_t{7}, "the element behind the buffer");
            found.fails(errc::mismatch, "a shorter message", [&] { hocket::recv(next, in, other); });
            std::error_code ignored;
            longer.wait(ignored);
            shorter.wait(ignored);
          }) == "");
  }
}

TEST_CASE("a long message of another length is an error that states its length, for any two lengths") {
  struct lengths {
    route way;
    std::size_t sent, received;
  };
  std::vector<lengths> cases;
  for (const auto& [way, format] :
       {std::pair(posix_memory, hocket::ucx::memory_pieces), std::pair(network, hocket::ucx::tcp_pieces),
        std::pair(whole_messages, hocket::ucx::direct_pieces)}) {
    const std::size_t piece = format.bytes;
    cases.insert(cases.end(), {{way, piece + 1, piece},
                               {way, 3 * piece, piece},
                               {way, 3 * piece, 2 * piece - 1},
                               {way, 70 * piece, 50 * piece},
                               {way, 5 * piece + 1, 7},
                               {way, piece, 3 * piece},
                               {way, 2 * piece + 9, 3 * piece},
                               {way, 50 * piece, 70 * piece},
                               {way, 7, 5 * piece}});
  }
  for (const lengths& each : cases) {
    INFO(each.sent << " bytes where " << each.received << " are expected, over " << each.way.name);
    CHECK(run_ranks(2, each.way, [&](communicator& comm, findings& found) {
            std::vector<std::byte> buffer(comm.rank() == 0 ? each.sent : each.received + 1, std::byte{7});
            if (comm.rank() == 0) {
              std::error_code ignored;
              hocket::send(comm, buffer, hocket::peer{1}, hocket::tag{0}, hocket::with(hocket::timeout(2s)), ignored);
              return;
            }
            buffer.back() = std::byte{5};
            const bool longer = each.sent > each.received;
            const auto cause = found.fails(longer ? errc::truncated : errc::mismatch, "recv", [&] {
              hocket::recv(comm, std::span(buffer).first(each.received), hocket::peer{0});
            });
            // The receiver waits only some milliseconds for the rest of a busy sender's message.
            const auto says = [&](const std::string& what, std::size_t bytes) {
              return cause.message().find(what + std::to_string(bytes) + " bytes") != std::string::npos;
            };
            found.expect(says("the peer sent ", each.sent) || (longer && says("more than ", each.received)),
                         cause.message());
            found.expect(buffer.back() == std::byte{5}, "the element behind the buffer");
          }) == "");
  }
}

TEST_CASE("a receive that times out does not change its buffer, and other communicators continue to work") {
  for (const route& way : {shared_memory, network}) {
    INFO(way.name);
    CHECK(run_ranks(2, way, [](communicator& comm, findings& found) {
            auto next = hocket::split(comm, hocket::color{0});
            {
              std::vector<std::uint64_t> in(100000, 7);
              found.fails(errc::timeout, "recv", [&] {
                hocket::recv(comm, in, hocket::peer{1 - comm.rank()}, hocket::tag{3}, with(hocket::timeout(100ms)));
              });
              found.equal(in[99999], std::uint64_t{7}, "an element of a buffer that received nothing");
            }
            const int one = 1;
            int sum = 0;
            hocket::all_reduce(next, std::span(&one, 1), std::span(&sum, 1));
            found.equal(sum, 2, "sum on another communicator");
          }) == "");
  }
}

TEST_CASE("ranks whose long call fails can shrink later and keep all live ranks") {
  // An event that ends a call on all ranks; it may kill rank 2.
  struct ending {
    const char* name;
    int left;
    std::function<void(communicator&, std::span<double>)> happens;
  };
  const auto endless = [](communicator& comm, std::span<double> values, auto op, auto... more) {
    for (;;) hocket::all_reduce(comm, hocket::in_place(values), op, with(hocket::ring, more...));
  };
  const auto killed = [](communicator& comm) {
    return comm.rank() == 2 ? std::jthread([] { std::this_thread::sleep_for(20ms), ::raise(SIGKILL); })
                            : std::jthread();
  };
  const std::vector<ending> endings{
      {"a rank is killed", 2,
       [=](communicator& comm, std::span<double> values) {
         const auto killer = killed(comm);
         endless(comm, values, std::plus<>{});
       }},
      {"a rank is killed, and messages have checksums", 2,
       [=](communicator& comm, std::span<double> values) {
         const auto killer = killed(comm);
         endless(comm, values, std::plus<>{}, hocket::require(hocket::checksummed));
       }},
      {"counts differ", 3,
       [=](communicator& comm, std::span<double> values) {
         endless(comm, values.first(comm.rank() == 0 ? 10 : values.size()), std::plus<>{});
       }},
      {"an operation throws", 3,
       [=](communicator& comm, std::span<double> values) { endless(comm, values, refusing{comm.rank() == 1}); }},
      {"a call is late, and another was started", 3,
       [=](communicator& comm, std::span<double> values) {
         if (comm.rank() == 2) {
           auto begun = hocket::all_reduce_async(comm, hocket::in_place(values), std::plus<>{}, with(hocket::ring));
           std::this_thread::sleep_for(1500ms);  // simulates a computation
           begun.wait();
         }
         hocket::all_reduce(comm, hocket::in_place(values), std::plus<>{}, with(hocket::ring, hocket::timeout(300ms)));
         endless(comm, values, std::plus<>{});
       }},
  };
  for (const route& way : {shared_memory, network}) {
    for (const ending& each : endings) {
      INFO(each.name << ", over " << way.name);
      const auto body = [&](communicator& comm, findings& found) {
        meet_all(comm);
        auto other = hocket::split(comm, hocket::color{0});
        hocket::barrier(other);
        std::vector<double> values(std::size_t{1} << 19, 1);
        try {
          each.happens(comm, values);
        } catch (const hocket::error&) {}
        std::this_thread::sleep_for(700ms);
        if (each.left == 3) hocket::barrier(other);
        auto next = hocket::shrink(comm);
        found.equal(next.size(), each.left, "surviving ranks");
        std::fill(values.begin(), values.end(), 1);
        hocket::all_reduce(next, hocket::in_place(values), std::plus<>{}, with(hocket::ring));
        found.equal(values.back(), 1.0 * next.size(), "sum");
      };
      CHECK((each.left == 2 ? run_with_victim(3, 2, way, body) : run_ranks(3, way, body)) == "");
    }
  }
}
