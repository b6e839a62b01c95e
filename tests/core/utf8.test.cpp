// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// What is valid UTF-8, and what becomes of bytes that are not. Lengths of characters: see json_line.test.cpp.
#include "support/catch.hpp"

#include <hocket/core/utf8.hpp>

#include <string>

TEST_CASE("UTF-8: valid text stays as it is, and each invalid byte becomes U+FFFD") {
  using hocket::detail::is_utf8, hocket::detail::to_utf8;
  const std::string mark = "\xef\xbf\xbd";
  struct {
    std::string text;
    std::string valid;
  } const cases[] = {
      {"", ""},
      {std::string("a\0b", 3), std::string("a\0b", 3)},
      {"\u00e4\u20ac\U0001f600", "\u00e4\u20ac\U0001f600"},
      {"a\xff"
       "b",
       "a" + mark + "b"},
      {"\xe2\x82", mark + mark},
      {"\xc0\xaf", mark + mark},
  };
  for (const auto& each : cases) {
    CHECK(to_utf8(each.text) == each.valid);
    CHECK(is_utf8(each.text) == (each.text == each.valid));
    CHECK(is_utf8(each.valid));
  }
}
