// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The fields of an HTTP answer that reading a range depends on, and names in object storage. All of them come from
/// outside: numbers are checked for overflow, and fields that contradict themselves are reported.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/text.hpp>
#include <hocket/core/utf8.hpp>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

HOCKET_BEGIN_NAMESPACE
namespace data {
namespace detail {

/// Returns the number that `digits` are; none if there are other characters, or if it exceeds 64 bits.
inline std::optional<std::uint64_t> decimal_number(std::string_view digits) noexcept {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (digits.empty() || error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

/// Returns `text` without spaces, tabs and line breaks at both ends.
constexpr std::string_view trimmed(std::string_view text) noexcept {
  constexpr std::string_view blanks = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(blanks);
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(blanks) - begin + 1);
}

/// Whether two names are equal except for the case of ASCII letters.
constexpr bool equal_names(std::string_view a, std::string_view b) noexcept {
  const auto lower = [](char c) { return 'A' <= c && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](char x, char y) { return lower(x) == lower(y); });
}

/// Whether each character is a visible one of ASCII, or `also`: nothing else may get into a request.
constexpr bool is_visible(std::string_view text, char also = '!') noexcept {
  return std::all_of(text.begin(), text.end(), [=](char c) { return ('!' <= c && c <= '~') || c == also; });
}

/// The value of Content-Range: "bytes 0-9/20", or "bytes */20" if the range is not in the file.
struct content_range {
  bool is_satisfied = false;
  std::uint64_t first = 0;             ///< first and last byte; 0 unless `is_satisfied`
  std::uint64_t last = 0;              ///< at least `first`
  std::optional<std::uint64_t> total;  ///< length of the file, above `last`; none for "*"
};

/// Returns none if the value is malformed or contradicts itself.
inline std::optional<content_range> parse_content_range(std::string_view value) noexcept {
  constexpr std::string_view unit = "bytes ";
  if (value.size() < unit.size() || !equal_names(value.substr(0, unit.size()), unit)) return std::nullopt;
  value = trimmed(value.substr(unit.size()));
  const std::size_t slash = value.find('/');
  if (slash == value.npos) return std::nullopt;
  const std::string_view range = value.substr(0, slash);
  const std::string_view total = value.substr(slash + 1);
  content_range result;
  if (total != "*") {
    result.total = decimal_number(total);
    if (!result.total) return std::nullopt;
  }
  if (range == "*") return result.total ? std::optional(result) : std::nullopt;
  const std::size_t dash = range.find('-');
  if (dash == range.npos) return std::nullopt;
  const auto first = decimal_number(range.substr(0, dash));
  const auto last = decimal_number(range.substr(dash + 1));
  if (!first || !last || *first > *last || (result.total && *last >= *result.total)) return std::nullopt;
  result.is_satisfied = true;
  result.first = *first;
  result.last = *last;
  return result;
}

/// Returns `value` as an ETag: a text in quotes, with "W/" before it if it is weak. None if it is malformed.
constexpr std::optional<std::string_view> parse_etag(std::string_view value) noexcept {
  const std::string_view quoted = value.substr(value.starts_with("W/") ? 2 : 0);
  if (quoted.size() < 2 || !quoted.starts_with('"') || !quoted.ends_with('"')) return std::nullopt;
  const std::string_view inside = quoted.substr(1, quoted.size() - 2);
  if (!is_visible(inside) || inside.find('"') != inside.npos) return std::nullopt;
  return value;
}

/// Returns a checksum in base64, as object storage states it; none if it is malformed, or is that of a list of parts.
constexpr std::optional<std::uint32_t> parse_crc32c(std::string_view value) noexcept {
  constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  if (value.size() != 8 || !value.ends_with("==")) return std::nullopt;  // 4 bytes
  std::uint64_t bits = 0;
  for (const char each : value.substr(0, 6)) {
    const std::size_t digit = digits.find(each);
    if (digit == digits.npos) return std::nullopt;
    bits = bits << 6U | digit;
  }
  return static_cast<std::uint32_t>(bits >> 4U);
}

/// Whether `version` is an ETag that is equal only for files with equal bytes.
constexpr bool is_strong_etag(std::string_view version) noexcept { return version.starts_with('"'); }

/// Whether `version` is an ETag, and not a date.
constexpr bool is_etag(std::string_view version) noexcept { return version.find('"') != version.npos; }

/// The fields of one answer, collected line by line. Its size is bounded: longer lines are not accepted.
class answer_fields {
 public:
  static constexpr std::size_t longest_version = 1024;

  /// Adds a line of the header. A status line begins a new answer, as after a redirection.
  void add(std::string_view line) {
    if (line.starts_with("HTTP/")) *this = answer_fields();
    const std::size_t colon = line.find(':');
    if (colon == line.npos) return;
    const std::string_view name = line.substr(0, colon);
    const std::string_view value = trimmed(line.substr(colon + 1));
    if (equal_names(name, "Content-Range")) {
      const auto parsed = parse_content_range(value);
      note(parsed.has_value() && !range, "Content-Range");
      range = parsed;
    } else if (equal_names(name, "Content-Length")) {
      const auto parsed = decimal_number(value);
      note(parsed.has_value() && (!length || *length == *parsed), "Content-Length");
      length = parsed;
    } else if (equal_names(name, "ETag")) {
      const auto parsed = parse_etag(value);
      note(parsed.has_value() && value.size() <= longest_version && (etag.empty() || etag == value), "ETag");
      if (problem_.empty()) etag = value;
    } else if (equal_names(name, "Last-Modified")) {
      note(is_visible(value, ' ') && value.size() <= longest_version && !is_etag(value) &&
               (last_modified.empty() || last_modified == value),
           "Last-Modified");
      if (problem_.empty()) last_modified = value;
    } else if (equal_names(name, "x-amz-checksum-crc32c")) {
      crc32c = parse_crc32c(value);
    } else if (equal_names(name, "x-goog-hash") && value.find("crc32c=") != value.npos) {
      const std::string_view sum = value.substr(value.find("crc32c=") + 7);
      crc32c = parse_crc32c(sum.substr(0, sum.find(',')));
    } else if (equal_names(name, "Content-Encoding")) {
      if (coding.empty() && !is_uncoded(value)) coding = value.substr(0, longest_coding);
    } else if (equal_names(name, "Retry-After")) {
      retry_after = value.substr(0, 64);
    }
  }

  /// What is wrong with the fields; empty if nothing is.
  const std::string& problem() const noexcept { return problem_; }

  /// What identifies the version of the file; empty if the server states neither ETag nor Last-Modified.
  const std::string& version() const noexcept { return etag.empty() ? last_modified : etag; }

  /// Returns the same field of this answer that `version` is: ETag or Last-Modified.
  const std::string& same_field_as(std::string_view version) const noexcept {
    return is_etag(version) ? etag : last_modified;
  }

  std::optional<content_range> range;
  std::optional<std::uint64_t> length;
  std::string etag;
  std::string last_modified;
  std::string retry_after;              ///< seconds or a date
  std::string coding;                   ///< by which the bytes differ from those of the file, such as "gzip"
  std::optional<std::uint32_t> crc32c;  ///< of the whole file

 private:
  static constexpr std::size_t longest_coding = 64;

  /// Whether a value of Content-Encoding leaves the bytes as they are: "aws-chunked" is the form of an upload, which some
  /// object storage states afterwards, too.
  static constexpr bool is_uncoded(std::string_view value) noexcept {
    return value.empty() || equal_names(value, "identity") || equal_names(value, "aws-chunked");
  }

  void note(bool is_valid, std::string_view field) {
    if (!is_valid && problem_.empty())
      problem_ = hocket::detail::concat({"the field ", field, " is malformed, or occurs twice with different values"});
  }

  std::string problem_;
};

/// Returns the code that an error document of object storage has, such as "NoSuchKey"; empty if there is none. The rest
/// of such a document may quote parts of a signature, and is never shown.
constexpr std::string_view storage_error_code(std::string_view document) noexcept {
  constexpr std::string_view open = "<Code>";
  const std::size_t begin = document.find(open);
  if (begin == document.npos) return {};
  const std::string_view rest = document.substr(begin + open.size());
  const std::string_view code = rest.substr(0, rest.find('<'));
  const bool is_word = std::all_of(code.begin(), code.end(), [](char c) {
    return ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z') || ('0' <= c && c <= '9');
  });
  return is_word && code.size() <= 64 && code.size() < rest.size() ? code : std::string_view();
}

/// Returns a URL as errors show it: without user name and password, and without its query, which has the signature of a
/// presigned URL.
inline std::string shown_url(std::string_view url) {
  const std::size_t query = url.find('?');
  std::string_view shown = url.substr(0, query);
  std::string_view scheme;
  const std::size_t host = shown.find("//");
  if (host != shown.npos && !shown.starts_with("s3:")) {
    const std::size_t at = shown.substr(0, shown.find('/', host + 2)).rfind('@');
    if (at != shown.npos && at > host) {
      scheme = shown.substr(0, host + 2);
      shown.remove_prefix(at);
    }
  }
  return hocket::detail::concat(
      {scheme, scheme.empty() ? "" : "...", hocket::detail::to_utf8(shown), query == url.npos ? "" : "?..."});
}

/// A bucket and a key of object storage.
struct storage_name {
  std::string_view bucket;
  std::string_view key;  ///< any bytes, not percent-encoded
};

/// Splits "s3://BUCKET/KEY"; none if the bucket's name is not valid, or a part is missing.
constexpr std::optional<storage_name> parse_storage_name(std::string_view name) noexcept {
  constexpr std::string_view scheme = "s3://";
  if (!name.starts_with(scheme)) return std::nullopt;
  name.remove_prefix(scheme.size());
  const std::size_t slash = name.find('/');
  if (slash == name.npos) return std::nullopt;
  const storage_name result{name.substr(0, slash), name.substr(slash + 1)};
  const bool is_valid = std::all_of(result.bucket.begin(), result.bucket.end(), [](char c) {
    return ('a' <= c && c <= 'z') || ('0' <= c && c <= '9') || c == '.' || c == '-';
  });
  if (!is_valid || result.bucket.size() < 3 || result.bucket.size() > 63 || result.bucket.front() == '.') return {};
  if (result.key.empty() || result.key.size() > 1024) return std::nullopt;
  return result;
}

/// Returns a key as a path of a URL: each byte percent-encoded except letters, digits and "-._~/", as signatures need
/// it.
inline std::string encoded_path(std::string_view key) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  std::string result;
  for (const char c : key) {
    const auto byte = static_cast<unsigned char>(c);
    const bool is_plain = ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z') || ('0' <= c && c <= '9') ||
                          std::string_view("-._~/").find(c) != std::string_view::npos;
    if (is_plain) result += c;
    else hocket::detail::append(result, {'%', digits[byte >> 4U], digits[byte & 15U]});
  }
  return result;
}

/// Returns the URL of an object. Amazon's servers, used if `endpoint` is empty, have a host for each bucket; but their
/// certificates do not cover names with dots.
inline std::string storage_url(std::string_view endpoint, std::string_view region, const storage_name& name) {
  const std::string path = encoded_path(name.key);
  while (endpoint.ends_with('/')) endpoint.remove_suffix(1);
  if (!endpoint.empty()) return hocket::detail::concat({endpoint, "/", name.bucket, "/", path});
  const std::string amazon = hocket::detail::concat({"s3.", region, ".amazonaws.com/"});
  if (name.bucket.find('.') != name.bucket.npos)
    return hocket::detail::concat({"https://", amazon, name.bucket, "/", path});
  return hocket::detail::concat({"https://", name.bucket, ".", amazon, path});
}

}  // namespace detail
}  // namespace data
HOCKET_END_NAMESPACE
