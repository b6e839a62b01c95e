// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Greedy schedules keep their memory limits, are never longer than published ones, and are shorter if costs differ.
#include "schedule/refusal.hpp"
#include "schedule/slow.hpp"

#include <hocket/schedule/greedy.hpp>
#include <hocket/schedule/partition.hpp>
#include <hocket/schedule/prove.hpp>
#include <hocket/schedule/schedule_trace.hpp>

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstddef>
#include <ctime>
#include <limits>
#include <random>
#include <string>
#include <vector>

using namespace hocket::plan::pipeline;
using pipeline_test::refuses;
using pipeline_test::slow;

namespace {

/// Checks the properties that every result must have.
void check(const search_result& found, const costs& cost, const std::vector<int>& caps) {
  const schedule_proof proven = prove(found.plan);
  CHECK(proven.message() == schedule_proof{true, {}, {}, {}, {}}.message());
  CHECK(run_clock(found.plan, cost).makespan == found.makespan);
  CHECK(found.makespan <= found.published);
  for (int rank = 0; rank < found.plan.ranks() && !caps.empty(); ++rank) {
    CHECK(peak_activations(found.plan, rank) <= caps[static_cast<std::size_t>(rank)]);
  }
}

/// Shortest makespan of all known schedules for a loop that keep `caps`, each made by its generator.
double shortest_in_loop(int p, int m, int v, const costs& cost, const std::vector<int>& caps) {
  std::vector<schedule> all{breadth_first(p, m, v)};
  if (v == 1) {
    for (const schedule& each : {gpipe(p, m), one_forward_one_backward(p, m), zero_bubble(p, m)}) all.push_back(each);
  }
  for (int group = 0; group <= m; ++group) {
    const bool allowed =
        group == 0 ? v == 1 || m % std::max(1, m / p) == 0 : group >= p && (m % group == 0 || m % group >= p);
    if (!allowed) continue;
    all.push_back(interleaved(p, m, v, group));
    all.push_back(interleaved_zero_bubble(p, m, v, group));
  }
  double shortest = std::numeric_limits<double>::infinity();
  for (const schedule& each : all) {
    bool fits = true;
    for (int rank = 0; rank < p; ++rank) {
      fits = fits && peak_activations(each, rank) <= caps[static_cast<std::size_t>(rank)];
    }
    if (fits) shortest = std::min(shortest, run_clock(each, cost).makespan);
  }
  return shortest;
}

}  // namespace

TEST_CASE("at unit costs, no greedy schedule is longer than its published bound") {
  const costs unit;
  for (const int p : {1, 2, 3, 5, 7, 8}) {
    for (int m = 1; m <= 32; m += slow ? 7 : m < 2 * p ? 1 : 5) {
      CAPTURE(p, m);
      const std::vector<int> two_stages(static_cast<std::size_t>(p), 2 * p);
      const search_result v = greedy(placement::v_shape(p), m, unit, two_stages);
      check(v, unit, two_stages);
      // For M < P the published bound is (4P-1+2M)/2. The last rank can run at most 2M forward passes before the first
      // gradient reaches it, which gives the second bound if 2M > P: no schedule can be shorter.
      const double short_of_work = std::max((4 * p - 1 + 2 * m) / 2., (3 * p - 1 + 4 * m) / 2.);
      CHECK(v.makespan / 2 <= (m >= p ? 3 * m + (p - 1) / 2. : short_of_work));

      for (const int memory : {p, 2 * p}) {
        const std::vector<int> caps(static_cast<std::size_t>(p), memory);
        const search_result loop = greedy(placement::loop(p), m, unit, caps);
        check(loop, unit, caps);
        CHECK(loop.makespan <= (m >= p ? 3 * m + p - 1 : 2 * p - 1 + 2 * m));
      }
    }
  }
}

TEST_CASE("with unequal costs, greedy schedules are on average at least 3 % shorter than published ones") {
  std::mt19937 random(20240607);
  const auto between = [&](double low, double high) { return std::uniform_real_distribution<>(low, high)(random); };
  constexpr int grids = slow ? 35 : 500;
  double gain = 0;
  int won = 0;
  int compared = 0;
  for (int grid = 0; grid < grids; ++grid) {
    const int p = 2 + grid % 7;
    const int m = p + static_cast<int>(between(0, 3 * p + 1));
    const int kind = grid % 3;
    const placement where = kind == 0 ? placement::v_shape(p) : placement::loop(p, kind);
    const double spread = between(0, 0.5);
    std::vector<stage_cost> stages;
    for (int stage = 0; stage < where.stages(); ++stage) {
      const double size = between(1 - spread, 1 + spread);
      stages.push_back({size * between(0.8, 1.2), size * between(0.8, 1.8), size * between(0.4, 1.2)});
    }
    const costs cost(stages, between(0, 0.3));
    const std::vector<int> caps(static_cast<std::size_t>(p), static_cast<int>(where.stages() * between(1, 2)));
    const search_result found = greedy(where, m, cost, caps);
    CAPTURE(grid, p, m, kind);
    check(found, cost, caps);
    if (kind > 0) CHECK(found.published <= shortest_in_loop(p, m, kind, cost, caps));
    if (found.best_published.length() == 0) continue;
    ++compared;
    won += found.is_new();
    gain += (found.published - found.makespan) / found.published;
  }
  WARN("of " << compared << " grids of unequal costs the greedy schedule was the shortest in " << won
             << "; shorter than the best published one by " << 100 * gain / compared << " % on average");
  CHECK(compared > grids * 9 / 10);
  if (!slow) CHECK(gain / compared >= 0.03);
}

TEST_CASE("each link counts with its own hop time") {
  // One microbatch, over all links and back.
  std::vector<std::vector<double>> times(4, std::vector<double>(4, 100));
  double there = 0, back = 0;
  for (std::size_t rank = 0; rank < 3; ++rank) {
    there += times[rank][rank + 1] = 1 + static_cast<double>(rank);
    back += times[rank + 1][rank] = 0.25;
  }
  CHECK(run_clock(one_forward_one_backward(4, 1), costs({1, 1, 1}, link_times(times))).makespan ==
        4 * 3 + there + back);
  std::mt19937 random(5);
  std::uniform_real_distribution<double> some(0, 3);
  int shorter = 0;
  for (const int p : {2, 3, 5, 8}) {
    const auto size = static_cast<std::size_t>(p);
    std::vector<std::vector<double>> links(size, std::vector<double>(size));
    for (std::vector<double>& from : links) std::generate(from.begin(), from.end(), [&] { return some(random); });
    const costs cost({1, 1.3, 0.7}, link_times(links));
    for (const placement& where : {placement::loop(p, 1), placement::v_shape(p)}) {
      const std::vector<int> caps(size, 3 * p);
      const search_result found = greedy(where, 4 * p, cost, caps);
      check(found, cost, caps);
      shorter += found.is_new();
    }
  }
  CHECK(shorter >= 4);
  refuses([] { link_times(std::vector<std::vector<double>>{}); }, "need a row for each rank; found none");
  refuses([] { link_times({{0, 1}, {0}}); }, "need 2 columns in each row, as many as rows; found 1");
  refuses([] { link_times({{0, -1}, {0, 0}}); }, "the time of a hop is -1");
  refuses([&] { greedy(placement::loop(3, 1), 3, costs(stage_cost{}, link_times(times))); },
          "the times of links are given for 4 ranks, the schedule has 3");
}

TEST_CASE("with little memory, greedy recomputes activations if this is allowed and shorter") {
  for (const int p : {2, 3, 5, 8}) {
    for (const double again : {0.25, 1., 40.}) {
      CAPTURE(p, again);
      const costs cost(stage_cost{1, 1.3, 0.7, again});
      const std::vector<int> caps(static_cast<std::size_t>(p), 1);
      const placement where = placement::loop(p, 1);
      const search_result without = greedy(where, 2 * p, cost, caps);
      const search_result with = greedy(where, 2 * p, cost, caps, recomputation::where_shorter);
      check(without, cost, caps);
      check(with, cost, caps);
      // Waiting for the gradient takes as long as the work for it on other ranks: R pays off if it takes no longer.
      if (again <= 1) CHECK(with.makespan < without.makespan);
      if (again > 3 * p) CHECK(with.plan == without.plan);
      // Without a memory limit, recomputation gains nothing.
      CHECK(greedy(where, 2 * p, cost, {}, recomputation::where_shorter).plan == greedy(where, 2 * p, cost).plan);
    }
  }
}

TEST_CASE("64 ranks and 512 microbatches are scheduled in less than 5 seconds") {
  const costs cost(stage_cost{0.5, 0.65, 0.35}, 0.05);
  for (const placement& where : {placement::v_shape(64), placement::loop(64, 2)}) {
    const std::vector<int> caps(64, where == placement::v_shape(64) ? 128 : 256);
    const std::clock_t begin = std::clock();  // CPU time of this process, independent of other load on the machine
    const search_result found = greedy(where, 512, cost, caps);
    const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    WARN(where.name() << ": " << found.attempts << " attempts in " << seconds << " s: " << found.makespan
                      << ", published " << found.published);
    check(found, cost, caps);
    if (!slow) CHECK(seconds < 5);
  }
}

TEST_CASE("published_schedules contains the shortest schedule for each number of microbatches and group size") {
  for (int p = 1; p <= 5; ++p) {
    for (int m = 1; m <= 4 * p; m += slow ? 3 : 1) {
      for (int v = 1; v <= 3; ++v) {
        for (const int memory : {v * p, v * p + p, 2 * v * p}) {
          const std::vector<int> caps(static_cast<std::size_t>(p), memory);
          const costs cost(stage_cost{1, 1.3, 0.7}, 0.1);
          double shortest = std::numeric_limits<double>::infinity();
          for (const schedule& each : published_schedules(placement::loop(p, v), m)) {
            bool fits = true;
            for (int rank = 0; rank < p; ++rank) fits = fits && peak_activations(each, rank) <= memory;
            if (fits) shortest = std::min(shortest, run_clock(each, cost).makespan);
          }
          CAPTURE(p, m, v, memory);
          CHECK(shortest == shortest_in_loop(p, m, v, cost, caps));
        }
      }
    }
  }
}

TEST_CASE("a user-defined placement that equals a published placement has its schedules") {
  const placement own = placement::given({0, 1, 2});
  const costs cost(stage_cost{2, .5, .3});
  const search_result found = greedy(own, 4, cost, {3, 3, 3});
  CHECK(found.plan.placement == own);
  CHECK(prove(found.plan));
  CHECK(found.makespan <= run_clock(zero_bubble(3, 4), cost).makespan);
  CHECK(found.published < std::numeric_limits<double>::infinity());
  CHECK(published_schedules(placement::given({0, 1, 1, 0}), 4).size() ==
        published_schedules(placement::v_shape(2), 4).size());
}

TEST_CASE("greedy finds a new schedule for a user-defined placement without a memory limit") {
  const costs cost(std::vector<stage_cost>{{1, 1, 1}, {2, 2, 2}, {1, 1, 1}}, 0.1);
  const search_result found = greedy(placement::given({0, 1, 0}), 6, cost);
  check(found, cost, {});
  CHECK(found.is_new());
  CHECK(found.makespan >= 36);  // the work of rank 0, and of rank 1
}

TEST_CASE("greedy and partition reject arguments that permit no result") {
  const costs unit;
  refuses([&] { greedy(placement::loop(2), 0, unit); }, "at least one rank and one microbatch");
  refuses([&] { greedy(placement::loop(65536), 65536, unit); }, "a schedule has at most 134217728 actions");
  refuses([&] { greedy(placement::loop(2), 4, unit, {4}); }, "for each of the 2 ranks, or none; found 1");
  refuses(
      [&] {
        greedy(placement::v_shape(2), 4, unit, {4, 1});
      },
      "rank 1 may hold 1 activations; its 2 stages need at least");
  refuses([&] { greedy(placement::two_directions(2, 4), 4, unit); }, "each stage lies on one rank");
  refuses([&] { partition({1, 2}, 3); }, "at least one layer for each of the 3 stages");
  const costs huge(stage_cost{1e308, 1e308, 1e308});
  refuses([&] { greedy(placement::loop(2), 4, huge); }, "no finite sum");
  refuses([&] { greedy(placement::loop(2), 4, costs(stage_cost{1, 1, 1}, 1e308)); }, "no finite sum");
  refuses([&] { partition({1e308, 1e308}, 2); }, "the costs of all layers have no finite sum");
  refuses([&] { partition({1, -2}, 1); }, "the cost of layer 1 is -2.0");
}

TEST_CASE("partition minimizes the time of the slowest stage") {
  CHECK(partition({1, 1, 1, 1}, 2) == std::vector<std::size_t>{0, 2});
  CHECK(partition({5, 1, 1, 1}, 2) == std::vector<std::size_t>{0, 1});
  CHECK(partition({0, 0, 0}, 3) == std::vector<std::size_t>{0, 1, 2});
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    const std::size_t n = 1 + random() % 9;
    const std::size_t stages = 1 + random() % n;
    std::vector<double> layers(n);
    for (double& each : layers) each = static_cast<double>(random() % 10);
    const auto slowest_of = [&](const std::vector<std::size_t>& begins) {
      double slowest = 0;
      for (std::size_t k = 0; k < stages; ++k) {
        double sum = 0;
        for (std::size_t i = begins[k]; i < (k + 1 < stages ? begins[k + 1] : n); ++i) sum += layers[i];
        slowest = std::max(slowest, sum);
      }
      return slowest;
    };
    // Every possible partition, as a set of the layers that begin a stage.
    double best = 1e9;
    for (unsigned set = 0; set < 1U << (n - 1); ++set) {
      std::vector<std::size_t> begins{0};
      for (std::size_t i = 1; i < n; ++i) {
        if ((set >> (i - 1) & 1U) != 0) begins.push_back(i);
      }
      if (begins.size() == stages) best = std::min(best, slowest_of(begins));
    }
    const std::vector<std::size_t> found = partition(layers, stages);
    CHECK(found.size() == stages);
    CHECK(std::is_sorted(found.begin(), found.end()));
    CHECK(std::adjacent_find(found.begin(), found.end()) == found.end());
    CHECK(slowest_of(found) == best);
  }
}
