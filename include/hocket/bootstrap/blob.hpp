// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Blobs: the bytes that ranks exchange at start-up, and the encoding of integers, texts and lists in them. Integers
/// are little-endian on every machine, so that machines of different byte order can report that to each other.
#pragma once

#include <hocket/core/config.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

HOCKET_BEGIN_NAMESPACE

namespace bootstrap {

using blob = std::vector<std::byte>;
using byte_view = std::span<const std::byte>;

/// Returns a view of the characters of `text` as bytes. `text` must outlive the view.
inline byte_view text_bytes(std::string_view text) noexcept {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

inline blob text_blob(std::string_view text) {
  const byte_view bytes = text_bytes(text);
  return blob(bytes.begin(), bytes.end());
}

inline std::string blob_text(byte_view bytes) {
  return bytes.empty() ? std::string() : std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

namespace detail {

template <std::integral Integer>
void append_integer(blob& out, Integer value) {
  auto rest = static_cast<std::make_unsigned_t<Integer>>(value);
  for (std::size_t i = 0; i < sizeof(Integer); ++i) {
    out.push_back(static_cast<std::byte>(rest & 0xffU));
    rest = static_cast<decltype(rest)>(static_cast<std::uint64_t>(rest) >> 8);
  }
}

inline void append_bytes(blob& out, byte_view bytes) { out.insert(out.end(), bytes.begin(), bytes.end()); }

/// Decodes blobs. Reading more bytes than are left returns 0 or an empty view, and makes `ok()` false from then on.
class blob_reader {
 public:
  explicit blob_reader(byte_view bytes) noexcept : rest_(bytes) {}

  bool ok() const noexcept { return ok_; }
  std::size_t left() const noexcept { return rest_.size(); }

  template <std::integral Integer>
  Integer integer() noexcept {
    const byte_view raw = bytes(sizeof(Integer));
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < raw.size(); ++i) value |= std::to_integer<std::uint64_t>(raw[i]) << (8 * i);
    return static_cast<Integer>(value);
  }

  byte_view bytes(std::uint64_t size) noexcept {
    if (size > rest_.size()) {
      ok_ = false;
      return {};
    }
    const byte_view result = rest_.first(static_cast<std::size_t>(size));
    rest_ = rest_.subspan(static_cast<std::size_t>(size));
    return result;
  }

  std::string rest_as_text() { return blob_text(bytes(rest_.size())); }

 private:
  byte_view rest_;
  bool ok_ = true;
};

/// Returns the concatenation of the blobs, each preceded by its size as a 64-bit integer.
inline blob joined_blobs(const std::vector<blob>& all) {
  std::size_t size = 0;
  for (const blob& each : all) size += sizeof(std::uint64_t) + each.size();
  blob result;
  result.reserve(size);
  for (const blob& each : all) {
    append_integer(result, static_cast<std::uint64_t>(each.size()));
    append_bytes(result, each);
  }
  return result;
}

/// Reads `count` blobs that `joined_blobs` wrote. Returns false unless they are exactly the rest of `reader`.
inline bool read_blobs(blob_reader& reader, int count, std::vector<blob>& all) {
  all.clear();
  for (int i = 0; i < count && reader.ok(); ++i) {
    const byte_view each = reader.bytes(reader.integer<std::uint64_t>());
    all.emplace_back(each.begin(), each.end());
  }
  return reader.ok() && reader.left() == 0;
}

}  // namespace detail

}  // namespace bootstrap

HOCKET_END_NAMESPACE
