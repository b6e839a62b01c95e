// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Joins pieces of text and integers, by one function that is not a template. Chains of `+` and `std::to_string` are
/// expanded by the compiler at each place that reports an error, which costs compile time and machine code in every
/// program.
#pragma once

#include <hocket/core/config.hpp>

#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// A character, a text or an integer, as an argument of `concat`. Texts are referenced, not copied: they must live
/// until the end of the full expression, as temporaries do. Integers of one byte are numbers too; only `char` is a
/// character. For a floating-point number, pass `std::to_string(number)`.
class text_piece {
 public:
  text_piece(std::string_view text) noexcept : data_(text.data()), size_(text.size()) {}
  text_piece(const std::string& text) noexcept : data_(text.data()), size_(text.size()) {}
  /// A null pointer is an empty text.
  text_piece(const char* text) noexcept : text_piece(text != nullptr ? std::string_view(text) : std::string_view()) {}
  text_piece(char letter) noexcept : data_(digits_), size_(1) { digits_[0] = letter; }
  HOCKET_NO_INLINE text_piece(std::int64_t number) noexcept : data_(digits_) {
    size_ = static_cast<std::size_t>(std::to_chars(digits_, digits_ + sizeof(digits_), number).ptr - digits_);
  }
  HOCKET_NO_INLINE text_piece(std::uint64_t number) noexcept : data_(digits_) {
    size_ = static_cast<std::size_t>(std::to_chars(digits_, digits_ + sizeof(digits_), number).ptr - digits_);
  }
  template <std::integral Integer>
  text_piece(Integer number) noexcept
      : text_piece(static_cast<std::conditional_t<std::is_signed_v<Integer>, std::int64_t, std::uint64_t>>(number)) {}
  template <std::floating_point Real>
  text_piece(Real number) = delete;
  text_piece(bool) = delete;

  // Not copyable: for a character or a number, `data_` points into the object.
  text_piece(const text_piece&) = delete;
  text_piece& operator=(const text_piece&) = delete;

  std::string_view view() const noexcept { return {data_, size_}; }

 private:
  const char* data_;
  std::size_t size_;
  char digits_[20];  // the longest are the least signed and the greatest unsigned integer
};

/// Returns the pieces, joined in order.
HOCKET_NO_INLINE inline std::string concat(std::initializer_list<text_piece> pieces) {
  std::size_t size = 0;
  for (const text_piece& each : pieces) size += each.view().size();
  std::string text;
  text.reserve(size);
  for (const text_piece& each : pieces) text += each.view();
  return text;
}

/// Appends the pieces to `to`; no piece may be a view of `to`.
HOCKET_NO_INLINE inline void append(std::string& to, std::initializer_list<text_piece> pieces) {
  for (const text_piece& each : pieces) to += each.view();
}

}  // namespace detail
HOCKET_END_NAMESPACE
