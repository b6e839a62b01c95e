// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// needs: cli11 nlohmann_json
// How hocket-perf interprets its command line.
#include "support/catch.hpp"
#include "support/text.hpp"

#include "../../../tools/hocket-perf/figures.hpp"
#include "../../../tools/hocket-perf/settings.cpp"

#include <iostream>
#include <sstream>
#include <string>
#include <vector>

using hocket_test::contains;

namespace {

/// The settings that hocket-perf reads from a command line, and its output.
struct reading {
  bool goes_on = false;
  int status = 0;
  perf::settings read;
  std::string said;
};

reading read(std::vector<std::string> words) {
  words.insert(words.begin(), "hocket-perf");
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  std::ostringstream text;
  auto* const errors = std::cerr.rdbuf(text.rdbuf());
  auto* const output = std::cout.rdbuf(text.rdbuf());
  reading found;
  found.goes_on =
      perf::read_command_line(static_cast<int>(arguments.size()), arguments.data(), found.read, found.status);
  std::cerr.rdbuf(errors);
  std::cout.rdbuf(output);
  found.said = text.str();
  return found;
}

}  // namespace

TEST_CASE("hocket-perf refuses a step of 0 bytes with an explanation") {
  const reading nothing = read({"-i", "0"});
  CHECK_FALSE(nothing.goes_on);
  CHECK(nothing.status == 2);
  CHECK(contains(nothing.said, "is not a step: pass at least 1 byte"));
  CHECK(contains(read({"-i", "often"}).said, "is not a size"));
  CHECK(read({"-i", "1K"}).read.step_bytes == 1024);
  CHECK(perf::sizes_of(read({"-b", "0", "-e", "2K", "-i", "1K"}).read) == std::vector<std::size_t>{0, 1024, 2048});
}

TEST_CASE("hocket-perf also accepts the names of nccl-tests for small floats") {
  CHECK(read({"-d", "f8e4m3"}).read.types == std::vector{perf::datatype::float8_e4m3});
  CHECK(read({"-d", "f8e5m2"}).read.types == std::vector{perf::datatype::float8_e5m2});
  CHECK(read({"-d", "float8_e5m2"}).read.types == std::vector{perf::datatype::float8_e5m2});
  CHECK(read({"-d", "all"}).read.types.size() == 12);
  CHECK_FALSE(read({"-d", "f8e3m4"}).goes_on);
}

TEST_CASE("hocket-perf: help names the defaults that differ from nccl-tests") {
  const reading help = read({"--help"});
  CHECK(help.status == 0);
  CHECK(contains(help.said, "Other defaults: sizes from 8 bytes"));
  const perf::settings usual = read({}).read;
  CHECK((usual.least_bytes == 8 && usual.step_factor == 2 && usual.iterations == 100 && usual.warmups == 10));
}

TEST_CASE("hocket-perf: memory_text states the bytes on each rank") {
  const std::string text = perf::memory_text(2, std::size_t{100} << 30);
  CHECK(contains(text, "107374182400 bytes on each of 2 ranks"));
}

TEST_CASE("hocket-perf accepts four kinds of memory; the default is host memory") {
  CHECK(read({}).read.buffers == perf::memory::host);
  CHECK(read({"--memory", "host", "--cold", "--explain"}).goes_on);
  CHECK(read({"--memory", "pinned"}).read.buffers == perf::memory::pinned);
  CHECK(read({"--memory", "device"}).read.buffers == perf::memory::device);
  CHECK(read({"--memory", "managed"}).read.buffers == perf::memory::managed);
  const reading unknown = read({"--memory", "video"});
  CHECK(unknown.status == 2);
  CHECK(contains(unknown.said, "'video' must be one of host, pinned, device, managed"));
}

TEST_CASE("hocket-perf refuses options that are invalid for device memory, with an explanation") {
  const auto refused = [](std::vector<std::string> words, const char* why) {
    words.insert(words.begin(), {"--memory", "device"});
    const reading found = read(words);
    INFO(found.said);
    return !found.goes_on && found.status == 2 && contains(found.said, "--memory device") && contains(found.said, why);
  };
  CHECK(refused({"--cold"}, "--cold empties the caches of the host"));
  CHECK(refused({"--shared-memory"}, "--shared-memory needs host memory"));
  CHECK(refused({"--explain"}, "--explain describes the selection for vectors in host memory"));
  CHECK(refused({"-d", "int8"}, "sum of float, half and bfloat16 here, not for sum of int8"));
  CHECK(refused({"-o", "max"}, "not for max of float"));
  CHECK(refused({"--collective", "all", "-d", "all"}, "all_reduce is measured only for sum of"));
}

TEST_CASE("hocket-perf: in device memory, calls that only move data take all types, and all means all collectives") {
  CHECK(read({"--memory", "device", "--collective", "all_gather", "-d", "all"}).goes_on);
  const reading all = read({"--memory", "device", "--collective", "all", "-d", "half"});
  CHECK(all.goes_on);
  CHECK(all.read.collectives.size() == 10);
  CHECK(read({"--memory", "device", "--collective", "send_recv"}).goes_on);
}

TEST_CASE("hocket-perf takes four formats") {
  CHECK(read({}).read.format == perf::output_format::nccl_tests);
  CHECK(read({"--format", "nccl-tests"}).read.format == perf::output_format::nccl_tests);
  CHECK(read({"--format", "osu", "--full"}).read.format == perf::output_format::osu);
  CHECK(read({"--format", "csv"}).read.format == perf::output_format::csv);
  CHECK(read({"--format", "json"}).read.format == perf::output_format::json);
  const reading unknown = read({"--format", "xml"});
  CHECK(unknown.status == 2);
  CHECK(contains(unknown.said, "'xml' must be one of nccl-tests, osu, csv, json"));
  CHECK(contains(read({"--full"}).said, "has no effect without --format osu"));
}

TEST_CASE("hocket-perf takes a list of percentiles") {
  CHECK(read({}).read.percentiles.empty());
  CHECK(read({"--percentiles", "50,99.9"}).read.percentiles == std::vector<double>{50, 99.9});
  CHECK(read({"--percentiles", "101"}).status == 2);
}

TEST_CASE("hocket-perf --compare takes two files and a tolerance in percent") {
  const reading both = read({"--compare", "old.json", "new.csv", "--tolerance", "2.5%"});
  CHECK(both.goes_on);
  CHECK(both.read.compared == std::vector<std::string>{"old.json", "new.csv"});
  CHECK(both.read.tolerance == Approx(0.025));
  CHECK(read({"--compare", "a", "b"}).read.tolerance == Approx(0.05));
  CHECK(read({"--compare", "a"}).status == 2);
  for (const char* const wrong : {"5", "0.05", "-1%", "%", "5%%", "many%"}) {
    const std::string given = std::string("--tolerance=") + wrong;
    CHECK(contains(read({"--compare", "a", "b", given}).said, "is not a percentage"));
  }
  CHECK(contains(read({"--tolerance", "5%"}).said, "--compare"));
}

TEST_CASE("hocket-perf --compare refuses options that would have no effect") {
  const reading found = read({"--compare", "a", "b", "-t", "2"});
  CHECK(found.status == 2);
  CHECK(contains(found.said, "so --threads would have no effect: omit it"));
}

TEST_CASE("hocket-perf measures calls with counts in host memory") {
  CHECK(read({"--collective", "all_gather_v"}).read.blocks == perf::distribution::linear);
  CHECK(read({"--collective", "all_to_all_v", "--distribution", "single"}).read.blocks == perf::distribution::single);
  CHECK(contains(read({"--distribution", "odd"}).said, "'odd' must be one of even, linear, single"));
  const reading refused = read({"--memory", "device", "--collective", "reduce_scatter_v"});
  CHECK(refused.status == 2);
  CHECK(contains(refused.said, "reduce_scatter_v is measured only in host memory"));
  CHECK(read({"--collective", "all"}).read.collectives.size() == 15);
}

TEST_CASE("hocket-perf: help names units, formats and examples") {
  const std::string help = read({"--help"}).said;
  for (const char* const part :
       {"--format", "nccl-tests, osu", "--percentiles", "--compare", "--tolerance", "--distribution", "in microseconds",
        "hocket-perf --compare old.json new.csv --tolerance 3%", "--format csv > new.csv"}) {
    INFO(part);
    CHECK(contains(help, part));
  }
}
