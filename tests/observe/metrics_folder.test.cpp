// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// What a process reads of the metrics of other processes: all of a file or nothing, and nothing of ranks that have died.
#include "support/catch.hpp"
#include "support/scratch.hpp"
#include "support/text.hpp"

#include <hocket/bootstrap/launch.hpp>
#include <hocket/observe/metrics_folder.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

namespace {

using namespace hocket::observe;
using hocket_test::contains;
using hocket_test::scratch_directory;

const labels rank_seven{{"rank", "7"}};

void fill_kinds(registry& metrics) {
  metrics.counter("sent_bytes", "bytes\n\u00e4", {{"peer", "b"}}).add(3);
  metrics.counter("sent_bytes", "bytes\n\u00e4", {{"peer", "a"}}).add(1e300);
  metrics.gauge("norm", "a norm").set(std::numeric_limits<double>::quiet_NaN());
  auto& seconds = metrics.histogram("seconds", "a duration", {0.5, 1});
  for (const double each : {0.25, 0.75, 4.0}) seconds.record(each);
}

hocket::bootstrap::blob example_bytes() {
  registry metrics;
  fill_kinds(metrics);
  return snapshot_bytes(metrics.read(), rank_seven);
}

void write_bytes(const std::string& folder, const std::string& name, const hocket::bootstrap::blob& bytes) {
  REQUIRE_FALSE(hocket::platform::write_file(folder, name, bytes));
}

/// Makes a file look as if it had been replaced so long ago.
void set_age(const std::string& path, std::chrono::seconds age) {
  const auto then = std::chrono::system_clock::now().time_since_epoch() - age;
  const timespec time{std::chrono::duration_cast<std::chrono::seconds>(then).count(), 0};
  const timespec times[]{time, time};
  REQUIRE(::utimensat(AT_FDCWD, path.c_str(), times, 0) == 0);
}

std::vector<std::string> ranks_in(const std::string& folder) {
  std::vector<std::string> result;
  for (const rank_metrics& each : read_metrics_folder(folder)) result.push_back(each.constant.at(0).second);
  return result;
}

/// Waits until the folder has the metrics of these ranks and of no others; false if that takes too long.
bool becomes(const std::string& folder, const std::vector<std::string>& ranks) {
  for (int i = 0; i < 500; ++i) {
    if (ranks_in(folder) == ranks) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return false;
}

}  // namespace

TEST_CASE("the bytes of metrics are read as they were written") {
  rank_metrics found;
  REQUIRE(read_snapshot(example_bytes(), found) == "");
  CHECK(found.constant == rank_seven);
  REQUIRE(found.metrics.size() == 3);
  CHECK(found.metrics[2].samples.at(1).value == 3);
  CHECK(found.metrics[1].samples.at(0).values.counts == std::vector<std::uint64_t>{1, 1, 1});
  CHECK(snapshot_bytes(found.metrics, found.constant) == example_bytes());
  REQUIRE(read_snapshot(snapshot_bytes({}, {}), found) == "");
  CHECK(found.metrics.empty());
}

TEST_CASE("bytes of metrics that are cut or changed are refused") {
  const hocket::bootstrap::blob whole = example_bytes();
  rank_metrics found;
  for (std::size_t length = 0; length < whole.size(); ++length) {
    INFO("cut at byte " << length);
    CHECK(read_snapshot(hocket::bootstrap::byte_view(whole).first(length), found) != "");
    hocket::bootstrap::blob changed = whole;
    changed[length] ^= std::byte{4};
    CHECK(read_snapshot(changed, found) != "");
  }
}

TEST_CASE("bytes of metrics that no registry has are refused, with the reason") {
  struct refused {
    const char* reason;
    snapshot metrics;
    labels constant;
  };
  const sample one{.labels = {{"a", "1"}}, .value = 1, .values = {}};
  const auto gauge_of = [](std::string name, std::vector<sample> samples) {
    return family{.name = std::move(name), .help = "h", .kind = metric_kind::gauge, .bounds = {}, .samples = samples};
  };
  family no_help = gauge_of("a", {one}), no_kind = no_help, no_bounds = no_help;
  no_help.help = "";
  no_kind.kind = static_cast<metric_kind>(9);
  no_bounds.kind = metric_kind::histogram;
  for (const refused& each :
       {refused{"names are not in ascending order", {gauge_of("b", {one}), gauge_of("a", {one})}, {}},
        refused{"names are not in ascending order", {gauge_of("a", {one}), gauge_of("a", {one})}, {}},
        refused{"labels of a name are not in ascending order", {gauge_of("a", {one, one})}, {}},
        refused{"a name consists of letters", {gauge_of("a-b", {one})}, {}},
        refused{"does not end in \"_total\"", {gauge_of("a_total", {one})}, {}},
        refused{"the help text is empty", {no_help}, {}}, refused{"no such kind", {no_kind}, {}},
        refused{"there are no bounds", {no_bounds}, {}},
        refused{"labels are not in ascending", {}, {{"b", ""}, {"a", ""}}},
        refused{"\"le\" is that of a histogram", {}, {{"le", "1"}}}, refused{"not valid UTF-8", {}, {{"a", "\xff"}}}}) {
    rank_metrics found;
    const std::string problem = read_snapshot(snapshot_bytes(each.metrics, each.constant), found);
    INFO(problem);
    CHECK(contains(problem, each.reason));
  }
}

TEST_CASE("only whole, recent files of metrics are read, and one of equal labels") {
  const scratch_directory scratch;
  const std::string& folder = scratch.path();
  const hocket::bootstrap::blob whole = example_bytes();
  write_bytes(folder, "rank-0.metrics", whole);
  CHECK(ranks_in(folder) == std::vector<std::string>{"7"});
  for (const std::string& name : {std::string("a.metrics"), std::string("z.metrics")}) {
    registry newer;
    newer.gauge("age", "of a file").set(name == "a.metrics" ? 1 : 2);
    write_bytes(folder, name, snapshot_bytes(newer.read(), rank_seven));
    set_age(folder + "/rank-0.metrics", std::chrono::seconds(3));
    set_age(folder + '/' + name, std::chrono::seconds(0));
    const std::vector<rank_metrics> found = read_metrics_folder(folder);
    REQUIRE(found.size() == 1);
    CHECK(found[0].metrics.at(0).name == "age");
    ::unlink((folder + '/' + name).c_str());
  }
  for (const int age : {-60, 60}) {
    set_age(folder + "/rank-0.metrics", std::chrono::seconds(age));
    CHECK(ranks_in(folder).empty());
  }
  write_bytes(folder, "rank-0.metrics", hocket::bootstrap::blob(whole.begin(), whole.end() - 9));
  write_bytes(folder, "rank-1.metrics.other", whole);
  REQUIRE(::mkfifo((folder + "/rank-2.metrics").c_str(), 0600) == 0);  // without a writer: opening it may not wait
  REQUIRE(::mkdir((folder + "/rank-3.metrics").c_str(), 0700) == 0);
  write_bytes(folder, "rank-4.metrics", whole);
  REQUIRE(::truncate((folder + "/rank-4.metrics").c_str(), off_t{1} << 40) == 0);
  CHECK(ranks_in(folder).empty());
  CHECK(ranks_in(folder + "/none").empty());
}

TEST_CASE("a folder has the metrics of the processes that live") {
  const scratch_directory scratch;
  const std::string folder = scratch.path() + "/job";
  const auto results = hocket::launch::run_processes(
      4,
      [&](const hocket::bootstrap::world_description& where) {
        registry metrics;
        fill_kinds(metrics);
        if (where.rank != 0) {
          const metrics_writer writer(folder, where.rank, metrics, {{"rank", std::to_string(where.rank)}});
          if (where.rank == 3) ::raise(SIGKILL);
          for (int i = 0; i < 1000 && ::access((folder + "/end").c_str(), F_OK) != 0; ++i)
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
          return 0;
        }
        if (!becomes(folder, {"1", "2", "3"})) return 1;
        // The dead rank does not replace its file any more; the others do.
        for (const char* const rank : {"1", "3"})
          set_age(folder + "/rank-" + rank + ".metrics", std::chrono::seconds(60));
        if (!becomes(folder, {"1", "2"})) return 2;
        hocket::platform::write_file(folder, "end", {});
        return becomes(folder, {}) ? 0 : 3;  // a writer removes its file
      },
      {.capture_output = true, .timeout = std::chrono::seconds(60), .directory = {}});
  CHECK(results.at(0).exit_code == 0);
  CHECK(results.at(1).exit_code == 0);
  CHECK(results.at(2).exit_code == 0);
  CHECK(results.at(3).exit_code != 0);
}

TEST_CASE("a folder that can't be written to is an error with its name") {
  const registry metrics;
  CHECK_THROWS_WITH(metrics_writer("/nowhere/job", 1, metrics, rank_seven),
                    Catch::Contains("cannot write '/nowhere/job/rank-1.metrics'"));
}

TEST_CASE("metrics that no reader accepts are refused") {
  const scratch_directory scratch;
  registry metrics;
  struct refused {
    const char* reason;
    labels constant;
  };
  for (const refused& each :
       {refused{"the label \"le\" is that of a histogram", {{"le", "1"}}},
        refused{"the label \"rank\" appears twice", {{"rank", "1"}, {"rank", "2"}}},
        refused{"a name consists of letters", {{"a-b", "1"}}}, refused{"is not valid UTF-8", {{"rank", "\xff"}}}})
    CHECK_THROWS_WITH(metrics_writer(scratch.path(), 1, metrics, each.constant), Catch::Contains(each.reason));
  metrics.gauge("large", std::string(detail::most_metrics_bytes, 'x'));
  CHECK_THROWS_WITH(metrics_writer(scratch.path(), 1, metrics, rank_seven),
                    Catch::Contains("readers accept at most 16777216"));
  CHECK(scratch.names().empty());
}

TEST_CASE("a writer survives functions that fail and the removal of its folder") {
  const scratch_directory scratch;
  const std::string folder = scratch.path() + "/job";
  registry metrics;
  std::atomic<int> readings{0};
  metrics.before_read([&] {
    if (++readings == 2) throw std::runtime_error("this reading fails");
  });
  const metrics_writer writer(folder, 7, metrics, rank_seven);
  CHECK(ranks_in(folder) == std::vector<std::string>{"7"});
  std::filesystem::remove_all(folder);
  CHECK(becomes(folder, {"7"}));
  CHECK(readings >= 3);
}
