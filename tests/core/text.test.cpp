// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Texts that are joined from pieces are those that chains of `+` and `std::to_string` would give.
#include "support/catch.hpp"

#include <hocket/core/text.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>

using hocket::detail::append;
using hocket::detail::concat;
using hocket::detail::text_piece;

namespace {

/// Checks the smallest, the largest and some other values of a type.
template <class Integer>
void check_numbers() {
  for (const Integer each : {std::numeric_limits<Integer>::min(), static_cast<Integer>(-1), Integer{0}, Integer{1},
                             Integer{9}, Integer{10}, std::numeric_limits<Integer>::max()}) {
    CHECK(concat({each}) == std::to_string(each));
    CHECK(concat({"<", each, '>'}) == "<" + std::to_string(each) + '>');
  }
}

}  // namespace

TEST_CASE("a text of no pieces, or of empty ones, is empty") {
  CHECK(concat({}).empty());
  CHECK(concat({"", std::string(), std::string_view()}).empty());
  const char* const nothing = nullptr;
  CHECK(concat({"a", nothing, "b"}) == "ab");
}

TEST_CASE("a text is joined from pieces of every kind, in order") {
  const char* const words = "words";
  const std::string string = "string";
  const std::string_view view = std::string_view("viewed").substr(0, 4);
  CHECK(concat({"literal ", words, ' ', string, ' ', view, ' ', -1, ' ', 2U, ' ', std::string("temporary")}) ==
        "literal words string view -1 2 temporary");
  CHECK(concat({string.empty() ? "none" : "some"}) == "some");
}

TEST_CASE("a char is printed as a character, and other integers as numbers") {
  CHECK(concat({'A', static_cast<unsigned char>('A'), static_cast<signed char>('A')}) == "A6565");
  CHECK(concat({std::uint8_t{200}, ' ', std::int8_t{-1}}) == "200 -1");
  CHECK(concat({'\0'}) == std::string(1, '\0'));
  CHECK(concat({'\xff'}) == "\xff");
}

TEST_CASE("numbers are printed as std::to_string prints them, up to the ends of their ranges") {
  check_numbers<signed char>();
  check_numbers<unsigned char>();
  check_numbers<short>();
  check_numbers<unsigned short>();
  check_numbers<int>();
  check_numbers<unsigned>();
  check_numbers<long>();
  check_numbers<unsigned long>();
  check_numbers<long long>();
  check_numbers<unsigned long long>();
  CHECK(concat({std::numeric_limits<std::int64_t>::min()}) == "-9223372036854775808");
  CHECK(concat({std::numeric_limits<std::uint64_t>::max()}) == "18446744073709551615");
}

TEST_CASE("a type that would be printed as another type is not accepted as a piece") {
  enum unscoped { value };
  enum class scoped { value };
  STATIC_REQUIRE(std::is_convertible_v<std::size_t, text_piece>);
  STATIC_REQUIRE_FALSE(std::is_constructible_v<text_piece, bool>);
  STATIC_REQUIRE_FALSE(std::is_constructible_v<text_piece, float>);
  STATIC_REQUIRE_FALSE(std::is_constructible_v<text_piece, double>);
  STATIC_REQUIRE_FALSE(std::is_constructible_v<text_piece, const void*>);
  STATIC_REQUIRE_FALSE(std::is_constructible_v<text_piece, unscoped>);
  STATIC_REQUIRE_FALSE(std::is_constructible_v<text_piece, scoped>);
}

TEST_CASE("long pieces and many pieces are joined completely") {
  const std::string is(100000, 'x');
  const std::string of(70000, 'y');
  CHECK(concat({is, 7, of}) == is + "7" + of);
  CHECK(concat({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20}) ==
        "1234567891011121314151617181920");
}

TEST_CASE("a NUL inside a string does not end it") {
  using namespace std::string_literals;
  const std::string string = "a\0b"s;
  CHECK(concat({string, std::string_view("\0", 1), '\0', "c"}) == "a\0b\0\0c"s);
}

TEST_CASE("append adds pieces to the end of a text") {
  std::string text = "rank";
  append(text, {});
  CHECK(text == "rank");
  append(text, {' ', 3, " of ", std::size_t{4}});
  CHECK(text == "rank 3 of 4");
  std::string expected = text;
  for (int i = 0; i < 1000; ++i) {
    append(text, {", ", i});
    expected += ", " + std::to_string(i);
  }
  CHECK(text == expected);
}
