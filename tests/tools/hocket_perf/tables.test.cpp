// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// needs: cli11
// The tables of hocket-perf, as scripts for nccl-tests and OSU Micro-Benchmarks read them.
#include "support/catch.hpp"
#include "support/text.hpp"

#include "../../../tools/hocket-perf/tables.cpp"

#include <algorithm>
#include <cstddef>
#include <sstream>
#include <string>
#include <vector>

namespace {

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream stream(line);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

std::vector<std::string> lines_of(const std::string& all) {
  std::istringstream stream(all);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

/// Reads a table like scripts for nccl-tests do: columns by their distance from the end of the line with their names.
class nccl_table {
 public:
  explicit nccl_table(const std::string& output) {
    for (const std::string& line : lines_of(output)) {
      std::vector<std::string> words = words_of(line);
      if (words.empty()) continue;
      if (words[0] != "#") {
        rows_.push_back(words);
      } else if (names_.empty() && std::count(words.begin(), words.end(), "time") == 2) {
        names_.assign(words.begin() + 1, words.end());
      }
    }
  }

  std::size_t rows() const { return rows_.size(); }
  bool is_regular() const {
    return std::all_of(rows_.begin(), rows_.end(), [&](const auto& row) { return row.size() == names_.size(); });
  }
  /// Returns the column with this name; `group`: 0 for out-of-place, 1 for in-place.
  std::string text(std::size_t row, const std::string& name, std::size_t group = 0) const {
    auto found = std::find(names_.begin(), names_.end(), name);
    for (; group > 0 && found != names_.end(); --group) found = std::find(found + 1, names_.end(), name);
    REQUIRE(found != names_.end());
    return rows_.at(row).at(static_cast<std::size_t>(found - names_.begin()));
  }
  double number(std::size_t row, const std::string& name, std::size_t group = 0) const {
    return std::stod(text(row, name, group));
  }

 private:
  std::vector<std::string> names_;
  std::vector<std::vector<std::string>> rows_;
};

perf::figures times(double us) {
  perf::figures found;
  for (int i = 1; i <= 100; ++i) found.seconds.push_back(1e-6 * us * (i == 100 ? 10 : 1));
  found.wrong = 0;
  found.rank_means = {0.9e-6 * us, 1.1e-6 * us};
  return found;
}

perf::row megabyte(perf::collective what) {
  perf::row line;
  line.what = what;
  line.ranks = 2;
  line.bytes = 1'000'000;
  line.count = line.bytes / 4 / perf::blocks_of(what, 2);
  if (perf::takes_counts(what)) line.lengths = perf::block_lengths(perf::distribution::linear, 2, line.bytes / 4);
  if (perf::has_placement(what, perf::placement::out_of_place)) line.out_of_place = times(100);
  if (perf::has_placement(what, perf::placement::in_place)) line.in_place = times(50);
  return line;
}

nccl_table read_nccl(const perf::row& line, const perf::settings& wanted) {
  return nccl_table(perf::nccl_header(wanted) + perf::nccl_row(line, wanted));
}

}  // namespace

TEST_CASE("hocket-perf prints the columns of nccl-tests, in their order") {
  const nccl_table read = read_nccl(megabyte(perf::collective::all_reduce), {});
  REQUIRE(read.rows() == 1);
  CHECK(read.is_regular());
  CHECK(read.text(0, "size") == "1000000");
  CHECK(read.text(0, "count") == "250000");
  CHECK(read.text(0, "type") == "float");
  CHECK(read.text(0, "redop") == "sum");
  CHECK(read.text(0, "root") == "-1");
  CHECK(read.number(0, "time") == Approx(100));
  CHECK(read.number(0, "algbw") == Approx(10));
  CHECK(read.number(0, "busbw") == Approx(10));
  CHECK(read.text(0, "#wrong") == "0");
  CHECK(read.number(0, "time", 1) == Approx(50));
  CHECK(read.number(0, "algbw", 1) == Approx(20));
  CHECK(read.text(0, "#wrong", 1) == "0");
  // Scripts also count columns: 13 of them, the time in the sixth.
  const auto words = words_of(perf::nccl_row(megabyte(perf::collective::all_reduce), {}));
  REQUIRE(words.size() == 13);
  CHECK(words[5] == "100.00");
  CHECK(words[9] == "50.00");
}

TEST_CASE("hocket-perf: lines above the rows of nccl-tests are comments, and as long as the rows") {
  const perf::settings usual;
  const auto header = lines_of(perf::nccl_header(usual));
  REQUIRE(header.size() == 3);
  const std::string row = lines_of(perf::nccl_row(megabyte(perf::collective::all_reduce), usual))[0];
  for (const std::string& line : header) {
    CHECK(line.starts_with("# "));
    CHECK(line.size() == row.size());
  }
  CHECK(hocket_test::contains(header[0], "out-of-place"));
  CHECK(words_of(header[2]) ==
        std::vector<std::string>{"#", "(B)", "(elements)", "(us)", "(GB/s)", "(GB/s)", "(us)", "(GB/s)", "(GB/s)"});
}

TEST_CASE("hocket-perf prints percentiles only if asked, right of the columns of nccl-tests") {
  perf::settings wanted;
  const perf::row line = megabyte(perf::collective::all_reduce);
  CHECK_FALSE(hocket_test::contains(perf::nccl_header(wanted), "p99"));
  const std::string usual = lines_of(perf::nccl_row(line, wanted))[0];
  wanted.percentiles = {50, 99.9};
  CHECK(perf::nccl_row(line, wanted).starts_with(usual));
  const nccl_table read = read_nccl(line, wanted);
  CHECK(read.is_regular());
  CHECK(read.number(0, "p50") == Approx(100));
  CHECK(read.number(0, "p99.9") == Approx(1000));
  CHECK(read.number(0, "p99.9", 1) == Approx(500));
}

TEST_CASE("hocket-perf repeats the figures of a call with one placement, and states it") {
  const perf::settings usual;
  const nccl_table sent = read_nccl(megabyte(perf::collective::all_to_all), usual);
  CHECK(sent.number(0, "time", 1) == Approx(100));
  CHECK(sent.text(0, "#wrong") == "0");
  CHECK(sent.text(0, "#wrong", 1) == "N/A");
  const nccl_table given = read_nccl(megabyte(perf::collective::broadcast), usual);
  CHECK(given.number(0, "time") == Approx(50));
  CHECK(given.text(0, "#wrong") == "N/A");
  CHECK(hocket_test::contains(perf::one_placement_text(perf::collective::broadcast, usual), "no out-of-place form"));
  CHECK(perf::one_placement_text(perf::collective::all_reduce, usual).empty());
  perf::settings inside;
  inside.out_of_place = false;
  perf::row line = megabyte(perf::collective::all_reduce);
  line.out_of_place.reset();
  CHECK(read_nccl(line, inside).text(0, "time") == "N/A");
}

TEST_CASE("hocket-perf: long numbers stay in their columns, and types have the names of nccl-tests") {
  perf::row line = megabyte(perf::collective::all_reduce);
  line.type = perf::datatype::float8_e4m3;
  line.out_of_place = times(123456.789);
  line.in_place = times(123456789.0);
  const nccl_table read = read_nccl(line, {});
  CHECK(read.is_regular());
  CHECK(read.text(0, "type") == "f8e4m3");
  CHECK(read.number(0, "time") == Approx(123456.8));
  CHECK(read.number(0, "time", 1) == Approx(1.2e8));
}

TEST_CASE("hocket-perf: bus bandwidth of calls with counts is that of the busiest rank") {
  // Blocks of one and two thirds: rank 0 lacks two thirds of an all_gather_v.
  const nccl_table gathered = read_nccl(megabyte(perf::collective::all_gather_v), {});
  CHECK(gathered.number(0, "algbw") == Approx(10));
  CHECK(gathered.number(0, "busbw") == Approx(6.667).epsilon(1e-3));
}

TEST_CASE("hocket-perf prints the table of OSU Micro-Benchmarks") {
  perf::settings wanted;
  wanted.format = perf::output_format::osu;
  const perf::row line = megabyte(perf::collective::all_reduce);
  const auto header = lines_of(perf::osu_header(line, wanted));
  CHECK(header.back() == "# Size       Avg Latency(us)");
  CHECK(std::all_of(header.begin(), header.end(), [](const std::string& each) { return each.starts_with("# "); }));
  const std::string row = perf::osu_row(line, wanted);
  CHECK(row == "1000000               100.00\n");
  CHECK(row.size() == header.back().size() + 1);
}

TEST_CASE("hocket-perf --full prints all columns of OSU Micro-Benchmarks") {
  perf::settings wanted;
  wanted.format = perf::output_format::osu;
  wanted.full = true;
  const perf::row line = megabyte(perf::collective::all_reduce);
  CHECK(lines_of(perf::osu_header(line, wanted)).back() ==
        "# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations");
  CHECK(words_of(perf::osu_row(line, wanted)) ==
        std::vector<std::string>{"1000000", "100.00", "90.00", "110.00", "100"});
  wanted.percentiles = {99};
  CHECK(hocket_test::contains(perf::osu_header(line, wanted), "Iterations  P99 Tail Lat(us)\n"));
  CHECK(words_of(perf::osu_row(line, wanted)).back() == "100.00");
}

TEST_CASE("hocket-perf counts sizes like OSU Micro-Benchmarks in their table") {
  CHECK(perf::osu_size(megabyte(perf::collective::all_gather)) == 500'000);
  CHECK(perf::osu_size(megabyte(perf::collective::all_to_all)) == 500'000);
  CHECK(perf::osu_size(megabyte(perf::collective::reduce_scatter)) == 1'000'000);
  perf::row line = megabyte(perf::collective::barrier);
  CHECK(hocket_test::contains(perf::osu_header(line, {}), "\n# Avg Latency(us)\n"));
  CHECK(words_of(perf::osu_row(line, {})) == std::vector<std::string>{"100.00"});
}
