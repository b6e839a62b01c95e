// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// wait_all and wait_any drive all operations, whatever the order in which ranks list them.
#include "collective/cases.hpp"
#include "support/held_call.hpp"

#include <hocket/collective/all_reduce.hpp>
#include <hocket/collective/barrier.hpp>
#include <hocket/collective/recv.hpp>
#include <hocket/collective/send.hpp>
#include <hocket/core/wait.hpp>

#include <chrono>
#include <functional>
#include <set>
#include <span>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

using namespace hocket_test;
using namespace std::chrono_literals;

namespace {

/// A sum of one number per rank.
struct small_sum {
  int in = 0;
  int out = -1;
};

hocket::request start_sum(const hocket::local::communicator& comm, small_sum& of) {
  return hocket::all_reduce_async(comm, std::span<const int>(&of.in, 1), std::span<int>(&of.out, 1));
}

}  // namespace

TEST_CASE("wait_all waits for operations on several communicators in an order of each rank's own") {
  for (const int ranks : rank_counts) {
    on_ranks(ranks, [](thread_rank& me) {
      const auto comms = copies_of(me.comm(), 3);
      for (int round = 0; round < 20; ++round) {
        std::vector<small_sum> sums(comms.size());
        std::vector<hocket::request> requests;
        for (std::size_t i = 0; i < comms.size(); ++i) {
          const std::size_t which = (i + static_cast<std::size_t>(me.rank())) % comms.size();
          sums[which].in = static_cast<int>(which) + round;
          requests.push_back(start_sum(comms[which], sums[which]));
        }
        requests.emplace_back();
        hocket::wait_all(requests);
        for (std::size_t i = 0; i < sums.size(); ++i)
          me.check(sums[i].out == me.size() * (static_cast<int>(i) + round), "wrong sum");
        for (hocket::request& each : requests) me.check(each.test(), "has not ended");
      }
    });
  }
}

TEST_CASE("wait_all takes requests one by one, empty ones, and none") {
  on_ranks(2, [](thread_rank& me) {
    small_sum first{1}, second{2};
    hocket::request a = start_sum(me.comm(), first), b = start_sum(me.comm(), second), none;
    hocket::wait_all(a, none, b);
    me.check(first.out == 2 && second.out == 4, "wrong sums");
    hocket::wait_all(none);
    hocket::wait_all();
    hocket::wait_all(std::span<hocket::request>());
    std::error_code code = hocket::errc::timeout;
    hocket::wait_all(a, b, none, code);
    me.check(!code, "the code of success");
    code = hocket::errc::timeout;
    hocket::wait_all(std::span<hocket::request>(), code);
    me.check(!code, "the code of an empty list");
    code = hocket::errc::timeout;
    me.check(hocket::wait_any(std::span<hocket::request>(), code) == 0 && !code, "any of an empty list, with a code");
    me.check(hocket::wait_any(std::span<hocket::request>()) == 0, "any of an empty list");
    me.check(none.is_empty() && !a.is_empty(), "empty");
  });
}

TEST_CASE("wait_any returns each request once, when it has ended, and then the number of requests") {
  for (const int ranks : {1, 2, 3, 5}) {
    on_ranks(ranks, [](thread_rank& me) {
      const auto comms = copies_of(me.comm(), 2);
      std::vector<small_sum> sums(6);
      std::vector<hocket::request> requests;
      for (std::size_t i = 0; i < sums.size(); ++i) {
        sums[i].in = static_cast<int>(i);
        requests.push_back(start_sum(comms[i % 2], sums[i]));
      }
      std::set<std::size_t> ended;
      for (std::size_t i = 0; i < sums.size(); ++i) {
        const std::size_t found = hocket::wait_any(requests);
        me.check(found < sums.size() && ended.insert(found).second, "returned twice");
        me.check(sums[found].out == me.size() * static_cast<int>(found), "has not ended");
        me.check(requests[found].is_empty(), "is not empty");
      }
      me.check(hocket::wait_any(requests) == requests.size(), "all are empty");
      std::error_code code = hocket::errc::timeout;
      me.check(hocket::wait_any(requests, code) == requests.size() && !code, "all are empty, with a code");
    });
  }
}

TEST_CASE("wait_any returns the message that has arrived, not the first in the list") {
  on_ranks(2, [](thread_rank& me) {
    if (me.rank() == 0) {
      int early = 0, late = 0;
      std::vector<hocket::request> requests;
      requests.push_back(hocket::recv_async(me.comm(), std::span(&late, 1), hocket::peer{1}, hocket::tag{1}));
      requests.push_back(hocket::recv_async(me.comm(), std::span(&early, 1), hocket::peer{1}, hocket::tag{2}));
      me.check(hocket::wait_any(requests) == 1 && early == 7, "the early one");
      hocket::send(me.comm(), std::span(&early, 1), hocket::peer{1}, hocket::tag{3});
      me.check(hocket::wait_any(requests) == 0 && late == 8, "the late one");
    } else {
      int seven = 7, eight = 8, answer = 0;
      hocket::send(me.comm(), std::span(&seven, 1), hocket::peer{0}, hocket::tag{2});
      hocket::recv(me.comm(), std::span(&answer, 1), hocket::peer{0}, hocket::tag{3});
      hocket::send(me.comm(), std::span(&eight, 1), hocket::peer{0}, hocket::tag{1});
    }
  });
}

TEST_CASE("if operations fail, wait_all ends all of them and reports the first, and wait_any each one") {
  on_ranks(2, [](thread_rank& me) {
    auto comms = copies_of(me.comm(), 3);
    std::vector<small_sum> sums(3);
    std::vector<hocket::request> requests;
    for (std::size_t i = 0; i < comms.size(); ++i) {
      const bool is_missing = me.rank() == 1 && i == 1;  // until the other rank has aborted
      requests.push_back(is_missing ? hocket::request() : start_sum(comms[i], sums[i]));
    }
    if (me.rank() == 0) {
      comms[1].abort();
      me.expect(hocket::errc::aborted, [&] { hocket::wait_all(requests); });
      for (std::size_t i = 0; i < requests.size(); ++i)
        me.check(requests[i].test() && static_cast<bool>(requests[i].error()) == (i == 1), "wrong request failed");
      std::error_code code;
      hocket::wait_all(requests, code);
      me.check(code == hocket::errc::aborted, "the code of wait_all");
      code.clear();
      hocket::wait_all(requests[0], requests[1], requests[2], code);
      me.check(code == hocket::errc::aborted, "the code of wait_all of requests one by one");
      me.check(hocket::wait_any(requests, code) == 0 && !code, "the first has not failed");
      me.check(hocket::wait_any(requests, code) == 1 && code == hocket::errc::aborted, "the second has failed");
      hocket::wait_all(requests);
      hocket::barrier(me.comm());
    } else {
      hocket::wait_all(requests[2], requests[1], requests[0]);
      hocket::barrier(me.comm());  // from here on, the other rank has been aborted
      me.expect(hocket::errc::aborted, [&] { start_sum(comms[1], sums[1]).wait(); });
    }
    me.check(sums[0].out == 0 && sums[2].out == 0, "the others have not failed");
  });
}

TEST_CASE("wait_all and wait_any end at the deadline of an operation whose peer never calls") {
  on_ranks(2, [](thread_rank& me) {
    const auto comms = copies_of(me.comm(), 2);
    if (me.rank() == 0) {
      std::vector<small_sum> sums(2);
      std::vector<hocket::request> requests;
      const auto brief = hocket::with(hocket::timeout(50ms));
      for (std::size_t i = 0; i < comms.size(); ++i) {
        requests.push_back(hocket::all_reduce_async(comms[i], std::span<const int>(&sums[i].in, 1),
                                                    std::span<int>(&sums[i].out, 1), std::plus<>{}, brief));
      }
      me.expect(hocket::errc::timeout, [&] { hocket::wait_all(requests); });
    }
    hocket::barrier(me.comm());
  });
}

TEST_CASE("if several operations fail, wait_all reports the first of the list, whichever has failed first") {
  on_ranks(2, [](thread_rank& me) {
    auto comms = copies_of(me.comm(), 2);
    hocket::barrier(me.comm());  // the other rank must not be in split when this one aborts
    if (me.rank() == 0) {
      std::vector<small_sum> sums(2);
      const auto start = [&](std::size_t i, std::chrono::milliseconds timeout) {
        return hocket::all_reduce_async(comms[i], std::span<const int>(&sums[i].in, 1), std::span<int>(&sums[i].out, 1),
                                        std::plus<>{}, hocket::with(hocket::timeout(timeout)));
      };
      hocket::request slow = start(0, 80ms), fast = start(1, 10s);
      comms[1].abort();
      std::error_code code;
      hocket::wait_all(slow, fast, code);
      me.check(code == hocket::errc::timeout, "the first of the list has timed out");
      hocket::wait_all(fast, slow, code);
      me.check(code == hocket::errc::aborted, "the first of the list was aborted");
      me.expect(hocket::errc::timeout, [&] { hocket::wait_all(slow, fast); });
    }
    hocket::barrier(me.comm());
  });
}

TEST_CASE("wait_all and wait_any end operations of communicators that were destroyed before") {
  for (const int ranks : {2, 3}) {
    on_ranks(ranks, [](thread_rank& me) {
      std::vector<small_sum> sums(4);
      std::vector<hocket::request> requests;
      {
        const auto comms = copies_of(me.comm(), 4);
        for (std::size_t i = 0; i < comms.size(); ++i) {
          sums[i].in = static_cast<int>(i) + 1;
          requests.push_back(start_sum(comms[i], sums[i]));
        }
      }
      const std::size_t any = hocket::wait_any(requests);
      me.check(any < 4 && sums[any].out == me.size() * (static_cast<int>(any) + 1), "the sum of wait_any");
      hocket::wait_all(requests);
      for (std::size_t i = 0; i < sums.size(); ++i)
        me.check(sums[i].out == me.size() * (static_cast<int>(i) + 1), "wrong sum");
    });
  }
}

TEST_CASE("while another thread uses a communicator, wait_all and wait_any refuse its operations and end the others") {
  on_ranks(2, [](thread_rank& me) {
    const auto comms = copies_of(me.comm(), 2);
    std::vector<small_sum> sums{{1}, {2}};
    std::vector<hocket::request> requests;
    for (std::size_t i = 0; i < comms.size(); ++i) requests.push_back(start_sum(comms[i], sums[i]));
    held_call held;
    const int one = 1;
    int two = 0;
    const auto use = [&](held_call* by) {
      hocket::all_reduce(comms[0], std::span(&one, 1), std::span(&two, 1), held_plus{by});
    };
    if (me.rank() == 0) {
      std::thread user([&] { use(&held); });
      while (!held.entered) std::this_thread::yield();
      std::error_code code;
      hocket::wait_all(requests, code);
      me.check(code == hocket::errc::concurrent_use, "the code of wait_all");
      me.check(requests[0].error().code == hocket::errc::concurrent_use, "the request of the used communicator");
      me.check(requests[1].test() && sums[1].out == 4, "the other has not ended");
      me.check(hocket::wait_any(requests) == 1, "wait_any does not pass over the used communicator");
      me.expect(hocket::errc::concurrent_use, [&] { hocket::wait_any(requests); });
      me.check(hocket::wait_any(requests, code) == 0 && code == hocket::errc::concurrent_use, "the code of wait_any");
      me.check(!requests[0].is_empty() && requests[1].is_empty(), "the refused request has changed");
      held.may_end = true;
      user.join();
    } else {
      use(nullptr);
    }
    hocket::wait_all(requests);
    me.check(two == 2 && sums[0].out == 2, "the operations of the used communicator");
  });
}
