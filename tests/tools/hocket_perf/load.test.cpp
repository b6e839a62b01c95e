// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// needs: cli11
// How hocket-perf detects that other programs use the processors.
#include "support/catch.hpp"
#include "support/text.hpp"

#include "../../../tools/hocket-perf/load.cpp"

#include <vector>

namespace {

perf::usage observed(int host, int process, double used, double own, double stolen = 0) {
  perf::usage found;
  found.host = host;
  found.process = process;
  found.known = 1;
  found.elapsed = 10;
  found.used = used;
  found.own = own;
  found.stolen = stolen;
  return found;
}

}  // namespace

TEST_CASE("hocket-perf reads the time that all cores were in use from /proc/stat") {
  // user nice system idle iowait irq softirq steal guest guest_nice; guests are also counted as users.
  const auto found = perf::parse_core_seconds("cpu  100 20 30 4000 500 6 7 80 9 9", 100);
  REQUIRE(found);
  CHECK(found->used == Approx(1.63));
  CHECK(found->stolen == Approx(0.8));
  CHECK(perf::parse_core_seconds("cpu 100 20 30 4000", 100)->stolen == 0);
  CHECK_FALSE(perf::parse_core_seconds("", 100));
  CHECK_FALSE(perf::parse_core_seconds("intr 1 2 3 4 5", 100));
  CHECK_FALSE(perf::parse_core_seconds("cpu 1 2", 100));
}

TEST_CASE("hocket-perf does not count its own ranks as other programs") {
  // Two processes on one host.
  const auto quiet = perf::combine({observed(0, 0, 20, 10), observed(0, 1, 20, 10)});
  REQUIRE(quiet);
  CHECK(quiet->other_cores == 0);
  CHECK_FALSE(quiet->is_busy());
  // Two threads of one process: its time counts once.
  const auto disturbed = perf::combine({observed(0, 0, 28, 20), observed(0, 0, 28, 20)});
  CHECK(disturbed->other_cores == Approx(0.8));
  CHECK(disturbed->is_busy());
  CHECK(hocket_test::contains(perf::busy_text(*disturbed), "other programs used 0.8 cores: the figures"));
}

TEST_CASE("hocket-perf reports the busiest host") {
  const auto found = perf::combine({observed(0, 0, 10, 10), observed(1, 1, 25, 10)});
  CHECK(found->other_cores == Approx(1.5));
  const auto stolen = perf::combine({observed(0, 0, 10, 10, 5), observed(1, 1, 10, 10)});
  CHECK(stolen->stolen_cores == Approx(0.5));
  CHECK(stolen->is_busy());
  CHECK(hocket_test::contains(perf::busy_text(*stolen), "0.0 cores, and other virtual machines 0.5: the figures"));
}

TEST_CASE("hocket-perf claims nothing about a host that it can't observe, or could only briefly") {
  perf::usage unknown = observed(0, 0, 0, 0);
  unknown.known = 0;
  CHECK_FALSE(perf::combine({unknown}));
  perf::usage brief = observed(0, 0, 0.02, 0.01);
  brief.elapsed = 0.02;
  CHECK_FALSE(perf::combine({brief})->is_busy());
}

TEST_CASE("hocket-perf observes this host") {
  const perf::usage_meter meter;
  const perf::usage found = meter.read();
  CHECK(found.elapsed >= 0);
  CHECK(found.own >= 0);
}
