// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// What a cache of remote files reads from its folder: records of partial downloads, turns of readers, and names.
#include "fuzz.hpp"

#include <hocket/data/cache/names.hpp>
#include <hocket/data/cache/partial_record.hpp>
#include <hocket/data/cache/reader_positions.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hocket::data;
  using fuzz::require;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::string name = cached_name({std::string(text), size, "1"});
  require(is_cached_name(name), "a name in the folder is recognized");
  require(name.find('/') == name.npos && name.size() < 128, "a name in the folder is a short file name");

  partial_record record;
  if (read_partial_record(text, record).empty()) {
    require(record.bytes <= most_file_bytes, "a length is bounded");
    partial_record again;
    require(read_partial_record(encode_partial_record(record), again).empty(), "an encoded record is read");
    require(again == record, "a record is read as it was encoded");
  }
  std::uint64_t turn = 0;
  if (detail::read_turn(text, turn).empty()) {
    std::uint64_t again = 0;
    require(detail::read_turn(detail::encode_turn(turn), again).empty(), "an encoded turn is read");
    require(again == turn, "a turn is read as it was encoded");
  }
  return 0;
}
