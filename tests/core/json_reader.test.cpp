// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// JSON from outside.
#include <hocket/core/json_reader.hpp>

#include "support/catch.hpp"

#include <cstdint>
#include <string>
#include <vector>

using hocket::detail::json_reader;

namespace {

/// Reads any value, and returns "" or "problem at offset".
std::string problem_with(const std::string& text) {
  json_reader reader(text);
  reader.skip();
  reader.end();
  return reader.ok() ? "" : reader.problem() + " at " + std::to_string(reader.offset());
}

std::string text_in(const std::string& json) {
  json_reader reader(json);
  std::string result = reader.text();
  reader.end();
  return reader.ok() ? result : "";
}

}  // namespace

TEST_CASE("all forms of JSON values are read") {
  for (const char* const each :
       {"{}", "[]", " [ ] ", "{\"a\":1}", "{\"a\" : [1, -2.5e+3 , 0, 0.5, 1E9], \"b\":{\"c\":null}}", "true", "false",
        "null", "\"\"", "\"\\u00e9\\n\\\\\"", "\"\u00e9\"", "0", "-0", "18446744073709551616"}) {
    CHECK(problem_with(each) == "");
  }
}

TEST_CASE("what is not JSON is refused, with the offset") {
  struct {
    const char* text;
    const char* problem;
  } const cases[] = {
      {"", "a value was expected at 0"},
      {"  ", "a value was expected at 2"},
      {"{", "a text was expected at 1"},
      {"{\"a\"}", "a colon was expected at 4"},
      {"{\"a\":}", "a value was expected at 5"},
      {"{\"a\":1,}", "a text was expected at 7"},
      {"{\"a\":1", "a comma or the end of the object was expected at 6"},
      {"{\"a\":1]", "a comma or the end of the object was expected at 6"},
      {"{\"a\":1,\"b\":2,\"a\":3}", "the object before has the key \"a\" twice at 19"},
      {"{\"a\":1,\"\\u0061\":3}", "the object before has the key \"a\" twice at 18"},
      {"[1,]", "a value was expected at 3"},
      {"[1 2]", "a comma or the end of the array was expected at 3"},
      {"01", "a value was expected at 0"},
      {"1.", "a value was expected at 0"},
      {"-", "a value was expected at 0"},
      {"1e", "a value was expected at 0"},
      {"nul", "a value was expected at 0"},
      {"NaN", "a value was expected at 0"},
      {"\"", "the text has no end at 1"},
      {"\"\\x\"", "a backslash is followed by no known character at 1"},
      {"\"\\", "a backslash is followed by no known character at 1"},
      {"\"\\u12\"", "\\u is not followed by a character's code at 1"},
      {"\"\\udc00\"", "\\u is not followed by a character's code at 1"},
      {"\"\\ud800x\"", "\\u is not followed by a character's code at 1"},
      {"\"\x80\"", "the text is not UTF-8 at 1"},
      {"\"\n\"", "the text has a control character at 1"},
      {"1 2", "there is more after the end of the value at 2"},
  };
  for (const auto& each : cases) {
    CAPTURE(each.text);
    CHECK(problem_with(each.text) == each.problem);
  }
}

TEST_CASE("deep nesting is refused") {
  CHECK(problem_with(std::string(64, '[') + std::string(64, ']')) == "");
  CHECK(problem_with(std::string(65, '[') + std::string(65, ']')) ==
        "objects and arrays are nested deeper than 64 at 65");
  CHECK(problem_with(std::string(1'000'000, '[')) == "objects and arrays are nested deeper than 64 at 65");
}

TEST_CASE("texts are what json_text wrote, and escapes are decoded") {
  for (const std::string& each :
       {std::string("plain"), std::string("a\"b\\c\n\t\x01"), std::string("\u00e9\u20ac\U0001f600")})
    CHECK(text_in(hocket::detail::json_text(each)) == each);
  CHECK(text_in("\"\\ud83d\\ude00\\/\\b\\f\\r\"") == "\U0001f600/\b\f\r");
}

TEST_CASE("whole numbers have limits") {
  const auto number = [](const char* text, std::uint64_t most = UINT64_MAX) {
    json_reader reader(text);
    const std::uint64_t result = reader.unsigned_integer(most);
    return reader.ok() ? std::to_string(result) : reader.problem();
  };
  CHECK(number("0") == "0");
  CHECK(number(" 18446744073709551615") == "18446744073709551615");
  CHECK(number("18446744073709551616") == "a number up to 18446744073709551615 was expected");
  CHECK(number("11", 10) == "a number up to 10 was expected");
  for (const char* const each : {"-1", "1.0", "1e3", "007", "\"1\"", "x", ""})
    CHECK(number(each) == "a whole number was expected");
}

TEST_CASE("members and elements are visited in order, and not after an error") {
  json_reader reader(R"({"b": [3, 4], "a": "x", "c": 1})");
  std::vector<std::string> keys;
  std::vector<std::uint64_t> numbers;
  reader.object([&](const std::string& key) {
    keys.push_back(key);
    if (key == "b") return reader.array([&] { numbers.push_back(reader.unsigned_integer()); });
    reader.unsigned_integer();
  });
  CHECK(keys == std::vector<std::string>{"b", "a"});
  CHECK(numbers == std::vector<std::uint64_t>{3, 4});
  CHECK(reader.offset() == 19);
  reader.end();
  CHECK(reader.problem() == "a whole number was expected");
}
