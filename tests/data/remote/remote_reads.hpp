// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// What the tests of remote files share: contents, options with short pauses, and reads as texts.
#pragma once

#include <hocket/core/error.hpp>
#include <hocket/data/remote/curl.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <string>

namespace http_test {

inline std::string random_bytes(std::size_t size, unsigned seed) {
  std::minstd_rand random(seed);
  std::string result(size, '\0');
  for (char& each : result) each = static_cast<char>(random() >> 8U);
  return result;
}

/// Options for a server on this host: pauses of milliseconds, and the shortest time in which a transfer may stall.
inline hocket::data::http_options quick_options() {
  hocket::data::http_options result;
  result.timeout = std::chrono::seconds(30);
  result.connect_timeout = std::chrono::seconds(5);
  result.stall_timeout = std::chrono::seconds(1);
  result.attempts = 4;
  result.first_pause = std::chrono::milliseconds(1);
  result.longest_pause = std::chrono::milliseconds(20);
  return result;
}

/// Bytes that were read, or the failure.
struct read_result {
  std::string bytes;
  hocket::failure cause;
};

inline read_result read_bytes(hocket::data::remote_source& from, const hocket::data::remote_file& file,
                              std::uint64_t offset, std::size_t size) {
  read_result result{std::string(size, '?'), {}};
  result.cause = from.read(file, offset, std::as_writable_bytes(std::span(result.bytes)));
  return result;
}

}  // namespace http_test
