// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Arrays that NumPy has saved as .npy, whose samples are the rows: the elements with one index of the first dimension.
/// A file begins with the bytes 0x93 "NUMPY", its version, the length of the header (2 bytes in version 1, 4 in
/// versions 2 and 3), and the header, a literal of Python; then the elements follow:
///
///     {'descr': '<f4', 'fortran_order': False, 'shape': (1000, 28, 28), }
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/text.hpp>
#include <hocket/data/input.hpp>

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace data {

/// What the header of a .npy file states.
struct npy_header {
  char kind = 0;                     ///< 'f' float, 'i' signed, 'u' unsigned, 'b' bool, 'c' complex
  std::uint64_t element_bytes = 0;   ///< of one element
  std::vector<std::uint64_t> shape;  ///< empty for a single number
  std::uint64_t data_at = 0;         ///< offset of the elements in the file

  /// Returns the number of rows, and of the elements of each. A single number is one row.
  std::uint64_t rows() const noexcept { return shape.empty() ? 1 : shape[0]; }
  std::uint64_t row_elements() const noexcept {
    std::uint64_t product = 1;
    for (std::size_t d = 1; d < shape.size(); ++d) product *= shape[d];
    return product;
  }
};

namespace detail {

/// Reads the header of a .npy file. Raises `corrupted` where it is wrong, and `invalid_argument` where it is not
/// supported.
class npy_reader {
 public:
  explicit npy_reader(const named_bytes& file) : file_(file) {}

  npy_header read() {
    const std::string_view all = text_of(file_.bytes);
    if (all.substr(0, mark.size()) != mark || all.size() < 8) refuse(file_, 0, "it is no .npy file");
    const unsigned version = static_cast<unsigned char>(all[6]);
    if (version < 1 || version > 3) {
      refuse(file_, 6, hocket::detail::concat({"version ", version, " of .npy is unknown: it must be 1 to 3"}));
    }
    const std::size_t begin = version == 1 ? 10 : 12;
    if (all.size() < begin) refuse(file_, all.size(), "the file ends before the length of the header");
    const std::uint64_t length =
        version == 1 ? number_at<std::uint16_t>(file_.bytes, 8) : number_at<std::uint32_t>(file_.bytes, 8);
    if (length > all.size() - begin || length > most_header) {
      refuse(file_, 8,
             hocket::detail::concat({"a header of ", length, " bytes is more than the ", all.size() - begin,
                                     " that follow, or more than ", most_header}));
    }
    text_ = all.substr(0, begin + length);
    at_ = begin;
    read_keys();
    result_.data_at = text_.size();
    require_data(all.size() - text_.size());
    require_rows(all.size());
    return std::move(result_);
  }

 private:
  static constexpr std::string_view mark = "\x93NUMPY";
  static constexpr std::uint64_t most_header = std::uint64_t{1} << 20;
  static constexpr std::size_t most_dimensions = 64;  // of NumPy

  [[noreturn]] void fail(std::string_view reason) const { refuse(file_, at_, reason); }
  [[noreturn]] void not_supported(std::string_view reason) const { refuse(file_, at_, reason, errc::invalid_argument); }

  void read_keys() {
    bool has_type = false, has_order = false, has_shape = false;
    require('{');
    while (!accept('}')) {
      const std::string_view key = quoted();
      require(':');
      if (key == "descr") read_type();
      else if (key == "fortran_order") read_order();
      else if (key == "shape") read_shape();
      else fail("the header has an unknown key");
      has_type |= key == "descr";
      has_order |= key == "fortran_order";
      has_shape |= key == "shape";
      if (accept(',')) continue;
      require('}');
      break;
    }
    skip_spaces();
    if (at_ != text_.size()) fail("the header continues after its end");
    if (!has_type || !has_order || !has_shape) fail("the header lacks descr, fortran_order or shape");
    if (is_fortran_ && result_.shape.size() > 1)
      not_supported(
          "the array is in Fortran order, in which rows are not together: save numpy.ascontiguousarray(array)");
  }

  void skip_spaces() noexcept {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) ++at_;
  }
  bool accept(char wanted) noexcept {
    skip_spaces();
    if (at_ == text_.size() || text_[at_] != wanted) return false;
    ++at_;
    return true;
  }
  void require(char wanted) {
    if (!accept(wanted)) fail(hocket::detail::concat({"the header has no '", wanted, "' here"}));
  }

  /// Reads a text in single or double quotes, without escapes.
  std::string_view quoted() {
    const char quote = accept('\'') ? '\'' : '"';
    if (quote == '"') require('"');
    const std::size_t end = text_.find(quote, at_);
    if (end == text_.npos) fail("the header ends within a text");
    const std::string_view result = text_.substr(at_, end - at_);
    at_ = end + 1;
    return result;
  }

  void read_type() {
    skip_spaces();
    if (at_ < text_.size() && text_[at_] == '[') not_supported("elements with fields are not supported");
    const std::string_view type = quoted();
    std::uint64_t bytes = 0;
    const char* const end = type.data() + type.size();
    const bool has_number = type.size() > 2 && std::from_chars(type.data() + 2, end, bytes).ptr == end;
    const char kind = has_number ? type[1] : '\0';
    if (has_number && type[0] == '>' && bytes > 1)
      not_supported("the elements are big-endian: save array.astype(array.dtype.newbyteorder('<'))");
    const bool is_known = std::string_view("<>|=").find(has_number ? type[0] : 'x') != std::string_view::npos;
    const bool has_size = kind == 'b'   ? bytes == 1
                          : kind == 'f' ? bytes == 2 || bytes == 4 || bytes == 8 || bytes == 16
                          : kind == 'c' ? bytes == 8 || bytes == 16 || bytes == 32
                                        : bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8;
    if (!is_known || !has_size || std::string_view("biufc").find(kind) == std::string_view::npos)
      not_supported("the type of the elements is no number of a supported size, such as '<f4'");
    result_.kind = kind;
    result_.element_bytes = bytes;
  }

  void read_order() {
    skip_spaces();
    is_fortran_ = text_.substr(at_, 4) == "True";
    if (!is_fortran_ && text_.substr(at_, 5) != "False") fail("fortran_order is neither True nor False");
    at_ += is_fortran_ ? 4 : 5;
  }

  void read_shape() {
    result_.shape.clear();
    require('(');
    while (!accept(')')) {
      skip_spaces();
      std::uint64_t extent = 0;
      const char* const end = text_.data() + text_.size();
      const auto [after, error] = std::from_chars(text_.data() + at_, end, extent);
      if (error != std::errc()) fail("the shape has something else than numbers below 2^64");
      if (result_.shape.size() == most_dimensions) fail("the shape has more than 64 dimensions");
      at_ = static_cast<std::size_t>(after - text_.data());
      result_.shape.push_back(extent);
      if (accept(',')) continue;
      require(')');
      break;
    }
  }

  /// Checks that the file has the elements, whose number may be too large for 64 bits.
  void require_data(std::uint64_t bytes) const {
    std::uint64_t needed = result_.element_bytes;
    bool fits = true, is_empty = false;
    for (const std::uint64_t extent : result_.shape) {
      is_empty |= extent == 0;
      fits &= extent == 0 || needed <= bytes / extent;
      needed *= extent;
    }
    if (is_empty || (fits && needed <= bytes)) return;
    refuse(file_, text_.size(),
           hocket::detail::concat({"the shape needs more bytes than the ", bytes, " that follow the header"}));
  }

  /// Checks the number of rows without bytes, which nothing in the file bounds: a program that visits each row must
  /// end.
  void require_rows(std::uint64_t bytes) const {
    const std::uint64_t rows = result_.rows();
    if (rows <= bytes || result_.row_elements() != 0) return;
    refuse(file_, text_.size(),
           hocket::detail::concat({"the array has ", rows, " rows without elements, and the file has ", bytes,
                                   " bytes: there may be at most as many of such rows as bytes"}),
           errc::invalid_argument);
  }

  const named_bytes& file_;
  std::string_view text_;
  std::size_t at_ = 0;
  npy_header result_;
  bool is_fortran_ = false;
};

/// The letter that NumPy has for numbers of type `T`; 0 if there is none.
template <class T>
constexpr char npy_kind() noexcept {
  if constexpr (std::is_same_v<T, bool>) return 'b';
  else if constexpr (std::is_floating_point_v<T>) return 'f';
  else if constexpr (std::is_integral_v<T>) return std::is_signed_v<T> ? 'i' : 'u';
  else return 0;
}

}  // namespace detail

/// Returns what the header of a .npy file states. Raises, with file and offset, `corrupted` if it is damaged or states
/// more elements than the file has, and `invalid_argument` if the elements are not supported, or if there are more rows
/// without elements than bytes of the file.
inline npy_header read_npy_header(const detail::named_bytes& file) { return detail::npy_reader(file).read(); }

/// A .npy file, mapped into memory. It must not become shorter while the object exists.
class npy_file {
 public:
  using batch_type = std::vector<std::byte>;  ///< the bytes of the rows

  /// Raises `system` if the file can't be mapped, and as `read_npy_header`.
  explicit npy_file(const std::string& path) : npy_file(open_file(path)) {}
  explicit npy_file(opened_file file)
      : file_(std::move(file)), header_(read_npy_header(detail::bytes_of(file_))),
        row_bytes_(header_.rows() == 0 ? 0 : header_.row_elements() * header_.element_bytes) {}

  const npy_header& header() const& noexcept { return header_; }
  const npy_header& header() const&& = delete;

  /// Returns the number of rows.
  std::uint64_t size() const noexcept { return header_.rows(); }
  std::uint64_t row_bytes() const noexcept { return row_bytes_; }

  /// Returns the bytes of a row. Raises `invalid_argument` if there is no such row.
  std::span<const std::byte> row(std::uint64_t number) const& {
    if (number >= size()) {
      raise(errc::invalid_argument,
            hocket::detail::concat({"row ", number, " of '", file_.name(), "' is asked for, and there are ", size()}));
    }
    return file_.bytes().subspan(header_.data_at + number * row_bytes_, row_bytes_);
  }
  std::span<const std::byte> row(std::uint64_t number) const&& = delete;

  /// Adds the bytes of a row to a batch. Raises as `row`.
  void append(std::uint64_t number, batch_type& to) const {
    const auto bytes = row(number);
    to.insert(to.end(), bytes.begin(), bytes.end());
  }

 private:
  opened_file file_;
  npy_header header_;
  std::uint64_t row_bytes_;
};

/// The rows of a .npy file as numbers of type `T`. The file must outlive the object.
template <class T>
class npy_rows {
 public:
  static_assert(detail::npy_kind<T>() != 0, "hocket: npy_rows needs a type of numbers, such as float");
  using batch_type = std::vector<T>;

  /// Raises `invalid_argument` if the elements have another type.
  explicit npy_rows(const npy_file& from) : from_(from) {
    const npy_header& found = from.header();
    if (found.kind == detail::npy_kind<T>() && found.element_bytes == sizeof(T)) return;
    raise(errc::invalid_argument,
          hocket::detail::concat({"the .npy file has elements of kind '", found.kind, "' with ", found.element_bytes,
                                  " bytes, and the program reads '", detail::npy_kind<T>(), "' with ", sizeof(T)}));
  }
  explicit npy_rows(const npy_file&&) = delete;

  std::uint64_t size() const noexcept { return from_.size(); }

  /// Adds the elements of a row to a batch.
  void append(std::uint64_t number, batch_type& to) const {
    const auto bytes = from_.row(number);
    const std::size_t before = to.size();
    to.resize(before + bytes.size() / sizeof(T));
    if (!bytes.empty()) std::memcpy(to.data() + before, bytes.data(), bytes.size());
  }

 private:
  const npy_file& from_;
};

}  // namespace data
HOCKET_END_NAMESPACE
