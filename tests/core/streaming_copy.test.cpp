// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Copies past the caches copy what memcpy copies, and nothing else.
#include "support/catch.hpp"

#include <hocket/core/platform/streaming_copy.hpp>

#include <algorithm>
#include <cstddef>
#include <vector>

namespace platform = hocket::platform;

TEST_CASE("a streaming copy writes exactly its destination, at any alignment and length") {
  constexpr std::size_t most = 700, guard = 130;
  std::vector<std::byte> from(most + 64);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(i * 7 + 1);
  for (std::size_t to_offset = 0; to_offset < 65; to_offset += 3) {
    for (std::size_t from_offset = 0; from_offset < 64; from_offset += 7) {
      for (std::size_t bytes = 0; bytes <= most; bytes += 1 + bytes / 9) {
        std::vector<std::byte> to(most + 65 + guard), expected(to.size());
        platform::streaming_copy(to.data() + to_offset, from.data() + from_offset, bytes);
        std::copy_n(from.data() + from_offset, bytes, expected.data() + to_offset);
        REQUIRE(to == expected);
      }
    }
  }
}

TEST_CASE("what exceeds the cache for few ranks does so for many, and so does what is longer") {
  CHECK(!platform::exceeds_cache(0, 1));
  CHECK(platform::last_level_cache_bytes() >= 4096);
  for (std::size_t bytes = 1; bytes < std::size_t{1} << 40; bytes *= 2) {
    for (std::size_t ranks = 1; ranks < 4096; ranks *= 2) {
      if (!platform::exceeds_cache(bytes, ranks)) continue;
      CHECK(platform::exceeds_cache(bytes, 2 * ranks));
      CHECK(platform::exceeds_cache(2 * bytes, ranks));
    }
  }
}
