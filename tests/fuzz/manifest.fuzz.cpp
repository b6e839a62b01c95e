// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Manifests of checkpoints, whose checksum is added here: a hostile one has the right one. And the names of their folders.
#include "fuzz.hpp"

#include <hocket/checkpoint/folder.hpp>
#include <hocket/checkpoint/manifest.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace {

using namespace hocket::checkpoint;
using fuzz::require;

std::string with_checksum(std::string_view text) {
  const std::size_t end = std::min(text.rfind(detail::checksum_key), text.size());
  std::string result(text.substr(0, end));
  const std::uint32_t sum = hocket::crc32c().add(std::as_bytes(std::span(result))).value();
  hocket::detail::append(result, {detail::checksum_key, sum, "}\n"});
  return result;
}

void read_text(const std::string& text) {
  manifest found;
  if (!read_manifest(text, found).empty()) return;
  for (const tensor_description& tensor : found.tensors) {
    for (const stored_part& part : tensor.parts) {
      const shard_file& file = found.shards.at(part.shard);
      require(includes(whole_of(tensor.extents), part.where), "a part is within its tensor");
      require(part.at + tensor.bytes_in(part.where) <= file.bytes, "a part is within its file");
    }
  }
  const std::string encoded = encode_manifest(found);
  manifest again;
  require(read_manifest(encoded, again).empty(), "an encoded manifest is read");
  require(encode_manifest(again) == encoded, "a manifest is read as it was encoded");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  read_text(text);
  read_text(with_checksum(text));
  if (const auto at = position_named(text)) require(name_of(*at) == text, "a name is that of its position");
  return 0;
}
