// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Files that are an array of tokens, without a header. A sample is a number of consecutive tokens and the token after
/// them: the model sees tokens 0 to n - 1, and predicts 1 to n. So the last token of a sample is the first of the next.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/text.hpp>
#include <hocket/data/input.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace data {

enum class token_type : unsigned char { u16 = 2, u32 = 4 };

constexpr std::uint64_t bytes_of(token_type type) noexcept { return static_cast<std::uint64_t>(type); }

/// An array of tokens in memory, which must outlive the object.
class token_array {
 public:
  token_array() = default;
  /// Raises `corrupted` if the number of bytes is no multiple of that of a token. The address must be aligned for
  /// tokens.
  token_array(detail::named_bytes file, token_type type) : file_(std::move(file)), type_(type) {
    const std::uint64_t bytes = file_.bytes.size(), rest = bytes % bytes_of(type);
    if (rest == 0) return;
    detail::refuse(file_, bytes - rest,
                   hocket::detail::concat({"the file ends within a token of ", bytes_of(type), " bytes"}));
  }

  std::uint64_t size() const noexcept { return file_.bytes.size() / bytes_of(type_); }
  token_type type() const noexcept { return type_; }

  /// Adds tokens `first` to `first + count - 1` to `to`, as 32-bit numbers. Raises `invalid_argument` if there are
  /// fewer.
  void append(std::uint64_t first, std::uint64_t count, std::vector<std::uint32_t>& to) const {
    if (first > size() || count > size() - first) {
      raise(errc::invalid_argument, hocket::detail::concat({"'", file_.name, "' has ", size(), " tokens, and ", count,
                                                            " from number ", first, " on are asked for"}));
    }
    if (type_ == token_type::u16) append_as<std::uint16_t>(first, count, to);
    else append_as<std::uint32_t>(first, count, to);
  }

 private:
  template <class Token>
  void append_as(std::uint64_t first, std::uint64_t count, std::vector<std::uint32_t>& to) const {
    const auto* const begin = reinterpret_cast<const Token*>(file_.bytes.data()) + first;
    to.insert(to.end(), begin, begin + count);
  }

  detail::named_bytes file_;
  token_type type_ = token_type::u16;
};

/// Samples of equal length of an array of tokens; see the top of this file. The array must outlive the object.
class token_samples {
 public:
  using batch_type = std::vector<std::uint32_t>;  ///< `length() + 1` tokens for each sample

  token_samples(const token_array& from, std::uint64_t length) : from_(from), length_(length) {
    if (length == 0) raise(errc::invalid_argument, "a sample must have at least one token");
  }
  token_samples(const token_array&&, std::uint64_t) = delete;

  /// Returns the number of samples. Tokens at the end that are no whole sample are not used.
  std::uint64_t size() const noexcept { return from_.size() == 0 ? 0 : (from_.size() - 1) / length_; }
  std::uint64_t length() const noexcept { return length_; }

  /// Adds the tokens of a sample. Raises `invalid_argument` if there are fewer samples.
  void append(std::uint64_t sample, batch_type& to) const {
    if (sample >= size()) {
      raise(errc::invalid_argument,
            hocket::detail::concat({"sample ", sample, " is asked for, and there are ", size()}));
    }
    from_.append(sample * length_, length_ + 1, to);
  }

 private:
  const token_array& from_;
  std::uint64_t length_;
};

/// A file of tokens, mapped into memory. It must not become shorter while the object exists.
class token_file {
 public:
  /// Raises `system` if the file can't be mapped, and `corrupted` if its length is no multiple of that of a token.
  explicit token_file(const std::string& path, token_type type = token_type::u16) : token_file(open_file(path), type) {}
  explicit token_file(opened_file file, token_type type = token_type::u16)
      : file_(std::move(file)), tokens_(detail::bytes_of(file_), type) {}
  token_file(const token_file&) = delete;
  token_file& operator=(const token_file&) = delete;

  /// Returns the number of tokens.
  std::uint64_t size() const noexcept { return tokens_.size(); }
  const token_array& tokens() const& noexcept { return tokens_; }
  const token_array& tokens() const&& = delete;

  /// Returns the samples of `length` tokens, and one more. They refer to this object.
  token_samples samples(std::uint64_t length) const& { return {tokens_, length}; }
  token_samples samples(std::uint64_t length) const&& = delete;

 private:
  opened_file file_;
  token_array tokens_;
};

}  // namespace data
HOCKET_END_NAMESPACE
