// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Files of text whose samples are lines, such as JSON Lines.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/text.hpp>
#include <hocket/data/input.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace data {

/// The lines of a text, which must outlive the object. A line ends at "\n" or "\r\n", which are not part of it, or at
/// the end of the text. Stores where each 16th line begins.
class line_index {
 public:
  /// Finds the lines, which reads the whole text.
  explicit line_index(std::string_view text) : text_(text) {
    for (std::size_t at = 0; at < text_.size(); at = end_of_line(at) + 1) {
      if (lines_ % step == 0) begins_.push_back(at);
      ++lines_;
    }
  }
  explicit line_index(std::same_as<std::string> auto&&) = delete;

  std::uint64_t size() const noexcept { return lines_; }

  /// Returns line `number`, which must be less than `size()`.
  std::string_view operator[](std::uint64_t number) const noexcept {
    std::size_t begin = begins_[static_cast<std::size_t>(number / step)];
    for (std::uint64_t i = 0; i < number % step; ++i) begin = end_of_line(begin) + 1;
    std::size_t end = end_of_line(begin);
    if (end < text_.size() && end > begin && text_[end - 1] == '\r') --end;
    return text_.substr(begin, end - begin);
  }

 private:
  static constexpr std::uint64_t step = 16;

  /// Returns where the line ends that begins at `at`.
  std::size_t end_of_line(std::size_t at) const noexcept {
    const void* const found = std::memchr(text_.data() + at, '\n', text_.size() - at);
    return found == nullptr ? text_.size() : static_cast<std::size_t>(static_cast<const char*>(found) - text_.data());
  }

  std::string_view text_;
  std::vector<std::size_t> begins_;
  std::uint64_t lines_ = 0;
};

/// A file of text, mapped into memory. It must not become shorter while the object exists.
class text_lines {
 public:
  using batch_type = std::vector<std::string_view>;  ///< views of the file: valid as long as this object

  /// Reads the whole file, to find its lines. Raises `system` if it can't be mapped.
  explicit text_lines(const std::string& path) : text_lines(open_file(path)) {}
  explicit text_lines(opened_file file) : file_(std::move(file)), lines_(detail::text_of(file_.bytes())) {}

  /// Returns the number of lines.
  std::uint64_t size() const noexcept { return lines_.size(); }

  /// Returns a line. Raises `invalid_argument` if there is no such line.
  std::string_view line(std::uint64_t number) const& {
    if (number < size()) return lines_[number];
    raise(errc::invalid_argument,
          hocket::detail::concat({"line ", number, " of '", file_.name(), "' is asked for, and there are ", size()}));
  }

  std::string_view line(std::uint64_t number) const&& = delete;

  /// Adds a line to a batch. Raises as `line`.
  void append(std::uint64_t number, batch_type& to) const& { to.push_back(line(number)); }
  void append(std::uint64_t number, batch_type& to) const&& = delete;

 private:
  opened_file file_;
  line_index lines_;
};

}  // namespace data
HOCKET_END_NAMESPACE
