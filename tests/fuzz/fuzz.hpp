// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Shared by the fuzz targets: readers of an input, and checks of laws.
#pragma once

#include <hocket/core/error.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>

namespace fuzz {

/// Aborts the program if `holds` is false; fuzzer and replay report this as a finding.
inline void require(bool holds, const char* law) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", law);
  std::abort();
}

/// Reads an input from its beginning. After its end, bytes are zero and pieces are empty.
class input {
 public:
  input(const std::uint8_t* data, std::size_t size) : rest_(reinterpret_cast<const std::byte*>(data), size) {}

  bool empty() const noexcept { return rest_.empty(); }

  unsigned byte() noexcept {
    const auto taken = piece(1);
    return taken.empty() ? 0U : std::to_integer<unsigned>(taken[0]);
  }

  std::span<const std::byte> piece(std::size_t size) noexcept {
    const auto result = rest_.first(std::min(size, rest_.size()));
    rest_ = rest_.subspan(result.size());
    return result;
  }

  std::span<const std::byte> rest() noexcept { return piece(rest_.size()); }

 private:
  std::span<const std::byte> rest_;
};

inline std::string_view text_of(std::span<const std::byte> bytes) noexcept {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

inline bool is_known(int code) noexcept {
  return code >= static_cast<int>(hocket::errc::timeout) && code <= static_cast<int>(hocket::errc::system);
}

/// Runs `body`, which may throw only `hocket::error`, with a valid code and a peer among `ranks`.
template <class Body>
void may_raise(int ranks, const Body& body) {
  try {
    body();
  } catch (const hocket::error& cause) {
    require(cause.code().category() == hocket::error_category() && is_known(cause.code().value()),
            "an error has a code of hocket::errc");
    require(cause.context().peer >= -1 && cause.context().peer < ranks, "the peer of an error is a rank or -1");
  }
}

}  // namespace fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
