// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Writes JSON, one object per line, so that both programs and people can read it.
#pragma once

#include <hocket/core/checksum.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/text.hpp>
#include <hocket/core/utf8.hpp>

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// Returns `text` as a quoted JSON string. Bytes that are not valid UTF-8, such as text that was cut, become U+FFFD.
HOCKET_COLD inline std::string json_text(std::string_view text) {
  std::string result = "\"";
  while (!text.empty()) {
    const std::size_t length = length_of_character(text);
    const char first = text.front();
    if (length == 0) {
      result += "\\ufffd";
    } else if (first == '"' || first == '\\') {
      (result += '\\') += first;
    } else if (static_cast<unsigned char>(first) < 0x20) {
      constexpr const char* digits = "0123456789abcdef";
      ((result += "\\u00") += digits[first >> 4]) += digits[first & 15];
    } else {
      result += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return result += '"';
}

/// Returns `value` as JSON, with as few digits as identify it. JSON has no infinities and no NaN: they become "Infinity",
/// "-Infinity" and "NaN", with quotes, as in the JSON form of protocol buffers.
HOCKET_COLD inline std::string json_number(double value) {
  char digits[32];
  const std::string_view text(
      digits, static_cast<std::size_t>(std::to_chars(digits, digits + sizeof digits, value).ptr - digits));
  // By the text, because std::isnan is always false under -ffast-math.
  if (text.find("nan") != text.npos) return "\"NaN\"";
  if (text.find("inf") != text.npos) return text.front() == '-' ? "\"-Infinity\"" : "\"Infinity\"";
  return std::string(text);
}

/// Returns the last field of a line that begins with `text`: a checksum of `text`, and the end of the object.
HOCKET_COLD inline std::string checksum_field(std::string_view text) {
  constexpr const char* digits = "0123456789abcdef";
  std::string field = ",\"checksum\":\"";
  const std::uint64_t sum = checksum(std::as_bytes(std::span(text)));
  for (int shift = 60; shift >= 0; shift -= 4) field += digits[sum >> shift & 15];
  return field += "\"}";
}

/// Returns whether `line` ends with the checksum of what precedes it.
HOCKET_COLD inline bool has_valid_checksum(std::string_view line) {
  const std::size_t length = checksum_field({}).size();
  return line.size() > length && line.ends_with(checksum_field(line.substr(0, line.size() - length)));
}

class json_line {
 public:
  HOCKET_COLD json_line& number(std::string_view name, std::int64_t value) { return json(name, std::to_string(value)); }
  HOCKET_COLD json_line& real(std::string_view name, double value) { return json(name, json_number(value)); }
  HOCKET_COLD json_line& text(std::string_view name, std::string_view value) { return json(name, json_text(value)); }
  HOCKET_COLD json_line& numbers(std::string_view name, std::span<const int> values) {
    std::string list;
    for (const int each : values) append(list, {list.empty() ? "" : ",", each});
    return json(name, '[' + list + ']');
  }

  /// Adds a field whose value is JSON text.
  HOCKET_COLD json_line& json(std::string_view name, std::string_view value) {
    if (text_.size() > 1) text_ += ',';
    text_ += json_text(name);
    text_ += ':';
    text_ += value;
    return *this;
  }

  /// Returns the object.
  HOCKET_COLD std::string object() const { return text_ + '}'; }

  /// Returns the line, which must have a field, with a checksum as its last field.
  HOCKET_COLD std::string finish() && { return (text_ += checksum_field(text_) + '\n'); }

 private:
  std::string text_ = "{";
};

}  // namespace detail
HOCKET_END_NAMESPACE
