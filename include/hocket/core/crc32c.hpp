// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The checksum CRC-32C (Castagnoli) for bytes in files: it finds every change of up to 32 consecutive bits, and any other
/// damage except with a probability of 2^-32. Programs in other languages have it, too. By the instruction of SSE 4.2
/// where there is one, else eight bytes at a time by tables.
#pragma once

#include <hocket/core/config.hpp>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

HOCKET_BEGIN_NAMESPACE
namespace detail {

inline constexpr std::uint32_t crc32c_polynomial = 0x82f63b78U;  ///< its bits in reverse order: bit 31 is x^0

using crc_tables = std::array<std::array<std::uint32_t, 256>, 8>;

/// Table k has the effect of each byte that is followed by k others.
constexpr crc_tables make_crc_tables() noexcept {
  crc_tables tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t rest = byte;
    for (int bit = 0; bit < 8; ++bit) rest = (rest >> 1) ^ ((rest & 1U) != 0 ? crc32c_polynomial : 0);
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

/// Returns the rest after `rest` and `bytes`.
inline std::uint32_t crc32c_by_tables(std::uint32_t rest, std::span<const std::byte> bytes) noexcept {
  const auto at = [&](std::size_t i) { return std::to_integer<std::uint32_t>(bytes[i]); };
  for (; bytes.size() >= 8; bytes = bytes.subspan(8)) {
    const std::uint32_t low = rest ^ (at(0) | at(1) << 8 | at(2) << 16 | at(3) << 24);
    rest = crc_table[7][low & 0xffU] ^ crc_table[6][low >> 8 & 0xffU] ^ crc_table[5][low >> 16 & 0xffU] ^
           crc_table[4][low >> 24] ^ crc_table[3][at(4)] ^ crc_table[2][at(5)] ^ crc_table[1][at(6)] ^
           crc_table[0][at(7)];
  }
  for (const std::byte each : bytes)
    rest = (rest >> 8) ^ crc_table[0][(rest ^ std::to_integer<std::uint32_t>(each)) & 0xffU];
  return rest;
}

#if defined(__x86_64__)
/// Does the same by the processor's instruction, which needs SSE 4.2.
__attribute__((target("sse4.2"))) inline std::uint32_t crc32c_by_instruction(
    std::uint32_t rest, std::span<const std::byte> bytes) noexcept {
  std::uint64_t wide = rest;
  for (; bytes.size() >= 8; bytes = bytes.subspan(8)) {
    std::uint64_t word;
    std::memcpy(&word, bytes.data(), sizeof word);
    wide = __builtin_ia32_crc32di(wide, word);
  }
  rest = static_cast<std::uint32_t>(wide);
  for (const std::byte each : bytes) rest = __builtin_ia32_crc32qi(rest, std::to_integer<unsigned char>(each));
  return rest;
}
#endif

inline std::uint32_t crc32c_of_rest(std::uint32_t rest, std::span<const std::byte> bytes) noexcept {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("sse4.2")) return crc32c_by_instruction(rest, bytes);
#endif
  return crc32c_by_tables(rest, bytes);
}

/// Multiplies two polynomials modulo that of the checksum.
constexpr std::uint32_t crc32c_product(std::uint32_t a, std::uint32_t b) noexcept {
  std::uint32_t result = 0;
  for (; a != 0; a <<= 1) {
    if ((a >> 31) != 0) result ^= b;
    b = (b >> 1) ^ ((b & 1U) != 0 ? crc32c_polynomial : 0);
  }
  return result;
}

/// Returns x to the power of 8 * `bytes`, modulo the polynomial of the checksum.
constexpr std::uint32_t crc32c_power(std::uint64_t bytes) noexcept {
  std::uint32_t result = std::uint32_t{1} << 31, square = std::uint32_t{1} << 23;
  for (; bytes != 0; bytes >>= 1) {
    if ((bytes & 1U) != 0) result = crc32c_product(result, square);
    square = crc32c_product(square, square);
  }
  return result;
}

}  // namespace detail

/// The checksum of bytes that are added one after the other.
class crc32c {
 public:
  crc32c& add(std::span<const std::byte> bytes) noexcept {
    rest_ = detail::crc32c_of_rest(rest_, bytes);
    return *this;
  }
  std::uint32_t value() const noexcept { return ~rest_; }

 private:
  std::uint32_t rest_ = 0xffff'ffffU;
};

/// Computes the checksum of adjacent pieces of `piece_bytes` bytes from the checksums of the pieces.
class crc32c_of_pieces {
 public:
  constexpr explicit crc32c_of_pieces(std::uint64_t piece_bytes) noexcept : shift_(detail::crc32c_power(piece_bytes)) {}

  /// Returns the checksum of all bytes before a piece, and of the piece.
  constexpr std::uint32_t joined(std::uint32_t before, std::uint32_t piece) const noexcept {
    return detail::crc32c_product(before, shift_) ^ piece;
  }

 private:
  std::uint32_t shift_;
};

HOCKET_END_NAMESPACE
