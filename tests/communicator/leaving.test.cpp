// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A rank that leaves a communicator in order fails only those that still wait for it: soon, and by name.
#include "support/catch.hpp"

#include <hocket/hocket.hpp>

#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;
using communicator = hocket::local::communicator;

/// Rank 1 of 3 does `leave` and ends, the others `call`. What these two failed with, and how long both took.
struct ends {
  hocket::failure first, last;
  clock::duration took;
};
ends after(const std::function<void(communicator&)>& leave, const std::function<void(communicator&)>& call) {
  std::vector<hocket::failure> causes(3);
  std::atomic<int> met{0};
  const auto begin = clock::now();
  hocket::local::run(3, [&](auto comm) {
    comm.set_timeout(20s);
    hocket::barrier(comm);
    ++met;
    if (comm.rank() == 1) {
      while (met.load() < 3) std::this_thread::yield();  // else an abort would end their barrier
      return leave(comm);
    }
    try {
      call(comm);
    } catch (const hocket::error& cause) {
      causes[static_cast<std::size_t>(comm.rank())] = cause.cause();
    }
  });
  return {causes[0], causes[2], clock::now() - begin};
}

void reduce(communicator& comm, std::size_t size) {
  const std::vector<float> in(size, 1);
  std::vector<float> out(size);
  hocket::all_reduce(comm, in, out);
}

}  // namespace

TEST_CASE("whoever waits for a rank that has left hears so") {
  for (const std::size_t size : {std::size_t{2}, std::size_t{1000}, std::size_t{100'000}}) {
    INFO(size << " elements");
    const ends found = after([](communicator&) {}, [&](communicator& comm) { reduce(comm, size); });
    CHECK(found.first.code == hocket::errc::peer_lost);
    CHECK(found.last.code == hocket::errc::peer_lost);
    CHECK(found.first.context.peer == 1);
    CHECK(found.last.context.peer == 1);
    CHECK(found.first.message().find("it has left the communicator") != std::string::npos);
    CHECK(found.took < 10s);
  }
}

TEST_CASE("a rank that leaves when others need nothing of it any more fails nobody") {
  const ends found = after([](communicator& comm) { reduce(comm, 1000); },
                           [](communicator& comm) {
                             reduce(comm, 1000);
                             std::vector<int> in(10), out(10);
                             std::this_thread::sleep_for(comm.rank() == 0 ? 600ms : 0ms);
                             const hocket::peer other{2 - comm.rank()};
                             hocket::send_recv(comm, in, other, out, other);
                           });
  CHECK_FALSE(found.first);
  CHECK_FALSE(found.last);
}

TEST_CASE("who has aborted and is in no call tells the others when it leaves") {
  const ends found = after([](communicator& comm) { comm.abort(); }, [](communicator& comm) { reduce(comm, 1000); });
  CHECK(found.first.code == hocket::errc::aborted);
  CHECK(found.last.code == hocket::errc::aborted);
  CHECK(found.first.context.peer == 1);
  CHECK(found.took < 10s);
}

TEST_CASE("a duration beyond what nanoseconds can count waits for ever") {
  hocket::local::run(2, [](auto comm) {
    comm.set_timeout(std::chrono::hours::max());
    std::this_thread::sleep_for(comm.rank() == 0 ? 50ms : 0ms);
    reduce(comm, 100);
    const std::vector<int> in(5);
    std::vector<int> out(5);
    std::this_thread::sleep_for(comm.rank() == 0 ? 50ms : 0ms);
    hocket::all_reduce(comm, in, out, std::plus<>{}, hocket::with(hocket::timeout(std::chrono::seconds::max())));
  });
}
