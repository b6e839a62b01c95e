// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The record beside a partial download: which version of which file it is, so that the download can be continued, and
/// how many bytes are reserved for it. The boot is recorded, too: after a loss of power, a partial file may have its
/// length but not its bytes.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/json_line.hpp>
#include <hocket/core/json_reader.hpp>
#include <hocket/core/text.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

HOCKET_BEGIN_NAMESPACE
namespace data {

struct partial_record {
  std::string name;         ///< of the remote file
  std::uint64_t bytes = 0;  ///< of the whole file
  std::string version;      ///< of the remote file
  std::string boot;         ///< of the host, since which the bytes were written; empty if it is unknown

  bool operator==(const partial_record&) const = default;
};

inline constexpr std::uint64_t most_file_bytes = std::uint64_t{1} << 62;  ///< that a cache accepts

namespace detail {
inline constexpr std::string_view partial_record_format = "hocket partial download";
}

/// Returns the text of a record. Bytes of names that are no UTF-8 are replaced: such a download is not continued.
inline std::string encode_partial_record(const partial_record& what) {
  using hocket::detail::json_text;
  return hocket::detail::concat({"{\"format\":", json_text(detail::partial_record_format),
                                 ",\"name\":", json_text(what.name), ",\"bytes\":", what.bytes,
                                 ",\"version\":", json_text(what.version), ",\"boot\":", json_text(what.boot), "}\n"});
}

/// Reads the text of a record. Returns what is wrong, with the offset in bytes; empty if nothing is.
inline std::string read_partial_record(std::string_view text, partial_record& result) {
  hocket::detail::json_reader reader(text);
  result = {};
  std::string format;
  bool has_bytes = false;
  reader.object([&](const std::string& key) {
    if (key == "format") format = reader.text();
    else if (key == "name") result.name = reader.text();
    else if (key == "version") result.version = reader.text();
    else if (key == "boot") result.boot = reader.text();
    else if (key == "bytes") result.bytes = reader.unsigned_integer(most_file_bytes), has_bytes = true;
    else reader.skip();
  });
  reader.end();
  if (!reader.ok()) return hocket::detail::concat({"byte ", reader.offset(), ": ", reader.problem()});
  if (format != detail::partial_record_format) return "it is no record of a partial download";
  return has_bytes ? "" : "it does not state the length of the file";
}

}  // namespace data
HOCKET_END_NAMESPACE
