// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <hocket/plan/detail/event_queue.hpp>

#include <cstdint>
#include <queue>
#include <random>
#include <tuple>
#include <vector>

#include "support/catch.hpp"

TEST_CASE("events are ordered by time, and by insertion at equal times", "[plan][law]") {
  // Events at few distinct times share lists. With many, a time can have several lists, as times share places.
  for (const std::uint32_t distinct_times : {1U, 7U, 300U, 1000000U}) {
    using key = std::tuple<double, std::uint64_t, std::uint32_t>;
    std::priority_queue<key, std::vector<key>, std::greater<>> wanted;
    hocket::plan::detail::event_queue event_queue;
    std::mt19937 random(distinct_times);
    std::uint64_t added = 0;
    std::uint64_t wrong = 0;
    for (int turn = 0; turn < 20000; ++turn) {
      if (wanted.empty() || random() % 5 < 3) {
        const double time = 1e-6 * static_cast<double>(random() % distinct_times);
        const auto subject = static_cast<std::uint32_t>(random());
        event_queue.add(time, subject);
        wanted.emplace(time, added++, subject);
      } else {
        const auto [time, order, subject] = wanted.top();
        wanted.pop();
        if (event_queue.pop() != std::pair(time, subject)) ++wrong;
      }
    }
    for (; !wanted.empty(); wanted.pop()) {
      if (event_queue.pop() != std::pair(std::get<0>(wanted.top()), std::get<2>(wanted.top()))) ++wrong;
    }
    INFO(distinct_times << " times");
    CHECK(wrong == 0);
    CHECK(event_queue.empty());
  }
}
