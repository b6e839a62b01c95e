// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Results as files that programs read: CSV and JSON, with units in the names; and how such files are read.
#pragma once

#include "figures.hpp"
#include "load.hpp"
#include "rank_facts.hpp"
#include "settings.hpp"

#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace perf {

/// The conditions of a measurement.
struct run_description {
  std::string version;
  std::string date_utc;
  std::string hosts;  ///< separated by spaces
  std::string processor;
  int cores = 0;
  std::string kernel;
  int ranks = 0;
  std::string transport;
  std::string memory;
  std::string caches;
  std::string algorithm;
  bool pinned = false;
  bool shared_memory = false;
};

/// The results of a run, and what only the file that is written needs.
struct measurement {
  run_description run;
  settings wanted;
  std::vector<rank_facts> facts;
  bool more_ranks_than_cores = false;
  std::optional<foreign_load> load;
  std::vector<row> rows;
};

/// Describes this host and the ranks.
run_description describe_run(const settings& wanted, const std::vector<rank_facts>& facts,
                             const std::string& transport);

/// Names of a row's columns.
const char* type_name(const row& line);
const char* operation_name(const row& line);
const char* distribution_name(const row& line, const settings& wanted);
/// Returns the name of a percentile, such as p99 or p99.9.
std::string percentile_name(double percent);

std::uint64_t count_wrong(const std::vector<row>& rows);
double average_bandwidth(const std::vector<row>& rows);

/// One row for each call, size and placement. The last columns number the rows, so that a reader finds lost ones.
std::string as_csv(const measurement& all);
/// One object, with the time of each iteration.
std::string as_json(const measurement& all);

/// What a median was measured of. All members are equal for medians that can be compared.
struct cell {
  std::string collective;
  std::string distribution;
  std::string type;
  std::string redop;
  int root = -1;
  std::size_t bytes = 0;
  std::string placement;

  friend bool operator==(const cell&, const cell&) = default;
};

struct median {
  cell of;
  double us = 0;
  std::uint64_t wrong = 0;  ///< elements
};

/// The content of a file that is compared.
struct result_file {
  std::string name;
  run_description run;
  std::vector<median> medians;
};

/// Errors of `read_results`, and of files that can't be compared.
struct file_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Reads what `as_csv` or `as_json` has written. Throws `file_error` if the file can't be read, is incomplete, or was
/// not written by hocket-perf.
result_file read_results(const std::string& name);

}  // namespace perf
