// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Reads JSON that a caller knows the form of, without a tree of its values: the caller asks for an object, an array, a text
/// or a number where it expects one. Made for files from outside: it needs no more memory than the texts that it returns,
/// limits the depth, and reports the first error with its offset.
///
/// @code
/// json_reader reader(text);
/// reader.object([&](const std::string& key) {
///   if (key == "step") step = reader.unsigned_integer();
///   else reader.skip();
/// });
/// reader.end();
/// if (!reader.ok()) report(reader.problem(), reader.offset());
/// @endcode
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/json_line.hpp>
#include <hocket/core/text.hpp>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// After an error, all functions return empty values at once, and visitors are no longer called.
class json_reader {
 public:
  /// The reader refers to `text`.
  explicit json_reader(std::string_view text) noexcept : text_(text) {}

  bool ok() const noexcept { return problem_.empty(); }
  /// What is wrong, such as "a number was expected"; empty if nothing is.
  const std::string& problem() const noexcept { return problem_; }
  /// Number of bytes before what is wrong, or what is read next.
  std::size_t offset() const noexcept { return at_; }

  /// Reports an error at the value that was read last, unless there was one before.
  void fail(std::string problem) {
    if (!ok()) return;
    problem_ = std::move(problem);
    at_ = value_;
  }

  /// Reads an object: calls `visit(key)` for each member, in order, which must read its value. No key may occur twice.
  template <class Visit>
  void object(Visit visit) {
    if (!opens('{', "an object was expected")) return;
    std::vector<std::string> keys;
    if (!closes('}')) {
      do {
        std::string key = text();
        if (!ok()) return;
        keys.push_back(key);
        if (!take(':')) return fail_here("a colon was expected");
        visit(std::as_const(key));
        if (!ok()) return;
      } while (take(','));
      if (!closes('}')) return fail_here("a comma or the end of the object was expected");
    }
    std::sort(keys.begin(), keys.end());
    const auto twice = std::adjacent_find(keys.begin(), keys.end());
    if (twice != keys.end()) fail_here(concat({"the object before has the key ", json_text(*twice), " twice"}));
  }

  /// Reads an array: calls `visit()` for each element, in order, which must read it.
  template <class Visit>
  void array(Visit visit) {
    if (!opens('[', "an array was expected") || closes(']')) return;
    do {
      visit();
      if (!ok()) return;
    } while (take(','));
    if (!closes(']')) fail_here("a comma or the end of the array was expected");
  }

  std::string text() {
    if (!begins('"', "a text was expected")) return {};
    std::string result;
    while (at_ < text_.size() && text_[at_] != '"') {
      if (!append_character(result)) return {};
    }
    if (at_ == text_.size()) return fail_here("the text has no end"), std::string();
    ++at_;
    return result;
  }

  /// Reads an integer from 0 to `most`.
  std::uint64_t unsigned_integer(std::uint64_t most = UINT64_MAX) {
    skip_space();
    value_ = at_;
    std::uint64_t result = 0;
    const char* const begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), result);
    const bool has_leading_zero = end - begin > 1 && *begin == '0';
    if (!ok() || end == begin) return fail_here("a whole number was expected"), 0;
    if (error != std::errc() || result > most) return fail_here(concat({"a number up to ", most, " was expected"})), 0;
    if (has_leading_zero || (end != text_.data() + text_.size() && (*end == '.' || *end == 'e' || *end == 'E')))
      return fail_here("a whole number was expected"), 0;
    at_ += static_cast<std::size_t>(end - begin);
    return result;
  }

  /// Reads any value, and discards it.
  void skip() {
    skip_space();
    value_ = at_;
    const char next = at_ < text_.size() ? text_[at_] : '\0';
    if (next == '{') return object([&](const std::string&) { skip(); });
    if (next == '[') return array([&] { skip(); });
    if (next == '"') return static_cast<void>(text());
    const std::size_t begin = at_;
    while (at_ < text_.size() && is_of_literal(text_[at_])) ++at_;
    const std::string_view word = text_.substr(begin, at_ - begin);
    if (word == "true" || word == "false" || word == "null" || is_number(word)) return;
    at_ = begin;
    fail_here("a value was expected");
  }

  /// Fails unless only white space follows.
  void end() {
    skip_space();
    if (ok() && at_ != text_.size()) fail_here("there is more after the end of the value");
  }

 private:
  static constexpr int most_depth = 64;

  void fail_here(std::string problem) {
    if (ok()) problem_ = std::move(problem);
  }

  void skip_space() noexcept {
    while (ok() && at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos) ++at_;
  }
  bool take(char expected) noexcept {
    skip_space();
    if (!ok() || at_ == text_.size() || text_[at_] != expected) return false;
    ++at_;
    return true;
  }
  bool begins(char expected, const char* problem) {
    skip_space();
    value_ = at_;
    if (take(expected)) return true;
    fail_here(problem);
    return false;
  }
  bool opens(char expected, const char* problem) {
    if (!begins(expected, problem)) return false;
    if (++depth_ <= most_depth) return true;
    fail_here(concat({"objects and arrays are nested deeper than ", most_depth}));
    return false;
  }
  bool closes(char expected) noexcept {
    if (!take(expected)) return false;
    --depth_;
    return true;
  }

  /// Reads one character of a text, which may be escaped.
  bool append_character(std::string& to) {
    const char next = text_[at_];
    if (next == '\\') return append_escaped(to);
    const std::size_t length = length_of_character(text_.substr(at_));
    if (length == 0 || static_cast<unsigned char>(next) < 0x20) {
      fail_here(length == 0 ? "the text is not UTF-8" : "the text has a control character");
      return false;
    }
    to += text_.substr(at_, length);
    at_ += length;
    return true;
  }

  bool append_escaped(std::string& to) {
    const char kind = at_ + 1 < text_.size() ? text_[at_ + 1] : '\0';
    if (kind == 'u') return append_code_point(to);
    constexpr std::string_view from = "\"\\/bfnrt", meant = "\"\\/\b\f\n\r\t";
    const std::size_t i = from.find(kind);
    if (kind == '\0' || i == from.npos) {
      fail_here("a backslash is followed by no known character");
      return false;
    }
    to += meant[i];
    at_ += 2;
    return true;
  }

  /// Reads \uXXXX at the present offset. Returns false if there is none.
  bool read_code_unit(std::uint32_t& unit) noexcept {
    if (text_.size() - at_ < 6 || text_[at_] != '\\' || text_[at_ + 1] != 'u') return false;
    const char* const begin = text_.data() + at_ + 2;
    const auto [end, error] = std::from_chars(begin, begin + 4, unit, 16);
    if (error != std::errc() || end != begin + 4) return false;
    at_ += 6;
    return true;
  }

  bool append_code_point(std::string& to) {
    std::uint32_t point = 0, low = 0;
    const std::size_t begin = at_;
    bool valid = read_code_unit(point) && (point < 0xdc00 || point > 0xdfff);
    if (valid && point >= 0xd800 && point <= 0xdbff) {  // the first of two, for characters beyond U+FFFF
      valid = read_code_unit(low) && low >= 0xdc00 && low <= 0xdfff;
      point = 0x10000 + ((point - 0xd800) << 10) + (low - 0xdc00);
    }
    if (!valid) {
      at_ = begin;
      fail_here("\\u is not followed by a character's code");
      return false;
    }
    append_utf8(to, point);
    return true;
  }

  static void append_utf8(std::string& to, std::uint32_t point) {
    const auto tail = [&](int shift) { to += static_cast<char>(0x80 | (point >> shift & 0x3f)); };
    if (point < 0x80) {
      to += static_cast<char>(point);
    } else if (point < 0x800) {
      to += static_cast<char>(0xc0 | point >> 6);
      tail(0);
    } else if (point < 0x10000) {
      to += static_cast<char>(0xe0 | point >> 12);
      tail(6), tail(0);
    } else {
      to += static_cast<char>(0xf0 | point >> 18);
      tail(12), tail(6), tail(0);
    }
  }

  static bool is_of_literal(char c) noexcept {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '+' || c == '.' || c == 'E';
  }

  static bool is_number(std::string_view word) noexcept {
    const auto digits = [&] {
      std::size_t count = 0;
      while (count < word.size() && word[count] >= '0' && word[count] <= '9') ++count;
      word.remove_prefix(count);
      return count;
    };
    const auto takes = [&](std::string_view any) {
      const bool found = !word.empty() && any.find(word.front()) != any.npos;
      if (found) word.remove_prefix(1);
      return found;
    };
    takes("-");
    const bool is_zero = !word.empty() && word.front() == '0';
    const std::size_t count = digits();
    if (count == 0 || (is_zero && count > 1)) return false;
    if (takes(".") && digits() == 0) return false;
    if (takes("eE")) {
      takes("+-");
      if (digits() == 0) return false;
    }
    return word.empty();
  }

  const std::string_view text_;
  std::size_t at_ = 0;     ///< bytes read
  std::size_t value_ = 0;  ///< where the last value begins
  int depth_ = 0;
  std::string problem_;
};

}  // namespace detail
HOCKET_END_NAMESPACE
