// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Explanations in template arguments, which the compiler prints.
///
/// A static_assert in a function's body explains a call that does not compile, but std::is_invocable, a
/// requires-expression or a concept still considers the call valid. They consider a call of a deleted function invalid.
/// The compiler's error shows that function with its template arguments, and one of these is an `explanation`. g++
/// shows its text in the error, clang in the first note, in several lines, and nvcc in the error, as single letters.
#pragma once

#include <hocket/core/config.hpp>

#include <cstddef>
#include <initializer_list>
#include <string_view>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// An error message; empty if there is no error.
struct sentence {
  std::string_view message;

  constexpr sentence() = default;
  constexpr sentence(const char* text) : message(text) {}

  constexpr explicit operator bool() const { return !message.empty(); }
};

/// Returns the first sentence that is not empty.
consteval sentence first_of(std::initializer_list<sentence> all) {
  for (const sentence& each : all) {
    if (each) return each;
  }
  return {};
}

/// Length of the longest string in a template argument that the compiler prints in full. clang truncates longer
/// strings, but prints several strings in full.
#if defined(__clang__)
inline constexpr std::size_t longest_line = 36;
#else
inline constexpr std::size_t longest_line = static_cast<std::size_t>(-1);
#endif

/// Removes the first line from `text` and returns it: as many words as fit into `width` characters.
constexpr std::string_view extract_line(std::string_view& text, std::size_t width) {
  std::size_t end = text.size();
  if (end > width) {
    end = text.rfind(' ', width);
    if (end == text.npos) end = width;
  }
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end);
  if (text.starts_with(' ')) text.remove_prefix(1);
  return line;
}

constexpr std::size_t count_lines(std::string_view text, std::size_t width) {
  std::size_t count = 0;
  for (; !text.empty(); ++count) extract_line(text, width);
  return count;
}

/// A sentence as a template argument, in lines that are padded with spaces.
template <std::size_t Lines, std::size_t Width>
struct explanation {
  char lines[Lines][Width + 1];
};

/// Converts the sentence that a `Find` returns, which must not be empty, to an `explanation`. `Find` must be a lambda
/// without captures, because only its type is used.
template <class Find>
consteval auto make_explanation(Find) {
  constexpr std::string_view message = Find()().message;
  constexpr std::size_t width = message.size() < longest_line ? message.size() : longest_line;
  constexpr std::size_t lines = count_lines(message, width);
  explanation<lines, width> result{};
  std::string_view rest = message;
  for (auto& line : result.lines) {
    const std::string_view text = extract_line(rest, width);
    for (std::size_t i = 0; i < width; ++i) line[i] = i < text.size() ? text[i] : ' ';
  }
  return result;
}

}  // namespace detail
HOCKET_END_NAMESPACE
