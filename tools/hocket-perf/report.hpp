// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// What the program prints: the table that users of nccl-tests know, with a column for the 99th percentile, above it
/// what one must know to understand the figures; and the same as JSON.
#pragma once

#include "figures.hpp"
#include "settings.hpp"
#include "team.hpp"

#include <string>
#include <vector>

namespace perf {

/// Prints on rank 0 alone.
class report {
 public:
  report(const team& who, const settings& wanted) : team_(who), wanted_(wanted) {}

  void begin() const;
  void begin(collective what) const;
  void explain(const std::string& why) const;
  void add(row line);
  /// The last lines, and the file. True if no element was wrong.
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
