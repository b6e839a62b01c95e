// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The checksum CRC-32C (Castagnoli), eight bytes at a time by tables. It finds every change of up to 32 consecutive
/// bits, and any other damage except with a probability of 2^-32.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>

namespace gpt {

namespace detail {

using crc_tables = std::array<std::array<std::uint32_t, 256>, 8>;

/// Table k has the effect of each byte that is followed by k others.
constexpr crc_tables make_crc_tables() noexcept {
  constexpr std::uint32_t polynomial = 0x82f63b78U;  // its bits in reverse order
  crc_tables tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t rest = byte;
    for (int bit = 0; bit < 8; ++bit) rest = (rest >> 1) ^ ((rest & 1U) != 0 ? polynomial : 0);
    tables[0][byte] = rest;
  }
  for (std::size_t k = 1; k < tables.size(); ++k) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t before = tables[k - 1][byte];
      tables[k][byte] = (before >> 8) ^ tables[0][before & 0xffU];
    }
  }
  return tables;
}

inline constexpr crc_tables crc_table = make_crc_tables();

}  // namespace detail

/// The checksum of bytes that are added one after the other.
class crc32c {
 public:
  void add(std::span<const std::byte> bytes) noexcept {
    const auto at = [&](std::size_t i) { return std::to_integer<std::uint32_t>(bytes[i]); };
    for (; bytes.size() >= 8; bytes = bytes.subspan(8)) {
      const std::uint32_t low = rest_ ^ (at(0) | at(1) << 8 | at(2) << 16 | at(3) << 24);
      rest_ = detail::crc_table[7][low & 0xffU] ^ detail::crc_table[6][low >> 8 & 0xffU] ^
              detail::crc_table[5][low >> 16 & 0xffU] ^ detail::crc_table[4][low >> 24] ^ detail::crc_table[3][at(4)] ^
              detail::crc_table[2][at(5)] ^ detail::crc_table[1][at(6)] ^ detail::crc_table[0][at(7)];
    }
    for (const std::byte each : bytes) {
      rest_ = (rest_ >> 8) ^ detail::crc_table[0][(rest_ ^ std::to_integer<std::uint32_t>(each)) & 0xffU];
    }
  }

  std::uint32_t value() const noexcept { return ~rest_; }

 private:
  std::uint32_t rest_ = 0xffffffffU;
};

inline std::uint32_t crc32c_of(std::span<const std::byte> bytes) noexcept {
  crc32c all;
  all.add(bytes);
  return all.value();
}

/// Returns "crc32c " and eight hexadecimal digits.
inline std::string crc32c_text(std::uint32_t value) {
  char text[24];
  std::snprintf(text, sizeof text, "crc32c %08x", static_cast<unsigned>(value));
  return text;
}

}  // namespace gpt
