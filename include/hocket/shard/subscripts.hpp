// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Subscripts that relate dimensions of operands and result, in Einstein's notation: "mk,kn->mn" is a matrix product,
/// "bh,h->bh" adds a vector to every row. A letter that the result lacks is reduced. A dimension with a capital letter
/// must be whole on each rank, as for a softmax: "bH->bH".
#pragma once

#include <hocket/core/config.hpp>

#include <array>
#include <cstddef>
#include <string_view>

HOCKET_BEGIN_NAMESPACE

namespace detail {

/// Returns the position of `wanted` in `text`, or npos. With checks of undefined behaviour, std::string_view's search
/// is not a constant expression in g++ 12.
constexpr std::size_t position_in(std::string_view text, char wanted) noexcept {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == wanted) return i;
  }
  return std::string_view::npos;
}

}  // namespace detail

/// Subscripts as a template argument; at most 63 characters.
struct subscripts {
  char text[64]{};  ///< the subscripts, ended by a zero

  /// From a literal.
  template <std::size_t Size>
  consteval subscripts(const char (&literal)[Size]) {  // NOLINT: implicit, so that a literal is enough
    static_assert(Size <= 64, "subscripts have at most 63 characters");
    for (std::size_t i = 0; i < Size && i < 63; ++i) text[i] = literal[i];
  }

  constexpr std::string_view view() const noexcept { return text; }  ///< the subscripts as text

  /// Returns the number of operands.
  constexpr std::size_t operands() const noexcept {
    std::size_t count = 1;
    for (const char each : inputs()) count += each == ',' ? 1U : 0U;
    return count;
  }

  /// Returns the letters of operand `index`.
  constexpr std::string_view operand(std::size_t index) const noexcept {
    std::string_view rest = inputs();
    for (; index > 0; --index) rest.remove_prefix(detail::position_in(rest, ',') + 1);
    return rest.substr(0, detail::position_in(rest, ','));
  }

  /// Returns the letters of the result.
  constexpr std::string_view result() const noexcept {
    const std::size_t at = arrow();
    return at == std::string_view::npos ? std::string_view() : view().substr(at + 2);
  }

  /// Returns whether there are letters, commas and one arrow; no letter twice in an operand; no new one in the result.
  constexpr bool well_formed() const noexcept {
    if (arrow() == std::string_view::npos) return false;
    for (std::size_t i = 0; i < operands(); ++i) {
      if (!distinct_letters(operand(i))) return false;
    }
    if (!distinct_letters(result())) return false;
    for (const char each : result()) {
      if (detail::position_in(inputs(), each) == std::string_view::npos) return false;
    }
    return true;
  }

  friend constexpr bool operator==(const subscripts&, const subscripts&) = default;

 private:
  constexpr std::string_view inputs() const noexcept { return view().substr(0, arrow()); }

  constexpr std::size_t arrow() const noexcept {
    const std::size_t at = detail::position_in(view(), '-');
    return at != std::string_view::npos && text[at + 1] == '>' ? at : std::string_view::npos;
  }

  static constexpr bool distinct_letters(std::string_view word) noexcept {
    for (std::size_t i = 0; i < word.size(); ++i) {
      const bool letter = (word[i] >= 'a' && word[i] <= 'z') || (word[i] >= 'A' && word[i] <= 'Z');
      if (!letter || detail::position_in(word.substr(0, i), word[i]) != std::string_view::npos) return false;
    }
    return true;
  }
};

HOCKET_END_NAMESPACE
