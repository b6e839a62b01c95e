// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// needs: nlohmann_json
/// @file
/// Flight records as hocket-flight reads them: files of a crashed job may have any content. A zero byte separates the
/// files of an input.
#include "fuzz.hpp"

#include "../../tools/hocket-flight/report.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>
#include <string_view>

using fuzz::require;

namespace {

constexpr std::size_t most_files = 8;

/// Returns `text` with a checksum in each line that ends as an object: otherwise, few inputs would be read.
std::string with_checksums(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const std::size_t length = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, length);
    const bool is_object = line.ends_with('}');
    if (is_object) line.remove_suffix(1);
    result += line;
    if (is_object) result += hocket::detail::checksum_field(line);
    if (length < text.size()) result += '\n';
    text.remove_prefix(std::min(length + 1, text.size()));
  }
  return result;
}

flight::archive read_all(std::string_view rest) {
  flight::archive result;
  for (std::size_t i = 0; i < most_files; ++i) {
    const std::size_t end = std::min(rest.find('\0'), rest.size());
    std::istringstream file{with_checksums(rest.substr(0, end))};
    flight::detail::reader("file" + std::to_string(i), result).read(file);
    if (end == rest.size()) break;
    rest.remove_prefix(end + 1);
  }
  return result;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::input in(data, size);
  const flight::archive all = read_all(fuzz::text_of(in.rest()));
  require(!all.records.empty() || !all.problems.empty(), "a file that can't be read is reported");
  for (const flight::record& each : all.records) {
    require(each.rank >= 0 && each.rank < each.ranks, "the rank of a record exists");
    require(each.members.size() == static_cast<std::size_t>(each.ranks), "a record lists all ranks");
  }
  const flight::report report(all, 3);
  require(all.records.empty() || report.text().find("Communicator ") != std::string::npos, "the report has text");
  require(nlohmann::json::accept(report.json()), "the report for programs is valid JSON");
  return 0;
}
