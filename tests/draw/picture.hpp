// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// What is wrong with a drawing as a picture: as XML, in a narrow window, and on a dark page. Each check returns the
/// first thing that it finds, or nothing.
#pragma once

#include "draw/count.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstddef>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace draw_test {

/// What is wrong with the document as XML, or nothing: tags nest, attributes are quoted, no stray signs.
inline std::string malformed(const std::string& text) {
  std::vector<std::string> open;
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] == '>') return "stray >";
    if (text[at] == '&') {
      const std::size_t end = text.find(';', at);
      if (end == std::string::npos || end - at > 6) return "stray &";
      at = end + 1;
      continue;
    }
    if (text[at] != '<') {
      if (open.empty() && std::isspace(static_cast<unsigned char>(text[at])) == 0) return "text outside the root";
      ++at;
      continue;
    }
    const std::size_t end = text.find('>', at);
    if (end == std::string::npos) return "unfinished tag";
    const std::string tag = text.substr(at + 1, end - at - 1);
    if (tag.find('<') != std::string::npos) return "< inside a tag";
    if (count(tag, "\"") % 2 != 0) return "odd quotes in " + tag;
    const std::string name = tag.substr(0, tag.find_first_of(" /", tag[0] == '/' ? 1 : 0));
    if (tag[0] == '/') {
      if (open.empty() || "/" + open.back() != name) return "closes " + name;
      open.pop_back();
    } else if (tag.back() != '/') {
      open.push_back(name);
    }
    at = end + 1;
  }
  return open.empty() ? "" : "leaves open " + open.back();
}

struct element {
  std::string name;
  std::map<std::string, std::string> attributes;
  std::string words;  ///< up to the next tag

  std::string get(const std::string& attribute) const {
    const auto found = attributes.find(attribute);
    return found == attributes.end() ? "" : found->second;
  }
  double number(const std::string& attribute) const {
    const std::string text = get(attribute);
    return text.empty() ? 0 : std::stod(text);
  }
  /// Returns how far `transform="translate(x y) ..."` moves the element.
  std::pair<double, double> moved() const {
    std::istringstream text(get("transform"));
    std::pair<double, double> by;
    if (text.ignore(10, '(')) text >> by.first >> by.second;
    return by;
  }
  std::vector<std::string> classes() const {
    std::istringstream words_of_class(get("class"));
    std::vector<std::string> all;
    for (std::string each; words_of_class >> each;) all.push_back(each);
    return all;
  }
};

/// Returns the elements of a well-formed document, in order.
inline std::vector<element> elements_of(const std::string& text) {
  std::vector<element> all;
  for (std::size_t at = text.find('<'); at != std::string::npos; at = text.find('<', at + 1)) {
    if (text[at + 1] == '/') continue;
    const std::size_t end = text.find('>', at);
    element& made = all.emplace_back();
    std::size_t from = text.find_first_of(" />", at + 1);
    made.name = text.substr(at + 1, from - at - 1);
    for (std::size_t equals = text.find("=\"", from); equals < end; equals = text.find("=\"", from)) {
      const std::size_t begin = text.find_last_of(' ', equals) + 1;
      from = text.find('"', equals + 2) + 1;
      made.attributes[text.substr(begin, equals - begin)] = text.substr(equals + 2, from - equals - 3);
    }
    made.words = text.substr(end + 1, text.find('<', end) - end - 1);
  }
  return all;
}

/// The style sheet of a drawing: rules such as `.hocket .forward.later{fill:#1f4e8c}`, and those for dark pages. All
/// elements inherit what `.hocket{...}`, the rule of the root, sets.
class style {
 public:
  explicit style(const std::string& drawing) {
    const std::size_t begin = drawing.find("<style>");
    const std::string text = drawing.substr(begin, drawing.find("</style>") - begin);
    const std::size_t dark = text.find("@media (prefers-color-scheme:dark){");
    read(text.substr(0, dark), rules_[0]);
    if (dark != std::string::npos) read(text.substr(text.find('{', dark) + 1), rules_[1]);
  }

  bool has_dark_rules() const { return !rules_[1].empty(); }

  bool has_rule_of(const std::string& name) const {
    return std::any_of(rules_[0].begin(), rules_[0].end(), [&](const rule& each) {
      return std::find(each.classes.begin(), each.classes.end(), name) != each.classes.end();
    });
  }

  /// Returns the value of a property: of the last of the most specific rules that match, of the attribute, or inherited.
  std::string value(const element& of, const std::string& property, bool dark) const {
    const std::vector<std::string> classes = of.classes();
    std::string inherited;
    std::string found = of.get(property);
    std::size_t specific = 1;
    for (int i = 0; i <= static_cast<int>(dark); ++i) {
      for (const rule& each : rules_[i]) {
        const bool matches = std::all_of(each.classes.begin(), each.classes.end(), [&](const std::string& name) {
          return std::find(classes.begin(), classes.end(), name) != classes.end();
        });
        const auto set = each.values.find(property);
        if (!matches || set == each.values.end()) continue;
        if (each.classes.empty()) inherited = set->second;
        if (each.classes.size() < specific) continue;
        specific = each.classes.size();
        found = set->second;
      }
    }
    return found.empty() ? inherited : found;
  }

 private:
  struct rule {
    std::vector<std::string> classes;
    std::map<std::string, std::string> values;
  };

  static std::vector<std::string> split(const std::string& text, char at) {
    std::istringstream stream(text);
    std::vector<std::string> parts;
    for (std::string each; std::getline(stream, each, at);) parts.push_back(each);
    return parts;
  }

  static void read(const std::string& text, std::vector<rule>& rules) {
    const std::string begin = "\n.hocket";
    for (std::size_t at = text.find(begin); at != std::string::npos; at = text.find(begin, at + 1)) {
      const std::size_t open = text.find('{', at);
      const std::size_t first = text.find('.', at + begin.size());
      rule& made = rules.emplace_back();
      if (first < open) made.classes = split(text.substr(first + 1, open - first - 1), '.');
      for (const std::string& each : split(text.substr(open + 1, text.find('}', open) - open - 1), ';')) {
        const std::size_t colon = each.find(':');
        made.values[each.substr(0, colon)] = each.substr(colon + 1);
      }
    }
  }

  std::vector<rule> rules_[2];  ///< for all pages; for dark ones
};

/// Returns why the drawing would be cut or too wide in some window, or would be light on a dark page.
inline std::string unfit_for_pages(const std::string& drawing) {
  const std::vector<element> elements = elements_of(drawing);
  const element& root = elements.front();
  if (root.get("viewBox") != "0 0 " + root.get("width") + ' ' + root.get("height"))
    return "its size is not its viewBox";
  if (root.get("class") != "hocket" || drawing.find("\n.hocket{max-width:100%;height:auto;") == std::string::npos) {
    return "it does not shrink with the window";
  }
  if (count(drawing, "<svg ") != 1) return "it contains another picture, whose rules would apply twice";
  const style rules(drawing);
  if (!rules.has_dark_rules()) return "it has no rules for dark pages";
  for (const element& each : elements) {
    if (each.name == "svg" || each.name == "g") continue;
    for (const std::string& name : each.classes()) {
      const bool only_tells_apart = name == "sample" || name == "tip";
      if (!only_tells_apart && !rules.has_rule_of(name)) return "no rule has the class " + name;
    }
    if (each.name == "text" && rules.value(each, "fill", false).empty()) return "words without a colour: " + each.words;
    if (each.number("x") < 0 || each.number("x") > root.number("width")) return "it is cut at a side";
    if (each.number("y") < 0 || each.number("y") > root.number("height")) return "it is cut above or below";
  }
  return "";
}

struct colour {
  double red = 0, green = 0, blue = 0;  ///< from 0 to 1

  static colour parse(const std::string& text) {
    const auto part = [&](std::size_t at) { return std::stoi(text.substr(at, 2), nullptr, 16) / 255.0; };
    return {part(1), part(3), part(5)};
  }

  colour under(const colour& above, double opacity) const {
    const auto mix = [&](double low, double high) { return low + (high - low) * opacity; };
    return {mix(red, above.red), mix(green, above.green), mix(blue, above.blue)};
  }

  /// As the Web Content Accessibility Guidelines define it.
  double luminance() const {
    const auto linear = [](double value) {
      return value <= 0.04045 ? value / 12.92 : std::pow((value + 0.055) / 1.055, 2.4);
    };
    return 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue);
  }
};

inline double contrast(const colour& one, const colour& other) {
  const double a = one.luminance(), b = other.luminance();
  return (std::max(a, b) + 0.05) / (std::min(a, b) + 0.05);
}

/// Returns words that contrast too little with the rectangles under them, on a light or on a dark page.
inline std::string faint_words(const std::string& drawing) {
  struct painted {
    double left, top, right, bottom;
    colour fill;
    double opacity;
  };
  const std::vector<element> elements = elements_of(drawing);
  const style rules(drawing);
  for (const bool dark : {false, true}) {
    std::vector<painted> below;
    double down = 0;  // a part that is moved down is the last one
    for (const element& each : elements) {
      if (each.name == "g" && !each.get("transform").empty()) down = each.moved().second;
      const double x = each.number("x") + each.moved().first, y = each.number("y") + each.moved().second + down;
      if (each.name == "rect") {
        const std::string fill = rules.value(each, "fill", dark), opacity = rules.value(each, "fill-opacity", dark);
        if (fill == "none") continue;
        below.push_back({x, y, x + each.number("width"), y + each.number("height"), colour::parse(fill),
                         opacity.empty() ? 1 : std::stod(opacity)});
      } else if (each.name == "text") {
        const std::string anchor = each.get("text-anchor");
        const double inside = x + (anchor == "end" ? -1 : anchor == "middle" ? 0 : 1), middle = y - 3;
        colour behind{1, 1, 1};
        for (const painted& at : below) {
          if (inside < at.left || inside > at.right || middle < at.top || middle > at.bottom) continue;
          behind = behind.under(at.fill, at.opacity);
        }
        if (contrast(behind, colour::parse(rules.value(each, "fill", dark))) < 4.5) {
          return each.words + " of class " + each.get("class") + (dark ? ", dark" : ", light");
        }
      }
    }
  }
  return "";
}

}  // namespace draw_test
