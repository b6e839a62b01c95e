// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The checksum of bytes in files.
#include <hocket/core/crc32c.hpp>

#include "support/catch.hpp"

#include <cstddef>
#include <random>
#include <span>
#include <string_view>
#include <vector>

namespace {

std::uint32_t checksum_of(std::span<const std::byte> bytes) { return hocket::crc32c().add(bytes).value(); }

std::vector<std::byte> random_bytes(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::byte> bytes(count);
  for (std::byte& each : bytes) each = static_cast<std::byte>(random());
  return bytes;
}

}  // namespace

TEST_CASE("crc32c gives the published check values") {
  const auto of = [](std::string_view text) { return checksum_of(std::as_bytes(std::span(text))); };
  CHECK(of("") == 0U);
  CHECK(of("123456789") == 0xe3069283U);
  // RFC 3720, B.4
  std::vector<std::byte> bytes(32);
  CHECK(checksum_of(bytes) == 0x8a9136aaU);
  bytes.assign(32, std::byte{0xff});
  CHECK(checksum_of(bytes) == 0x62a8ab43U);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i);
  CHECK(checksum_of(bytes) == 0x46dd794eU);
}

TEST_CASE("crc32c is the same by tables and by the instruction, and for any division of the bytes") {
  const auto bytes = random_bytes(1000, 1);
  for (std::size_t count = 0; count <= 70; ++count) {
    const auto some = std::span(bytes).subspan(3, count);
    CHECK(~hocket::detail::crc32c_by_tables(0xffff'ffffU, some) == checksum_of(some));
  }
  for (std::size_t cut = 0; cut <= bytes.size(); cut += 37) {
    hocket::crc32c parts;
    parts.add(std::span(bytes).first(cut)).add(std::span(bytes).subspan(cut));
    CHECK(parts.value() == checksum_of(bytes));
  }
}

TEST_CASE("the checksum of pieces follows from the checksums of the pieces") {
  for (const std::size_t piece : {1U, 7U, 4096U}) {
    const auto bytes = random_bytes(5 * piece, static_cast<unsigned>(piece));
    const hocket::crc32c_of_pieces all(piece);
    std::uint32_t joined = 0;
    for (std::size_t i = 0; i < 5; ++i)
      joined = all.joined(joined, checksum_of(std::span(bytes).subspan(i * piece, piece)));
    CHECK(joined == checksum_of(bytes));
  }
}
