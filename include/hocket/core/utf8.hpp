// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// UTF-8, which formats for text require: whether bytes are valid, and replacing those that are not.
#pragma once

#include <hocket/core/config.hpp>

#include <cstddef>
#include <string>
#include <string_view>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// Length in bytes of the well-formed UTF-8 character at the beginning of `text`; 0 if there is none.
inline std::size_t length_of_character(std::string_view text) noexcept {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if (byte(i) >> 6 != 2) return 0;
  }
  const unsigned second = byte(1);
  const bool overlong = (first == 0xe0 && second < 0xa0) || (first == 0xf0 && second < 0x90);
  const bool beyond = (first == 0xed && second > 0x9f) || (first == 0xf4 && second > 0x8f);
  return overlong || beyond ? 0 : length;
}

inline bool is_utf8(std::string_view text) noexcept {
  while (!text.empty()) {
    const std::size_t length = length_of_character(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

/// Returns `text`; bytes that are not valid, such as text that was cut, become U+FFFD.
HOCKET_COLD inline std::string to_utf8(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const std::size_t length = length_of_character(text);
    result += length == 0 ? std::string_view("\xef\xbf\xbd") : text.substr(0, length);
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return result;
}

}  // namespace detail
HOCKET_END_NAMESPACE
