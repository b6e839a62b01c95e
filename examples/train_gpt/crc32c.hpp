// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Checksums of the example's files and inputs, and their text in files and messages.
#pragma once

#include <hocket/core/crc32c.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>

namespace gpt {

using hocket::crc32c;

inline std::uint32_t crc32c_of(std::span<const std::byte> bytes) noexcept { return crc32c().add(bytes).value(); }

/// Returns "crc32c " and eight hexadecimal digits.
inline std::string crc32c_text(std::uint32_t value) {
  char text[24];
  std::snprintf(text, sizeof text, "crc32c %08x", static_cast<unsigned>(value));
  return text;
}

}  // namespace gpt
