// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Another thread aborts a call, or the creation of a communicator, that waits for a missing rank.
// unsanitized: it measures
#include "support/abort_latency.hpp"
#include "support/thread_ranks.hpp"

#include <hocket/collective/all_reduce.hpp>
#include <hocket/group/shrink.hpp>
#include <hocket/group/split.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <thread>
#include <vector>

using namespace hocket_test;
using namespace std::chrono_literals;

namespace {

/// All ranks run `call`, except rank 1, which ends when the call of rank 0 has been aborted.
template <class Call>
void check_among(int ranks, const std::string& name, Call call) {
  abort_latency found(name + ", " + std::to_string(ranks) + " ranks");
  while (found.wants_more()) {
    std::atomic<bool> over{false};
    latency took;
    on_ranks(ranks, [&](thread_rank& me) {
      me.at(name);
      if (me.rank() >= 2) {
        try {
          call(me.comm());
          me.complain("no error");
        } catch (const hocket::error& heard) {
          if (heard.code() == hocket::errc::aborted)
            me.check(heard.context().peer == 0, "does not name the rank that aborted");
        }
      }
      while (me.rank() == 1 && !over.load()) std::this_thread::sleep_for(1ms);
      if (me.rank() != 0) return;
      stopwatch watch;
      watch.waits();
      std::thread other([&] {
        std::this_thread::sleep_for(30ms);
        watch.start();
        me.comm().abort();
      });
      me.expect(hocket::errc::aborted, [&] { call(me.comm()); });
      took = watch.stop();
      other.join();
      over = true;
    });
    found.add(took);
  }
  found.check();
}

template <class Call>
void check(const std::string& name, Call call) {
  for (const int ranks : {2, 3, 5}) check_among(ranks, name, call);
}

}  // namespace

TEST_CASE("abort ends collectives that wait for a missing rank, and the other ranks get an error") {
  for (const std::size_t size : {std::size_t{2}, std::size_t{10'000}}) {
    const std::vector<float> in(size);
    check("all_reduce of threads, " + std::to_string(size) + " elements", [&](hocket::local::communicator& comm) {
      std::vector<float> out(size);
      hocket::all_reduce(comm, in, out);
    });
    check("ring of threads, " + std::to_string(size) + " elements", [&](hocket::local::communicator& comm) {
      std::vector<float> out(size);
      hocket::all_reduce(comm, in, out, std::plus<>{}, hocket::with(hocket::ring));
    });
  }
}

TEST_CASE("abort ends an exact all_reduce of a large vector, which takes long to convert") {
  const std::vector<double> in(500'000, 0.1);
  check("exact all_reduce of threads", [&](hocket::local::communicator& comm) {
    std::vector<double> out(in.size());
    hocket::all_reduce(comm, in, out, std::plus<>{}, hocket::with(hocket::require(hocket::rank_count_invariant)));
  });
}

TEST_CASE("abort ends a split that waits for a missing rank") {
  check("split of threads", [](hocket::local::communicator& comm) { hocket::split(comm, hocket::color{0}); });
}

TEST_CASE("abort ends a shrink that waits for a missing rank") {
  check("shrink of threads", [](hocket::local::communicator& comm) {
    if (comm.rank() == 0) {
      hocket::shrink(comm);
    } else {
      hocket::shrink(comm, hocket::with(hocket::timeout(1s)));
    }
  });
}

TEST_CASE("abort ends a call also after its deadline, while it determines the culprit") {
  // Determining the culprit takes up to a quarter of the deadline.
  for (const int ranks : {2, 5}) {
    abort_latency found("all_reduce past its deadline, " + std::to_string(ranks) + " ranks");
    while (found.wants_more()) {
      std::atomic<bool> over{false};
      latency took;
      on_ranks(ranks, [&](thread_rank& me) {
        const std::vector<float> in(2);
        std::vector<float> out(2);
        if (me.rank() != 0) {
          while (!over.load()) std::this_thread::sleep_for(1ms);
          return;
        }
        stopwatch watch;
        watch.waits();
        std::thread other([&] {
          std::this_thread::sleep_for(2050ms);
          watch.start();
          me.comm().abort();
        });
        me.expect(hocket::errc::aborted,
                  [&] { hocket::all_reduce(me.comm(), in, out, std::plus<>{}, hocket::with(hocket::timeout(2s))); });
        took = watch.stop();
        other.join();
        over = true;
      });
      found.add(took);
    }
    found.check();
  }
}

TEST_CASE("after an abort, all ranks can shrink together") {
  for (const int ranks : {1, 2, 3, 5}) {
    on_ranks(ranks, [](thread_rank& me) {
      if (me.rank() == 0) me.comm().abort();
      std::vector<float> data(2);
      me.expect(hocket::errc::aborted, [&] { hocket::all_reduce(me.comm(), hocket::in_place(data)); });
      auto next = hocket::shrink(me.comm());
      me.check(next.size() == me.size(), "a rank is missing");
      hocket::all_reduce(next, hocket::in_place(data));
    });
  }
}

TEST_CASE("an abort within shrink ends it on all ranks, also on a late one, and all can call it again") {
  for (const int ranks : {2, 3, 5}) {
    std::atomic<int> ended{0};
    on_ranks(ranks, [&](thread_rank& me) {
      const auto is_cancelled = [&] {
        const auto cause = me.expect(hocket::errc::aborted, [&] { static_cast<void>(hocket::shrink(me.comm())); });
        if (!cause || me.rank() == 0) return;
        me.check(cause->context().peer == 0 &&
                     std::string(cause->what()).find("rank 0 reports: abort() was") != std::string::npos,
                 [&] { return std::string("wrong message: ") + cause->what(); });
      };
      std::thread other([&] {
        if (me.rank() != 0) return;
        std::this_thread::sleep_for(30ms);
        me.comm().abort();
      });
      while (me.rank() == 1 && ended.load() < me.size() - 1) std::this_thread::sleep_for(1ms);
      const auto begin = std::chrono::steady_clock::now();
      is_cancelled();
      ++ended;
      other.join();
      me.check(std::chrono::steady_clock::now() - begin < 5s, "it took too long");
      auto next = hocket::shrink(me.comm());
      me.check(next.size() == me.size(), "a rank is missing");
      std::vector<float> data(2);
      hocket::all_reduce(next, hocket::in_place(data));
    });
  }
}
