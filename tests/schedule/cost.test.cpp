// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The time to make a schedule grows with the number of its actions, and not with the square of the number of ranks.
#include "schedule/slow.hpp"
#include "support/catch.hpp"

#include <hocket/schedule/v_half.hpp>
#include <hocket/schedule/zero_bubble_v.hpp>

#include <algorithm>
#include <ctime>
#include <limits>

namespace {

namespace costs_of_making {

namespace schedules = hocket::plan::pipeline;

/// Returns the processor time of the fastest of some calls.
template <class Make>
double seconds_of(Make make) {
  double fastest = std::numeric_limits<double>::max();
  for (int i = 0; i < 3; ++i) {
    const std::clock_t begin = std::clock();
    make();
    fastest = std::min(fastest, static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC);
  }
  return fastest;
}

struct generator {
  const char* name;
  schedules::schedule (*make)(int ranks, int microbatches);
  int ranks;         ///< of the smaller schedule
  int microbatches;  ///< of the smaller schedule
};

}  // namespace costs_of_making

}  // namespace

TEST_CASE("ten times as many ranks, or microbatches, take about ten times as long") {
  using namespace costs_of_making;
  if (pipeline_test::slow) return;
  const generator all[] = {{"zero_bubble_v", [](int p, int m) { return schedules::zero_bubble_v(p, m); }, 2000, 4},
                           {"v_half", [](int p, int m) { return schedules::v_half(p, m); }, 300, 4},
                           {"v_min", [](int p, int m) { return schedules::v_min(p, m); }, 300, 4}};
  for (const generator& each : all) {
    const double few = seconds_of([&] { each.make(each.ranks, each.microbatches); });
    const double many = seconds_of([&] { each.make(10 * each.ranks, each.microbatches); });
    INFO(each.name << ": " << few << " s, and " << many << " s for ten times as many ranks");
    CHECK(many < 35 * few);  // a square would give 100
  }
  const generator both[] = {{"v_half", [](int p, int m) { return schedules::v_half(p, m); }, 10, 500},
                            {"v_min", [](int p, int m) { return schedules::v_min(p, m); }, 10, 500}};
  for (const generator& each : both) {
    const double few = seconds_of([&] { each.make(each.ranks, each.microbatches); });
    const double many = seconds_of([&] { each.make(each.ranks, 10 * each.microbatches); });
    INFO(each.name << ": " << few << " s, and " << many << " s for ten times as many microbatches");
    CHECK(many < 35 * few);
  }
}
