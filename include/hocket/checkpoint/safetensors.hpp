// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The header of a safetensors file, which names its tensors and says where their bytes are. Programs in other
/// languages read and write these files. Format: 8 bytes with the length of the header, the header in JSON, and then
/// the bytes of all tensors, row-major and little-endian, without gaps.
///
///     {"__metadata__":{"step":"200"},"weight":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}}
#pragma once

#include <hocket/checkpoint/element_type.hpp>
#include <hocket/checkpoint/rectangle.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/json_line.hpp>
#include <hocket/core/json_reader.hpp>
#include <hocket/core/text.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace checkpoint {

/// One tensor of a file.
struct stored_tensor {
  std::string name;
  element_type type = element_type::u8;
  sizes_type extents;
  std::uint64_t begin = 0, end = 0;  ///< range of its bytes after the header
};

struct safetensors_header {
  std::vector<stored_tensor> tensors;
  std::vector<std::pair<std::string, std::string>> metadata;
};

/// Bytes before the header, and the most that a header has.
inline constexpr std::size_t safetensors_length_bytes = 8, most_safetensors_header = 100'000'000;

namespace detail {

/// Returns the number of bytes of a tensor; nothing if it does not fit into 64 bits.
inline std::optional<std::uint64_t> bytes_of_tensor(element_type type, const sizes_type& extents) noexcept {
  sizes_type sizes = extents;
  sizes.push_back(bytes_of(type));
  return volume_of(sizes);
}

/// Reads the JSON of a header.
class safetensors_reader {
 public:
  explicit safetensors_reader(std::string_view json) : reader_(json) {}

  /// Returns what is wrong, with the offset in the JSON; empty if nothing is.
  std::string read(std::uint64_t data_bytes, safetensors_header& result) {
    reader_.object([&](const std::string& key) {
      if (key == "__metadata__") {
        reader_.object([&](const std::string& name) { result.metadata.emplace_back(name, reader_.text()); });
      } else {
        result.tensors.push_back(tensor(key));
      }
    });
    reader_.end();
    if (!reader_.ok()) return hocket::detail::concat({reader_.problem(), " at byte ", reader_.offset(), " of it"});
    return gap_in(result.tensors, data_bytes);
  }

 private:
  stored_tensor tensor(const std::string& name) {
    stored_tensor result;
    result.name = name;
    bool has_type = false, has_shape = false, has_offsets = false;
    reader_.object([&](const std::string& key) {
      if (key == "dtype") {
        const auto type = element_type_named(reader_.text());
        if (!type) return reader_.fail("an unknown dtype");
        result.type = *type;
        has_type = true;
      } else if (key == "shape") {
        reader_.array([&] { result.extents.push_back(reader_.unsigned_integer()); });
        has_shape = true;
      } else if (key == "data_offsets") {
        sizes_type offsets;
        reader_.array([&] { offsets.push_back(reader_.unsigned_integer()); });
        if (offsets.size() != 2) return reader_.fail("data_offsets are not two numbers");
        result.begin = offsets[0];
        result.end = offsets[1];
        has_offsets = true;
      } else {
        reader_.fail(hocket::detail::concat({"an unknown key ", hocket::detail::json_text(key)}));
      }
    });
    const std::string of = hocket::detail::json_text(name);
    if (!has_type || !has_shape || !has_offsets)
      reader_.fail(hocket::detail::concat({"tensor ", of, " lacks dtype, shape or data_offsets"}));
    const auto bytes = bytes_of_tensor(result.type, result.extents);
    if (!bytes || result.end < result.begin || result.end - result.begin != *bytes)
      reader_.fail(hocket::detail::concat({"the data_offsets of tensor ", of, " do not fit its shape and dtype"}));
    return result;
  }

  /// Returns what is wrong with the ranges of the tensors, which must cover all bytes once.
  static std::string gap_in(const std::vector<stored_tensor>& tensors, std::uint64_t data_bytes) {
    std::vector<const stored_tensor*> order;
    for (const stored_tensor& each : tensors) order.push_back(&each);
    std::sort(order.begin(), order.end(),
              [](const auto* a, const auto* b) { return std::pair(a->begin, a->end) < std::pair(b->begin, b->end); });
    std::uint64_t at = 0;
    for (const stored_tensor* const each : order) {
      if (each->begin != at) {
        return hocket::detail::concat({"tensor ", hocket::detail::json_text(each->name), " begins at byte ",
                                       each->begin, " of the data, where byte ", at, " is the first that is not used"});
      }
      at = each->end;
    }
    if (at == data_bytes) return "";
    return hocket::detail::concat({"its tensors have ", at, " bytes, but ", data_bytes, " follow"});
  }

  hocket::detail::json_reader reader_;
};

}  // namespace detail

/// Returns the length of the header in the first bytes of a file of `file_bytes` bytes, or what is wrong in `problem`.
inline std::uint64_t safetensors_header_length(const std::array<std::byte, safetensors_length_bytes>& front,
                                               std::uint64_t file_bytes, std::string& problem) {
  std::uint64_t length = 0;
  for (std::size_t i = front.size(); i-- > 0;) length = length << 8 | std::to_integer<std::uint64_t>(front[i]);
  if (file_bytes < safetensors_length_bytes || length > file_bytes - safetensors_length_bytes) {
    problem =
        hocket::detail::concat({"byte 0: a header of ", length, " bytes does not fit into ", file_bytes, " bytes"});
  } else if (length > most_safetensors_header) {
    problem = hocket::detail::concat(
        {"byte 0: the header has ", length, " bytes, more than the ", most_safetensors_header, " that are allowed"});
  }
  return problem.empty() ? length : 0;
}

/// Reads a header, which `data_bytes` bytes follow. Returns what is wrong; empty if nothing is.
inline std::string read_safetensors_header(std::string_view json, std::uint64_t data_bytes,
                                           safetensors_header& result) {
  if (json.empty() || json.front() != '{') return "byte 8: the header is no JSON object";
  const std::string problem = detail::safetensors_reader(json).read(data_bytes, result);
  return problem.empty() ? "" : "header: " + problem;
}

/// Returns the bytes of a file before those of the tensors; their number is a multiple of `alignment`. Throws nothing
/// but `std::bad_alloc`.
inline std::string encode_safetensors_header(const safetensors_header& header, std::size_t alignment) {
  using hocket::detail::append, hocket::detail::json_text;
  std::string json = "{";
  if (!header.metadata.empty()) {
    const char* separator = "\"__metadata__\":{";
    for (const auto& [key, value] : header.metadata) {
      append(json, {separator, json_text(key), ":", json_text(value)});
      separator = ",";
    }
    json += '}';
  }
  for (const stored_tensor& each : header.tensors) {
    append(json,
           {json.size() > 1 ? "," : "", json_text(each.name), ":{\"dtype\":\"", name_of(each.type), "\",\"shape\":["});
    for (std::size_t d = 0; d < each.extents.size(); ++d) append(json, {d == 0 ? "" : ",", each.extents[d]});
    append(json, {"],\"data_offsets\":[", each.begin, ",", each.end, "]}"});
  }
  json += '}';
  const std::size_t whole = (safetensors_length_bytes + json.size() + alignment - 1) / alignment * alignment;
  json.append(whole - safetensors_length_bytes - json.size(), ' ');
  std::string result;
  for (std::size_t i = 0; i < safetensors_length_bytes; ++i) result += static_cast<char>(json.size() >> (8 * i) & 0xff);
  return result += json;
}

}  // namespace checkpoint
HOCKET_END_NAMESPACE
