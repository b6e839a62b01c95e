// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The index of a tar file of samples, by the convention of WebDataset: consecutive files whose names are equal up to
/// the first dot after the last slash are one sample; the rest of the name is the kind of the file. `hocket-data index`
/// writes it, so that samples are read by their offset, in any order:
///
///     {"format":"hocket tar index","version":1,"bytes":10240,"samples":[
///     {"key":"cats/0001","files":[{"kind":"jpg","at":512,"bytes":1234},{"kind":"cls","at":2560,"bytes":1}]},
///     ...]}
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/json_line.hpp>
#include <hocket/core/json_reader.hpp>
#include <hocket/core/text.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace data {

/// A file in a tar file.
struct indexed_file {
  std::string kind;         ///< "jpg" of "cats/0001.jpg"
  std::uint64_t at = 0;     ///< offset of its bytes in the tar file
  std::uint64_t bytes = 0;  ///< their number
};

struct indexed_sample {
  std::string key;  ///< "cats/0001"
  std::vector<indexed_file> files;
};

struct tar_index {
  std::uint64_t bytes = 0;  ///< length of the tar file
  std::vector<indexed_sample> samples;
};

/// Returns the key of a name of a file, and its kind.
inline std::pair<std::string_view, std::string_view> split_name(std::string_view name) noexcept {
  const std::size_t slash = name.rfind('/');
  const std::size_t dot = name.find('.', slash == name.npos ? 0 : slash + 1);
  if (dot == name.npos) return {name, {}};
  return {name.substr(0, dot), name.substr(dot + 1)};
}

namespace detail {

inline constexpr std::string_view tar_index_format = "hocket tar index";
inline constexpr std::uint64_t tar_index_version = 1;

/// Reads the JSON of an index, and checks that each file is within the tar file.
class tar_index_reader {
 public:
  explicit tar_index_reader(std::string_view json) : reader_(json) {}

  /// Returns what is wrong, with the offset; empty if nothing is.
  std::string read(tar_index& result) {
    std::string format;
    std::uint64_t version = 0;
    reader_.object([&](const std::string& key) {
      if (key == "format") format = reader_.text();
      else if (key == "version") version = reader_.unsigned_integer();
      else if (key == "bytes") result.bytes = reader_.unsigned_integer();
      else if (key == "samples") reader_.array([&] { result.samples.push_back(sample(result.bytes)); });
      else reader_.skip();
    });
    reader_.end();
    if (!reader_.ok()) return hocket::detail::concat({"byte ", reader_.offset(), ": ", reader_.problem()});
    if (format != tar_index_format) return "it is no index that hocket-data has written";
    if (version == tar_index_version) return {};
    return hocket::detail::concat(
        {"it has version ", version, " of the format, and this program reads version ", tar_index_version});
  }

 private:
  indexed_sample sample(std::uint64_t bytes_of_tar) {
    indexed_sample result;
    reader_.object([&](const std::string& key) {
      if (key == "key") result.key = reader_.text();
      else if (key == "files") reader_.array([&] { result.files.push_back(file(bytes_of_tar)); });
      else reader_.skip();
    });
    return result;
  }

  indexed_file file(std::uint64_t bytes_of_tar) {
    indexed_file result;
    reader_.object([&](const std::string& key) {
      if (key == "kind") result.kind = reader_.text();
      else if (key == "at") result.at = reader_.unsigned_integer();
      else if (key == "bytes") result.bytes = reader_.unsigned_integer();
      else reader_.skip();
    });
    if (result.bytes > bytes_of_tar || result.at > bytes_of_tar - result.bytes)
      reader_.fail(hocket::detail::concat({"a file is not within the ", bytes_of_tar, " bytes of the tar file"}));
    return result;
  }

  hocket::detail::json_reader reader_;
};

}  // namespace detail

/// Returns the text of an index.
inline std::string encode_tar_index(const tar_index& what) {
  using hocket::detail::append, hocket::detail::json_text;
  std::string text;
  append(text, {"{\"format\":", json_text(detail::tar_index_format), ",\"version\":", detail::tar_index_version,
                ",\"bytes\":", what.bytes, ",\"samples\":["});
  const char* separator = "\n";
  for (const indexed_sample& sample : what.samples) {
    append(text, {separator, "{\"key\":", json_text(sample.key), ",\"files\":["});
    separator = "";
    for (const indexed_file& file : sample.files) {
      append(text,
             {separator, "{\"kind\":", json_text(file.kind), ",\"at\":", file.at, ",\"bytes\":", file.bytes, "}"});
      separator = ",";
    }
    text += "]}";
    separator = ",\n";
  }
  return text += "]}\n";
}

/// Reads the text of an index. Returns what is wrong, with the offset in bytes; empty if nothing is.
inline std::string read_tar_index(std::string_view text, tar_index& result) {
  return detail::tar_index_reader(text).read(result);
}

}  // namespace data
HOCKET_END_NAMESPACE
