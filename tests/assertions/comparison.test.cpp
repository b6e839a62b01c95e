// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// At assertion level 3 (see tests/CMakeLists.txt), calls that differ fail on every rank in that call, before any of its
// data is written; equal calls give the same results as at other levels.
#include "support/thread_ranks.hpp"

#include <hocket/collective/all_gather.hpp>
#include <hocket/collective/all_reduce.hpp>
#include <hocket/collective/all_to_all.hpp>
#include <hocket/collective/barrier.hpp>
#include <hocket/collective/broadcast.hpp>
#include <hocket/collective/recv.hpp>
#include <hocket/collective/reduce_scatter.hpp>
#include <hocket/collective/send.hpp>
#include <hocket/group/allocate.hpp>
#include <hocket/group/local.hpp>
#include <hocket/group/shrink.hpp>
#include <hocket/group/split.hpp>
#include <hocket/operation/operations.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

static_assert(HOCKET_ASSERTION_LEVEL == 3);

using namespace hocket_test;
using namespace std::chrono_literals;

namespace {

using communicator = hocket::local::communicator;
using act = std::function<void(communicator&)>;

std::string site(int line) { return "comparison.test.cpp:" + std::to_string(line); }

std::vector<float> ones(std::size_t size) { return std::vector<float>(size, 1.0F); }

/// Rank `odd_one` runs `one`, the others run `other`; each must fail in that call, with every text of `says`.
void check(const char* name, const act& one, const act& other, const std::vector<std::string>& says) {
  for (const int ranks : {2, 3, 5}) {
    for (const int odd_one : {0, ranks - 1}) {
      INFO(name << ", " << ranks << " ranks, rank " << odd_one << " differs");
      on_ranks(ranks, [&](thread_rank& me) {
        me.at(name);
        const auto found = me.expect(hocket::errc::mismatch, [&] { (me.rank() == odd_one ? one : other)(me.comm()); });
        for (const std::string& text : says) {
          me.check(found && std::string(found->what()).find(text) != std::string::npos,
                   [&] { return "the message lacks '" + text + "': " + (found ? found->what() : ""); });
        }
        me.check(me.comm().revoked(), "not revoked");
        me.expect(hocket::errc::revoked, [&] { hocket::barrier(me.comm()); });
      });
    }
  }
}

constexpr int reduces_at = __LINE__ + 5;
template <class Op, class... Properties>
act reduces(std::size_t size, Op op, Properties... properties) {
  return [=](communicator& comm) {
    std::vector<float> data = ones(size);
    hocket::all_reduce(comm, hocket::in_place(data), op, hocket::with(properties...));
  };
}

constexpr int broadcasts_at = __LINE__ + 4;
act broadcasts(std::size_t size, int root) {
  return [=](communicator& comm) {
    std::vector<float> data = ones(size);
    hocket::broadcast(comm, data, hocket::root{root});
  };
}

/// Two counts that flags can't distinguish, because the 32-bit signatures of their calls are equal.
std::pair<std::size_t, std::size_t> colliding_counts() {
  constexpr std::uint32_t types =
      hocket::detail::reduction_signature<hocket::plan::collective_kind::all_reduce, std::plus<>, float>;
  const std::uint32_t kind_of_call = hocket::detail::call_signature(types, "two_shot", 0);  // its plan's name
  std::unordered_map<std::uint32_t, std::size_t> seen;
  for (std::size_t count = 1; count < 4'000'000; ++count) {
    const auto [place, is_new] = seen.emplace(hocket::detail::call_signature(kind_of_call, count), count);
    if (!is_new) return {place->second, count};
  }
  return {0, 0};
}

}  // namespace

TEST_CASE("a mixed sequence of equal calls gives correct results") {
  for (const int ranks : {1, 2, 3, 5}) {
    on_ranks(ranks, [](thread_rank& me) {
      auto& comm = me.comm();
      const int p = comm.size();
      const auto blocks = static_cast<std::size_t>(p);
      const auto sum = static_cast<float>(p);
      for (int round = 0; round < 20; ++round) {
        if (round % 5 == me.rank()) std::this_thread::sleep_for(2ms);
        std::vector<float> few = ones(2), some = ones(300), many = ones(40'000), all(300 * blocks), own(300);
        hocket::all_reduce(comm, hocket::in_place(few));
        me.check(few[1] == sum, "all_reduce of one line");
        hocket::request first = hocket::all_reduce_async(comm, hocket::in_place(some));
        hocket::request second =
            hocket::all_reduce_async(comm, hocket::in_place(many), std::plus<>{}, hocket::with(hocket::ring));
        hocket::all_gather(comm, ones(300), all);
        me.check(all.back() == 1, "all_gather");
        hocket::request third = hocket::barrier_async(comm);
        hocket::reduce_scatter(comm, all, own);
        me.check(own[7] == sum, "reduce_scatter");
        second.wait();
        first.wait();
        third.wait();
        me.check(some[299] == sum && many[39'999] == sum, "all_reduce_async");
        std::vector<float> word(1, static_cast<float>(me.rank()));
        hocket::broadcast(comm, word, hocket::root{round % p});
        me.check(word[0] == static_cast<float>(round % p), "broadcast");
        std::vector<int> mine(blocks, me.rank()), theirs(blocks);
        hocket::all_to_all(comm, mine, theirs);
        me.check(theirs.back() == p - 1, "all_to_all");
        hocket::all_reduce(comm, hocket::in_place(few), std::plus<>{},
                           hocket::with(hocket::require(hocket::rank_count_invariant)));
        me.check(few[0] == sum * sum, "exact sum");
        hocket::barrier(comm);
      }
      communicator part = hocket::split(comm, hocket::color{me.rank() % 2});
      auto shared = hocket::allocate<float>(part, 100);
      hocket::all_reduce(part, hocket::in_place(shared));
      me.check(shared[99] == 0, "all_reduce on a part");
    });
  }
}

TEST_CASE("an asynchronous call does not wait for the comparison") {
  on_ranks(2, [](thread_rank& me) {
    auto& comm = me.comm();
    std::vector<float> data = ones(300), word = ones(1);
    if (me.rank() == 0) {
      hocket::request sum = hocket::all_reduce_async(comm, hocket::in_place(data));
      hocket::recv(comm, word, hocket::peer{1});  // sent before rank 1 makes its call
      sum.wait();
    } else {
      hocket::send(comm, word, hocket::peer{0});
      hocket::all_reduce(comm, hocket::in_place(data));
    }
    me.check(data[299] == 2, "wrong sum");
  });
}

TEST_CASE("each kind of mismatch fails in the call itself, and the error names both call sites") {
  const std::plus<> sum;
  const std::string reduced = site(reduces_at), broadcast = site(broadcasts_at);
  check("counts of one line", reduces(1, sum), reduces(2, sum), {"of 1 elements", "of 2 elements", reduced});
  check("operations of one line", reduces(1, sum), reduces(1, hocket::maximum{}), {"plus", "maximum", reduced});
  check("counts of messages", reduces(300, sum, hocket::ring), reduces(301, sum, hocket::ring),
        {"of 300 elements", "of 301 elements", reduced});
  check("algorithms", reduces(300, sum, hocket::ring), reduces(300, sum, hocket::two_shot),
        {"ring", "two_shot", reduced});
  check("roots", broadcasts(300, 0), broadcasts(300, 1), {"broadcast", "from root 1", broadcast});
  check("collectives", broadcasts(300, 0), reduces(300, sum), {"broadcast", "all_reduce", broadcast, reduced});
  check("checksums", reduces(300, sum, hocket::ring),
        reduces(300, sum, hocket::ring, hocket::require(hocket::checksummed)), {reduced});
  check("types", reduces(2, sum),
        [](communicator& comm) {
          std::vector<double> data(2);
          hocket::all_reduce(comm, hocket::in_place(data));
        },
        {"(float", "(double", reduced, site(__LINE__ - 2)});
  check(
      "order",
      [](communicator& comm) {
        hocket::barrier(comm);
        broadcasts(1, 0)(comm);
      },
      [](communicator& comm) {
        broadcasts(1, 0)(comm);
        hocket::barrier(comm);
      },
      {"barrier", "broadcast", broadcast, site(__LINE__ - 7)});
}

TEST_CASE("the root of an eager broadcast gets a mismatch in its own call") {
  // Below level 3, the root of this broadcast sends its data and returns.
  check("eager broadcast", broadcasts(1, 0), reduces(1, std::plus<>{}),
        {"broadcast", "all_reduce", site(broadcasts_at), site(reduces_at)});
}

TEST_CASE("calls with equal 32-bit signatures are distinguished") {
  const auto [few, many] = colliding_counts();
  REQUIRE(few != many);
  INFO(few << " and " << many << " elements");
  check("equal signatures", reduces(few, std::plus<>{}, hocket::two_shot),
        reduces(many, std::plus<>{}, hocket::two_shot),
        {std::to_string(few) + " elements", std::to_string(many) + " elements", site(reduces_at)});
}

TEST_CASE("calls that differ leave the buffers unchanged") {
  on_ranks(3, [](thread_rank& me) {
    std::vector<float> data(4, static_cast<float>(me.rank()));
    me.expect(hocket::errc::mismatch, [&] {
      if (me.rank() == 2) {
        hocket::broadcast(me.comm(), std::span(data).first(3), hocket::root{0});
      } else {
        hocket::broadcast(me.comm(), data, hocket::root{0});
      }
    });
    me.check(data == std::vector<float>(4, static_cast<float>(me.rank())), "data has changed");
  });
}

TEST_CASE("mismatches of asynchronous calls are reported, whether or not the request is waited for") {
  for (const bool waits : {true, false}) {
    on_ranks(3, [&](thread_rank& me) {
      std::vector<float> data = ones(300), more = ones(400);
      std::string message;
      try {
        hocket::request sum = me.rank() == 1 ? hocket::all_reduce_async(me.comm(), hocket::in_place(more))
                                             : hocket::all_reduce_async(me.comm(), hocket::in_place(data));
        if (waits) sum.wait();
        hocket::barrier(me.comm());  // only quotes the error if it arrived while the sum was being started
      } catch (const hocket::error& found) {
        message = found.what();
        me.check(found.code() == hocket::errc::mismatch || (!waits && found.code() == hocket::errc::revoked), message);
      }
      for (const std::string& text : {site(__LINE__ - 8), site(__LINE__ - 7)}) {
        me.check(message.find(text) != std::string::npos, "the message lacks '" + text + "': " + message);
      }
    });
  }
}

TEST_CASE("the comparison ends at the deadline of the call and on abort") {
  on_ranks(3, [](thread_rank& me) {
    if (me.rank() == 2) {
      std::this_thread::sleep_for(300ms);
      me.expect(hocket::errc::timeout, [&] { hocket::barrier(me.comm()); });
      return;
    }
    const auto begin = std::chrono::steady_clock::now();
    std::vector<float> data = ones(1);
    const auto found = me.expect(hocket::errc::timeout, [&] {
      hocket::all_reduce(me.comm(), hocket::in_place(data), std::plus<>{}, hocket::with(hocket::timeout(50ms)));
    });
    me.check(std::chrono::steady_clock::now() - begin < 2s, "too late");
    me.check(found && found->context().peer == 2, "names another rank");
  });
  on_ranks(2, [](thread_rank& me) {
    if (me.rank() == 0) me.comm().abort();
    me.expect(hocket::errc::aborted, [&] { hocket::barrier(me.comm()); });
  });
}

TEST_CASE("after shrink, calls succeed and are still compared") {
  on_ranks(3, [](thread_rank& me) {
    me.expect(hocket::errc::mismatch,
              [&] { (me.rank() == 0 ? broadcasts(2, 0) : reduces(2, std::plus<>{}))(me.comm()); });
    communicator comm = hocket::shrink(me.comm());
    std::vector<float> data = ones(5);
    hocket::all_reduce(comm, hocket::in_place(data));
    me.check(data[4] == 3, "wrong sum");
    me.expect(hocket::errc::mismatch, [&] { (me.rank() == 0 ? broadcasts(2, 0) : reduces(2, std::plus<>{}))(comm); });
  });
}
