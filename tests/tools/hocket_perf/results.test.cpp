// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// needs: cli11 nlohmann_json
// The files of hocket-perf: what is written is read again, and what can't be read is explained.
#include "support/catch.hpp"
#include "support/scratch.hpp"
#include "support/text.hpp"

#include "../../../tools/hocket-perf/machine.cpp"
#include "../../../tools/hocket-perf/read_results.cpp"
#include "../../../tools/hocket-perf/results.cpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

using hocket_test::contains;

namespace {

perf::row measured(perf::collective what, std::size_t bytes, double us) {
  perf::row line;
  line.what = what;
  line.ranks = 2;
  line.bytes = bytes;
  line.count = bytes / 4;
  if (perf::takes_counts(what)) line.lengths = perf::block_lengths(perf::distribution::linear, 2, bytes / 4);
  line.out_of_place = perf::figures{{1e-6 * us, 1e-6 * us, 9e-6 * us}, 0, {}};
  line.in_place = perf::figures{{2e-6 * us}, std::nullopt, {}};
  return line;
}

perf::measurement small_measurement() {
  perf::measurement all;
  all.facts.resize(2);
  for (perf::rank_facts& each : all.facts) std::strcpy(each.host.data(), "node1");
  all.run = perf::describe_run(all.wanted, all.facts, "a \"quoted\" transport, of two parts");
  all.load = perf::foreign_load{0.25, 0, 10};
  all.rows = {measured(perf::collective::all_reduce, 8, 1.5), measured(perf::collective::all_gather_v, 1024, 20)};
  return all;
}

/// Splits a line of CSV without quoted fields that contain quotes.
std::vector<std::string> simple_fields(const std::string& line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (const char c : line) {
    if (c == '"') quoted = !quoted;
    if (c == ',' && !quoted) {
      fields.emplace_back();
    } else if (c != '"') {
      fields.back() += c;
    }
  }
  return fields;
}

/// Reads the CSV text, independently of the reader under test.
std::vector<std::map<std::string, std::string>> csv_records(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> names;
  std::vector<std::map<std::string, std::string>> records;
  for (std::string line; std::getline(stream, line);) {
    const std::vector<std::string> fields = simple_fields(line);
    if (names.empty()) {
      names = fields;
      continue;
    }
    REQUIRE(fields.size() == names.size());
    auto& record = records.emplace_back();
    for (std::size_t i = 0; i < names.size(); ++i) record[names[i]] = fields[i];
  }
  return records;
}

/// Returns why the text can't be read as results; empty if it can.
std::string refusal(const std::string& text) {
  const hocket_test::scratch_directory folder;
  folder.write("file", text);
  try {
    static_cast<void>(perf::read_results(folder.path() + "/file"));
  } catch (const perf::file_error& problem) {
    return problem.what();
  }
  return "";
}

perf::result_file written_and_read(const std::string& text) {
  const hocket_test::scratch_directory folder;
  folder.write("file", text);
  return perf::read_results(folder.path() + "/file");
}

void expect_small_measurement(const perf::result_file& read) {
  const perf::run_description written = small_measurement().run;
  CHECK(read.run.version == written.version);
  CHECK(read.run.hosts == "node1");
  CHECK(read.run.processor == written.processor);
  CHECK(read.run.cores == written.cores);
  CHECK(read.run.ranks == 2);
  CHECK(read.run.transport == "a \"quoted\" transport, of two parts");
  REQUIRE(read.medians.size() == 4);
  CHECK(read.medians[0].us == Approx(1.5));
  CHECK(read.medians[1].us == Approx(3));
  const perf::cell expected{"all_gather_v", "linear", "float", "none", -1, 1024, "out_of_place"};
  CHECK(read.medians[2].of == expected);
  CHECK(read.medians[2].us == Approx(20));
}

}  // namespace

TEST_CASE("hocket-perf reads the results that it has written as JSON") {
  expect_small_measurement(written_and_read(perf::as_json(small_measurement())));
}

TEST_CASE("hocket-perf reads the results that it has written as CSV") {
  expect_small_measurement(written_and_read(perf::as_csv(small_measurement())));
}

TEST_CASE("hocket-perf: CSV has units in the names of columns, and conditions in every row") {
  perf::measurement all = small_measurement();
  all.run.transport = "one, and another";
  all.wanted.percentiles = {50, 99, 99.9};
  const auto records = csv_records(perf::as_csv(all));
  REQUIRE(records.size() == 4);
  for (const auto& each : records) {
    CHECK(each.at("program") == "hocket-perf");
    CHECK(each.at("transport") == "one, and another");
    CHECK(each.at("ranks") == "2");
    CHECK(each.at("hosts") == "node1");
    CHECK(each.at("rows") == "4");
    CHECK(each.at("date_utc").size() == std::string("2026-01-01T00:00:00Z").size());
    CHECK_FALSE(each.at("version").empty());
    CHECK_FALSE(each.at("processor").empty());
    CHECK(each.at("other_cores_in_use") == "0.25");
  }
  const auto& first = records[0];
  CHECK(first.at("size_bytes") == "8");
  CHECK(first.at("count_elements") == "2");
  CHECK(first.at("placement") == "out_of_place");
  CHECK(std::stod(first.at("time_us")) == Approx(1.5));
  CHECK(std::stod(first.at("mean_us")) == Approx(5.5));
  CHECK(std::stod(first.at("min_us")) == Approx(1.5));
  CHECK(std::stod(first.at("max_us")) == Approx(13.5));
  CHECK(std::stod(first.at("p50_us")) == Approx(1.5));
  CHECK(std::stod(first.at("p99_us")) == Approx(13.5));
  CHECK(std::stod(first.at("p99.9_us")) == Approx(13.5));
  CHECK(std::stod(first.at("algbw_gb_per_s")) == Approx(8 / 1.5e3).epsilon(1e-4));
  CHECK(first.at("wrong_elements") == "0");
  CHECK(records[1].at("wrong_elements").empty());
  CHECK(records[3].at("row") == "4");
}

TEST_CASE("hocket-perf: JSON has the time of each iteration and the length of each block") {
  const nlohmann::json all = nlohmann::json::parse(perf::as_json(small_measurement()));
  CHECK(all.at("rank_count") == 2);
  CHECK(all.at("ranks").size() == 2);
  CHECK(all.at("ranks").at(1).at("host") == "node1");
  const auto& result = all.at("results").at(1);
  CHECK(result.at("block_elements") == std::vector<int>{85, 171});
  CHECK(result.at("out_of_place").at("iterations_us") == std::vector<double>{20, 20, 180});
  CHECK(result.at("in_place").at("wrong_elements").is_null());
}

TEST_CASE("hocket-perf explains files that it can't read") {
  const hocket_test::scratch_directory folder;
  const auto message = [](const std::string& name) {
    try {
      static_cast<void>(perf::read_results(name));
    } catch (const perf::file_error& problem) {
      return std::string(problem.what());
    }
    return std::string();
  };
  CHECK(contains(message(folder.path() + "/nothing"), "/nothing' can't be read: No such file or directory"));
  CHECK(contains(message(folder.path()), "can't be read: it is a folder"));
  CHECK(contains(message("/dev/zero"), "can't be read: it is a device, neither a regular file nor a pipe"));
  CHECK(contains(refusal(""), "is empty"));
  CHECK(contains(refusal("\n"), "is empty"));
}

TEST_CASE("hocket-perf names files of other programs") {
  const char* const foreign = "was not written by hocket-perf";
  CHECK(contains(refusal("# size time\n 8 1.0\n"), foreign));
  CHECK(contains(refusal("size,time\n8,1\n"), foreign));
  CHECK(contains(refusal("{\"version\": 2, \"results\": []}"), foreign));
  CHECK(contains(refusal("{ not JSON"), foreign));
  CHECK(contains(refusal("[1, 2]"), foreign));
  CHECK(contains(refusal("program,version,rows\nother,1,1\n"), foreign));
}

TEST_CASE("hocket-perf finds every truncation of its files") {
  for (const std::string& whole : {perf::as_json(small_measurement()), perf::as_csv(small_measurement())}) {
    // The last character of JSON is a line end, which may be absent.
    const std::size_t last = whole[0] == '{' ? whole.size() - 2 : whole.size() - 1;
    for (std::size_t length = 40; length <= last; ++length) {
      const std::string why = refusal(whole.substr(0, length));
      INFO(length << " of " << whole.size());
      if (!contains(why, "is incomplete")) CHECK(why == "refused as incomplete");
    }
  }
}

TEST_CASE("hocket-perf explains damaged results") {
  const auto replaced = [](std::string all, const std::string& from, const std::string& to) {
    const std::size_t at = all.find(from);
    REQUIRE(at != std::string::npos);
    return all.replace(at, from.size(), to);
  };
  const std::string json = perf::as_json(small_measurement());
  CHECK(contains(refusal(replaced(json, "\"time_us\":1.5", "\"time_us\":0")),
                 "time of result 1 is not a positive number"));
  CHECK(contains(refusal(replaced(json, "\"time_us\"", "\"time\"")), "lacks a member"));
  CHECK(contains(refusal(replaced(json, "\"cores\": ", "\"cores\": \"many\", \"x\": ")), "lacks a member"));
  for (const auto& [from, to] :
       {std::pair("\"time_us\":1.5", "\"time_us\":1.51"), std::pair("\"min_us\":1.5", "\"min_us\":1.6"),
        std::pair("\"max_us\":13.5", "\"max_us\":1.4"), std::pair("\"size_bytes\":8", "\"size_bytes\":9"),
        std::pair("\"algbw_gb_per_s\":0.00533333", "\"algbw_gb_per_s\":0.0053")}) {
    CHECK(contains(refusal(replaced(json, from, to)), "time of result 1 contradicts its size, bandwidth"));
  }
  const std::string csv = perf::as_csv(small_measurement());
  CHECK(contains(refusal(replaced(csv, ",1.5000,", ",1.7000,")), "time of result 1 contradicts its size, bandwidth"));
  CHECK(contains(refusal(replaced(csv, ",false,", ",fals,")), "in line 2, pinned is 'fals'"));
  CHECK(contains(refusal(replaced(csv, ",1.5000,", ",fast,")), "in line 2, time_us is 'fast'"));
  CHECK(contains(refusal(replaced(csv, "time_us", "time")), "lacks the column time_us"));
  CHECK(contains(refusal(replaced(csv, ",1.5000,", ",")), "line 2 has"));
  const std::size_t second = csv.find('\n', csv.find('\n') + 1) + 1;
  const std::size_t third = csv.find('\n', second) + 1;
  CHECK(contains(refusal(csv.substr(0, second) + csv.substr(third)), "row 2 is missing"));
}

TEST_CASE("hocket-perf refuses a result with a flipped bit or zeroed bytes, or reads the same time and size") {
  const hocket_test::scratch_directory folder;
  const auto is_safe = [&](const std::string& damaged, const perf::result_file& right) {
    // Some file systems wait for the disk when an existing file is truncated and written.
    std::filesystem::remove(folder.path() + "/damaged");
    folder.write("damaged", damaged);
    try {
      const perf::result_file found = perf::read_results(folder.path() + "/damaged");
      bool same = found.medians.size() == right.medians.size();
      for (std::size_t i = 0; same && i < right.medians.size(); ++i) {
        same = std::abs(found.medians[i].us - right.medians[i].us) <= 1e-3 * right.medians[i].us &&
               found.medians[i].of.bytes == right.medians[i].of.bytes;
      }
      return same;
    } catch (const perf::file_error&) {
      return true;
    }
  };
  for (const std::string& whole : {perf::as_json(small_measurement()), perf::as_csv(small_measurement())}) {
    const perf::result_file right = written_and_read(whole);
    const std::size_t results = whole[0] == '{' ? whole.find("\"results\"") : whole.find('\n');
    for (std::size_t at = results; at < whole.size(); ++at) {
      std::string damaged = whole;
      const int bit = static_cast<int>(at % 7);
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << bit));
      INFO("bit " << bit << " of byte " << at);
      if (!is_safe(damaged, right)) CHECK(damaged == whole);
      // Every bit of a digit that yields another digit.
      for (int low = 0; low < 4 && whole[at] >= '0' && whole[at] <= '9'; ++low) {
        damaged[at] = static_cast<char>(whole[at] ^ (1 << low));
        if (!is_safe(damaged, right)) CHECK(damaged == whole);
      }
      damaged = whole;
      damaged.replace(at, 3, std::min<std::size_t>(3, whole.size() - at), '\0');
      if (!is_safe(damaged, right)) CHECK(damaged == whole);
    }
  }
}
