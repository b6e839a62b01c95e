// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Checks of the samples of a file.
#pragma once

#include <cstdint>
#include <string>

namespace data_tool {

/// How a file is read; `by_name`: as its name suggests.
enum class file_type { by_name, tokens16, tokens32, indexed, npy, text, tar };

struct check_options {
  std::string path;
  file_type type = file_type::by_name;
  std::uint64_t length = 1024;    ///< tokens of a sample of a token file
  std::uint64_t vocabulary = 0;   ///< tokens must be less; 0: any
  std::uint64_t most_listed = 5;  ///< findings of each kind that are printed
};

/// Prints which samples are empty, occur twice, have values out of range, or are damaged. Returns whether there are
/// any.
bool has_findings(const check_options& options);

}  // namespace data_tool
