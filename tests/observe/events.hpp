// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Reads files of events by the definition of their format, without code of the library.
#pragma once

#include "support/catch.hpp"
#include "support/scratch.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace observe_test {

/// A message of protocol buffers: by field, the numbers (bits, if they are reals) and the texts, in their order.
struct message {
  std::map<unsigned, std::vector<std::uint64_t>> numbers;
  std::map<unsigned, std::vector<std::string>> texts;

  message at(unsigned field, std::size_t i = 0) const;
  std::string text(unsigned field) const { return texts.contains(field) ? texts.at(field).at(0) : ""; }
  double real(unsigned field) const { return std::bit_cast<double>(numbers.at(field).at(0)); }
  float real32(unsigned field) const {
    return std::bit_cast<float>(static_cast<std::uint32_t>(numbers.at(field).at(0)));
  }
  std::vector<double> reals(unsigned field) const {
    std::vector<double> result;
    const std::string packed = text(field);
    for (std::size_t i = 0; i + 8 <= packed.size(); i += 8) {
      std::uint64_t bits = 0;
      for (std::size_t b = 8; b-- > 0;) bits = bits << 8 | static_cast<unsigned char>(packed[i + b]);
      result.push_back(std::bit_cast<double>(bits));
    }
    return result;
  }
};

inline std::uint64_t little_endian(std::string_view bytes, std::size_t at, std::size_t count) {
  REQUIRE(at + count <= bytes.size());
  std::uint64_t result = 0;
  for (std::size_t i = count; i-- > 0;) result = result << 8 | static_cast<unsigned char>(bytes[at + i]);
  return result;
}

inline message decode(std::string_view bytes) {
  message result;
  std::size_t at = 0;
  const auto varint = [&] {
    std::uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      REQUIRE((at < bytes.size() && shift < 64));
      const auto byte = static_cast<unsigned char>(bytes[at++]);
      value |= std::uint64_t{byte & 0x7fU} << shift;
      if (byte < 0x80) return value;
    }
  };
  while (at < bytes.size()) {
    const std::uint64_t key = varint();
    const auto field = static_cast<unsigned>(key >> 3);
    switch (key & 7) {
      case 0: result.numbers[field].push_back(varint()); break;
      case 1: result.numbers[field].push_back(little_endian(bytes, at, 8)), at += 8; break;
      case 5: result.numbers[field].push_back(little_endian(bytes, at, 4)), at += 4; break;
      case 2: {
        const std::uint64_t size = varint();
        REQUIRE(size <= bytes.size() - at);
        result.texts[field].emplace_back(bytes.substr(at, size));
        at += size;
        break;
      }
      default: FAIL("wire type " << (key & 7));
    }
  }
  return result;
}

inline message message::at(unsigned field, std::size_t i) const { return decode(texts.at(field).at(i)); }

/// The checksum of a record, bit by bit.
inline std::uint32_t checksum_of(std::string_view bytes) {
  std::uint32_t sum = 0xffffffff;
  for (const char each : bytes) {
    sum ^= static_cast<unsigned char>(each);
    for (int bit = 0; bit < 8; ++bit) sum = sum >> 1 ^ (sum % 2 == 1 ? 0x82f63b78 : 0);
  }
  sum = ~sum;
  return (sum >> 15 | sum << 17) + 0xa282ead8;
}

/// Returns the events of a file, whose checksums are checked.
inline std::vector<message> events_in(const std::string& path) {
  std::vector<message> result;
  const std::string file = hocket_test::read_file(path);
  const std::string_view bytes = file;
  for (std::size_t at = 0; at < bytes.size();) {
    const std::uint64_t length = little_endian(bytes, at, 8);
    CHECK(little_endian(bytes, at + 8, 4) == checksum_of(bytes.substr(at, 8)));
    REQUIRE(length <= bytes.size() - at - 16);
    const std::string_view event = bytes.substr(at + 12, length);
    CHECK(little_endian(bytes, at + 12 + length, 4) == checksum_of(event));
    result.push_back(decode(event));
    at += length + 16;
  }
  return result;
}

}  // namespace observe_test
