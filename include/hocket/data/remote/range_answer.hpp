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
struct verdict {
  failure cause;           ///< no failure if the answer may be used
  bool may_retry = false;  ///< whether another attempt may have another result
};

inline verdict refused(errc code, std::initializer_list<hocket::detail::text_piece> reason) {
  return {make_failure(code, hocket::detail::concat(reason)), false};
}

/// Describes a version for errors.
inline std::string version_text(std::string_view version, std::optional<std::uint64_t> bytes) {
  std::string text = version.empty() ? "a version without ETag and Last-Modified"
                                     : hocket::detail::concat({"version ", hocket::detail::to_utf8(version)});
  if (bytes) hocket::detail::append(text, {" of ", *bytes, " bytes"});
  return text;
}

inline verdict changed(const remote_file& wanted, std::string_view version, std::optional<std::uint64_t> bytes) {
  return refused(errc::corrupted, {"the file has changed: ", version_text(wanted.version, wanted.bytes),
                                   " is being read, and the server now has ", version_text(version, bytes),
                                   ": describe it again, and read all of the new version"});
}

/// Returns what a status means that is neither that of a range nor that of a whole file.
inline verdict judge_status(const range_request& asked, const range_answer& got) {
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

/// Judges the status and the fields of the answer to a request for the version `asked.version`.
inline verdict judge_version(const range_request& asked, const answer_fields& fields,
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

/// Judges an answer whose header is complete. An answer that may be used has status 206, and its body is the range; or,
/// if a version was not asked for, the file may also be empty.
inline verdict judge(const range_request& asked, const range_answer& got) {
  const answer_fields& fields = got.fields;
  const bool is_about_file = got.status == 200 || got.status == 206 || got.status == 416;
  if (is_about_file && !fields.problem().empty()) return refused(errc::corrupted, {fields.problem()});
  const auto total = got.status == 200 ? fields.length : fields.range ? fields.range->total : std::nullopt;
  if (got.status == 200 && asked.is_head && total) return {};
  if (is_about_file && got.status != 206 && !asked.version && total == 0) return {};
  if (got.status == 416 && asked.version && total) {
    if (verdict found = judge_version(asked, fields, total); found.cause) return found;
  }
  if (got.status == 200 && asked.is_head)
    return refused(errc::corrupted, {"the server does not state the length of the file"});
  if (got.status == 200) {
    if (asked.version) {
      if (verdict found = judge_version(asked, fields, total); found.cause) return found;
    }
    return refused(errc::system, {"the server answers with the whole file instead of the bytes ", asked.first, " to ",
                                  asked.last, ": use a server that serves ranges"});
  }
  if (got.status != 206) return judge_status(asked, got);
  if (!fields.range || !fields.range->is_satisfied || !total)
    return refused(errc::corrupted, {"the server answers with a range, and does not state which, or the length of the "
                                     "file: the field Content-Range is incomplete"});
  if (asked.version) {
    if (verdict found = judge_version(asked, fields, total); found.cause) return found;
  }
  if (fields.range->first != asked.first || fields.range->last != asked.last)
    return refused(errc::corrupted, {"the bytes ", asked.first, " to ", asked.last,
                                     " are asked for, and the server answers with the bytes ", fields.range->first,
                                     " to ", fields.range->last});
  const std::uint64_t count = asked.last - asked.first + 1;
  if (fields.length && *fields.length > count)
    return refused(errc::corrupted, {"the server answers with ", *fields.length, " bytes, and its range has ", count});
  return {};
}

}  // namespace data::detail
HOCKET_END_NAMESPACE
