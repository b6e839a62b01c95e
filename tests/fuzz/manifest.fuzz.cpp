// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Manifests of checkpoints, whose checksum is added here: a hostile one has the right one. And the names of their folders.
#include "fuzz.hpp"

#include <hocket/checkpoint/folder.hpp>
#include <hocket/checkpoint/manifest.hpp>
#include <hocket/checkpoint/shard_reader.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

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

/// Plans how two ranks read a checkpoint whose parts are each element once: one all of it, and one a half of each tensor.
void plan_read(const manifest& found) {
  if (!problem_with_parts(found).empty()) return;
  std::vector<std::vector<state_part>> of_host(2);
  std::uint64_t wanted = 0, planned = 0;
  for (const tensor_description& each : found.tensors) {
    const rectangle whole = whole_of(each.extents);
    rectangle half = whole;
    if (!half.size.empty()) half.size[0] /= 2;
    wanted += each.bytes_in(whole) + each.bytes_in(half);
    of_host[0].push_back({each.name, each.type, each.extents, whole});
    of_host[1].push_back({each.name, each.type, each.extents, half});
  }
  for (const auto& of_rank : detail::plan_reads(found, of_host)) {
    for (const detail::reading& each : of_rank) {
      for (const detail::needed_part& part : each.parts) {
        for (const detail::need& region : part.needs) planned += part.tensor->bytes_in(region.region);
      }
    }
  }
  require(planned == wanted, "each element that is wanted is read once");
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
  plan_read(found);
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
