// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The manifest of a checkpoint: which tensors it has, and which part of them is where in which file. A folder is a
/// checkpoint only if it has a manifest, which is written last.
///
///     {"format":"hocket checkpoint","version":1,"epoch":0,"step":200,"attempt":1,
///      "metadata":{"seed":"7"},
///      "shards":[{"file":"shard-0-of-2.safetensors","bytes":8192,"blocks_at":8100}, ...],
///      "tensors":[{"name":"weight","dtype":"F32","shape":[2,3],
///                  "parts":[{"shard":0,"begin":[0,0],"size":[2,3],"at":4096,"crc32c":123,"first_block":0}, ...]}, ...],
///      "crc32c":456}
///
/// `at` and `blocks_at` are offsets in the file. From `blocks_at` on are the CRC-32C of all blocks of each part, as
/// 32-bit integers; so a reader can verify some blocks of a part alone. Blocks end at multiples of `block_bytes` in the
/// file, so that it can also read them alone past the page cache.
#pragma once

#include <hocket/checkpoint/cover.hpp>
#include <hocket/checkpoint/element_type.hpp>
#include <hocket/checkpoint/rectangle.hpp>
#include <hocket/checkpoint/safetensors.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/crc32c.hpp>
#include <hocket/core/json_line.hpp>
#include <hocket/core/json_reader.hpp>
#include <hocket/core/text.hpp>

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace checkpoint {

/// The bytes of a stored part between two multiples of this offset in the file are a block, with a checksum of its own.
inline constexpr std::uint64_t block_bytes = 4096;

/// Most bytes of a part. A reader must verify and read a part's checksums, 4 bytes for each block, to use one block of
/// it.
inline constexpr std::uint64_t most_part_bytes = std::uint64_t{16} << 20;

/// Returns the number of blocks of a part that begins at offset `at` of a file: its first and its last one may be
/// shorter.
constexpr std::uint64_t blocks_of(std::uint64_t at, std::uint64_t bytes) noexcept {
  const std::uint64_t rest = at % block_bytes + bytes % block_bytes;
  return bytes == 0 ? 0 : bytes / block_bytes + rest / block_bytes + (rest % block_bytes != 0 ? 1 : 0);
}

/// A point in the training. A later epoch is later, whatever the step; `attempt` distinguishes checkpoints of the same
/// step, which a run may save again after it went back.
struct position {
  std::uint64_t epoch = 0;
  std::uint64_t step = 0;
  std::uint64_t attempt = 0;

  auto operator<=>(const position&) const = default;
};

struct shard_file {
  std::string file;             ///< name in the folder of the checkpoint
  std::uint64_t bytes = 0;      ///< length of the file
  std::uint64_t blocks_at = 0;  ///< offset of the checksums of its blocks
};

/// Part of a tensor that is contiguous in a file.
struct stored_part {
  std::size_t shard = 0;          ///< index of the file
  rectangle where;                ///< elements of the tensor
  std::uint64_t at = 0;           ///< offset in the file
  std::uint32_t crc32c = 0;       ///< of its bytes
  std::uint64_t first_block = 0;  ///< index of its first checksum in the file
};

struct tensor_description {
  std::string name;
  element_type type = element_type::u8;
  sizes_type extents;
  std::vector<stored_part> parts;

  std::uint64_t bytes_in(const rectangle& where) const noexcept { return where.volume() * bytes_of(type); }
};

struct manifest {
  position at;
  std::map<std::string, std::string> metadata;
  std::vector<shard_file> shards;
  std::vector<tensor_description> tensors;
};

/// Finds tensors of a manifest by their names. Refers to the manifest. Cost: O(n log n) for n tensors, and O(log n) for
/// each call.
class tensor_index {
 public:
  explicit tensor_index(const manifest& of) {
    for (const tensor_description& each : of.tensors) sorted_.push_back(&each);
    std::sort(sorted_.begin(), sorted_.end(), [](const auto* a, const auto* b) { return a->name < b->name; });
  }

  /// Returns null if there is no tensor with this name.
  const tensor_description* find(std::string_view name) const noexcept {
    const auto found = std::partition_point(sorted_.begin(), sorted_.end(),
                                            [&](const tensor_description* each) { return each->name < name; });
    return found == sorted_.end() || (*found)->name != name ? nullptr : *found;
  }
  /// Returns a tensor whose name another one also has; null if there is none.
  const tensor_description* find_twice() const noexcept {
    const auto found = std::adjacent_find(sorted_.begin(), sorted_.end(),
                                          [](const auto* a, const auto* b) { return a->name == b->name; });
    return found == sorted_.end() ? nullptr : *found;
  }

 private:
  std::vector<const tensor_description*> sorted_;
};

/// Adds tensors to a manifest, such that parts with one name are those of one tensor, in whatever order they come.
/// Refers to the manifest, to which nothing else may add meanwhile. Cost: O(log n) for each call with n tensors.
class manifest_builder {
 public:
  explicit manifest_builder(manifest& to) : to_(to) {
    for (std::size_t i = 0; i < to.tensors.size(); ++i) indices_.emplace(to.tensors[i].name, i);
  }

  /// Returns the tensor with this name, which is added without parts if there is none.
  tensor_description& tensor(const std::string& name, element_type type, const sizes_type& extents) {
    const auto [found, is_new] = indices_.try_emplace(name, to_.tensors.size());
    if (is_new) to_.tensors.push_back({name, type, extents, {}});
    return to_.tensors[found->second];
  }

 private:
  manifest& to_;
  std::map<std::string, std::size_t> indices_;
};

/// Returns which tensor's parts are not each of its elements once; empty if there is none.
inline std::string problem_with_parts(const manifest& of) {
  using hocket::detail::concat;
  for (const tensor_description& tensor : of.tensors) {
    std::vector<const rectangle*> rectangles;
    for (const stored_part& part : tensor.parts) rectangles.push_back(&part.where);
    const cover found = cover_of(rectangles);
    if (found.overlap) {
      return concat({"parts ", rectangles[found.overlap->first]->text(), " and ",
                     rectangles[found.overlap->second]->text(), " of tensor '", tensor.name,
                     "' have elements in common"});
    }
    const std::uint64_t all = volume_of(tensor.extents).value_or(0);
    if (found.elements != all) {
      return concat({"the parts of tensor '", tensor.name, "' have ", found.elements, " elements instead of ", all});
    }
  }
  return {};
}

namespace detail {

inline constexpr std::string_view manifest_format = "hocket checkpoint";
inline constexpr std::uint64_t manifest_version = 1;
inline constexpr std::string_view checksum_key = ",\n\"crc32c\":";

inline void append_sizes(std::string& to, const char* key, const sizes_type& sizes) {
  using hocket::detail::append;
  append(to, {"\"", key, "\":["});
  for (std::size_t d = 0; d < sizes.size(); ++d) append(to, {d == 0 ? "" : ",", sizes[d]});
  to += ']';
}

inline void append_tensor(std::string& to, const tensor_description& tensor) {
  using hocket::detail::append, hocket::detail::json_text;
  append(to, {"{\"name\":", json_text(tensor.name), ",\"dtype\":\"", name_of(tensor.type), "\","});
  append_sizes(to, "shape", tensor.extents);
  to += ",\"parts\":[";
  for (std::size_t i = 0; i < tensor.parts.size(); ++i) {
    const stored_part& part = tensor.parts[i];
    append(to, {i == 0 ? "" : ",", "{\"shard\":", part.shard, ","});
    append_sizes(to, "begin", part.where.begin);
    to += ',';
    append_sizes(to, "size", part.where.size);
    append(to, {",\"at\":", part.at, ",\"crc32c\":", part.crc32c, ",\"first_block\":", part.first_block, "}"});
  }
  to += "]}";
}

/// Reads the JSON of a manifest, and checks that each name is that of one tensor, and each part within its tensor and
/// its file.
class manifest_reader {
 public:
  explicit manifest_reader(std::string_view json) : reader_(json) {}

  /// Returns what is wrong, with the offset; empty if nothing is.
  std::string read(manifest& result) {
    std::string format;
    std::uint64_t version = 0;
    reader_.object([&](const std::string& key) {
      if (key == "format") format = reader_.text();
      else if (key == "version") version = reader_.unsigned_integer();
      else if (key == "epoch") result.at.epoch = reader_.unsigned_integer();
      else if (key == "step") result.at.step = reader_.unsigned_integer();
      else if (key == "attempt") result.at.attempt = reader_.unsigned_integer();
      else if (key == "metadata") read_metadata(result);
      else if (key == "shards") reader_.array([&] { result.shards.push_back(shard()); });
      else if (key == "tensors") reader_.array([&] { result.tensors.push_back(tensor(result.shards)); });
      else reader_.skip();
    });
    reader_.end();
    if (!reader_.ok()) return hocket::detail::concat({"byte ", reader_.offset(), ": ", reader_.problem()});
    if (format != manifest_format) return "it is no manifest of a hocket checkpoint";
    if (version == manifest_version) return problem_with_names(result);
    return hocket::detail::concat(
        {"it has version ", version, " of the format, and this program reads version ", manifest_version});
  }

 private:
  static std::string problem_with_names(const manifest& of) {
    const tensor_description* const twice = tensor_index(of).find_twice();
    return twice == nullptr ? "" : "it has two tensors " + hocket::detail::json_text(twice->name);
  }

  void read_metadata(manifest& result) {
    reader_.object([&](const std::string& key) { result.metadata[key] = reader_.text(); });
  }

  shard_file shard() {
    shard_file result;
    reader_.object([&](const std::string& key) {
      if (key == "file") result.file = reader_.text();
      else if (key == "bytes") result.bytes = reader_.unsigned_integer();
      else if (key == "blocks_at") result.blocks_at = reader_.unsigned_integer();
      else reader_.skip();
    });
    if (result.file.empty() || result.file.find('/') != result.file.npos)
      reader_.fail("a shard has no name of a file in the folder");
    if (result.blocks_at > result.bytes) reader_.fail("blocks_at is beyond the end of the file");
    return result;
  }

  sizes_type sizes() {
    sizes_type result;
    reader_.array([&] { result.push_back(reader_.unsigned_integer()); });
    return result;
  }

  tensor_description tensor(const std::vector<shard_file>& shards) {
    tensor_description result;
    reader_.object([&](const std::string& key) {
      if (key == "name") result.name = reader_.text();
      else if (key == "dtype") result.type = type();
      else if (key == "shape") result.extents = sizes();
      else if (key == "parts") reader_.array([&] { result.parts.push_back(part()); });
      else reader_.skip();
    });
    for (const stored_part& each : result.parts) {  // now, because shape and dtype may follow the parts
      if (!is_within(each, result, shards))
        reader_.fail(hocket::detail::concat({"a part of tensor ", hocket::detail::json_text(result.name),
                                             " is not within the tensor and the file that it names"}));
      else if (result.bytes_in(each.where) > most_part_bytes)
        reader_.fail(hocket::detail::concat({"a part of tensor ", hocket::detail::json_text(result.name), " has ",
                                             result.bytes_in(each.where), " bytes, more than the ", most_part_bytes,
                                             " that a part may have"}));
    }
    return result;
  }

  element_type type() {
    const auto found = element_type_named(reader_.text());
    if (!found) reader_.fail("an unknown dtype");
    return found.value_or(element_type::u8);
  }

  stored_part part() {
    stored_part result;
    reader_.object([&](const std::string& key) {
      if (key == "shard") result.shard = reader_.unsigned_integer();
      else if (key == "begin") result.where.begin = sizes();
      else if (key == "size") result.where.size = sizes();
      else if (key == "at") result.at = reader_.unsigned_integer();
      else if (key == "crc32c") result.crc32c = static_cast<std::uint32_t>(reader_.unsigned_integer(UINT32_MAX));
      else if (key == "first_block") result.first_block = reader_.unsigned_integer();
      else reader_.skip();
    });
    return result;
  }

  static bool is_within(const stored_part& part, const tensor_description& of, const std::vector<shard_file>& shards) {
    const auto dimensions = of.extents.size();
    if (part.where.begin.size() != dimensions || part.where.size.size() != dimensions) return false;
    for (std::size_t d = 0; d < dimensions; ++d) {
      if (part.where.size[d] > of.extents[d] || part.where.begin[d] > of.extents[d] - part.where.size[d]) return false;
    }
    const auto bytes = bytes_of_tensor(of.type, part.where.size);
    if (!bytes || !bytes_of_tensor(of.type, of.extents) || part.shard >= shards.size()) return false;
    const shard_file& file = shards[part.shard];
    const std::uint64_t checksums = (file.bytes - file.blocks_at) / sizeof(std::uint32_t);
    return *bytes <= file.bytes && part.at <= file.bytes - *bytes && blocks_of(part.at, *bytes) <= checksums &&
           part.first_block <= checksums - blocks_of(part.at, *bytes);
  }

  hocket::detail::json_reader reader_;
};

}  // namespace detail

/// Returns the text of the manifest.
inline std::string encode_manifest(const manifest& what) {
  using hocket::detail::append, hocket::detail::json_text;
  std::string text;
  append(text, {"{\"format\":", json_text(detail::manifest_format), ",\"version\":", detail::manifest_version,
                ",\"epoch\":", what.at.epoch, ",\"step\":", what.at.step, ",\"attempt\":", what.at.attempt});
  text += ",\n\"metadata\":{";
  const char* separator = "";
  for (const auto& [key, value] : what.metadata) {
    append(text, {separator, json_text(key), ":", json_text(value)});
    separator = ",";
  }
  text += "},\n\"shards\":[";
  separator = "\n";
  for (const shard_file& each : what.shards) {
    append(text, {separator, "{\"file\":", json_text(each.file), ",\"bytes\":", each.bytes,
                  ",\"blocks_at\":", each.blocks_at, "}"});
    separator = ",\n";
  }
  text += "],\n\"tensors\":[";
  separator = "\n";
  for (const tensor_description& each : what.tensors) {
    text += separator;
    detail::append_tensor(text, each);
    separator = ",\n";
  }
  text += ']';
  const std::uint32_t checksum = crc32c().add(std::as_bytes(std::span(text))).value();
  append(text, {detail::checksum_key, checksum, "}\n"});
  return text;
}

/// Reads the text of a manifest. Returns what is wrong, with the offset in bytes; empty if nothing is.
inline std::string read_manifest(std::string_view text, manifest& result) {
  const std::size_t end = text.rfind(detail::checksum_key);
  std::uint64_t stated = 0;
  if (end != text.npos) {
    hocket::detail::json_reader last(text.substr(end + detail::checksum_key.size()));
    stated = last.unsigned_integer(UINT32_MAX);
    if (!last.ok() || text.substr(end + detail::checksum_key.size() + last.offset()) != "}\n") stated = UINT64_MAX;
  }
  if (end == text.npos || stated == UINT64_MAX)
    return hocket::detail::concat(
        {"it ends after ", text.size(), " bytes without its checksum: it is truncated or damaged"});
  if (crc32c().add(std::as_bytes(std::span(text.substr(0, end)))).value() != stated)
    return hocket::detail::concat({"a byte before byte ", end, " is damaged: the checksum is wrong"});
  return detail::manifest_reader(text).read(result);
}

}  // namespace checkpoint
HOCKET_END_NAMESPACE
