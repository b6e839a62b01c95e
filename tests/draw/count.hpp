// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Counts how often a drawing contains a word, so that a test can count the elements of an SVG.
#pragma once

#include <cstddef>
#include <string_view>

namespace draw_test {

/// Number of occurrences of `word` in `text` without overlaps. `word` must not be empty.
inline std::size_t count(std::string_view text, std::string_view word) {
  std::size_t found = 0;
  for (std::size_t at = text.find(word); at != text.npos; at = text.find(word, at + word.size())) ++found;
  return found;
}

}  // namespace draw_test
