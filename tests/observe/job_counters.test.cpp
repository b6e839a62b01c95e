// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The figures of a job: memory by account, steps and restarts; and updates before each reading of a registry.
#include "support/catch.hpp"

#include <hocket/core/memory_ledger.hpp>
#include <hocket/observe/job_counters.hpp>
#include <hocket/observe/registry.hpp>

#include <atomic>
#include <map>
#include <memory>
#include <memory_resource>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

namespace {

using namespace hocket::observe;

std::map<std::string, double> values_of(const registry& metrics) {
  std::map<std::string, double> result;
  for (const family& each : metrics.read()) {
    for (const sample& one : each.samples) result[name_of(each.name, one.labels)] = one.value;
  }
  return result;
}

}  // namespace

TEST_CASE("memory by account: now and at most, accounts that are made later, and a ledger that ends first") {
  registry metrics;
  std::optional<hocket::memory_ledger> ledger(std::in_place);
  watch(metrics, *ledger);
  CHECK(values_of(metrics).empty());
  std::pmr::memory_resource* const gradients = ledger->account("gradients");
  void* const first = gradients->allocate(1000);
  void* const second = gradients->allocate(24);
  gradients->deallocate(first, 1000);
  auto now = values_of(metrics);
  CHECK(now["hocket_memory_bytes{account=\"gradients\"}"] == 24);
  CHECK(now["hocket_memory_peak_bytes{account=\"gradients\"}"] == 1024);
  void* const third = ledger->account("states")->allocate(8);
  CHECK(ledger->bytes() == 32);
  CHECK(ledger->peak_bytes() == 1024);
  now = values_of(metrics);
  CHECK(now["hocket_memory_bytes{account=\"states\"}"] == 8);
  gradients->deallocate(second, 24);
  ledger->account("states")->deallocate(third, 8);
  ledger->forget_peaks();
  ledger.reset();
  now = values_of(metrics);
  CHECK(now.size() == 4);
  for (const auto& [name, value] : now) {
    INFO(name);
    CHECK(value == 0);
  }
}

TEST_CASE("ledgers of one registry are added up, and are forgotten when they have ended") {
  registry metrics;
  std::optional<hocket::memory_ledger> first(std::in_place), second(std::in_place);
  watch(metrics, *first);
  watch(metrics, *second);
  const std::weak_ptr counted = hocket::detail::memory_ledger_access::accounts(*first);
  const std::string now = "hocket_memory_bytes{account=\"a\"}", peak = "hocket_memory_peak_bytes{account=\"a\"}";
  std::pmr::memory_resource *const one = first->account("a"), *const other = second->account("a");
  void *const in_one = one->allocate(100), *const in_other = other->allocate(10);
  CHECK(values_of(metrics)[now] == 110);
  other->deallocate(in_other, 10);
  CHECK(values_of(metrics)[now] == 100);
  CHECK(values_of(metrics)[peak] == 110);
  one->deallocate(in_one, 100);
  first.reset();
  CHECK_FALSE(counted.expired());
  CHECK(values_of(metrics)[now] == 0);
  CHECK(counted.expired());
  void* const again = other->allocate(30);
  CHECK(values_of(metrics)[now] == 30);
  CHECK(values_of(metrics)[peak] == 130);
  other->deallocate(again, 30);
}

TEST_CASE("memory can be read while it is allocated") {
  registry metrics;
  hocket::memory_ledger ledger;
  watch(metrics, ledger);
  std::atomic<bool> over{false};
  std::thread rank([&] {
    for (int i = 0; i < 200; ++i) {
      std::pmr::memory_resource* const account = ledger.account(std::to_string(i % 20));
      account->deallocate(account->allocate(64), 64);
    }
    over = true;
  });
  while (!over) values_of(metrics);
  rank.join();
  CHECK(values_of(metrics).size() == 40);
  CHECK(values_of(metrics)["hocket_memory_peak_bytes{account=\"7\"}"] == 64);
}

TEST_CASE("steps and restarts") {
  registry metrics;
  job_counters counters(metrics);
  CHECK(values_of(metrics) == std::map<std::string, double>{{"hocket_restarts", 0}, {"hocket_steps", 0}});
  counters.restart();
  for (int i = 0; i < 3; ++i) counters.step();
  CHECK(values_of(metrics) == std::map<std::string, double>{{"hocket_restarts", 1}, {"hocket_steps", 3}});
}

TEST_CASE("updates precede each reading, in the order in which they were added") {
  registry metrics;
  int at = 0;
  metrics.before_read([&] { metrics.gauge("first", "a place").set(++at); });
  metrics.before_read([&] { metrics.gauge("second", "a place").set(++at); });
  CHECK(values_of(metrics) == std::map<std::string, double>{{"first", 1}, {"second", 2}});
  CHECK(values_of(metrics) == std::map<std::string, double>{{"first", 3}, {"second", 4}});
}

TEST_CASE("an update that returns false is the last one, and one that fails ends no other") {
  registry metrics;
  gauge &last = metrics.gauge("last", "a number"), &all = metrics.gauge("all", "a number");
  bool fails = false;
  metrics.before_read([&] {
    last.add(1);
    return last.value() < 2;
  });
  metrics.before_read([&] {
    if (fails) throw std::runtime_error("fails");
  });
  metrics.before_read([&] { all.add(1); });
  for (int i = 0; i < 3; ++i) values_of(metrics);
  CHECK(last.value() == 2);
  CHECK(all.value() == 3);
  fails = true;
  CHECK_THROWS_WITH(metrics.read(), "fails");
  fails = false;
  metrics.read();
  CHECK(all.value() == 4);
}

TEST_CASE("a counter of what is counted elsewhere can be added to as well") {
  registry metrics;
  hocket::observe::detail::followed_counter followed(metrics, "x", "help"), other(metrics, "x", "help");
  followed.follow(std::uint64_t{5}, 2);
  counter& own = metrics.counter("x", "help");
  own.add(3);
  other.follow(7.0);
  followed.follow(std::uint64_t{6}, 2);
  CHECK(values_of(metrics)["x"] == 22);
  followed.follow(std::uint64_t{1});  // the count has begun again
  followed.follow(std::uint64_t{2});
  CHECK(values_of(metrics)["x"] == 23);
}
