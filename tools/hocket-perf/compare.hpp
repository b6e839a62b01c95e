// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Compares the medians of two result files.
#pragma once

#include "results.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace perf {

struct comparison {
  std::string table;                  ///< one line for each median of both files, and a summary
  std::vector<std::string> warnings;  ///< reasons why the files say little about each other
  std::size_t slower = 0;             ///< medians of the newer file that exceed those of the older by more than allowed
};

/// Compares the medians that both files have. `tolerance` is a share of the older median. Throws `file_error` if there
/// are none.
comparison compare(const result_file& older, const result_file& newer, double tolerance);

/// Compares two files and prints the result. Returns the exit status: 1 if a median is slower, otherwise 0.
int compare_files(const std::string& older, const std::string& newer, double tolerance);

}  // namespace perf
