// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The output: the table of nccl-tests with a column for the 99th percentile, above it the conditions of the
/// measurement; and the same as JSON.
#pragma once

#include "figures.hpp"
#include "settings.hpp"
#include "team.hpp"

#include <string>
#include <vector>

namespace perf {

/// Collects results on all ranks, and prints them on rank 0.
class report {
 public:
  report(const team& who, const settings& wanted) : team_(who), wanted_(wanted) {}

  void begin() const;
  void begin(collective what) const;
  void explain(const std::string& why) const;
  void add(row line);
  /// Prints the summary and writes the JSON file. Returns true if no element was wrong.
  bool end() const;

 private:
  bool prints() const { return team_.rank() == 0; }
  std::uint64_t count_wrong() const;
  double average_bandwidth() const;
  std::string as_json() const;
  void write_json() const;

  const team& team_;
  const settings& wanted_;
  std::vector<row> rows_;
};

}  // namespace perf
