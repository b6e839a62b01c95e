// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The value that rank 0 publishes for all ranks in a store that has only `set` and `get`: written by another process,
/// or left behind by another job. The first byte is the number of ranks, the rest is the value.
#include "fuzz.hpp"

#include <hocket/bootstrap/store.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace {

using fuzz::require;
using hocket::bootstrap::blob;
using hocket::bootstrap::byte_view;

/// Contains one key, which can't be changed.
struct store_of_one_key {
  std::string_view key;
  byte_view value;

  void set(std::string_view, byte_view, const hocket::wait_limit&) {}
  blob get(std::string_view wanted, const hocket::wait_limit&) {
    if (wanted != key) hocket::raise(hocket::errc::timeout, "no rank has set the key");
    return blob(value.begin(), value.end());
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::input in(data, size);
  const int ranks = 2 + static_cast<int>(in.byte() % 8);
  store_of_one_key place{"x/all", in.rest()};
  fuzz::may_raise(ranks, [&] {
    const std::vector<blob> all = hocket::bootstrap::exchange(place, "x", 1, ranks, {}, hocket::deadline());
    require(all.size() == static_cast<std::size_t>(ranks), "each rank has a blob");
  });
  // Without the key, the exchange times out and names the missing rank.
  place.key = "x/0";
  fuzz::may_raise(ranks, [&] {
    hocket::bootstrap::exchange(place, "x", 1, ranks, {}, hocket::deadline());
    require(false, "an exchange without rank 0 fails");
  });
  return 0;
}
