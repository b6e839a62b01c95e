// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Indices of tar files.
#include "fuzz.hpp"

#include <hocket/data/tar_index.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hocket::data;
  using fuzz::require;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto [key, kind] = split_name(text);
  require(key.size() + kind.size() + (key.size() == text.size() ? 0 : 1) == text.size(), "a name is key, dot and kind");
  tar_index found;
  if (!read_tar_index(text, found).empty()) return 0;
  for (const indexed_sample& sample : found.samples) {
    for (const indexed_file& file : sample.files)
      require(file.bytes <= found.bytes && file.at <= found.bytes - file.bytes, "a file is within the tar file");
  }
  const std::string encoded = encode_tar_index(found);
  tar_index again;
  require(read_tar_index(encoded, again).empty(), "an encoded index is read");
  require(encode_tar_index(again) == encoded, "an index is read as it was encoded");
  return 0;
}
