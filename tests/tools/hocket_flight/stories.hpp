// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The report of hocket-flight on a directory of records.
#pragma once

#include "../../../tools/hocket-flight/report.hpp"

#include <hocket/core/json_line.hpp>

#include <cstddef>
#include <string>
#include <vector>

namespace hocket_test {

/// Returns a JSON object as a line of a record: with its checksum.
inline std::string line_of_record(std::string object) {
  object.pop_back();
  return object + hocket::detail::checksum_field(object) + '\n';
}

/// Returns the tool's output for the records in `directory`.
inline std::string told_of(const std::string& directory) {
  const flight::archive all = flight::read({directory});
  return flight::report(all, 5).text();
}

/// Returns which of `words` are missing in `text`, with the text; empty if none.
inline std::string lacks(const std::string& text, const std::vector<std::string>& words) {
  std::string missing;
  for (const std::string& each : words) {
    if (text.find(each) == std::string::npos) missing += "'" + each + "' is missing\n";
  }
  return missing.empty() ? "" : missing + "in:\n" + text;
}

}  // namespace hocket_test
