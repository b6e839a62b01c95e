// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// A minimal SVG writer for the drawings of this library: rectangles, lines and words, and numbers with their units.
/// A picture is as wide as its window allows, up to its own width, and has colours for light and for dark pages.
/// The output does not depend on the locale.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/text.hpp>

#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
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
    const auto written = std::to_chars(text, text + sizeof text, value, std::chars_format::general, 6);
    return {text, written.ptr};
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
  constexpr const char* names[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < std::size(names); ++unit) value /= 1024;
  return decimal(value, 1) + ' ' + names[unit];
}

/// How the elements of a class look: declarations of CSS, and those that differ on a dark page.
struct svg_rule {
  std::string_view name;
  std::string_view light;
  std::string_view dark;
};

/// The classes that all pictures share. Words have a contrast of at least 4.5 to `page` and to `band`.
inline constexpr svg_rule common_rules[] = {
    {"page", "fill:#ffffff", "fill:#14181f"},    {"band", "fill:#f3f5f8", "fill:#1d232c"},
    {"heading", "fill:#111827", "fill:#f3f4f6"}, {"label", "fill:#374151", "fill:#d1d5db"},
    {"note", "fill:#4b5563", "fill:#aab2bf"},    {"frame", "fill:none;stroke:#e5e7eb", "stroke:#39414d"},
};

/// The style sheet of a picture. Its rules apply only inside the picture, also if a page of HTML contains it. The light
/// rules come first, without a condition: programs that do not know `@media` use them.
class style_sheet {
 public:
  style_sheet() {
    for (const svg_rule& each : common_rules) add(each);
  }

  void add(const svg_rule& rule) {
    hocket::detail::append(light_, {selector(rule), rule.light, "}\n"});
    if (!rule.dark.empty()) hocket::detail::append(dark_, {selector(rule), rule.dark, "}\n"});
  }

  std::string text() const {
    return hocket::detail::concat(
        {"<style>\n.hocket{max-width:100%;height:auto;color-scheme:light dark;background:#ffffff}\n", light_,
         "@media (prefers-color-scheme:dark){\n.hocket{background:#14181f}\n", dark_, "}\n</style>\n"});
  }

 private:
  static std::string selector(const svg_rule& rule) { return hocket::detail::concat({".hocket .", rule.name, '{'}); }

  std::string light_;
  std::string dark_;
};

struct point {
  double x = 0;
  double y = 0;
};

/// Appends elements to one text. A `style` is a list of attributes, which the element contains unchanged.
class svg_writer {
 public:
  void raw(std::string_view text) { text_ += text; }

  /// Begins a picture. `width` and `height` are its size where a page sets no other one, and its greatest size.
  void open(double width, double height, std::string_view heading, const style_sheet& style) {
    const std::string wide = decimal(width, 0);
    const std::string high = decimal(height, 0);
    hocket::detail::append(
        text_, {"<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"hocket\" width=\"", wide, "\" height=\"", high,
                "\" viewBox=\"0 0 ", wide, ' ', high, "\" role=\"img\" aria-label=\"", escaped(heading),
                "\" font-family=\"Helvetica, Arial, sans-serif\" font-size=\"12\">\n<title>", escaped(heading),
                "</title>\n", style.text()});
    rectangle({0, 0}, width, height, "class=\"page\"");
  }

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

  void caption(point at, std::string_view what, std::string_view style) {
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
