// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Data sets as Megatron writes them: NAME.bin has the tokens of all sequences, and NAME.idx says where each begins.
/// The index, in which no number is aligned:
///
///     offset 0   9 bytes  "MMIDIDX", 0, 0
///            9   u64      version: 1
///            17  u8       type of the tokens: 1 u8, 2 i8, 3 i16, 4 i32, 5 i64, 6 f64, 7 f32, 8 u16
///            18  u64      number of sequences
///            26  u64      number of document entries: one more than documents
///            34  i32      tokens of each sequence
///                i64      offset of each sequence in NAME.bin
///                i64      first sequence of each document, and the number of sequences
///                i8       mode of each sequence, only if there are several kinds
///
/// The header is checked when the files are opened, and each entry when it is used, so that opening costs the same for
/// any size.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/text.hpp>
#include <hocket/data/input.hpp>
#include <hocket/data/share.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace data {

/// An index and its tokens in memory, which must outlive the object.
class indexed_sequences {
 public:
  using batch_type = std::vector<std::vector<std::uint32_t>>;  ///< one element for each sequence

  /// Raises `corrupted` if the header or the length of the index is wrong.
  indexed_sequences(detail::named_bytes index, detail::named_bytes tokens)
      : index_(std::move(index)), tokens_(std::move(tokens)) {
    read_header();
    if (entries_ == 0) return;
    const auto last = entry<std::int64_t>(documents_at_, entries_ - 1);
    if (last < 0 || static_cast<std::uint64_t>(last) != sequences_) {
      detail::refuse(index_, documents_at_ + 8 * (entries_ - 1),
                     hocket::detail::concat({"the last document ends at sequence ", last, " instead of ", sequences_}));
    }
  }

  /// Returns the number of sequences.
  std::uint64_t size() const noexcept { return sequences_; }
  std::uint64_t documents() const noexcept { return entries_ == 0 ? 0 : entries_ - 1; }

  /// Returns the number of tokens of a sequence. Raises `invalid_argument` if there is no such sequence, and
  /// `corrupted` if it is not within the tokens.
  std::uint64_t tokens_of(std::uint64_t sequence) const { return find(sequence).tokens; }

  /// Adds the tokens of a sequence, as 32-bit numbers. Raises as `tokens_of`, and `corrupted` if a token is negative or
  /// does not fit.
  void append(std::uint64_t sequence, batch_type& to) const {
    to.emplace_back();
    append(sequence, to.back());
  }
  void append(std::uint64_t sequence, std::vector<std::uint32_t>& to) const {
    const range found = find(sequence);
    switch (type_) {
      case 1: return append_as<std::uint8_t>(found, to);
      case 2: return append_as<std::int8_t>(found, to);
      case 3: return append_as<std::int16_t>(found, to);
      case 4: return append_as<std::int32_t>(found, to);
      case 5: return append_as<std::int64_t>(found, to);
      default: return append_as<std::uint16_t>(found, to);
    }
  }

  /// Returns the sequences of a document. Raises `invalid_argument` if there is no such document, and `corrupted` if
  /// they are not within the data set.
  positions document(std::uint64_t number) const {
    require_number("document", number, documents());
    const auto begin = entry<std::int64_t>(documents_at_, number), end = entry<std::int64_t>(documents_at_, number + 1);
    if (0 <= begin && begin <= end && static_cast<std::uint64_t>(end) <= sequences_)
      return {static_cast<std::uint64_t>(begin), static_cast<std::uint64_t>(end)};
    detail::refuse(
        index_, documents_at_ + 8 * number,
        hocket::detail::concat({"document ", number, " has sequences ", begin, " to ", end, ", of ", sequences_}));
  }

 private:
  static constexpr std::string_view mark{"MMIDIDX\0\0", 9};
  static constexpr std::uint64_t header_bytes = 34;

  struct range {
    std::uint64_t at;      ///< offset in the file of tokens
    std::uint64_t tokens;  ///< number
  };

  /// Returns the bytes of a token; 0 if the type is unknown or no integer.
  static std::uint64_t bytes_of_type(unsigned type) noexcept {
    constexpr std::uint8_t bytes[] = {0, 1, 1, 2, 4, 8, 0, 0, 2};
    return type < sizeof bytes ? bytes[type] : 0;
  }

  template <class Number>
  Number entry(std::uint64_t table, std::uint64_t number) const noexcept {
    return detail::number_at<Number>(index_.bytes, table + number * sizeof(Number));
  }

  void read_header() {
    const std::uint64_t bytes = index_.bytes.size();
    if (bytes < header_bytes)
      detail::refuse(index_, bytes, "the file ends within the header of 34 bytes of an indexed data set");
    if (detail::text_of(index_.bytes.first(mark.size())) != mark)
      detail::refuse(index_, 0, "it is no index of an indexed data set, which begins with MMIDIDX");
    const auto version = detail::number_at<std::uint64_t>(index_.bytes, 9);
    if (version != 1)
      detail::refuse(index_, 9, hocket::detail::concat({"version ", version, " is unknown: it must be 1"}));
    type_ = detail::number_at<std::uint8_t>(index_.bytes, 17);
    if (bytes_of_type(type_) == 0) {
      detail::refuse(index_, 17,
                     hocket::detail::concat({"type ", type_, " is no type of integers: it must be 1 to 5, or 8"}));
    }
    sequences_ = detail::number_at<std::uint64_t>(index_.bytes, 18);
    entries_ = detail::number_at<std::uint64_t>(index_.bytes, 26);
    const std::uint64_t rest = bytes - header_bytes, most = rest / 12;
    if (sequences_ > most) {
      detail::refuse(index_, 18,
                     hocket::detail::concat(
                         {sequences_, " sequences need more than the ", rest, " bytes that follow the header"}));
    }
    if (entries_ > (rest - 12 * sequences_) / 8) {
      detail::refuse(index_, 26,
                     hocket::detail::concat({entries_, " document entries need more than the ", rest - 12 * sequences_,
                                             " bytes that follow the sequences"}));
    }
    offsets_at_ = header_bytes + 4 * sequences_;
    documents_at_ = offsets_at_ + 8 * sequences_;
    const std::uint64_t end = documents_at_ + 8 * entries_;
    if (end == bytes || bytes - end == sequences_) return;  // the modes are not used
    detail::refuse(
        index_, end,
        hocket::detail::concat({bytes - end, " bytes follow the documents: there must be none, or one for each of ",
                                sequences_, " sequences"}));
  }

  static void require_number(const char* what, std::uint64_t number, std::uint64_t count) {
    if (number < count) return;
    raise(errc::invalid_argument, hocket::detail::concat({what, " ", number, " is asked for, and there are ", count}));
  }

  range find(std::uint64_t sequence) const {
    require_number("sequence", sequence, sequences_);
    const auto tokens = entry<std::int32_t>(header_bytes, sequence);
    if (tokens < 0) {
      detail::refuse(index_, header_bytes + 4 * sequence,
                     hocket::detail::concat({"sequence ", sequence, " has ", tokens, " tokens"}));
    }
    const auto offset = entry<std::int64_t>(offsets_at_, sequence);
    const std::uint64_t bytes = static_cast<std::uint64_t>(tokens) * bytes_of_type(type_), all = tokens_.bytes.size();
    if (offset < 0 || bytes > all || static_cast<std::uint64_t>(offset) > all - bytes) {
      detail::refuse(index_, offsets_at_ + 8 * sequence,
                     hocket::detail::concat({"sequence ", sequence, " has ", bytes, " bytes at ", offset, ", but '",
                                             tokens_.name, "' has ", all}));
    }
    return {static_cast<std::uint64_t>(offset), static_cast<std::uint64_t>(tokens)};
  }

  template <class Token>
  void append_as(const range& found, std::vector<std::uint32_t>& to) const {
    const std::size_t before = to.size();
    to.resize(before + found.tokens);
    bool fit = true;
    for (std::uint64_t i = 0; i < found.tokens; ++i) {
      const auto token = detail::number_at<Token>(tokens_.bytes, found.at + i * sizeof(Token));
      fit &= is_token(token);
      to[before + i] = static_cast<std::uint32_t>(token);
    }
    if (fit) return;
    for (std::uint64_t at = found.at;; at += sizeof(Token)) {
      const auto token = detail::number_at<Token>(tokens_.bytes, at);
      if (!is_token(token))
        detail::refuse(tokens_, at, hocket::detail::concat({"token ", token, " is no number of 32 bits"}));
    }
  }

  template <class Token>
  static bool is_token(Token token) noexcept {
    if constexpr (std::is_signed_v<Token>) {
      return token >= 0 && static_cast<std::uint64_t>(token) <= std::numeric_limits<std::uint32_t>::max();
    } else {
      return true;
    }
  }

  detail::named_bytes index_, tokens_;
  unsigned type_ = 0;
  std::uint64_t sequences_ = 0, entries_ = 0;        ///< numbers of sequences and of document entries
  std::uint64_t offsets_at_ = 0, documents_at_ = 0;  ///< where tables begin
};

/// A data set in two files, mapped into memory. They must not become shorter while the object exists.
class indexed_dataset {
 public:
  using batch_type = indexed_sequences::batch_type;

  /// Opens `name`.idx and `name`.bin. Raises `system` if one of them can't be mapped, and `corrupted` as
  /// `indexed_sequences`.
  explicit indexed_dataset(const std::string& name)
      : indexed_dataset{open_file(name + ".idx"), open_file(name + ".bin")} {}  // braces: in this order
  indexed_dataset(opened_file index, opened_file tokens)
      : index_(std::move(index)), tokens_(std::move(tokens)),
        sequences_(detail::bytes_of(index_), detail::bytes_of(tokens_)) {}

  std::uint64_t size() const noexcept { return sequences_.size(); }
  const indexed_sequences& sequences() const& noexcept { return sequences_; }
  const indexed_sequences& sequences() const&& = delete;
  void append(std::uint64_t sequence, batch_type& to) const { sequences_.append(sequence, to); }

 private:
  opened_file index_, tokens_;
  indexed_sequences sequences_;
};

}  // namespace data
HOCKET_END_NAMESPACE
