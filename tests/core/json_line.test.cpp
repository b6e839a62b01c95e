// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The output is valid JSON, whatever bytes the input contains.
#include "support/catch.hpp"

#include <hocket/core/json_line.hpp>

#include <array>
#include <cstddef>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

using hocket::detail::json_line;
using hocket::detail::json_text;

TEST_CASE("text in JSON: quotes, backslashes and control characters are escaped") {
  CHECK(json_text("") == R"("")");
  CHECK(json_text("a \"b\" \\ c") == R"("a \"b\" \\ c")");
  CHECK(json_text("tab\tline\nend\x1f") == R"("tab\u0009line\u000aend\u001f")");
  CHECK(json_text(std::string_view("a\0b", 3)) == R"("a\u0000b")");
}

TEST_CASE("text in JSON: valid UTF-8 stays, invalid bytes are replaced") {
  CHECK(json_text("\u00e4\u20ac\U0001f600") == "\"\u00e4\u20ac\U0001f600\"");
  const std::string euro = "\u20ac";
  CHECK(json_text(euro.substr(0, 2)) == R"("\ufffd\ufffd")");  // cut
  CHECK(json_text("\xff|\x80|\xc0\xaf") == R"("\ufffd|\ufffd|\ufffd\ufffd")");
  CHECK(json_text("\xed\xa0\x80") == R"("\ufffd\ufffd\ufffd")");            // half of a surrogate pair
  CHECK(json_text("\xf4\x90\x80\x80") == R"("\ufffd\ufffd\ufffd\ufffd")");  // beyond U+10FFFF
}

TEST_CASE("a line of JSON is one object") {
  const std::array<int, 3> values{1, -2, 3};
  json_line line;
  line.number("n", -5).text("t", "x\"").numbers("v", values).numbers("none", {});
  const std::string text = R"({"n":-5,"t":"x\"","v":[1,-2,3],"none":[])";
  CHECK(std::move(line).finish() == text + hocket::detail::checksum_field(text) + '\n');
}

TEST_CASE("numbers in JSON: as few digits as identify a double, and texts for those that JSON lacks") {
  using hocket::detail::json_number;
  const double infinite = std::numeric_limits<double>::infinity();
  CHECK(json_number(0.1) == "0.1");
  CHECK(json_number(-3) == "-3");
  CHECK(json_number(1e300) == "1e+300");
  CHECK(json_number(std::numeric_limits<double>::quiet_NaN()) == "\"NaN\"");
  CHECK(json_number(infinite) == "\"Infinity\"");
  CHECK(json_number(-infinite) == "\"-Infinity\"");
}

TEST_CASE("objects in JSON: names are escaped, and values may be objects") {
  CHECK(json_line().object() == "{}");
  CHECK(json_line().real("a \"b\"", 0.5).json("c", json_line().number("d", 1).object()).object() ==
        R"({"a \"b\"":0.5,"c":{"d":1}})");
}

TEST_CASE("the checksum of a line covers all that precedes it") {
  json_line made;
  made.number("a", 1).text("b", "two");
  const std::string line = std::move(made).finish();
  const std::string text = line.substr(0, line.size() - 1);
  CHECK(line.back() == '\n');
  CHECK(text.find("{\"a\":1,\"b\":\"two\",\"checksum\":\"") == 0);
  CHECK(hocket::detail::has_valid_checksum(text));
  for (std::size_t at = 0; at < text.size(); ++at) {
    std::string changed = text;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    CHECK_FALSE(hocket::detail::has_valid_checksum(changed));
    CHECK_FALSE(hocket::detail::has_valid_checksum(text.substr(0, at)));
  }
}
