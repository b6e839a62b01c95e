// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// If a rank leaves a communicator normally, only ranks that still wait for it fail: soon, with an error that names it.
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

/// Rank 1 of 3 runs `leave` and ends, the others run `call`. Failures of these two, and the duration of the run.
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

TEST_CASE("a rank that waits for a rank that has left gets peer_lost with the name of that rank") {
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

TEST_CASE("a rank that leaves when no other rank needs it causes no failure") {
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

TEST_CASE("a rank that has aborted and is in no call reports this to the others when it leaves") {
  const ends found = after([](communicator& comm) { comm.abort(); }, [](communicator& comm) { reduce(comm, 1000); });
  CHECK(found.first.code == hocket::errc::aborted);
  CHECK(found.last.code == hocket::errc::aborted);
  CHECK(found.first.context.peer == 1);
  CHECK(found.took < 10s);
}

TEST_CASE("a rank that learns of a failure without its cause keeps its deadline and names no culprit") {
  for (const auto timeout : {50ms, 500ms}) {
    hocket::failure cause;
    clock::duration took{};
    hocket::local::run(2, [&](auto comm) {
      hocket::barrier(comm);
      if (comm.rank() == 1) return;
      auto& state = hocket::detail::communicator_access::state(comm);
      state.layout().header(state.window(0)).revoked.store(1);
      const auto begin = clock::now();
      try {
        hocket::barrier(comm, hocket::with(hocket::timeout(timeout)));
      } catch (const hocket::error& caught) {
        cause = caught.cause();
      }
      took = clock::now() - begin;
    });
    INFO(cause.message());
    CHECK(cause.code == hocket::errc::revoked);
    CHECK(cause.context.peer == -1);
    CHECK(cause.message().find("reports") == std::string::npos);
    CHECK(took < timeout + 500ms);
  }
}

TEST_CASE("reports of other ranks and earlier failures are quoted without brackets") {
  std::vector<std::string> messages(6);
  std::atomic<int> met{0};
  hocket::local::run(3, [&](auto comm) {
    hocket::barrier(comm);
    ++met;
    while (met.load() < 3) std::this_thread::yield();  // else the abort would end their barrier
    const auto message_of = [&] {
      try {
        reduce(comm, 1000);
      } catch (const hocket::error& cause) {
        return std::string(cause.what());
      }
      return std::string();
    };
    if (comm.rank() == 1) comm.abort();
    messages[static_cast<std::size_t>(comm.rank())] = message_of();
    messages[static_cast<std::size_t>(comm.rank()) + 3] = message_of();
  });
  const auto count = [](const std::string& text, const std::string& part) {
    std::size_t found = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
    return found;
  };
  for (const std::string& each : messages) {
    INFO(each);
    CHECK(count(each, "[called at ") == 1);
    CHECK(count(each, "[peer: ") <= 1);
    CHECK(count(each, " on rank ") == 1);
    CHECK(count(each, "abort() was called") == 1);
  }
}

TEST_CASE("a timeout beyond the range of nanoseconds does not expire early") {
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
