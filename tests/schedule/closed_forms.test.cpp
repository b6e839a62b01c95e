// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Makespan and memory of every schedule at unit costs, compared with the published formulas.
#include "schedule/refusal.hpp"
#include "schedule/schedules.hpp"
#include "schedule/slow.hpp"

#include <hocket/draw/schedule_svg.hpp>
#include <hocket/draw/schedule_text.hpp>
#include <hocket/schedule/greedy.hpp>
#include <hocket/schedule/prove.hpp>
#include <hocket/schedule/schedule_trace.hpp>

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstddef>
#include <ctime>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

using namespace pipeline_test;
using namespace hocket::plan::pipeline;

namespace {

/// Published makespan in units of F = I = W = 1 of a full stage; nullopt if there is no published formula.
std::optional<double> published_makespan(std::string_view name, const sizes& s) {
  const double p = s.ranks, m = s.microbatches, v = s.stages_per_rank;
  if (name == "gpipe" || name == "one_forward_one_backward") return 3 * (m + p - 1);
  if (name == "interleaved" || name == "breadth_first") {
    return m >= p ? 3 * m + 3 * (p - 1) / v : 3 * (p * v + m - 1) / v;
  }
  if (name == "zero_bubble" || name == "interleaved_zero_bubble") {
    // The published formula for M < P lacks the last term: it holds for 2M <= P. Each further microbatch makes ranks
    // compute a weight gradient of each chunk except the last while another rank waits for an input gradient.
    return m >= p ? 3 * m + (p - 1) / v : (2 * p * v - 1 + 2 * m + (v - 1) * std::max(0., 2 * m - p)) / v;
  }
  if (name == "zero_bubble_v") return std::max(2 * p - 1 + 2 * m, 3 * m + (p - 1) / 2);
  if (name == "dual_pipe_v") return 3 * m + p - 1;
  if (name == "dual_pipe") return 3 * m + 2 * (p / 2 - 1);
  if (p == 1 || m <= p) return std::nullopt;
  if (name == "v_half") {
    return 3 * m + (s.ranks == 2 ? 0.5 : s.ranks % 2 == 0 ? (3 * p - 7) / 2 : (3 * p - 4) / 2);
  }
  if (name == "v_min") return 3 * m + (s.ranks == 2 ? 1.5 : s.ranks % 3 == 0 ? 2 * p - 3.5 : 2 * p - 2.5);
  return std::nullopt;
}

/// Published peak of the activations of a rank, in microbatches of a full stage; an upper bound if not exact.
struct peak_rule {
  double value;
  bool exact = true;
};

std::optional<peak_rule> published_peak(std::string_view name, const sizes& s, int rank) {
  const double p = s.ranks, m = s.microbatches, v = s.stages_per_rank, n = s.group, r = rank;
  if (name == "gpipe" || name == "breadth_first") return peak_rule{m};
  if (name == "one_forward_one_backward") return peak_rule{std::min(p - r, m)};
  if (name == "interleaved") return peak_rule{std::min(2 * (p - 1 - r) + (v - 1) * n + 1, v * m) / v};
  if (name == "zero_bubble" || name == "interleaved_zero_bubble") {
    return peak_rule{std::min(((v - 1) * n + p) / v, m)};
  }
  if (name == "zero_bubble_v") return peak_rule{std::min(p, m), m >= 2 * p - 1};
  if (name == "dual_pipe_v") return peak_rule{p + 0.5};
  if (name == "dual_pipe") return peak_rule{p + 1};
  if (m <= p) return std::nullopt;
  if (name == "v_half") return peak_rule{s.ranks % 2 == 0 ? p / 2 + 1 : (p + 1) / 2, false};
  if (name == "v_min") {
    return peak_rule{s.ranks % 3 == 0 ? p / 3 + 1 : s.ranks % 3 == 1 ? (p + 2) / 3 : (p + 4) / 3, false};
  }
  return std::nullopt;
}

}  // namespace

TEST_CASE("the makespan and the peak of every schedule agree with the published formulas") {
  std::map<std::string, int> compared;
  for_every_schedule([&](const schedule& plan, const sizes& s) {
    const timing found = run_clock(plan);
    const double chunks = s.stages_per_rank;
    const auto name = [&] {
      return std::string(plan.name()) + ", P " + std::to_string(s.ranks) + ", M " + std::to_string(s.microbatches) +
             ", v " + std::to_string(s.stages_per_rank);
    };
    const std::optional<double> makespan = published_makespan(plan.name(), s);
    if (makespan) {
      ++compared[std::string(plan.name())];
      if (found.makespan != *makespan * chunks) {
        FAIL_CHECK(name() << ": makespan " << found.makespan / chunks << ", published " << *makespan);
      }
    }
    double most = 0;
    for (int rank = 0; rank < s.ranks; ++rank) {
      const std::optional<peak_rule> peak = published_peak(plan.name(), s, rank);
      const double held = peak_activations(plan, rank) / chunks;
      most = std::max(most, held);
      if (peak && (peak->exact ? held != peak->value : held > peak->value)) {
        FAIL_CHECK(name() << ", rank " << rank << ": peak " << held << ", published " << peak->value);
      }
    }
    // The published peak of V-Half is that of the rank with the largest peak.
    if (plan.name() == "v_half" && s.microbatches > s.ranks && most != published_peak(plan.name(), s, 0)->value) {
      FAIL_CHECK(name() << ": largest peak " << most << ", published " << published_peak(plan.name(), s, 0)->value);
    }
  });
  CHECK(compared.size() == 11);
  for (const auto& [plan, times] : compared) {
    CAPTURE(plan);
    CHECK(times > 30);
  }
}

TEST_CASE("every schedule is complete and terminates") {
  for_every_schedule([&](const schedule& plan, const sizes& s) {
    const schedule_proof found = prove(plan);
    if (!found) FAIL_CHECK(plan.name() << ", P " << s.ranks << ", M " << s.microbatches << ": " << found.message());
  });
}

namespace {

double makespan_at(const schedule& plan, int stages_per_rank, double hop) {
  const double v = stages_per_rank;
  return run_clock(plan, costs(stage_cost{1 / v, 1.3 / v, 0.7 / v}, hop)).makespan;
}

}  // namespace

TEST_CASE("makespans with unequal costs and hops match reference values") {
  const auto near = [](double value) { return Approx(value).epsilon(1e-9); };
  const int p = 8, m = 32;
  CHECK(makespan_at(one_forward_one_backward(p, m), 1, 0) == near(117));
  CHECK(makespan_at(interleaved(p, m, 2), 2, 0) == near(106.5));
  CHECK(makespan_at(zero_bubble(p, m), 1, 0) == near(107.2));
  CHECK(makespan_at(interleaved_zero_bubble(p, m, 2), 2, 0) == near(101.6));
  CHECK(makespan_at(zero_bubble_v(p, m), 2, 0) == near(100.55));
  CHECK(makespan_at(dual_pipe_v(p, m), 2, 0) == near(105.65));
  CHECK(makespan_at(v_min(p, m), 2, 0) == near(96 + 43.2));

  CHECK(makespan_at(one_forward_one_backward(p, m), 1, 0.1) == near(123.8));
  CHECK(makespan_at(interleaved(p, m, 2), 2, 0.1) == near(109.5));
  CHECK(makespan_at(zero_bubble(p, m), 1, 0.1) == near(110));
  CHECK(makespan_at(interleaved_zero_bubble(p, m, 2), 2, 0.1) == near(105.2));
  CHECK(makespan_at(zero_bubble_v(p, m), 2, 0.1) == near(104.2));
  CHECK(makespan_at(dual_pipe_v(p, m), 2, 0.1) == near(113.85));
}

TEST_CASE("generators reject sizes that break their rules, and the error names the rule") {
  refuses([] { gpipe(0, 4); }, "gpipe needs at least one rank and one microbatch; found 0 ranks and 4 microbatches");
  refuses([] { one_forward_one_backward(2, 0); }, "at least one rank and one microbatch");
  refuses([] { interleaved(4, 9, 2); }, "a number of microbatches that M/P (rounded down) divides, or a group size");
  refuses([] { interleaved(4, 12, 2, 3); }, "at least as many microbatches as there are ranks");
  refuses([] { interleaved(4, 12, 2, 3); }, "not of 3; found 4 ranks and 12 microbatches");
  refuses([] { interleaved(4, 14, 2, 12); }, "the last group too, which has only 2; found 4 ranks and 14 microbatches");
  refuses([] { interleaved(4, 8, 2, 9); },
          "groups of at most as many microbatches as there are, not of 9; found 4 ranks and 8 microbatches");
  refuses([] { interleaved(4, 8, 2, -1); }, "not of -1");
  refuses([] { interleaved(4, 8, 0); }, "a loop needs at least one stage per rank: found 0");
  refuses([] { breadth_first(4, 8, -2); }, "a loop needs at least one stage per rank: found -2");
  refuses([] { placement::loop(0, 2); }, "a loop needs at least one rank: found 0");
  refuses([] { zero_bubble(0, 8); }, "invalid argument: zero_bubble needs at least one rank");
  refuses([] { interleaved_zero_bubble(4, 9, 2); }, "M/P (rounded down)");
  constexpr int many = 1 << 30;  // twice that overflows
  refuses([] { dual_pipe_v(many, many); }, "at least twice as many microbatches as ranks");
  refuses([] { dual_pipe(many, many); }, "at least twice as large");
  refuses([] { dual_pipe_v(4, 7); }, "at least twice as many microbatches as ranks");
  refuses([] { dual_pipe(3, 8); }, "an even number of ranks");
  refuses([] { dual_pipe(4, 9); }, "an even number of microbatches");
  refuses([] { dual_pipe(4, 6); }, "at least twice as large");
}

TEST_CASE("each combination of ranks, microbatches and stages is accepted, or rejected with the rule") {
  int refused = 0;
  const auto is_refused = [&](bool expected, const std::string& rule, auto make) {
    std::string says;
    try {
      const schedule plan = make();
      if (!prove(plan)) FAIL_CHECK(plan.name() << ": " << prove(plan).message());
    } catch (const hocket::error& cause) {
      says = cause.what();
      ++refused;
    }
    if (says.empty() == expected) FAIL_CHECK((expected ? "allowed, against the rule: " : "rejected: ") << rule << says);
    if (expected && says.find(rule) == std::string::npos) FAIL_CHECK("'" << says << "' does not contain: " << rule);
  };
  for (int p = 0; p <= 8; ++p) {
    for (int m = 0; m <= 32; ++m) {
      CAPTURE(p, m);
      const bool none = p < 1 || m < 1;
      const std::string nothing = "at least one rank";
      is_refused(none, nothing, [&] { return gpipe(p, m); });
      is_refused(none, nothing, [&] { return one_forward_one_backward(p, m); });
      is_refused(none, nothing, [&] { return zero_bubble(p, m); });
      is_refused(none, nothing, [&] { return zero_bubble_v(p, m); });
      is_refused(none, nothing, [&] { return v_half(p, m); });
      is_refused(none, nothing, [&] { return v_min(p, m); });
      is_refused(none || m < 2 * p, none ? nothing : "at least twice as many microbatches as ranks",
                 [&] { return dual_pipe_v(p, m); });
      is_refused(none || p % 2 != 0 || m % 2 != 0 || m < 2 * p,
                 none         ? "at least"
                 : p % 2 != 0 ? "an even number of ranks"
                 : m % 2 != 0 ? "an even number of microbatches"
                              : "at least twice as large",
                 [&] { return dual_pipe(p, m); });
      for (int v = 0; v <= 4; ++v) {
        const bool no_loop = none || v < 1;
        const std::string loop = none ? "at least one" : "a loop needs at least one stage per rank";
        const bool grouped = !none && (v == 1 || m % std::max(1, m / p) == 0);
        is_refused(no_loop, loop, [&] { return breadth_first(p, m, v); });
        const std::string rule = no_loop ? loop : "a number of microbatches that M/P (rounded down) divides";
        is_refused(no_loop || !grouped, rule, [&] { return interleaved(p, m, v); });
        is_refused(no_loop || !grouped, rule, [&] { return interleaved_zero_bubble(p, m, v); });
      }
    }
  }
  CHECK(refused > 1000);
}

TEST_CASE("the makespan and the peak of rank 0 match the published table") {
  struct line {
    int p, m;
    double makespan[8], peak[8];
  };
  const line table[] = {
      {2, 4, {15, 15, 13.5, 13.5, 13, 12.5, 12.5, 13}, {4, 2, 2.5, 4, 2, 2, 2, 2.5}},
      {4, 8, {33, 33, 28.5, 28.5, 27, 25.5, 25.5, 27}, {8, 4, 5.5, 8, 4, 4, 4, 4.5}},
      {4, 16, {57, 57, 52.5, 52.5, 51, 49.5, 49.5, 51}, {16, 4, 5.5, 16, 4, 4, 4, 4.5}},
      {8, 16, {69, 69, 58.5, 58.5, 55, 51.5, 51.5, 55}, {16, 8, 11.5, 16, 8, 8, 8, 8.5}},
      {8, 32, {117, 117, 106.5, 106.5, 103, 99.5, 99.5, 103}, {32, 8, 11.5, 32, 8, 8, 8, 8.5}},
  };
  for (const line& each : table) {
    const int p = each.p, m = each.m;
    const std::vector<schedule> all = {
        gpipe(p, m),       one_forward_one_backward(p, m),   interleaved(p, m, 2), breadth_first(p, m, 2),
        zero_bubble(p, m), interleaved_zero_bubble(p, m, 2), zero_bubble_v(p, m),  dual_pipe_v(p, m)};
    for (std::size_t i = 0; i < all.size(); ++i) {
      CAPTURE(p, m, all[i].name());
      const double chunks = all[i].stages() / p;
      CHECK(run_clock(all[i]).makespan / chunks == each.makespan[i]);
      CHECK(peak_activations(all[i], 0) / chunks == each.peak[i]);
    }
  }
}

TEST_CASE("the bubble of zero-bubble schedules is (P-1)/v times the maximum of F, I and F+I-W") {
  for (const double f : {0.25, 0.5, 1., 1.5}) {
    for (const double i : {0.25, 0.5, 1., 1.5}) {
      for (const double w : {0.25, 0.5, 0.75, 1., 1.5}) {
        for (const int p : {2, 3, 4, 8}) {
          for (const int v : {1, 2, 4}) {
            const int m = 2 * p;
            const double bubble = (p - 1) * std::max({f, i, f + i - w}) / v;
            const schedule plan = v == 1 ? zero_bubble(p, m) : interleaved_zero_bubble(p, m, v);
            const double found = run_clock(plan, costs(stage_cost{f / v, i / v, w / v})).makespan - m * (f + i + w);
            if (found != Approx(bubble)) {
              FAIL_CHECK("F " << f << ", I " << i << ", W " << w << ", P " << p << ", v " << v << ": bubble " << found
                              << " instead of " << bubble);
            }
          }
        }
      }
    }
  }
}

TEST_CASE("invalid costs, and costs for another number of stages, are rejected") {
  const double none = std::numeric_limits<double>::quiet_NaN();
  const double endless = std::numeric_limits<double>::infinity();
  refuses(
      [&] {
        costs(stage_cost{1, none, 1});
      },
      "input_gradient of each stage is nan; it must be a finite number that is not negative");
  refuses([&] { costs(std::vector<stage_cost>{{1, 1, 1}, {1, 1, -2}}); }, "weight_gradient of stage 1 is -2.0");
  refuses([&] { costs(stage_cost{endless, 1, 1}); }, "forward of each stage is inf");
  refuses([&] { costs(stage_cost{1, 1, 1, -1}); }, "recompute of each stage is -1.0");
  refuses([&] { costs(stage_cost{}, -0.5); }, "the time of a hop is -0.5");
  const std::string wrong = "costs are given for 3 stages, the schedule has 4";
  const costs three(std::vector<stage_cost>(3));
  refuses([&] { run_clock(gpipe(4, 4), three); }, wrong);
  refuses([&] { greedy(placement::loop(4), 4, three); }, wrong);
  refuses([&] { draw_text(gpipe(4, 4), three); }, wrong);
  refuses([&] { draw_svg(gpipe(4, 4), three); }, wrong);
  refuses([&] { run_clock(gpipe(4, 4), costs(std::vector<stage_cost>(1))); }, "costs are given for 1 stages");
  refuses([&] { run_clock(gpipe(4, 4), costs(std::vector<stage_cost>())); }, "costs are given for 0 stages");
  costs pairs;
  pairs.pair_share = none;
  refuses([&] { run_clock(dual_pipe_v(2, 4), pairs); }, "the pair_share of costs is nan");
  CHECK(run_clock(gpipe(4, 4), costs(std::vector<stage_cost>(4))).makespan == 3 * 7);
  CHECK(run_clock(gpipe(1, 4), costs(std::vector<stage_cost>(1))).makespan == 3 * 4);
}

TEST_CASE("numbers that are out of range are rejected before memory is allocated") {
  refuses([] { placement::loop(65536, 65536); }, "at most 2^27 stages");
  refuses([] { placement::v_shape(2'000'000'000); }, "at most 2^27 stages");
  refuses([] { placement::two_directions(2'000'000'000, 2); }, "at most 2^27 stages");
  refuses([] { placement::given({2147483647}); }, "at most 2^27 ranks: found 2147483647");
  refuses([] { schedule("x", placement::loop(2), -1); }, "must not be negative; found -1");
  refuses([] { schedule("x", placement::two_directions(2, 2), 4); }, "made for 2 microbatches; the schedule has 4");
  refuses([] { schedule("x", placement::loop(65536), 65536); }, "at most 134217728 actions");
  refuses([] { interleaved(65536, 1, 65536); }, "at most 2^27 stages");
}

TEST_CASE("interleaved schedules are proven for each group size from P to M whose last group has at least P") {
  for (int p = 1; p <= 5; ++p) {
    for (int m = p; m <= 20; ++m) {
      for (int group = p; group <= m; ++group) {
        if (m % group != 0 && m % group < p) continue;
        for (int v = 1; v <= 3; ++v) {
          CAPTURE(p, m, group, v);
          CHECK(prove(interleaved(p, m, v, group)));
          CHECK(prove(interleaved_zero_bubble(p, m, v, group)));
        }
      }
    }
  }
}

TEST_CASE("a pipeline of 1024 ranks and 4096 microbatches is simulated in less than 10 seconds") {
  const schedule plan = one_forward_one_backward(1024, 4096);
  const std::clock_t begin = std::clock();  // CPU time of this process, independent of other load on the machine
  CHECK(run_clock(plan).makespan == 3. * (4096 + 1024 - 1));
  const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  CHECK((seconds < 10 || slow));
}
