// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Several operations in flight on one communicator: each gives its own result, in any order of waiting.
#include "collective/cases.hpp"

#include <hocket/collective/all_gather.hpp>
#include <hocket/collective/all_reduce.hpp>
#include <hocket/collective/all_to_all.hpp>
#include <hocket/collective/barrier.hpp>
#include <hocket/collective/broadcast.hpp>
#include <hocket/collective/reduce_scatter.hpp>
#include <hocket/group/split.hpp>
#include <hocket/operation/operations.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <numeric>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace hocket_test;

namespace {

/// Sum of (k + rank) over all ranks.
std::int64_t sum_over(int ranks, std::int64_t k) { return ranks * k + ranks * (ranks - 1) / 2; }

struct started_sum {
  std::vector<std::int64_t> in;
  std::vector<std::int64_t> out;
  hocket::request pending;
};

template <class Options>
std::vector<started_sum> start_sums(thread_rank& me, std::size_t count, std::size_t size, const Options& options) {
  std::vector<started_sum> sums(count);
  for (std::size_t k = 0; k < count; ++k) {
    sums[k].in.assign(size + k, static_cast<std::int64_t>(k) + me.rank());
    sums[k].out.assign(size + k, -1);
    sums[k].pending = hocket::all_reduce_async(me.comm(), sums[k].in, sums[k].out, std::plus<>{}, options);
  }
  return sums;
}

void check_sum(thread_rank& me, const started_sum& sum, std::size_t k) {
  const std::int64_t expected = sum_over(me.size(), static_cast<std::int64_t>(k));
  const bool right = std::all_of(sum.out.begin(), sum.out.end(), [&](std::int64_t each) { return each == expected; });
  me.check(right, [&] { return "operation " + std::to_string(k) + " gave a wrong sum"; });
}

/// Waits for the sums in an order that differs between ranks.
void wait_in_own_order(thread_rank& me, std::vector<started_sum>& sums) {
  const std::size_t count = sums.size();
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t k = me.rank() % 2 == 0 ? count - 1 - i : (i * 7 + static_cast<std::size_t>(me.rank())) % count;
    sums[k].pending.wait();
  }
  for (auto& each : sums) each.pending.wait();
  for (std::size_t k = 0; k < count; ++k) check_sum(me, sums[k], k);
}

template <class Options>
void check_in_flight(int ranks, std::size_t count, std::size_t size, const Options& options) {
  on_ranks(ranks, [&](thread_rank& me) {
    me.at([&] { return std::to_string(count) + " operations of " + std::to_string(size) + " elements in flight"; });
    for (int round = 0; round < 3; ++round) {
      auto sums = start_sums(me, count, size, options);
      wait_in_own_order(me, sums);
    }
  });
}

}  // namespace

TEST_CASE("operations in flight on one communicator can be waited for in any order") {
  for (const int ranks : {1, 2, 3, 5, 8}) {
    for (const std::size_t count : {std::size_t{2}, std::size_t{7}, std::size_t{hocket::transport::window + 13}}) {
      check_in_flight(ranks, count, 1, hocket::with());
      check_in_flight(ranks, count, 1000, hocket::with());
      check_in_flight(ranks, count, 300, hocket::with(hocket::ring));
      check_in_flight(ranks, count, 300, hocket::with(hocket::double_tree(2)));
      check_in_flight(ranks, count, 300, hocket::with(hocket::one_shot));
      check_in_flight(ranks, count, 30'000, hocket::with(hocket::halving_doubling));
    }
  }
}

TEST_CASE("different operations in flight do not interfere") {
  for (const int ranks : {2, 3, 8}) {
    on_ranks(ranks, [](thread_rank& me) {
      const auto p = static_cast<std::size_t>(me.size());
      const auto r = static_cast<std::size_t>(me.rank());
      for (std::uint32_t round = 0; round < 50; ++round) {
        std::vector<std::uint32_t> own(3, round * 100 + static_cast<std::uint32_t>(r)), all(3 * p);
        std::vector<std::uint32_t> blocks(p), swapped(p), told(5, r == p - 1 ? round : 0), sums(p, round), sum(1),
            one(1, round), same(1);
        for (std::size_t d = 0; d < p; ++d) blocks[d] = static_cast<std::uint32_t>(r * 10 + d) + round;
        auto barrier = hocket::barrier_async(me.comm());
        auto gather = hocket::all_gather_async(me.comm(), own, all);
        auto swap = hocket::all_to_all_async(me.comm(), blocks, swapped);
        auto tell = hocket::broadcast_async(me.comm(), told, hocket::root{me.size() - 1});
        auto scatter = hocket::reduce_scatter_async(me.comm(), sums, sum);
        hocket::all_reduce(me.comm(), one, same, hocket::maximum{});
        for (auto* each : {&scatter, &tell, &swap, &gather, &barrier}) each->wait();
        for (std::size_t s = 0; s < p; ++s) {
          me.check(all[3 * s + 1] == round * 100 + s, "wrong result of all_gather");
          me.check(swapped[s] == s * 10 + r + round, "wrong result of all_to_all");
        }
        me.check(same[0] == round, "wrong result of all_reduce");
        me.check(told[4] == round, "wrong result of broadcast");
        me.check(sum[0] == round * p, "wrong result of reduce_scatter");
      }
    });
  }
}

// When the next, small call starts, the request is still open on one rank and complete on another: both ranks must
// choose the same algorithm for it.
TEST_CASE("later calls give correct results whether or not a request is still open") {
  for (const int ranks : {2, 3, 8}) {
    on_ranks(ranks, [](thread_rank& me) {
      for (int round = 0; round < 100; ++round) {
        std::vector<float> in(1000, 1.0F), out(1000);
        auto large = hocket::all_reduce_async(me.comm(), in, out);
        if (me.rank() == round % me.size()) large.wait();
        if (me.rank() == (round + 1) % me.size()) large = hocket::request();
        int one = 1, sum = 0;
        hocket::all_reduce(me.comm(), std::span(&one, 1), std::span(&sum, 1));
        me.check(sum == me.size(), "wrong sum of one element");
        large.wait();
        me.check(out[999] == static_cast<float>(me.size()), "wrong sum of many elements");
      }
    });
  }
}

TEST_CASE("test() advances an operation until it is complete and then stays true") {
  on_ranks(3, [](thread_rank& me) {
    std::vector<float> in(5000, 1.0F), out(5000);
    if (me.rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    auto sum = hocket::all_reduce_async(me.comm(), in, out, std::plus<>{}, hocket::with(hocket::ring));
    if (me.rank() != 1) me.check(!sum.test(), "was complete before a peer arrived");
    while (!sum.test()) {}
    me.check(sum.test(), "test() became false again");
    me.check(!sum.error(), "an error without a failure");
    me.check(out[4999] == 3.0F, "wrong sum");
    sum.wait();
    hocket::request empty;
    me.check(empty.test() && !empty.error(), "an empty request is not complete");
    hocket::barrier(me.comm());
  });
}

TEST_CASE("a polled request ends at its deadline and on abort") {
  on_ranks(2, [](thread_rank& me) {
    if (me.rank() == 1) return;
    std::vector<float> in(500), out(500);
    auto sum = hocket::all_reduce_async(me.comm(), in, out, std::plus<>{},
                                        hocket::with(hocket::timeout(std::chrono::milliseconds(30))));
    const auto begin = std::chrono::steady_clock::now();
    while (!sum.test()) {}
    me.check(std::chrono::steady_clock::now() - begin < std::chrono::seconds(5),
             "polled for far longer than the timeout");
    me.expect(hocket::errc::timeout, [&] { sum.wait(); });
    me.check(sum.error().context.peer == 1, "does not name the missing rank");
  });
  on_ranks(2, [](thread_rank& me) {
    if (me.rank() == 1) return;
    std::vector<float> in(500), out(500);
    auto sum = hocket::all_reduce_async(me.comm(), in, out);
    std::thread other([&] { me.comm().abort(); });
    while (!sum.test()) {}
    other.join();
    me.expect(hocket::errc::aborted, [&] { sum.wait(); });
  });
}

TEST_CASE("a request that is destroyed or assigned to waits for its operation first") {
  on_ranks(4, [](thread_rank& me) {
    for (int round = 0; round < 20; ++round) {
      std::vector<int> in(2000, me.rank()), out(2000), more(2000);
      {
        auto dropped = hocket::all_reduce_async(me.comm(), in, out);
        dropped = hocket::all_reduce_async(me.comm(), in, more);
        me.check(out[1999] == 6, "assigning did not wait");
      }
      me.check(more[1999] == 6, "destruction did not wait");
    }
  });
}

TEST_CASE("a destroyed request whose peer never calls stops waiting at its deadline, without an exception") {
  on_ranks(2, [](thread_rank& me) {
    if (me.rank() == 1) return;
    std::vector<int> in(2000), out(2000);
    {
      auto dropped = hocket::all_reduce_async(me.comm(), in, out, std::plus<>{},
                                              hocket::with(hocket::timeout(std::chrono::milliseconds(20))));
    }
    me.check(me.comm().revoked(), "the communicator is not revoked");
    const auto found = me.expect(hocket::errc::timeout, [&] { hocket::barrier(me.comm()); });  // not reported yet
    me.check(found && found->context().peer == 1, "names the wrong rank");
    me.expect(hocket::errc::revoked, [&] { hocket::barrier(me.comm()); });
  });
}

TEST_CASE("several threads of a rank can use different communicators at the same time") {
  for (const int ranks : {2, 4}) {
    on_ranks(ranks, [](thread_rank& me) {
      std::vector<hocket::local::communicator> parts;
      for (int i = 0; i < 3; ++i) parts.push_back(hocket::split(me.comm(), hocket::color{0}));
      std::vector<std::thread> threads;
      std::vector<int> wrong(3, 0);
      for (std::size_t i = 0; i < 3; ++i) {
        // Each communicator is used by one thread; which one differs between ranks.
        const std::size_t which = (i + static_cast<std::size_t>(me.rank())) % 3;
        threads.emplace_back([&, which] {
          for (int round = 0; round < 60; ++round) {
            std::vector<int> in(which == 0 ? 1 : 700, static_cast<int>(which) + round), out(in.size());
            try {
              hocket::all_reduce(parts[which], in, out);
              wrong[which] += out.back() != me.size() * in.back() ? 1 : 0;
              auto nested = hocket::split(parts[which], hocket::color{me.rank() % 2}, hocket::key{-me.rank()});
              int one = 1, sum = 0;
              if (round % 10 == 0) hocket::all_reduce(nested, std::span(&one, 1), std::span(&sum, 1));
              wrong[which] += round % 10 == 0 && sum != nested.size() ? 1 : 0;
            } catch (const hocket::error&) {
              wrong[which] += 1000;
            }
          }
        });
      }
      for (std::thread& each : threads) each.join();
      me.check(wrong == std::vector<int>(3, 0), "a communicator gave wrong results while others were in use");
    });
  }
}

TEST_CASE("results stay correct when thousands of calls wrap around the window") {
  for (const int ranks : {2, 3, 8}) {
    on_ranks(ranks, [&](thread_rank& me) {
      const int rounds = ranks > 3 ? 800 : 5000;
      std::vector<std::uint32_t> in(40), out(40);
      for (int round = 0; round < rounds; ++round) {
        const auto value = static_cast<std::uint32_t>(round);
        in[0] = value + static_cast<std::uint32_t>(me.rank());
        in[39] = value;
        const std::size_t size = round % 3 == 0 ? 1 : round % 3 == 1 ? 14 : 40;
        hocket::all_reduce(me.comm(), std::span(in).first(size), std::span(out).first(size));
        const auto p = static_cast<std::uint32_t>(ranks);
        if (!me.check(out[0] == p * value + p * (p - 1) / 2, [&] { return "round " + std::to_string(round); })) return;
        if (round % 17 == 0) hocket::broadcast(me.comm(), std::span(out).first(1), hocket::root{round % ranks});
      }
    });
  }
}
