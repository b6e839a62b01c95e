// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// needs: cli11 nlohmann_json
// How hocket-perf compares two results.
#include "support/catch.hpp"
#include "support/text.hpp"

#include "../../../tools/hocket-perf/compare.cpp"

#include <cstddef>
#include <sstream>
#include <string>
#include <vector>

using hocket_test::contains;

namespace {

perf::median median_of(std::size_t bytes, double us, const char* placement = "in_place") {
  return {{"all_reduce", "none", "float", "sum", -1, bytes, placement}, us, 0};
}

perf::result_file with(std::vector<perf::median> medians) {
  perf::result_file file;
  file.name = "file";
  file.run.hosts = "node1";
  file.run.ranks = 2;
  file.medians = std::move(medians);
  return file;
}

/// Returns the line of the table for this size, without comments.
std::string line_for(const std::string& table, const std::string& bytes) {
  std::istringstream stream(table);
  for (std::string line; std::getline(stream, line);) {
    std::istringstream words(line);
    std::string first;
    if (words >> first && first == bytes) return line;
  }
  return "";
}

}  // namespace

TEST_CASE("hocket-perf --compare finds the slower median") {
  const auto older = with({median_of(8, 10), median_of(16, 10), median_of(32, 10), median_of(64, 10)});
  const auto newer = with({median_of(8, 10.4), median_of(16, 10.6), median_of(32, 9.6), median_of(64, 9.4)});
  const perf::comparison found = perf::compare(older, newer, 0.05);
  CHECK(found.slower == 1);
  CHECK(found.warnings.empty());
  CHECK_FALSE(contains(line_for(found.table, "8"), "er"));
  CHECK(line_for(found.table, "16").ends_with("SLOWER"));
  CHECK(contains(line_for(found.table, "16"), "10.00"));
  CHECK(contains(line_for(found.table, "16"), "10.60"));
  CHECK(contains(line_for(found.table, "16"), "1.060"));
  CHECK_FALSE(contains(line_for(found.table, "32"), "er"));
  CHECK(line_for(found.table, "64").ends_with("faster"));
  CHECK(contains(found.table, "# 4 compared: 1 slower and 1 faster by more than 5 %"));
  CHECK(perf::compare(older, newer, 0.07).slower == 0);
  CHECK(perf::compare(older, newer, 0).slower == 2);
  CHECK(perf::compare(older, older, 0).slower == 0);
}

TEST_CASE("hocket-perf --compare compares only the same call, size and placement") {
  const auto older = with({median_of(8, 10), median_of(16, 10), median_of(8, 20, "out_of_place")});
  auto newer = with({median_of(8, 20, "out_of_place"), median_of(8, 10)});
  perf::median other = median_of(16, 100);
  other.of.type = "half";
  newer.medians.push_back(other);
  const perf::comparison found = perf::compare(older, newer, 0.05);
  CHECK(found.slower == 0);
  CHECK(contains(found.table, "# 2 compared"));
  CHECK(contains(found.table, "only in the old file: 1, only in the new file: 1"));
}

TEST_CASE("hocket-perf --compare rejects files that have nothing in common") {
  std::string why;
  try {
    static_cast<void>(perf::compare(with({median_of(8, 1)}), with({median_of(16, 1)}), 0.05));
  } catch (const perf::file_error& problem) {
    why = problem.what();
  }
  CHECK(contains(why, "no call and size in common"));
}

TEST_CASE("hocket-perf --compare warns if machines, ranks or conditions differ, or results are wrong") {
  const auto older = with({median_of(8, 10)});
  auto newer = older;
  newer.run.hosts = "node2";
  newer.run.processor = "another";
  newer.run.ranks = 3;
  newer.run.memory = "pinned";
  newer.medians[0].wrong = 1;
  const perf::comparison found = perf::compare(older, newer, 0.05);
  REQUIRE(found.warnings.size() == 5);
  CHECK(contains(found.warnings[0], "different hosts: 'node1' and 'node2'"));
  CHECK(contains(found.warnings[1], "different processors"));
  CHECK(contains(found.warnings[2], "different numbers of ranks: '2' and '3'"));
  CHECK(contains(found.warnings[3], "different kinds of memory"));
  CHECK(contains(found.warnings[4], "has wrong results"));
}
