// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a communicator knows of its calls in flight, held against a plain list: which message is the next with its
// peer, channel and tag, and whose turn it is to advance.
#include "support/catch.hpp"

#include <hocket/communicator/active_operations.hpp>
#include <hocket/communicator/message_order.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <list>
#include <memory>
#include <random>
#include <tuple>
#include <vector>

namespace {

using hocket::detail::active_link;
using hocket::detail::active_operations;
using hocket::detail::message_order;

struct message {
  using key = std::tuple<int, std::uint32_t, std::uint32_t>;

  message(message_order& order, const key& of)
      : id(of), place(order, std::get<0>(of), std::get<1>(of), std::get<2>(of)) {}
  key id;
  message_order::place place;
};

class work : public active_link<work> {};

std::vector<work*> listed(const active_operations<work>& active) {
  std::vector<work*> result;
  for (work* const each : active) result.push_back(each);
  return result;
}

}  // namespace

TEST_CASE("a message is first if no earlier one with its peer, channel and tag is in flight") {
  std::mt19937 random(1);
  for (const std::uint32_t tags : {1U, 3U, 1000U}) {
    message_order order;
    std::list<message> all;
    for (int i = 0; i < 3000; ++i) {
      const bool adds = all.empty() || random() % 5 < (i < 2000 ? 3 : 1);
      if (adds) {
        all.emplace_back(order, message::key{static_cast<int>(random() % 3), random() % 2, random() % tags});
      } else {
        all.erase(std::next(all.begin(), static_cast<std::ptrdiff_t>(random() % all.size())));
      }
      REQUIRE(order.size() == all.size());
      std::vector<message::key> seen;
      std::size_t wrong = 0;
      for (const message& each : all) {
        if (all.size() > 40 && i % 50 != 0) break;
        const bool is_first = std::find(seen.begin(), seen.end(), each.id) == seen.end();
        wrong += each.place.is_first() != is_first;
        if (is_first) seen.push_back(each.id);
      }
      REQUIRE(wrong == 0);
    }
  }
}

TEST_CASE("messages with one tag from many peers take about as long as those with many tags from one peer") {
  using clock = std::chrono::steady_clock;
  constexpr int count = 20'000;
  const auto seconds = [](bool has_many_peers) {
    double least = 1e9;
    for (int round = 0; round < 5; ++round) {
      message_order order;
      std::list<message> all;
      const auto begin = clock::now();
      for (int i = 0; i < count; ++i) {
        const auto tag = static_cast<std::uint32_t>(has_many_peers ? 0 : i);
        all.emplace_back(order, message::key{has_many_peers ? i : 0, 0, tag});
      }
      all.clear();
      least = std::min(least, std::chrono::duration<double>(clock::now() - begin).count());
    }
    return least;
  };
  CHECK(seconds(true) < 10 * seconds(false));  // 1000 times, if all were in one list
}

TEST_CASE("active operations stay in the order of their calls, and each has its turn") {
  std::mt19937 random(2);
  active_operations<work> active;
  std::vector<std::unique_ptr<work>> all;
  std::vector<work*> expected;
  for (int i = 0; i < 2000; ++i) {
    if (expected.empty() || random() % 5 < 3) {
      all.push_back(std::make_unique<work>());
      active.add(*all.back());
      expected.push_back(all.back().get());
    } else {
      const auto leaving = expected.begin() + static_cast<std::ptrdiff_t>(random() % expected.size());
      active.remove(**leaving);
      active.remove(**leaving);  // has no effect
      expected.erase(leaving);
    }
    REQUIRE(active.size() == expected.size());
    REQUIRE(active.empty() == expected.empty());
    if (i % 10 == 0) REQUIRE(listed(active) == expected);
    if (!expected.empty()) active.take_turn();
  }
  std::vector<work*> turns;
  for (std::size_t i = 0; i < expected.size(); ++i) turns.push_back(active.take_turn());
  std::sort(turns.begin(), turns.end());
  std::sort(expected.begin(), expected.end());
  CHECK(turns == expected);
}

TEST_CASE("an operation that leaves when it has its turn gives it to the one behind it") {
  active_operations<work> active;
  work a, b, c;
  for (work* const each : {&a, &b, &c}) active.add(*each);
  CHECK(active.take_turn() == &a);
  active.remove(b);
  CHECK(active.take_turn() == &c);
  active.remove(c);
  CHECK(active.take_turn() == &a);
  active.remove(a);
  CHECK(active.empty());
  active.add(c);
  CHECK(active.take_turn() == &c);
}
