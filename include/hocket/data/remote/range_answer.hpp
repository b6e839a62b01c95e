// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Whether the answer to a request for a range may be used. It may only if the server states that its bytes are the
/// range that was asked for, of the version that was asked for. All that the server says is untrusted.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/text.hpp>
#include <hocket/core/utf8.hpp>
#include <hocket/data/remote/http_fields.hpp>
#include <hocket/data/remote/source.hpp>

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

HOCKET_BEGIN_NAMESPACE
namespace data::detail {

/// A request for bytes of a file.
struct range_request {
  const remote_file* version = nullptr;  ///< the version that must be read; null for whatever is current
  std::uint64_t first = 0;               ///< first and last byte
  std::uint64_t last = 0;
  bool is_head = false;    ///< is for the fields of the file alone, without bytes
  bool is_signed = false;  ///< has a signature, and follows no redirection
};

/// The answer, without the bytes of the range.
struct range_answer {
  int status = 0;
  answer_fields fields;
  std::string document;  ///< beginning of the body, unless it is the range
};

/// What follows from an answer, or from its absence.
struct attempt_result {
  failure cause;           ///< no failure if the answer may be used
  bool may_retry = false;  ///< whether another attempt may have another result
};

inline attempt_result refused(errc code, std::initializer_list<hocket::detail::text_piece> reason) {
  return {make_failure(code, hocket::detail::concat(reason)), false};
}

/// Describes a version for errors.
inline std::string version_text(std::string_view version, std::optional<std::uint64_t> bytes) {
  std::string text = version.empty() ? "a version without ETag and Last-Modified"
                                     : hocket::detail::concat({"version ", hocket::detail::to_utf8(version)});
  if (bytes) hocket::detail::append(text, {" of ", *bytes, " bytes"});
  return text;
}

inline attempt_result changed(const remote_file& wanted, std::string_view version, std::optional<std::uint64_t> bytes) {
  return refused(errc::corrupted, {"the file has changed: ", version_text(wanted.version, wanted.bytes),
                                   " is being read, and the server now has ", version_text(version, bytes),
                                   ": describe it again, and read all of the new version"});
}

/// Returns what a status means that is neither that of a range nor that of a whole file.
inline attempt_result status_failure(const range_request& asked, const range_answer& got) {
  const std::string_view code = storage_error_code(got.document);
  std::string reason = hocket::detail::concat({"the server answers with status ", got.status});
  if (!code.empty()) hocket::detail::append(reason, {" (", code, ")"});
  if (got.status == 401 || got.status == 403)
    reason += asked.is_signed ? ": check the credentials, their rights and the clock of this host"
                              : ": this file needs credentials that were not given";
  if (got.status == 404) reason += ": there is no such file";
  if (300 <= got.status && got.status < 400 && asked.is_signed)
    reason += ": a signed request follows no redirection: set the region and the endpoint of the bucket";
  return {make_failure(errc::system, std::move(reason)), got.status == 429 || got.status >= 500};
}

/// Checks that an answer is about the version `asked.version`, of a file that has `bytes` bytes.
inline attempt_result check_version(const range_request& asked, const answer_fields& fields,
                                    std::optional<std::uint64_t> bytes) {
  const remote_file& wanted = *asked.version;
  if (bytes && *bytes != wanted.bytes) return changed(wanted, fields.version(), bytes);
  if (wanted.version.empty()) return {};
  const std::string& stated = fields.same_field_as(wanted.version);
  if (stated == wanted.version) return {};
  if (!stated.empty()) return changed(wanted, stated, bytes);
  return refused(errc::corrupted, {"the server stated ", version_text(wanted.version, wanted.bytes),
                                   ", and its answer to a request for a range states no version"});
}

/// Checks an answer with status 200, which is right for HEAD, and for an empty file.
inline attempt_result check_whole_file(const range_request& asked, std::optional<std::uint64_t> bytes) {
  if (asked.is_head && !bytes) return refused(errc::corrupted, {"the server does not state the length of the file"});
  if (asked.is_head || (asked.version == nullptr && bytes == 0)) return {};
  return refused(errc::system, {"the server answers with the whole file instead of the bytes ", asked.first, " to ",
                                asked.last, ": use a server that serves ranges"});
}

/// Checks an answer with status 206.
inline attempt_result check_range(const range_request& asked, const answer_fields& fields) {
  if (!fields.range || !fields.range->is_satisfied || !fields.range->total)
    return refused(errc::corrupted, {"the server answers with a range, and does not state which, or the length of the "
                                     "file: the field Content-Range is incomplete"});
  if (fields.range->first != asked.first || fields.range->last != asked.last)
    return refused(errc::corrupted, {"the bytes ", asked.first, " to ", asked.last,
                                     " are asked for, and the server answers with the bytes ", fields.range->first,
                                     " to ", fields.range->last});
  const std::uint64_t count = asked.last - asked.first + 1;
  if (fields.length && *fields.length > count)
    return refused(errc::corrupted, {"the server answers with ", *fields.length, " bytes, and its range has ", count});
  return {};
}

/// Checks an answer whose header is complete. One that may be used has status 206, and its body is the range; if no
/// version was asked for, it may also be the answer to HEAD, or state that the file is empty.
inline attempt_result check_answer(const range_request& asked, const range_answer& got) {
  const answer_fields& fields = got.fields;
  const bool has_range_status = got.status == 206 || got.status == 416;
  if (!has_range_status && got.status != 200) return status_failure(asked, got);
  if (!fields.problem().empty()) return refused(errc::corrupted, {fields.problem()});
  if (!fields.coding.empty() && got.status != 416) {
    return refused(errc::system,
                   {"the server sends the file with the content coding '", hocket::detail::to_utf8(fields.coding),
                    "', and parts of that can't be decoded: store and send the file without a coding"});
  }
  auto total = fields.length;
  if (has_range_status) total = fields.range ? fields.range->total : std::nullopt;
  // An answer with status 416 has no bytes, and need not state the version.
  if (asked.version != nullptr && (got.status != 416 || (total && *total != asked.version->bytes))) {
    if (attempt_result found = check_version(asked, fields, total); found.cause) return found;
  }
  if (got.status == 200) return check_whole_file(asked, total);
  if (got.status == 206) return check_range(asked, fields);
  return asked.version == nullptr && total == 0 ? attempt_result() : status_failure(asked, got);
}

}  // namespace data::detail
HOCKET_END_NAMESPACE
