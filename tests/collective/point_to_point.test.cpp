// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// send, recv and send_recv: every message arrives complete, once, and in the order of its tag.
#include "collective/cases.hpp"

#include <hocket/collective/all_reduce.hpp>
#include <hocket/collective/recv.hpp>
#include <hocket/collective/send.hpp>
#include <hocket/collective/send_recv.hpp>
#include <hocket/group/split.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <span>
#include <string>
#include <vector>

using namespace hocket_test;
using hocket::peer;
using hocket::tag;

namespace {
const std::vector<std::size_t> message_sizes = {0, 1, 7, 8, 9, 1000, 100'003};
}

TEST_CASE("send_recv passes messages around a ring") {
  for (const int ranks : rank_counts) {
    on_ranks(ranks, [&](thread_rank& me) {
      const peer right{(me.rank() + 1) % ranks};
      const peer left{(me.rank() + ranks - 1) % ranks};
      for (const std::size_t size : message_sizes) {
        auto passing = samples<std::uint32_t>(me.rank(), size);
        const auto own = passing;
        guarded<std::uint32_t> coming(size, 1);
        for (int step = 0; step < ranks; ++step) {
          hocket::send_recv(me.comm(), passing, right, coming.elements(), left, tag{5});
          std::copy(coming.elements().begin(), coming.elements().end(), passing.begin());
        }
        me.check(passing == own && coming.intact(), "a message came back changed after one round");
      }
    });
  }
}

TEST_CASE("messages can be received in any order of tags, and arrive in order within a tag") {
  on_ranks(3, [](thread_rank& me) {
    constexpr int tags = 6;
    constexpr int rounds = 5;
    for (const std::size_t size : {std::size_t{1}, std::size_t{500}}) {
      if (me.rank() != 0) {
        for (int round = 0; round < rounds; ++round) {
          for (int t = 0; t < tags; ++t) {
            hocket::send(me.comm(), std::vector<int>(size, 100 * me.rank() + 10 * round + t), peer{0}, tag{t});
          }
        }
        continue;
      }
      for (int t = tags; t-- > 0;) {
        for (int round = 0; round < rounds; ++round) {
          for (const int from : {2, 1}) {
            std::vector<int> found(size);
            hocket::recv(me.comm(), found, peer{from}, tag{t});
            me.check(found.back() == 100 * from + 10 * round + t, [&] {
              return "tag " + std::to_string(t) + ", round " + std::to_string(round) + ": " +
                     std::to_string(found.back());
            });
          }
        }
      }
    }
  });
}

TEST_CASE("messages of one tag keep their order if the last request is waited for first") {
  on_ranks(2, [](thread_rank& me) {
    for (const std::size_t size : {std::size_t{1}, std::size_t{200}}) {
      constexpr std::size_t count = 12;  // more than a channel holds
      std::vector<std::vector<int>> data(count, std::vector<int>(size, -1));
      std::vector<hocket::request> pending;
      for (std::size_t k = 0; k < count; ++k) {
        if (me.rank() == 0) {
          data[k].assign(size, static_cast<int>(k));
          pending.push_back(hocket::send_async(me.comm(), data[k], peer{1}, tag{1}));
        } else {
          pending.push_back(hocket::recv_async(me.comm(), data[k], peer{0}, tag{1}));
        }
      }
      while (!pending.empty()) {
        pending.back().wait();
        pending.pop_back();
      }
      for (std::size_t k = 0; k < count; ++k) {
        me.check(data[k].back() == static_cast<int>(k), [&] {
          return "message " + std::to_string(k) + " has what message " + std::to_string(data[k].back()) +
                 " should have";
        });
      }
    }
  });
}

TEST_CASE("a rank can send to itself") {
  on_ranks(2, [](thread_rank& me) {
    for (const std::size_t size : message_sizes) {
      const auto out = samples<std::uint8_t>(me.rank(), size);
      std::vector<std::uint8_t> in(size), again(size);
      hocket::send_recv(me.comm(), out, peer{me.rank()}, in, peer{me.rank()});
      auto sent = hocket::send_async(me.comm(), out, peer{me.rank()}, tag{9});
      hocket::recv(me.comm(), again, peer{me.rank()}, tag{9});
      sent.wait();
      me.check(in == out && again == out, "a message of a rank to itself was changed");
    }
  });
}

TEST_CASE("messages and collectives of one communicator do not interfere") {
  for (const int ranks : {2, 5}) {
    on_ranks(ranks, [&](thread_rank& me) {
      for (int round = 0; round < 100; ++round) {
        const std::vector<int> out(50, round);
        std::vector<int> in(50), sum(50);
        auto coming = hocket::recv_async(me.comm(), in, peer{(me.rank() + 1) % ranks}, tag{2});
        auto going = hocket::send_async(me.comm(), out, peer{(me.rank() + ranks - 1) % ranks}, tag{2});
        hocket::all_reduce(me.comm(), out, sum, std::plus<>{}, hocket::with(hocket::ring));
        if (round % 2 == 0) going.wait();
        coming.wait();
        me.check(in.back() == round && sum.back() == ranks * round, "a message or a sum is wrong");
      }
    });
  }
}

TEST_CASE("messages of different communicators do not mix") {
  on_ranks(2, [](thread_rank& me) {
    auto other = hocket::split(me.comm(), hocket::color{0});
    const int one = 1, two = 2;
    int first = 0, second = 0;
    if (me.rank() == 0) {
      hocket::send(me.comm(), std::span(&one, 1), peer{1});
      hocket::send(other, std::span(&two, 1), peer{1});
    } else {
      hocket::recv(other, std::span(&second, 1), peer{0});
      hocket::recv(me.comm(), std::span(&first, 1), peer{0});
      me.check(first == 1 && second == 2, "messages went to the wrong communicator");
    }
  });
}

TEST_CASE("a message of another type with the same size is a mismatch; raw bytes match any type") {
  for (const std::size_t size : {1U, 1000U}) {
    for (const bool early : {false, true}) {
      on_ranks(2, [&](thread_rank& me) {
        const std::vector<int> ints(size, 3);
        std::vector<float> floats(size);
        std::vector<std::byte> bytes(size * sizeof(int));
        std::vector<int> same(size);
        if (me.rank() == 1) {
          hocket::recv(me.comm(), bytes, peer{0});
          hocket::recv(me.comm(), same, peer{0});
          me.check(same == ints && std::memcmp(bytes.data(), ints.data(), bytes.size()) == 0, "wrong elements");
          if (early) hocket::recv(me.comm(), same, peer{0}, tag{1});  // the one before it is stored
          const auto found = me.expect(hocket::errc::mismatch, [&] { hocket::recv(me.comm(), floats, peer{0}); });
          me.check(found && std::string(found->what()).find("another type") != std::string::npos, "wrong text");
          return;
        }
        hocket::send(me.comm(), ints, peer{1});
        hocket::send(me.comm(), std::as_bytes(std::span(ints)), peer{1});
        try {  // a long message is sent only when it is received
          auto sent = hocket::send_async(me.comm(), ints, peer{1});
          if (early) hocket::send(me.comm(), ints, peer{1}, tag{1});
          sent.wait();
        } catch (const hocket::error&) {}
      });
    }
  }
}

TEST_CASE("the timeout of a blocking message of a rank to itself states that the peer is this rank") {
  on_ranks(2, [](thread_rank& me) {
    const auto found = me.expect(hocket::errc::timeout, [&] {
      std::vector<int> data(100'000);
      const auto briefly = hocket::with(hocket::timeout(std::chrono::milliseconds(100)));
      if (me.rank() == 0) hocket::send(me.comm(), data, peer{0}, tag{}, briefly);
      if (me.rank() == 1) hocket::recv(me.comm(), data, peer{1}, tag{}, briefly);
    });
    const std::string said = found ? found->what() : "";
    me.check(said.find("reports") != std::string::npos || said.find("which is this rank itself") != std::string::npos,
             [&] { return said; });
  });
}
