// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The choice between two ways by their measured times: the faster one is used mostly, also after the times change.
#include "support/catch.hpp"

#include <hocket/core/faster_way.hpp>

#include <cstdint>

using hocket::detail::faster_way;

namespace {

/// Makes `uses` uses of ways that take the given times. Returns how many used the other way.
int uses_of_other(faster_way& choice, int uses, std::uint64_t usual, std::uint64_t other, int outlier_every = 1 << 30) {
  int found = 0;
  for (int i = 1; i <= uses; ++i) {
    const bool is_other = choice.next() == faster_way::way::other;
    found += is_other ? 1 : 0;
    const std::uint64_t time = is_other ? other : usual;
    if (choice.measures()) choice.record(i % outlier_every == 0 ? 1000 * time : time);
  }
  return found;
}

}  // namespace

TEST_CASE("the way that is faster by the required factor is used for all but few uses") {
  constexpr int uses = 10'000, most_trials = uses / 100;
  for (const std::uint64_t time : {100U, 777U, 50'000U}) {
    faster_way choice(3);
    CHECK(uses_of_other(choice, uses, time, time) <= most_trials);
    CHECK(uses_of_other(choice, uses, time, time * 2 / 5) <= most_trials);
    CHECK(uses_of_other(choice, uses, 10 * time, time) >= uses - 3 * most_trials);
    CHECK(uses_of_other(choice, uses, 2 * time, time) <= 10 * most_trials);
  }
}

TEST_CASE("the choice follows times that change, within some hundred uses, and both ways are tried at first") {
  faster_way choice(2);
  CHECK(uses_of_other(choice, 2, 50, 70) == 1);
  CHECK(uses_of_other(choice, 100, 50, 70) == 0);
  for (int change = 0; change < 5; ++change) {
    uses_of_other(choice, 800, 900, 100);
    CHECK(uses_of_other(choice, 100, 900, 100) >= 99);
    uses_of_other(choice, 800, 100, 100);
    CHECK(uses_of_other(choice, 100, 100, 100) <= 1);
  }
}

TEST_CASE("a use that took long because the thread had lost its core does not change a clear choice for long") {
  faster_way choice(3);
  CHECK(uses_of_other(choice, 10'000, 100, 100, 97) <= 1000);
  CHECK(uses_of_other(choice, 10'000, 1000, 100, 97) >= 8000);
}
