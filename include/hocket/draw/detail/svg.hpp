// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// A minimal SVG writer for the drawings of this library: rectangles, lines and words, and numbers with their units.
/// The output does not depend on the locale.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/text.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

HOCKET_BEGIN_NAMESPACE
namespace plan::detail {

/// Returns `value` with at most `digits` decimals and no trailing zeros, or with an exponent if it is very large.
inline std::string decimal(double value, int digits) {
  if (!(std::abs(value) < 1e15)) {
    char text[32];
    std::snprintf(text, sizeof text, "%.6g", value);
    return text;
  }
  auto scaled = static_cast<std::uint64_t>(std::llround(std::abs(value) * std::pow(10.0, digits)));
  const bool negative = value < 0 && scaled != 0;
  std::string text;
  for (int i = 0; i < digits; ++i, scaled /= 10)
    if (!text.empty() || scaled % 10 != 0) text.insert(text.begin(), static_cast<char>('0' + scaled % 10));
  return hocket::detail::concat({negative ? "-" : "", scaled, text.empty() ? "" : ".", text});
}

inline std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '&') result += "&amp;";
    else if (c == '<') result += "&lt;";
    else if (c == '>') result += "&gt;";
    else if (c == '"') result += "&quot;";
    else result += c;
  }
  return result;
}

struct time_unit {
  double seconds = 1;
  const char* name = "s";
};

/// Returns the unit in which `seconds` is a number from 1 to 1000, if possible.
inline time_unit unit_for(double seconds) noexcept {
  if (seconds >= 1) return {1, "s"};
  if (seconds >= 1e-3) return {1e-3, "ms"};
  if (seconds >= 1e-6) return {1e-6, "\xC2\xB5s"};
  return {1e-9, "ns"};
}

inline std::string time_text(double seconds) {
  const time_unit unit = unit_for(seconds);
  const double value = seconds / unit.seconds;
  return decimal(value, value < 10 ? 2 : value < 100 ? 1 : 0) + ' ' + unit.name;
}

inline std::string bytes_text(std::uint64_t bytes) {
  constexpr const char* names[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < std::size(names); ++unit) value /= 1024;
  return decimal(value, 1) + ' ' + names[unit];
}

struct point {
  double x = 0;
  double y = 0;
};

/// Appends elements to one text. A `style` is a list of attributes, which the element contains unchanged.
class svg_writer {
 public:
  void raw(std::string_view text) { text_ += text; }
  std::string take() { return std::move(text_); }

  void rectangle(point corner, double width, double height, std::string_view style) {
    hocket::detail::append(text_, {"<rect", attribute("x", corner.x), attribute("y", corner.y),
                                   attribute("width", width), attribute("height", height)});
    close(style);
  }

  void line(point from, point to, std::string_view style) {
    hocket::detail::append(text_, {"<line", attribute("x1", from.x), attribute("y1", from.y), attribute("x2", to.x),
                                   attribute("y2", to.y)});
    close(style);
  }

  void words(point at, std::string_view what, std::string_view style) {
    hocket::detail::append(text_, {"<text", attribute("x", at.x), attribute("y", at.y), ' '});
    text_ += style;
    hocket::detail::append(text_, {'>', escaped(what), "</text>\n"});
  }

 private:
  static std::string attribute(const char* name, double value) {
    return hocket::detail::concat({" ", name, "=\"", decimal(value, 2), '"'});
  }

  void close(std::string_view style) {
    text_ += ' ';
    text_ += style;
    text_ += "/>\n";
  }

  std::string text_;
};

}  // namespace plan::detail
HOCKET_END_NAMESPACE
