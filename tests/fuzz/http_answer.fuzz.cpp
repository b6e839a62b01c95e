// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Headers of HTTP answers, error documents of object storage, and names of remote files.
#include "fuzz.hpp"

#include <hocket/core/utf8.hpp>
#include <hocket/data/remote/http_fields.hpp>
#include <hocket/data/remote/range_answer.hpp>
#include <hocket/data/remote/source.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace {

using namespace hocket::data::detail;
using fuzz::require;
using hocket::data::remote_file;

/// Reads the lines of a header, and what follows the empty line.
range_answer answer_of(std::string_view text) {
  range_answer result;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (line.empty() || line == "\r") break;
    result.fields.add(line);
    if (line.starts_with("HTTP/")) {
      const auto status = decimal_number(line.substr(std::min(line.find(' '), line.size() - 1) + 1).substr(0, 3));
      result.status = static_cast<int>(status.value_or(0));
    }
  }
  result.document = text;
  return result;
}

void check_fields(const answer_fields& fields) {
  if (fields.range && fields.range->is_satisfied) {
    require(fields.range->first <= fields.range->last, "a range has a byte");
    require(!fields.range->total || fields.range->last < *fields.range->total, "a range is within the file");
  }
  if (fields.range && !fields.range->is_satisfied) require(fields.range->total.has_value(), "the length is stated");
  require(fields.version().size() <= answer_fields::longest_version, "versions are bounded");
  require(is_visible(fields.version(), ' '), "a version may be sent in a field");
  require(fields.retry_after.size() <= 64 && fields.coding.size() <= 64, "fields are bounded");
}

void check_result(const range_request& asked, const range_answer& got) {
  const attempt_result found = check_answer(asked, got);
  require(hocket::detail::to_utf8(found.cause.reason) == found.cause.reason, "an error is valid UTF-8");
  require(found.cause.reason.size() < 4096, "an error is bounded");
  require(!found.may_retry || got.status == 429 || got.status >= 500, "only these are repeated");
  if (found.cause) return;
  require(got.fields.problem().empty(), "fields that contradict themselves are not used");
  require(got.status == 416 || got.fields.coding.empty(), "bytes of another coding are not used");
  if (got.status != 206) {
    require(asked.version == nullptr, "only a range may be used as one");
    return;
  }
  require(got.fields.range && got.fields.range->is_satisfied, "a range is stated");
  require(got.fields.range->first == asked.first && got.fields.range->last == asked.last, "it is the one asked for");
  require(got.fields.range->total.has_value(), "the length of the file is stated");
  if (asked.version == nullptr) return;
  require(*got.fields.range->total == asked.version->bytes, "the file has the length of the version");
  require(asked.version->version.empty() || got.fields.same_field_as(asked.version->version) == asked.version->version,
          "the version is the one asked for");
}

void check_names(std::string_view text) {
  const std::string shown = shown_url(text);
  const std::size_t query = shown.find('?');
  require(query == shown.npos || shown.substr(query) == "?...", "a query is not shown");
  const std::string_view code = storage_error_code(text);
  require(code.size() <= 64 && is_visible(code), "a code is a short word");
  if (const auto name = parse_storage_name(text)) {
    require(!name->key.empty() && is_visible(encoded_path(name->key)), "a path may be sent");
    require(name->bucket.find_first_of("/@:?#") == name->bucket.npos, "a bucket is a part of a host's name");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::text_of(std::as_bytes(std::span(data, size)));
  const range_answer got = answer_of(text);
  check_fields(got.fields);
  check_names(text);
  check_names(got.document);
  for (const std::string_view version : {"", "\"one\"", "W/\"one\"", "Mon, 01 Jan 2024 00:00:00 GMT"}) {
    const remote_file file{"http://host/file", 20000, std::string(version), {}};
    check_result({&file, 1000, 5999, false, false}, got);
  }
  check_result({nullptr, 0, 0, false, false}, got);
  check_result({nullptr, 0, 0, true, true}, got);
  return 0;
}
