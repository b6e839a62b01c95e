// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Lines of text, against a search from the begin.
#include "fuzz.hpp"

#include <hocket/data/text_lines.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using fuzz::require;
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  const hocket::data::line_index found(rest);
  for (std::uint64_t i = 0; i < found.size(); ++i) {
    require(!rest.empty(), "there are no more lines than text");
    const std::size_t end = rest.find('\n');
    std::string_view line = rest.substr(0, end);
    if (end != rest.npos && !line.empty() && line.back() == '\r') line.remove_suffix(1);
    require(found[i] == line, "a line is what is before the end of the line");
    rest.remove_prefix(end == rest.npos ? rest.size() : end + 1);
  }
  require(rest.empty(), "the lines are all of the text");
  return 0;
}
