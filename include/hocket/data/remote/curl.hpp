// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Reads files by HTTP, HTTPS and from object storage that speaks S3. Needs libcurl 7.88: link `hocket::curl`.
///
/// @code
/// hocket::data::http_source web({.s3 = hocket::data::s3_from_environment()});
/// hocket::data::remote_file file;
/// if (hocket::failure cause = web.describe("s3://bucket/train-0001.tar", file)) ...    // or https://...
/// if (hocket::failure cause = web.read(file, offset, bytes)) ...                       // of this version
/// @endcode
///
/// The server must serve ranges. Every wait is bounded, and so is the memory that an answer can make this program use.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/deadline.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/platform/process.hpp>
#include <hocket/core/text.hpp>
#include <hocket/core/utf8.hpp>
#include <hocket/data/remote/http_fields.hpp>
#include <hocket/data/remote/range_answer.hpp>
#include <hocket/data/remote/request_counts.hpp>
#include <hocket/data/remote/source.hpp>

#include <curl/curl.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#if LIBCURL_VERSION_NUM < 0x075800
#error "hocket::curl needs libcurl 7.88 or newer"
#endif

HOCKET_BEGIN_NAMESPACE
namespace data {

/// How names "s3://BUCKET/KEY" are read. No error and no log contains the credentials.
struct s3_options {
  std::string access_key{};     ///< empty: requests are not signed, as public buckets allow
  std::string secret_key{};     ///< is never sent
  std::string session_token{};  ///< of temporary credentials
  std::string region = "us-east-1";
  std::string endpoint{};  ///< "http://HOST:PORT" of a server that is not Amazon's; it has buckets as folders
};

/// Returns the options in the variables AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_REGION or
/// AWS_DEFAULT_REGION, and AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL. Those that are not set keep their defaults.
///
/// **Errors.** `bad_environment` if only one of the access key and the secret key is set.
inline s3_options s3_from_environment() {
  const auto value_of = [](std::initializer_list<const char*> names, std::string otherwise) -> std::string {
    for (const char* const name : names) {
      const char* const value = std::getenv(name);
      if (value != nullptr && *value != '\0') return value;
    }
    return otherwise;
  };
  s3_options result;
  result.access_key = value_of({"AWS_ACCESS_KEY_ID"}, {});
  result.secret_key = value_of({"AWS_SECRET_ACCESS_KEY"}, {});
  result.session_token = value_of({"AWS_SESSION_TOKEN"}, {});
  result.region = value_of({"AWS_REGION", "AWS_DEFAULT_REGION"}, result.region);
  result.endpoint = value_of({"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"}, {});
  if (result.access_key.empty() != result.secret_key.empty())
    raise(errc::bad_environment, "set both AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or neither");
  return result;
}

/// Limits and retries of a call of `http_source`.
struct http_options {
  std::chrono::nanoseconds timeout = std::chrono::minutes(2);  ///< of the whole call, with all attempts and pauses
  std::chrono::nanoseconds connect_timeout = std::chrono::seconds(10);  ///< of one attempt, until it is connected
  std::uint64_t least_rate = 1024;                                      ///< in bytes per second, above 0
  std::chrono::seconds stall_timeout{15};  ///< an attempt that is slower than `least_rate` for so long has failed
  int attempts = 6;                        ///< requests that are made at most, at least 1
  /// Before the second attempt; it doubles with each further one. Up to half of it is left out at random, so that
  /// ranks that failed together do not try again together.
  std::chrono::nanoseconds first_pause = std::chrono::milliseconds(200);
  std::chrono::nanoseconds longest_pause = std::chrono::seconds(20);  ///< also if the server asks for a longer one
  std::string ca_file{};  ///< certificates of authorities, in PEM format; empty: those of the system
  s3_options s3{};
};

namespace detail {

/// The longest header of an answer, with those of redirections, in bytes.
inline constexpr std::size_t longest_header = std::size_t{64} << 10U;
/// The longest part that is received of a body that is not the range, and the longest part of it that is kept.
inline constexpr std::size_t longest_document = std::size_t{64} << 10U;
inline constexpr std::size_t longest_kept_document = std::size_t{4} << 10U;
/// The longest body of a redirection, which libcurl receives and ignores: more than what it receives at a time and
/// `longest_document`, so that other bodies are refused by their own limit.
inline constexpr std::size_t longest_redirection = std::size_t{1} << 20U;

struct curl_release {
  void operator()(CURL* handle) const noexcept { curl_easy_cleanup(handle); }
  void operator()(curl_slist* list) const noexcept { curl_slist_free_all(list); }
  void operator()(CURLU* url) const noexcept { curl_url_cleanup(url); }
};
using curl_handle = std::unique_ptr<CURL, curl_release>;

/// Handles that are not in use, with their open connections. There are at most as many as threads have called at the
/// same time.
class curl_handles {
 public:
  curl_handles() = default;
  curl_handles(const curl_handles&) = delete;
  curl_handles& operator=(const curl_handles&) = delete;
  ~curl_handles() { leave_to_parent(); }

  curl_handle take() {
    const std::scoped_lock lock(mutex_);
    leave_to_parent();
    if (free_.empty()) return curl_handle(curl_easy_init());
    curl_handle result = std::move(free_.back());
    free_.pop_back();
    return result;
  }

  /// Accepts a handle whose last transfer has succeeded: after some failures, such as a name that was not resolved,
  /// libcurl 7.88 refuses to set options of the same handle. Options are removed, because they refer to memory of the
  /// call that set them.
  void put_back(curl_handle handle) {
    curl_easy_reset(handle.get());
    const std::scoped_lock lock(mutex_);
    free_.push_back(std::move(handle));
  }

 private:
  /// If this process is a copy that `fork` has made, forgets the handles of its parent without closing them. Both would
  /// receive parts of the answers to the other's requests, and closing a connection may send a message on it.
  void leave_to_parent() noexcept {
    const int now = platform::process_number();
    if (now == process_) return;
    process_ = now;
    for (curl_handle& each : free_) static_cast<void>(each.release());
    free_.clear();
  }

  std::mutex mutex_;
  int process_ = platform::process_number();  ///< whose connections these are
  std::vector<curl_handle> free_;
};

/// A URL as it is requested.
struct request_target {
  std::string url;
  bool is_stored = false;  ///< in object storage
  bool is_signed = false;
};

/// One request and its answer. Bytes are accepted only after the header was found to be right.
class http_attempt {
 public:
  http_attempt(CURL* handle, const request_target& target, const range_request& asked, std::span<std::byte> into)
      : handle_(handle), target_(target), asked_(asked), into_(into) {}
  http_attempt(const http_attempt&) = delete;
  http_attempt& operator=(const http_attempt&) = delete;

  attempt_result run(const http_options& how, deadline until) {
    set_options(how, until);
    if (option_problem_ != CURLE_OK)
      return refused(errc::system, {"libcurl refuses an option: ", curl_easy_strerror(option_problem_)});
    const CURLcode result = curl_easy_perform(handle_);
    has_succeeded_ = result == CURLE_OK;
    answer_.status = status();
    if (is_header_too_long_)
      return refused(errc::corrupted, {"the header of the answer has more than ", longest_header, " bytes"});
    if (is_body_too_long_)
      return refused(errc::corrupted, {"the server sends more than the ", into_.size(), " bytes of the range"});
    if (is_redirection_too_long_)
      return refused(errc::corrupted, {"the body of a redirection has more than ", longest_redirection, " bytes"});
    if (received_ > 0 && received_ == into_.size()) return {};
    if (result == CURLE_OK && !is_header_complete_)
      return {make_failure(errc::unreachable, "the answer ends within its header"), true};
    if (is_body_unwanted_ || result == CURLE_OK || result == CURLE_PARTIAL_FILE || answer_.status >= 400)
      return checked_answer();
    return transport_failure(result);
  }

  const range_answer& answer() const noexcept { return answer_; }
  std::size_t received() const noexcept { return received_; }     ///< bytes in `into`, all of them right
  bool has_succeeded() const noexcept { return has_succeeded_; }  ///< for libcurl, whatever the answer is

 private:
  template <class Value>
  void set(CURLoption option, Value value) {
    const CURLcode result = curl_easy_setopt(handle_, option, value);
    if (option_problem_ == CURLE_OK) option_problem_ = result;
  }

  void add_header(const std::string& line) {
    curl_slist* const longer = curl_slist_append(headers_.get(), line.c_str());
    if (longer == nullptr) {
      option_problem_ = CURLE_OUT_OF_MEMORY;
      return;
    }
    static_cast<void>(headers_.release());  // is the same list, or none
    headers_.reset(longer);
  }

  static long milliseconds(std::chrono::nanoseconds time) {
    constexpr std::int64_t longest = 1'000'000'000;  // fits into an int, as libcurl requires
    const auto count = std::chrono::ceil<std::chrono::milliseconds>(time).count();
    return static_cast<long>(std::clamp<std::int64_t>(count, 1, longest));  // 0 would mean no limit
  }

  void set_options(const http_options& how, deadline until) {
    const bool is_plain = target_.url.starts_with("http://");
    set(CURLOPT_URL, target_.url.c_str());
    set(CURLOPT_PROTOCOLS_STR, "http,https");
    set(CURLOPT_REDIR_PROTOCOLS_STR, is_plain ? "http,https" : "https");
    set(CURLOPT_FOLLOWLOCATION, target_.is_signed ? 0L : 1L);  // or another host would get the session token
    set(CURLOPT_MAXREDIRS, 5L);
    set(CURLOPT_PATH_AS_IS, 1L);
    set(CURLOPT_NOSIGNAL, 1L);
    set(CURLOPT_QUICK_EXIT, 1L);                // does not wait for a name server after the time limit
    set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);  // those of a proxy
    set(CURLOPT_BUFFERSIZE, 256L << 10U);       // with the default of 16 KiB, large ranges take longer
    set(CURLOPT_USERAGENT, "hocket");
    set(CURLOPT_ERRORBUFFER, text_.data());
    set(CURLOPT_HEADERFUNCTION, &http_attempt::on_header);
    set(CURLOPT_HEADERDATA, static_cast<void*>(this));
    set(CURLOPT_WRITEFUNCTION, &http_attempt::on_body);
    set(CURLOPT_WRITEDATA, static_cast<void*>(this));
    set(CURLOPT_NOPROGRESS, 0L);
    set(CURLOPT_XFERINFOFUNCTION, &http_attempt::on_progress);
    set(CURLOPT_XFERINFODATA, static_cast<void*>(this));
    set(CURLOPT_TIMEOUT_MS, milliseconds(until.left()));
    set(CURLOPT_CONNECTTIMEOUT_MS, milliseconds(std::min(until.left(), how.connect_timeout)));
    set(CURLOPT_LOW_SPEED_LIMIT, static_cast<long>(std::min<std::uint64_t>(how.least_rate, 1U << 30U)));
    set(CURLOPT_LOW_SPEED_TIME, static_cast<long>(std::min<std::int64_t>(how.stall_timeout.count(), 1 << 20)));
    if (!how.ca_file.empty()) set(CURLOPT_CAINFO, how.ca_file.c_str());
    range_ = hocket::detail::concat({asked_.first, "-", asked_.last});
    if (asked_.is_head) set(CURLOPT_NOBODY, 1L);
    else set(CURLOPT_RANGE, range_.c_str());
    if (asked_.version && is_strong_etag(asked_.version->version)) add_header("If-Range: " + asked_.version->version);
    if (target_.is_stored && asked_.is_head) add_header("x-amz-checksum-mode: ENABLED");
    if (target_.is_signed) sign(how.s3);
    if (headers_) set(CURLOPT_HTTPHEADER, headers_.get());
  }

  void sign(const s3_options& by) {
    signer_ = hocket::detail::concat({"aws:amz:", by.region, ":s3"});
    set(CURLOPT_AWS_SIGV4, signer_.c_str());
    set(CURLOPT_USERNAME, by.access_key.c_str());
    set(CURLOPT_PASSWORD, by.secret_key.c_str());
    add_header(
        "x-amz-content-sha256: e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");  // of no bytes
    if (!by.session_token.empty()) add_header("x-amz-security-token: " + by.session_token);
  }

  int status() const noexcept {
    long result = 0;
    curl_easy_getinfo(handle_, CURLINFO_RESPONSE_CODE, &result);
    return static_cast<int>(result);
  }

  static std::size_t on_header(char* data, std::size_t size, std::size_t count, void* object) noexcept {
    return static_cast<http_attempt*>(object)->accept_header({data, size * count}) ? size * count : 0;
  }

  static std::size_t on_body(char* data, std::size_t size, std::size_t count, void* object) noexcept {
    const auto bytes = std::as_bytes(std::span(data, size * count));
    return static_cast<http_attempt*>(object)->accept_body(bytes) ? bytes.size() : CURL_WRITEFUNC_ERROR;
  }

  static int on_progress(void* object, curl_off_t, curl_off_t received, curl_off_t, curl_off_t) noexcept {
    return static_cast<http_attempt*>(object)->accept_progress(static_cast<std::uint64_t>(received)) ? 0 : 1;
  }

  /// Bounds what libcurl receives and does not pass to `accept_body`: the body of a redirection.
  bool accept_progress(std::uint64_t received) {
    is_redirection_too_long_ = received > into_.size() + longest_redirection;
    return !is_redirection_too_long_;
  }

  bool accept_header(std::string_view line) {
    header_bytes_ += line.size();
    is_header_too_long_ = header_bytes_ > longest_header;
    if (is_header_too_long_) return false;
    if (received_ > 0 || document_bytes_ > 0) return true;  // a trailer, after the fields have been checked
    answer_.fields.add(line);
    is_header_complete_ = line == "\r\n" || line == "\n";
    return true;
  }

  bool accept_body(std::span<const std::byte> bytes) {
    answer_.status = status();
    if (answer_.status == 206) return accept_range(bytes);
    document_bytes_ += bytes.size();
    is_body_unwanted_ = answer_.status == 200 || document_bytes_ > longest_document;  // 200: of a whole file
    if (is_body_unwanted_) return false;
    const std::size_t kept = std::min(bytes.size(), longest_kept_document - answer_.document.size());
    answer_.document.append(reinterpret_cast<const char*>(bytes.data()), kept);
    return true;
  }

  bool accept_range(std::span<const std::byte> bytes) {
    if (received_ == 0) is_body_unwanted_ = static_cast<bool>(check_answer(asked_, answer_).cause);
    is_body_too_long_ = !is_body_unwanted_ && bytes.size() > into_.size() - received_;
    if (is_body_unwanted_ || is_body_too_long_) return false;
    std::memcpy(into_.data() + received_, bytes.data(), bytes.size());
    received_ += bytes.size();
    return true;
  }

  /// Checks an answer, all of whose header has arrived.
  attempt_result checked_answer() const {
    attempt_result found = check_answer(asked_, answer_);
    if (found.cause || answer_.status != 206) return found;
    return {make_failure(errc::corrupted, hocket::detail::concat({"the answer ends after ", received_, " of the ",
                                                                  into_.size(), " bytes of the range"})),
            true};
  }

  /// Returns what libcurl reports instead of an answer.
  attempt_result transport_failure(CURLcode result) const {
    std::string text = hocket::detail::to_utf8(text_.data());
    if (text.empty()) text = curl_easy_strerror(result);
    errc code = errc::unreachable;
    if (result == CURLE_OPERATION_TIMEDOUT) code = errc::timeout;
    if (result == CURLE_WEIRD_SERVER_REPLY) code = errc::corrupted;
    return {make_failure(code, std::move(text)), may_retry(result)};
  }

  static bool may_retry(CURLcode result) noexcept {
    switch (result) {
      case CURLE_COULDNT_RESOLVE_HOST:
      case CURLE_COULDNT_RESOLVE_PROXY:
      case CURLE_COULDNT_CONNECT:
      case CURLE_OPERATION_TIMEDOUT:
      case CURLE_SSL_CONNECT_ERROR:
      case CURLE_GOT_NOTHING:
      case CURLE_SEND_ERROR:
      case CURLE_RECV_ERROR:
      case CURLE_HTTP2:
      case CURLE_HTTP2_STREAM: return true;
      default: return false;
    }
  }

  CURL* handle_;
  const request_target& target_;
  const range_request& asked_;
  std::span<std::byte> into_;
  range_answer answer_;
  std::string range_;
  std::string signer_;
  std::unique_ptr<curl_slist, curl_release> headers_;
  std::array<char, CURL_ERROR_SIZE> text_{};
  CURLcode option_problem_ = CURLE_OK;
  std::size_t header_bytes_ = 0;
  std::size_t document_bytes_ = 0;
  std::size_t received_ = 0;
  bool has_succeeded_ = false;
  bool is_header_complete_ = false;
  bool is_header_too_long_ = false;
  bool is_body_too_long_ = false;
  bool is_redirection_too_long_ = false;
  bool is_body_unwanted_ = false;
};

}  // namespace detail

/// Reads files whose names begin with "http://", "https://" or "s3://". A request that fails because of the connection,
/// with status 429 or 5xx, or whose answer ends early, is repeated, from the byte that it ended at. A proxy is taken
/// from the variables that libcurl reads, such as `https_proxy`.
///
/// **Versions.** Each answer must state the ETag, or else the Last-Modified, that `describe` returned, and its length.
/// If it does not, the call raises an error with both, so that bytes of two versions are never mixed. If the server
/// stated neither, only lengths are compared.
///
/// **Threads.** Any; each has connections of its own, and so has a process that `fork` makes.
class http_source final : public remote_source {
 public:
  /// Makes no connection.
  ///
  /// **Errors.** `invalid_argument` if an option is out of range.
  explicit http_source(http_options how = {}) : how_(std::move(how)) {
    static const CURLcode is_ready = curl_global_init(CURL_GLOBAL_DEFAULT);  // counts, and once is enough
    if (is_ready != CURLE_OK)
      raise(errc::system, hocket::detail::concat({"libcurl can't start: ", curl_easy_strerror(is_ready)}));
    const std::string problem = problem_with(how_);
    if (!problem.empty()) raise(errc::invalid_argument, "options of http_source: " + problem);
  }

  /// Requests the first byte of the file, or the fields alone of one in object storage. The result has a CRC-32C if the
  /// server states that of the whole file, in the field x-amz-checksum-crc32c or x-goog-hash.
  ///
  /// **Errors.** `invalid_argument` if the name is not valid; `timeout`; `unreachable`; `system` for a status that is
  /// an error, and for a server that serves no ranges; `corrupted` if the answer contradicts itself.
  failure describe(const std::string& name, remote_file& result) override {
    std::array<std::byte, 1> first{};
    detail::range_answer answer;
    failure cause = fetch(name, {}, first, answer);
    if (cause) return cause;
    const auto range = answer.fields.range;
    const auto bytes = answer.status == 206 ? range->total : answer.status == 200 ? answer.fields.length : std::nullopt;
    result = {name, bytes.value_or(0), answer.fields.version(), answer.fields.crc32c};
    return {};
  }

  /// Reads a range by one request, unless that fails.
  ///
  /// **Errors.** Those of `describe`; `invalid_argument` if the range is not in the file; `corrupted` if the file has
  /// changed, or if the answers of all attempts end early.
  failure read(const remote_file& file, std::uint64_t offset, std::span<std::byte> into) override {
    if (offset > file.bytes || into.size() > file.bytes - offset) {
      return about(file.name,
                   detail::refused(errc::invalid_argument, {into.size(), " bytes at ", offset,
                                                            " are asked for, and the file has ", file.bytes}));
    }
    if (!detail::is_visible(file.version, ' ') || file.version.size() > detail::answer_fields::longest_version)
      return about(file.name, detail::refused(errc::invalid_argument, {"its version is none that a server can state"}));
    if (into.empty()) return {};
    detail::range_answer answer;
    return fetch(file.name, {&file, offset, offset + into.size() - 1, false}, into, answer);
  }

  /// Returns what this object counts, which remains valid after it.
  std::shared_ptr<const request_counts> counts() const noexcept { return counts_; }

 private:
  static std::string problem_with(const http_options& how) {
    constexpr std::chrono::nanoseconds none(0);
    if (how.timeout <= none || how.connect_timeout <= none || how.stall_timeout.count() <= 0)
      return "time limits must be above 0";
    if (how.first_pause < none || how.longest_pause < how.first_pause)
      return "the first pause must be at least 0, and at most the longest one";
    if (how.attempts < 1) return "at least one attempt is necessary";
    if (how.least_rate == 0) return "the least rate must be above 0, or a transfer may stall";
    if (how.s3.access_key.empty() != how.s3.secret_key.empty())
      return "S3 needs both an access key and a secret key, or neither";
    const bool is_visible = detail::is_visible(how.s3.access_key) && detail::is_visible(how.s3.session_token) &&
                            detail::is_visible(how.s3.endpoint);
    if (!is_visible) return "an option for S3 has a character that is not visible";
    if (how.s3.region.empty() ||
        how.s3.region.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") != std::string::npos)
      return "the region of S3 must have lower-case letters, digits and \"-\", such as \"eu-central-1\"";
    if (!how.s3.endpoint.empty() &&
        (!is_web(how.s3.endpoint) || how.s3.endpoint.find_first_of("?#") != std::string::npos))
      return "the endpoint of S3 must be http://HOST or https://HOST, without user name and query";
    return {};
  }

  static bool is_web(std::string_view url) {
    if (!url.starts_with("http://") && !url.starts_with("https://")) return false;
    const std::string_view rest = url.substr(url.find("//") + 2);
    const std::string_view host = rest.substr(0, rest.find_first_of("/?#"));
    return !host.empty() && detail::is_visible(url) && url.find('\\') == url.npos && is_parsed(url);
  }

  /// Returns whether libcurl accepts a URL, whose host and port it checks, and it has no user name.
  static bool is_parsed(std::string_view url) {
    const std::unique_ptr<CURLU, detail::curl_release> parsed(curl_url());
    return parsed &&
           curl_url_set(parsed.get(), CURLUPART_URL, std::string(url).c_str(), CURLU_DISALLOW_USER) == CURLUE_OK;
  }

  /// Sets `result`, or returns what is wrong with the name.
  detail::attempt_result find_target(const std::string& name, detail::request_target& result) const {
    result.url = name;
    if (is_web(name)) return {};
    const auto stored = detail::parse_storage_name(name);
    if (!stored)
      return detail::refused(errc::invalid_argument, {"a remote file has a name http://HOST/PATH or https://HOST/PATH, "
                                                      "percent-encoded and without user name, or s3://BUCKET/KEY"});
    result.is_stored = true;
    result.is_signed = !how_.s3.access_key.empty();
    result.url = detail::storage_url(how_.s3.endpoint, how_.s3.region, *stored);
    return {};
  }

  /// Returns the failure of an attempt, with the name of the file.
  static failure about(const std::string& name, detail::attempt_result found) {
    found.cause.reason = hocket::detail::concat({"cannot read '", detail::shown_url(name), "': ", found.cause.reason});
    return std::move(found.cause);
  }

  /// Requests a range until all of it has arrived, or returns the failure of the last attempt.
  failure fetch(const std::string& name, detail::range_request asked, std::span<std::byte> into,
                detail::range_answer& answer) {
    const deadline until = deadline::after(how_.timeout);
    detail::request_target target;
    if (detail::attempt_result found = find_target(name, target); found.cause) return about(name, std::move(found));
    asked.is_signed = target.is_signed;
    asked.is_head = target.is_stored && asked.version == nullptr;  // the answer to a range has no checksum of the file
    if (asked.is_head) into = {};
    std::minstd_rand random = own_sequence(until);
    std::chrono::nanoseconds pause = how_.first_pause;
    for (int attempt = 1;; ++attempt) {
      detail::attempt_result found = try_once(target, asked, into, until, answer);
      if (!found.cause) return {};
      if (attempt > 1) found.cause.reason.insert(0, hocket::detail::concat({"attempt ", attempt, ": "}));
      if (!found.may_retry || attempt == how_.attempts) return about(name, std::move(found));
      const auto wait =
          std::max(jittered(pause, random), std::min(pause_in(answer.fields.retry_after), how_.longest_pause));
      if (wait >= until.left()) {
        found.cause.reason += "; the time limit of the call does not allow another attempt";
        return about(name, std::move(found));
      }
      std::this_thread::sleep_for(wait);
      counts_->retries.fetch_add(1, std::memory_order_relaxed);
      pause = pause > how_.longest_pause / 2 ? how_.longest_pause : 2 * pause;
    }
  }

  /// Requests what is left of the range, and removes from `asked` and `into` what has arrived.
  detail::attempt_result try_once(const detail::request_target& target, detail::range_request& asked,
                                  std::span<std::byte>& into, deadline until, detail::range_answer& answer) {
    detail::curl_handle handle = handles_.take();
    if (!handle) return detail::refused(errc::out_of_memory, {"libcurl has no memory for a connection"});
    detail::http_attempt attempt(handle.get(), target, asked, into);
    counts_->requests.fetch_add(1, std::memory_order_relaxed);
    detail::attempt_result found = attempt.run(how_, until);
    counts_->bytes.fetch_add(attempt.received(), std::memory_order_relaxed);
    if (attempt.has_succeeded()) handles_.put_back(std::move(handle));
    answer = attempt.answer();
    asked.first += attempt.received();
    into = into.subspan(attempt.received());
    return found;
  }

  /// Random numbers that differ between threads, processes and calls.
  static std::minstd_rand own_sequence(deadline until) {
    const std::size_t thread = std::hash<std::thread::id>()(std::this_thread::get_id());
    return std::minstd_rand(
        static_cast<unsigned>(thread ^ static_cast<std::size_t>(until.when().time_since_epoch().count())));
  }

  static std::chrono::nanoseconds jittered(std::chrono::nanoseconds pause, std::minstd_rand& random) {
    return pause - std::chrono::nanoseconds(std::uniform_int_distribution<std::int64_t>(0, pause.count() / 2)(random));
  }

  /// Returns the pause that a field Retry-After asks for, which has seconds or a date; 0 if it is malformed.
  static std::chrono::nanoseconds pause_in(const std::string& field) {
    constexpr std::int64_t longest = 86400;
    std::int64_t seconds = 0;
    if (const auto number = detail::decimal_number(field)) {
      seconds = static_cast<std::int64_t>(std::min<std::uint64_t>(*number, longest));
    } else if (!field.empty()) {
      const std::time_t date = curl_getdate(field.c_str(), nullptr);
      const auto now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
      if (date > now) seconds = std::min<std::int64_t>(date - now, longest);
    }
    return std::chrono::seconds(seconds);
  }

  http_options how_;
  detail::curl_handles handles_;
  std::shared_ptr<request_counts> counts_ = std::make_shared<request_counts>();
};

}  // namespace data
HOCKET_END_NAMESPACE
