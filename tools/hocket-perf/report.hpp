// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The output of a measurement, in the form that was asked for.
#pragma once

#include "figures.hpp"
#include "load.hpp"
#include "results.hpp"
#include "settings.hpp"
#include "team.hpp"

#include <optional>
#include <string>
#include <vector>

namespace perf {

/// Collects results on all ranks, and prints them on rank 0.
class report {
 public:
  report(const team& who, const settings& wanted);

  void begin() const;
  void begin(collective what) const;
  void explain(const std::string& why) const;
  void add(row line);
  /// Prints the summary or the whole file, and writes the JSON file. Returns true if no element was wrong.
  bool end(const std::optional<foreign_load>& load);

 private:
  bool prints() const { return team_.rank() == 0; }
  void print_row(const row& line) const;
  void print_summary() const;
  void print_load() const;

  const team& team_;
  const settings& wanted_;
  measurement all_;
};

}  // namespace perf
