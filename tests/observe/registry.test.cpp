// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Metrics lose no update, whatever the number of threads, and the registry refuses what sinks could not write.
#include "observe/refusal.hpp"
#include "support/catch.hpp"

#include <hocket/observe/registry.hpp>
#include <hocket/observe/tensorboard.hpp>

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace hocket::observe;
using observe_test::refusal_of;

void run_threads(int count, const std::function<void(int)>& body) {
  std::vector<std::thread> all;
  for (int i = 0; i < count; ++i) all.emplace_back(body, i);
  for (std::thread& each : all) each.join();
}

}  // namespace

TEST_CASE("no update is lost: more threads than cells, at once and one after the other") {
  registry metrics;
  counter& calls = metrics.counter("calls", "calls");
  gauge& level = metrics.gauge("level", "a level");
  histogram& sizes = metrics.histogram("sizes", "sizes in bytes", {1, 2, 4});
  const int threads = static_cast<int>(detail::owned_cells) + 7, updates = 2000;
  for (int round = 1; round <= 3; ++round) {
    run_threads(threads, [&](int t) {
      for (int i = 0; i < updates; ++i) {
        calls.add();
        level.add(t % 2 == 0 ? 1 : -1);
        sizes.record(i % 8);
      }
    });
    const double expected = static_cast<double>(round) * threads * updates;
    CHECK(calls.value() == expected);
    CHECK(level.value() == static_cast<double>(round) * updates);  // one more thread adds than subtracts
    const distribution all = sizes.value();
    const auto eighth = static_cast<std::uint64_t>(expected / 8);
    CHECK(all.counts == std::vector<std::uint64_t>{2 * eighth, eighth, 2 * eighth, 3 * eighth});
    CHECK(all.sum == expected / 8 * 28);
  }
  CHECK(detail::cells_in_use.load() < 4);  // the cells of threads that have ended are free again
}

TEST_CASE("a histogram counts each value in the first bucket whose bound it does not exceed") {
  for (const std::size_t count : {1U, 2U, 3U, 7U, 20U, 33U}) {
    const std::vector<double> bounds = linear_bounds(-1, 0.5, count);
    histogram sizes(bounds);
    std::vector<std::uint64_t> expected(count + 1);
    double sum = 0;
    for (double value = -2; value < 17; value += 0.125) {
      std::size_t bucket = 0;
      while (bucket < count && value > bounds[bucket]) ++bucket;
      ++expected[bucket];
      sum += value;
      sizes.record(value);
    }
    CHECK(sizes.value().counts == expected);
    CHECK(sizes.value().sum == sum);
    CHECK(sizes.value().count() == 152);
  }
  histogram odd({1});
  odd.record(std::numeric_limits<double>::quiet_NaN());
  odd.record(std::numeric_limits<double>::infinity());
  odd.record(-std::numeric_limits<double>::infinity());
  odd.record(2.5);
  CHECK(odd.value().counts == std::vector<std::uint64_t>{1, 3});
  CHECK(odd.value().sum == 2.5);
}

TEST_CASE("a counter only grows") {
  counter one;
  one.add(2.5);
  one.add(-1);
  one.add(std::numeric_limits<double>::quiet_NaN());
  one.add(std::numeric_limits<double>::infinity());
  one.add(0);
  CHECK(one.value() == 2.5);
  one.add(1LL << 50);
  one.add();
  CHECK(one.value() == 1125899906842624 + 3.5);
}

TEST_CASE("bounds by factor and by width") {
  CHECK(exponential_bounds(1, 4, 4) == std::vector<double>{1, 4, 16, 64});
  CHECK(linear_bounds(-1, 0.5, 3) == std::vector<double>{-1, -0.5, 0});
}

TEST_CASE("a name and labels lead to the same metric, in any order of the labels") {
  registry metrics;
  counter& one = metrics.counter("bytes", "bytes", {{"peer", "1"}, {"call", "all_reduce"}});
  CHECK(&one == &metrics.counter("bytes", "bytes", {{"call", "all_reduce"}, {"peer", "1"}}));
  CHECK(&one != &metrics.counter("bytes", "bytes", {{"call", "all_reduce"}, {"peer", "2"}}));
  for (int i = 0; i < 1000; ++i) metrics.gauge("g" + std::to_string(i), "one of many");
  CHECK(&one == &metrics.counter("bytes", "bytes", {{"peer", "1"}, {"call", "all_reduce"}}));
}

TEST_CASE("no two metrics have the same text, whatever the values of their labels") {
  const std::string parts[] = {"",      "1",         ",",    "\\",  "\"", "1,b=2", "1\",b=\"2",
                               "2,b=3", "2\",b=\"3", "\\\"", "\\,", "\n", "\\n"};
  std::set<std::string> names, tags;
  std::size_t metrics = 0;
  for (const std::string& a : parts) {
    for (const std::string& b : parts) {
      const labels of{{"a", a}, {"b", b}};
      names.insert(name_of("x", of));
      tags.insert(tag_of("x", of));
      ++metrics;
    }
  }
  CHECK(names.size() == metrics);
  CHECK(tags.size() == metrics);
  CHECK(name_of("x", {{"a", "q\"\\\n"}}) == "x{a=\"q\\\"\\\\\\n\"}");
}

TEST_CASE("a snapshot has all metrics, sorted by name and labels") {
  registry metrics;
  metrics.histogram("seconds", "time", {0.5}).record(0.25);
  metrics.counter("bytes", "sent bytes", {{"peer", "2"}}).add(7);
  metrics.counter("bytes", "sent bytes", {{"peer", "1"}}).add(5);
  metrics.gauge("loss", "nats").set(-1.5);
  const snapshot now = metrics.read();
  REQUIRE(now.size() == 3);
  CHECK((now[0].name == "bytes" && now[0].help == "sent bytes" && now[0].kind == metric_kind::counter));
  REQUIRE(now[0].samples.size() == 2);
  CHECK((now[0].samples[0].value == 5 && now[0].samples[1].value == 7));
  CHECK(name_of(now[0].name, now[0].samples[1].labels) == "bytes{peer=\"2\"}");
  CHECK((now[1].name == "loss" && now[1].kind == metric_kind::gauge && now[1].samples.at(0).value == -1.5));
  CHECK((now[2].name == "seconds" && now[2].bounds == std::vector<double>{0.5}));
  CHECK(now[2].samples.at(0).values.counts == std::vector<std::uint64_t>{1, 0});
  CHECK(name_of(now[1].name, {}) == "loss");
  CHECK(name_of("x", {{"a", "1"}, {"b", "2"}}) == "x{a=\"1\",b=\"2\"}");
}

TEST_CASE("a registry refuses invalid metrics, and those that differ from others of their name") {
  registry metrics;
  metrics.counter("calls", "calls of a function", {{"name", "f"}});
  metrics.histogram("seconds", "time", {1, 2});
  const std::string bad_name = "a name consists of letters, digits and \"_\", and does not begin with a digit";
  const double infinite = std::numeric_limits<double>::infinity();
  struct {
    std::function<void()> act;
    std::string reason;
  } const cases[] = {
      {[&] { metrics.gauge("", "h"); }, "gauge \"\": " + bad_name},
      {[&] { metrics.gauge("9a", "h"); }, "gauge \"9a\": " + bad_name},
      {[&] { metrics.gauge("a/b", "h"); }, "gauge \"a/b\": " + bad_name},
      {[&] { metrics.gauge("\xff", "h"); }, "gauge \"\xef\xbf\xbd\": " + bad_name},
      {[&] { metrics.counter("x_total", "h"); },
       "counter \"x_total\": a name does not end in \"_total\", which Prometheus adds to names"},
      {[&] { metrics.gauge("x_count", "h"); },
       "gauge \"x_count\": a name does not end in \"_count\", which Prometheus adds to names"},
      {[&] { metrics.gauge("x", ""); },
       "gauge \"x\": the help text is empty: it states what the number is, and its unit"},
      {[&] { metrics.gauge("x", "\xc0"); }, "gauge \"x\": the help text is not valid UTF-8"},
      {[&] {
         metrics.gauge("x", "h", {{"a-b", "1"}});
       },
       "gauge \"x\": the label \"a-b\": a name consists of letters, digits and \"_\", and begins neither with a digit "
       "nor "
       "with \"__\""},
      {[&] {
         metrics.gauge("x", "h", {{"__a", "1"}});
       },
       "gauge \"x\": the label \"__a\": a name consists of letters, digits and \"_\", and begins neither with a digit "
       "nor "
       "with \"__\""},
      {[&] {
         metrics.gauge("x", "h", {{"le", "1"}});
       },
       "gauge \"x\": the label \"le\" is that of a histogram's buckets: choose another name"},
      {[&] {
         metrics.gauge("x", "h", {{"a", "1"}, {"a", "2"}});
       },
       "gauge \"x\": the label \"a\" appears twice: each has one value"},
      {[&] {
         metrics.gauge("x", "h", {{"a", "\xff"}});
       },
       "gauge \"x\": the value of the label \"a\" is not valid UTF-8"},
      {[&] { metrics.histogram("x", "h", {}); },
       "histogram \"x\": there are no bounds: a histogram needs at least one"},
      {[&] {
         metrics.histogram("x", "h", {1, 1});
       },
       "histogram \"x\": bound 1 is not greater than bound 0: bounds must increase"},
      {[&] {
         metrics.histogram("x", "h", {2, 1});
       },
       "histogram \"x\": bound 1 is not greater than bound 0: bounds must increase"},
      {[&] {
         metrics.histogram("x", "h", {1, infinite});
       },
       "histogram \"x\": bound 1 is not finite; the bucket of greater values is added to those"},
      {[&] {
         metrics.gauge("calls", "calls of a function", {{"name", "f"}});
       },
       "gauge \"calls\": the name belongs to a counter: choose another one"},
      {[&] {
         metrics.counter("calls", "other", {{"name", "f"}});
       },
       "counter \"calls\": its help text differs from the first one, \"calls of a function\""},
      {[&] { metrics.counter("calls", "calls of a function"); },
       "counter \"calls\": its labels differ in name from those of calls{name=\"f\"}"},
      {[&] {
         metrics.histogram("seconds", "time", {1, 3});
       },
       "histogram \"seconds\": its bounds differ from those of the first histogram of this name"},
  };
  for (const auto& each : cases) CHECK(refusal_of(each.act) == each.reason);
  CHECK(metrics.read().size() == 2);  // a refused metric leaves nothing
}
