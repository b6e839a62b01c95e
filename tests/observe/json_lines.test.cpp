// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Each line of a log is one JSON object, whatever its content, whatever the locale, and whatever has failed before.
#include "observe/file_size_limit.hpp"
#include "observe/refusal.hpp"
#include "observe/shell.hpp"
#include "support/catch.hpp"
#include "support/scratch.hpp"

#include <hocket/core/json_reader.hpp>
#include <hocket/observe/json_lines.hpp>

#include <clocale>
#include <cstddef>
#include <limits>
#include <locale>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace hocket::observe;
using hocket_test::read_file;
using hocket_test::scratch_directory;
using observe_test::file_size_limit;
using observe_test::refusal_of;

/// Returns the lines of a file, each without its time, which is checked to be a number.
std::vector<std::string> records_in(const std::string& path) {
  std::vector<std::string> result;
  const std::string text = read_file(path);
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    REQUIRE(end != std::string::npos);
    const std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    const std::size_t point = line.find('.'), comma = line.find(',');
    REQUIRE(line.starts_with("{\"time\":1"));
    REQUIRE(point + 7 == comma);  // microseconds
    hocket::detail::json_reader reader(line);
    reader.skip();
    reader.end();
    REQUIRE(reader.ok());
    result.push_back(line.substr(comma + 1));
  }
  return result;
}

/// A decimal comma, for streams.
struct decimal_comma : std::numpunct<char> {
  char do_decimal_point() const override { return ','; }
};

/// Sets locales whose decimal point is a comma, where the machine has them.
class foreign_locale {
 public:
  foreign_locale() : before_(std::locale::global(std::locale(std::locale::classic(), new decimal_comma))) {
    for (const char* const each : {"de_DE.UTF-8", "fr_FR.UTF-8", "ru_RU.UTF-8"}) {
      if (std::setlocale(LC_ALL, each) != nullptr) return;
    }
  }
  foreign_locale(const foreign_locale&) = delete;
  foreign_locale& operator=(const foreign_locale&) = delete;
  ~foreign_locale() {
    std::locale::global(before_);
    std::setlocale(LC_ALL, "C");
  }

 private:
  std::locale before_;
};

void add_metrics(registry& metrics) {
  metrics.counter("bytes", "sent bytes", {{"peer", "1"}}).add(4096);
  metrics.gauge("loss", "nats").set(std::numeric_limits<double>::quiet_NaN());
  metrics.histogram("seconds", "time", {0.5, 1}).record(0.75);
}

const std::string metrics_text =
    R"("metrics":{"bytes{peer=\"1\"}":4096,"loss":"NaN","seconds":{"count":1,"sum":0.75,"buckets":[[0.5,0],[1,1],["Infinity",0]]}})";

}  // namespace

TEST_CASE("a log has the start, the progress and the end of a job, with its nodes and metrics") {
  const scratch_directory scratch;
  const std::string path = scratch.path() + "/made/for/it/rank-2.jsonl";
  registry metrics;
  add_metrics(metrics);
  const foreign_locale abroad;
  {
    json_lines log(path, metrics, {.rank = 2});
    log.start("train \"x\"", 3, {{"seed", 7U}});
    log.progress(10, 100, {{"loss", 0.5}, {"is_last", false}, {"name", std::string("a\n")}, {"f", 0.25F}});
    log.metrics();
    log.end("trained", 3);
  }
  const auto records = records_in(path);
  REQUIRE(records.size() == 4);
  CHECK(records[0].starts_with(R"("rank":2,"level":"info","event":"start","job":"train \"x\"","nodes":3,"host":")"));
  CHECK(records[0].ends_with(R"(,"seed":7})"));
  CHECK(records[1] == R"("rank":2,"level":"info","event":"progress","step":10,"steps":100,"loss":0.5,"is_last":false,)"
                      R"("name":"a\u000a","f":0.25,)" +
                          metrics_text + '}');
  CHECK(records[2] == R"("rank":2,"level":"info","event":"metrics",)" + metrics_text + '}');
  CHECK(records[3].starts_with(R"("rank":2,"level":"info","event":"end","status":"trained","nodes":3,"seconds":)"));
  CHECK(records[3].ends_with(',' + metrics_text + '}'));
}

TEST_CASE("a log has the records of its ranks and levels alone") {
  const scratch_directory scratch;
  for (int rank = 0; rank < 3; ++rank) {
    json_lines log(scratch.path() + '/' + std::to_string(rank),
                   {.rank = rank, .ranks = {0, 2}, .least = level::warning});
    log.start("job", 3);
    log.write(level::debug, "a");
    log.write(level::info, "b");
    log.write(level::warning, "c");
    log.write(level::error, "d", {{"code", -1}});
    log.end("failed", 3);
  }
  CHECK(scratch.names() == std::vector<std::string>{"0", "2"});
  CHECK(records_in(scratch.path() + "/2") ==
        std::vector<std::string>{R"("rank":2,"level":"warning","event":"c"})",
                                 R"("rank":2,"level":"error","event":"d","code":-1})"});
}

TEST_CASE("a log that can't be opened is an error that states what to do") {
  const scratch_directory scratch;
  scratch.write("file", "");
  struct {
    std::string path;
    std::string why;
  } const cases[] = {
      {scratch.path() + "/file/log", "Not a directory"},
      {scratch.path(), "Is a directory"},
      {"/proc/none/log", "No such file or directory"},
  };
  for (const auto& each : cases) {
    CHECK(refusal_of([&] { json_lines log(each.path); }, hocket::errc::system) ==
          "cannot open the log '" + each.path +
              "': name a file in a folder in which this process may create files: " + each.why);
  }
}

TEST_CASE("a record that can't be written is an error, and the log remains valid") {
  const scratch_directory scratch;
  const std::string path = scratch.path() + "/log";
  json_lines log(path);
  log.write(level::info, "first");
  const std::size_t size = read_file(path).size();
  {
    const file_size_limit limit(size + 20);
    CHECK(refusal_of([&] { log.write(level::info, "second"); }, hocket::errc::system) ==
          "cannot write to '" + path + "': File too large");
    CHECK(read_file(path).size() == size);
  }
  log.write(level::info, "third");
  CHECK(records_in(path) == std::vector<std::string>{R"("rank":0,"level":"info","event":"first"})",
                                                     R"("rank":0,"level":"info","event":"third"})"});
  json_lines full("/dev/full");
  CHECK(refusal_of([&] { full.write(level::info, "lost"); }, hocket::errc::system) ==
        "cannot write to '/dev/full': No space left on device");
}

TEST_CASE("a log is continued, also after part of a line") {
  const scratch_directory scratch;
  const std::string path = scratch.path() + "/log";
  scratch.write("log", "{\"time\":17");
  json_lines(path).write(level::info, "a");
  json_lines(path).write(level::info, "b");
  const std::string text = read_file(path);
  REQUIRE(text.starts_with("{\"time\":17\n"));
  scratch.write("rest", text.substr(11));
  CHECK(records_in(scratch.path() + "/rest") ==
        std::vector<std::string>{R"("rank":0,"level":"info","event":"a"})", R"("rank":0,"level":"info","event":"b"})"});
}

TEST_CASE("a field can't have a name that its record has already") {
  const scratch_directory scratch;
  registry metrics;
  json_lines log(scratch.path() + "/log", metrics);
  const auto check = [&](const char* name, auto write) {
    CHECK(refusal_of([&] { write(field(name, 1)); }) == "the log '" + scratch.path() + "/log': the record has \"" +
                                                            name + "\" already: choose another name for the field");
  };
  for (const char* const name : {"time", "rank", "level", "event"}) {
    check(name, [&](const field& each) { log.write(level::info, "a", {each}); });
    check(name, [&](const field& each) { log.metrics({each}); });
  }
  for (const char* const name : {"event", "job", "nodes", "host", "process"})
    check(name, [&](const field& each) { log.start("a", 1, {each}); });
  for (const char* const name : {"event", "step", "steps", "metrics"})
    check(name, [&](const field& each) { log.progress(1, 2, {{"loss", 1}, each}); });
  for (const char* const name : {"event", "status", "nodes", "seconds", "metrics"})
    check(name, [&](const field& each) { log.end("a", 1, {each}); });
  check("metrics", [&](const field& each) { log.metrics({each}); });
  check("twice", [&](const field& each) { log.write(level::info, "a", {each, {"other", 1}, each}); });
  CHECK(hocket_test::read_file(scratch.path() + "/log").empty());
  log.write(level::info, "a", {{"metrics", 1}, {"step", 2}});  // this record has none of its own
}

TEST_CASE("jq reads a log that several threads have written") {
  const scratch_directory scratch;
  const std::string path = scratch.path() + "/log";
  registry metrics;
  add_metrics(metrics);
  json_lines log(path, metrics);
  const int threads = 4, lines = 100;
  std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t) {
    all.emplace_back([&, t] {
      for (int i = 0; i < lines; ++i) log.progress(i, lines, {{"thread", t}, {"text", "\xff\x01\"\\"}});
    });
  }
  for (std::thread& each : all) each.join();
  CHECK(records_in(path).size() == threads * lines);
  if (!observe_test::succeeds("command -v jq")) {
    WARN("left out: jq is not installed");
    return;
  }
  CHECK(observe_test::output_of("jq -s 'map(.step + .thread) | add' " + path) ==
        std::to_string(threads * lines * (lines - 1) / 2 + lines * 6) + '\n');
  CHECK(observe_test::output_of("jq -s 'map(.metrics.\"bytes{peer=\\\"1\\\"}\") | unique | .[]' " + path) == "4096\n");
  CHECK(observe_test::output_of("jq -s 'map(.metrics.seconds.buckets[1][1]) | add' " + path) == "400\n");
}

TEST_CASE("lines that several threads write are in the order of their times, and their counters grow") {
  const scratch_directory scratch;
  const std::string path = scratch.path() + "/log";
  registry metrics;
  counter& lines = metrics.counter("lines", "lines");
  json_lines log(path, metrics);
  std::vector<std::thread> all;
  for (int t = 0; t < 4; ++t) {
    all.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) {
        lines.add();
        log.metrics();
      }
    });
  }
  for (std::thread& each : all) each.join();
  const std::string text = read_file(path), mark = "\"lines\":";
  int disordered = 0;
  double time = 0, value = 0;
  for (std::size_t at = 0; at < text.size(); at = text.find('\n', at) + 1) {
    const double next_time = std::stod(text.substr(at + 8)),
                 next = std::stod(text.substr(text.find(mark, at) + mark.size()));
    if (next_time < time || next < value) ++disordered;
    time = next_time;
    value = next;
  }
  CHECK(disordered == 0);
}
