// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Remote files of servers that work: what is known of a file, each range of it, several threads, a file that changes
/// while it is read, and requests to object storage.
// needs: curl
#include "data/remote/http_server.hpp"
#include "data/remote/remote_reads.hpp"
#include "support/catch.hpp"
#include "support/text.hpp"

#include <hocket/data/remote/curl.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace {

using namespace http_test;
using hocket::errc;
using hocket::data::http_options;
using hocket::data::http_source;
using hocket::data::remote_file;
using hocket::data::s3_options;

const std::string date_field = "Last-Modified: Mon, 01 Jan 2024 00:00:00 GMT\r\n";

/// Returns the reason of the error that `act` raises; empty if it raises none.
std::string raised_reason(errc code, const std::function<void()>& act) {
  try {
    act();
  } catch (const hocket::error& cause) {
    CHECK(cause.code() == code);
    return cause.reason();
  }
  return {};
}

handler serves(const version& file) {
  return [=](const request& asked, const connection& to) { return serve_range(file, asked, to); };
}

/// Variables of the environment, which the destructor removes.
class variables {
 public:
  explicit variables(std::vector<std::pair<const char*, const char*>> values) : values_(std::move(values)) {
    for (const auto& [name, value] : values_) ::setenv(name, value, 1);
  }
  variables(const variables&) = delete;
  variables& operator=(const variables&) = delete;
  ~variables() {
    for (const auto& [name, value] : values_) ::unsetenv(name);
  }

 private:
  std::vector<std::pair<const char*, const char*>> values_;
};

}  // namespace

TEST_CASE("describe returns length, version and checksum") {
  struct {
    std::string_view name;
    handler answer;
    std::uint64_t bytes;
    std::string version;
    std::optional<std::uint32_t> crc32c;
  } const cases[]{
      {"an ETag rather than a date", serves({"0123456789", date_field + "ETag: \"x\"\r\n"}), 10, "\"x\"", {}},
      {"a weak ETag", serves({"0123456789", "etag: W/\"x\"\r\n"}), 10, "W/\"x\"", {}},
      {"a date", serves({"0", date_field}), 1, "Mon, 01 Jan 2024 00:00:00 GMT", {}},
      {"no version", serves({"0123456789", ""}), 10, "", {}},
      {"a checksum of Amazon", serves({"123456789", "x-amz-checksum-crc32c: 4waSgw==\r\n"}), 9, "", 0xe3069283U},
      {"a checksum of Google", serves({"123456789", "x-goog-hash: crc32c=4waSgw==,md5=AA==\r\n"}), 9, "", 0xe3069283U},
      {"a checksum of parts", serves({"123456789", "x-amz-checksum-crc32c: 4waSgw==-2\r\n"}), 9, "", {}},
      {"fields after the body, which do not count",
       [](const request&, const connection& to) {
         return to.send("HTTP/1.1 206 OK\r\nETag: \"one\"\r\n" + range_field(0, 0, "10") +
                        "Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n" + range_field(0, 0, "99") + "\r\n");
       },
       10,
       "\"one\"",
       {}},
      {"an empty file, by 416", serves({"", ""}), 0, "", {}},
      {"an empty file, by 200",
       [](const request&, const connection& to) { return to.send(answer_text("200 OK", "ETag: \"e\"\r\n", "")); },
       0,
       "\"e\"",
       {}},
  };
  for (const auto& each : cases) {
    INFO(each.name);
    const server tested(each.answer);
    http_source web(quick_options());
    remote_file found;
    const hocket::failure cause = web.describe(tested.url(), found);
    CHECK(cause.reason == "");
    CHECK(found == remote_file{tested.url(), each.bytes, each.version, each.crc32c});
    const read_result got = read_bytes(web, found, each.bytes, 0);
    CHECK(got.cause.reason == "");
    CHECK(tested.requests() == 1);  // no byte is read without a request
  }
}

TEST_CASE("describe refuses servers without ranges, and lengths that are not stated") {
  struct {
    std::string status, fields, body;
    errc code;
    std::string_view words;
  } const cases[]{
      {"200 OK", "ETag: \"x\"\r\n", "0123456789", errc::system, "use a server that serves ranges"},
      {"206 Partial Content", "ETag: \"x\"\r\nContent-Range: bytes 0-0/*\r\n", "0", errc::corrupted, "incomplete"},
      {"206 Partial Content", "ETag: \"x\"\r\n", "0", errc::corrupted, "incomplete"},
      {"206 Partial Content", "ETag: \"x y\"\r\nContent-Range: bytes 0-0/10\r\n", "0", errc::corrupted,
       "ETag is malformed"},
      {"416 No", "Content-Range: bytes */10\r\n", "", errc::system, "status 416"},
      {"404 Not Found", "", "<Code>NoSuchKey</Code>", errc::system, "status 404 (NoSuchKey)"},
  };
  for (const auto& each : cases) {
    INFO(each.status << ' ' << each.fields);
    const server tested([&](const request&, const connection& to) {
      return to.send(answer_text(each.status, each.fields, each.body));
    });
    http_source web(quick_options());
    remote_file found;
    const hocket::failure cause = web.describe(tested.url(), found);
    CHECK(cause.code == each.code);
    CHECK(hocket_test::contains(cause.reason, each.words));
    CHECK(tested.requests() == 1);
  }
}

TEST_CASE("each range is read, by one connection") {
  const version file{random_bytes(300000, 2), date_field};
  const server tested(serves(file));
  http_source web(quick_options());
  remote_file found;
  REQUIRE(!web.describe(tested.url(), found));
  for (const unsigned first : {0U, 1U, 299999U, 150000U}) {
    for (const std::size_t size : {std::size_t{1}, std::size_t{2}, std::size_t{65537}, file.bytes.size()}) {
      const std::size_t part = std::min(size, file.bytes.size() - first);
      const read_result got = read_bytes(web, found, first, part);
      CHECK(got.cause.reason == "");
      CHECK((got.bytes == file.bytes.substr(first, part)));
    }
  }
  CHECK(tested.requests() == 17);
  CHECK(tested.connections() == 1);
}

TEST_CASE("threads read at the same time") {
  const version file{random_bytes(100000, 3)};
  const server tested(serves(file));
  http_source web(quick_options());
  remote_file found;
  REQUIRE(!web.describe(tested.url(), found));
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (unsigned number = 0; number < 8; ++number) {
    threads.emplace_back([&, number] {
      std::minstd_rand random(number + 1);
      for (int i = 0; i < 30; ++i) {
        const std::uint64_t first = random() % file.bytes.size();
        const std::size_t size = random() % (file.bytes.size() - first + 1);
        const read_result got = read_bytes(web, found, first, size);
        if (got.cause || got.bytes != file.bytes.substr(first, size)) ++wrong;
      }
    });
  }
  for (std::thread& each : threads) each.join();
  CHECK(wrong == 0);
  CHECK(tested.connections() <= 9);
}

TEST_CASE("pieces of a file that changes are all of one version") {
  constexpr std::size_t piece = 1000;
  struct {
    std::string_view name;
    version before, after;
  } const changes[]{
      {"the ETag", {random_bytes(5000, 4), "ETag: \"one\"\r\n"}, {random_bytes(5000, 5), "ETag: \"two\"\r\n"}},
      {"a weak ETag", {random_bytes(5000, 4), "ETag: W/\"1\"\r\n"}, {random_bytes(5000, 5), "ETag: W/\"2\"\r\n"}},
      {"the date",
       {random_bytes(5000, 4), date_field},
       {random_bytes(5000, 5), "Last-Modified: Mon, 01 Jan 2024 00:00:01 GMT\r\n"}},
      {"the length alone", {random_bytes(5000, 4), ""}, {random_bytes(5001, 5), ""}},
  };
  for (const auto& each : changes) {
    for (int kept = 1; kept <= 6; ++kept) {  // requests before the change; the first is that of `describe`
      INFO(each.name << ", after " << kept << " requests");
      const server tested([&](const request& asked, const connection& to) {
        return serve_range(asked.number <= kept ? each.before : each.after, asked, to);
      });
      http_source web(quick_options());
      remote_file found;
      REQUIRE(!web.describe(tested.url(), found));
      for (int i = 0; i < 5; ++i) {
        const read_result got = read_bytes(web, found, static_cast<std::uint64_t>(i) * piece, piece);
        if (i + 1 < kept) {
          CHECK(got.cause.reason == "");
          CHECK((got.bytes == each.before.bytes.substr(static_cast<std::size_t>(i) * piece, piece)));
        } else {
          CHECK(got.cause.code == errc::corrupted);
          CHECK(hocket_test::contains(got.cause.reason, "'" + tested.url() + "': the file has changed"));
        }
      }
    }
  }
}

TEST_CASE("a change between two parts of one range is noticed") {
  const version before{random_bytes(5000, 6), "ETag: \"one\"\r\n"};
  const version after{random_bytes(5000, 7), "ETag: \"two\"\r\n"};
  std::mutex mutex;
  std::vector<request> requests;
  const server tested([&](const request& asked, const connection& to) {
    const std::scoped_lock lock(mutex);
    requests.push_back(asked);
    if (asked.number > 1) return serve_range(after, asked, to);
    to.send("HTTP/1.1 206 Partial Content\r\n" + before.fields + range_field(0, 4999, "5000") + "\r\n" +
            before.bytes.substr(0, 100));
    return false;
  });
  http_source web(quick_options());
  const read_result got = read_bytes(web, {tested.url(), 5000, "\"one\"", {}}, 0, 5000);
  CHECK(got.cause.code == errc::corrupted);
  CHECK(hocket_test::contains(got.cause.reason, "version \"one\" of 5000 bytes"));
  CHECK(hocket_test::contains(got.cause.reason, "version \"two\" of 5000 bytes"));
  const std::scoped_lock lock(mutex);
  REQUIRE(requests.size() == 2);
  CHECK(requests[1].field("range") == "bytes=100-4999");
  for (const request& each : requests) CHECK(each.field("if-range") == "\"one\"");
}

TEST_CASE("redirections are followed, with the range") {
  const version file{random_bytes(3000, 8)};
  const server target(serves(file));
  const server tested([&](const request& asked, const connection& to) {
    if (asked.path == "/moved") return serve_range(file, asked, to);
    const std::string where = asked.path == "/here" ? "/moved" : target.url();
    // Fields of a redirection are not those of the file.
    return to.send(answer_text("302 Found", "ETag: \"other\"\r\nLocation: " + where + "\r\n", "see there"));
  });
  http_source web(quick_options());
  for (const std::string path : {"/here", "/elsewhere"}) {
    remote_file found;
    CHECK(web.describe(tested.url(path), found).reason == "");
    CHECK(found == remote_file{tested.url(path), 3000, "\"one\"", {}});
    const read_result got = read_bytes(web, found, 100, 2000);
    CHECK(got.cause.reason == "");
    CHECK((got.bytes == file.bytes.substr(100, 2000)));
  }
}

TEST_CASE("names and ranges that are not valid are refused before a request") {
  const server tested(serves({"0123456789"}));
  http_source web(quick_options());
  remote_file found;
  const std::string host = tested.url("").substr(7);
  const std::vector<std::string> names{"",
                                       "/file",
                                       "ftp://" + host,
                                       "file:///etc/passwd",
                                       "http://",
                                       "http:///path",
                                       "http://127.0.0.1:99999/file",
                                       "http://127.0.0.1:port/file",
                                       "http://[::1/file",
                                       "http://%20/file",
                                       "http://user:password@" + host + "/file",
                                       "http://user@" + host + "/file",
                                       "http://@" + host + "/file",
                                       tested.url("/a b"),
                                       tested.url("/a\r\nb"),
                                       tested.url("/\xc3\xa4"),
                                       "s3://bucket",
                                       "s3://bucket/",
                                       "s3://b/key",
                                       "s3://Bucket/key",
                                       "s3://b@d/key",
                                       "s3://bucket/" + std::string(1025, 'x')};
  for (const std::string& name : names) {
    INFO(name);
    const hocket::failure cause = web.describe(name, found);
    CHECK(cause.code == errc::invalid_argument);
    CHECK(hocket_test::contains(cause.reason, "http://HOST/PATH"));
    CHECK(!hocket_test::contains(cause.reason, "password"));
  }
  struct {
    std::uint64_t offset;
    std::size_t size;
    std::string version;
  } const ranges[]{{11, 0, ""},       {10, 1, ""}, {0, 11, ""}, {UINT64_MAX, 2, ""}, {0, 1, "\"a\r\nX: y\""},
                   {0, 1, "\"\x01\""}};
  for (const auto& each : ranges) {
    const read_result got = read_bytes(web, {tested.url(), 10, each.version, {}}, each.offset, each.size);
    CHECK(got.cause.code == errc::invalid_argument);
  }
  CHECK(tested.requests() == 0);
}

TEST_CASE("options that are not valid are refused") {
  const auto refused = [](const std::function<void(http_options&)>& change) {
    return raised_reason(errc::invalid_argument, [&] {
      http_options options;
      change(options);
      const http_source web(options);
    });
  };
  using std::chrono::nanoseconds;
  const std::vector<std::pair<std::string_view, std::function<void(http_options&)>>> cases{
      {"time limits", [](auto& o) { o.timeout = nanoseconds(0); }},
      {"time limits", [](auto& o) { o.connect_timeout = nanoseconds(-1); }},
      {"time limits", [](auto& o) { o.stall_timeout = std::chrono::seconds(0); }},
      {"first pause", [](auto& o) { o.first_pause = nanoseconds(-1); }},
      {"first pause", [](auto& o) { o.longest_pause = nanoseconds(1); }},
      {"one attempt", [](auto& o) { o.attempts = 0; }},
      {"least rate", [](auto& o) { o.least_rate = 0; }},
      {"both an access key", [](auto& o) { o.s3.access_key = "x"; }},
      {"both an access key", [](auto& o) { o.s3.secret_key = "x"; }},
      {"not visible", [](auto& o) { o.s3.session_token = "x\r\ny"; }},
      {"region", [](auto& o) { o.s3.region = ""; }},
      {"region", [](auto& o) { o.s3.region = "a/b"; }},
      {"endpoint", [](auto& o) { o.s3.endpoint = "localhost:9000"; }},
      {"endpoint", [](auto& o) { o.s3.endpoint = "http://user@localhost"; }},
      {"endpoint", [](auto& o) { o.s3.endpoint = "http://localhost?x"; }},
  };
  for (const auto& [words, change] : cases) {
    INFO(words);
    CHECK(hocket_test::contains(refused(change), words));
  }
  CHECK(refused([](http_options&) {}) == "");
}

TEST_CASE("the largest limits are accepted") {
  const version file{"0123456789"};
  const server tested(serves(file));
  http_options options;
  options.timeout = options.connect_timeout = std::chrono::nanoseconds::max();
  options.stall_timeout = std::chrono::seconds::max();
  options.first_pause = options.longest_pause = std::chrono::nanoseconds::max();
  options.least_rate = UINT64_MAX;
  options.attempts = INT_MAX;
  http_source web(options);
  remote_file found;
  CHECK(!web.describe(tested.url(), found));
  const read_result got = read_bytes(web, found, 0, 10);
  CHECK(got.cause.reason == "");
  CHECK(got.bytes == file.bytes);
}

TEST_CASE("requests to object storage are signed, and show no secret") {
  const version file{random_bytes(2000, 9)};
  const server elsewhere(serves(file));
  std::mutex mutex;
  std::vector<request> requests;
  const server tested([&](const request& asked, const connection& to) {
    const std::scoped_lock lock(mutex);
    requests.push_back(asked);
    if (hocket_test::contains(asked.path, "denied"))
      return to.send(
          answer_text("403 Forbidden", "",
                      "<Error><Code>SignatureDoesNotMatch</Code>" + asked.field("authorization") + "</Error>"));
    if (hocket_test::contains(asked.path, "moved"))
      return to.send(
          answer_text("307 Moved", "Location: " + elsewhere.url() + "\r\n", "<Code>TemporaryRedirect</Code>"));
    return serve_range(file, asked, to);
  });
  auto options = quick_options();
  options.s3 = {"KEY", "SECRET", "TOKEN", "eu-test-1", tested.url("/")};
  http_source web(options);
  remote_file found;

  CHECK(web.describe("s3://bucket/a/../b c+\xc3\xa4?x", found).reason == "");
  CHECK((read_bytes(web, found, 10, 100).bytes == file.bytes.substr(10, 100)));
  const hocket::failure denied = read_bytes(web, {"s3://bucket/denied", 10, "\"one\"", {}}, 0, 10).cause;
  CHECK(denied.code == errc::system);
  CHECK(hocket_test::contains(denied.reason, "status 403 (SignatureDoesNotMatch): check the credentials"));
  const hocket::failure moved = read_bytes(web, {"s3://bucket/moved", 10, "\"one\"", {}}, 0, 10).cause;
  CHECK(hocket_test::contains(moved.reason, "status 307 (TemporaryRedirect): a signed request follows no redirection"));
  CHECK(elsewhere.requests() == 0);
  CHECK(web.describe(tested.url("/public"), found).reason == "");

  const std::scoped_lock lock(mutex);
  REQUIRE(requests.size() == 5);
  CHECK(requests[0].path == "/bucket/a/../b%20c%2B%C3%A4%3Fx");
  for (const request& each : requests) {
    const bool is_public = each.path == "/public";
    const std::string signature = each.field("authorization");
    CHECK(signature.starts_with("AWS4-HMAC-SHA256 Credential=KEY/") == !is_public);
    CHECK(hocket_test::contains(signature, "/eu-test-1/s3/aws4_request") == !is_public);
    CHECK(hocket_test::contains(signature, "x-amz-security-token") == !is_public);
    CHECK(hocket_test::contains(each.text, "TOKEN") == !is_public);
    CHECK(!hocket_test::contains(each.text, "SECRET"));
  }
  for (const hocket::failure& each : {denied, moved}) {
    for (const std::string_view secret : {"KEY", "SECRET", "TOKEN", "AWS4"})
      CHECK(!hocket_test::contains(each.message(), secret));
  }
}

TEST_CASE("requests to object storage without credentials are not signed") {
  const version file{"0123456789", "ETag: \"one\"\r\nx-amz-checksum-crc32c: 4waSgw==\r\n"};
  const server tested([&](const request& asked, const connection& to) {
    if (asked.method == "HEAD" && asked.field("x-amz-checksum-mode") != "ENABLED") return false;
    return asked.field("authorization").empty() ? serve_range(file, asked, to) : false;
  });
  auto options = quick_options();
  options.s3.endpoint = tested.url("");
  http_source web(options);
  remote_file found;
  CHECK(web.describe("s3://bucket/key", found).reason == "");
  CHECK(found == remote_file{"s3://bucket/key", 10, "\"one\"", 0xe3069283U});
}

TEST_CASE("options for object storage are read from the environment") {
  CHECK(hocket::data::s3_from_environment().region == "us-east-1");
  {
    const variables set({{"AWS_ACCESS_KEY_ID", "a"},
                         {"AWS_SECRET_ACCESS_KEY", "b"},
                         {"AWS_SESSION_TOKEN", "c"},
                         {"AWS_DEFAULT_REGION", "d"},
                         {"AWS_ENDPOINT_URL", "e"}});
    const s3_options found = hocket::data::s3_from_environment();
    CHECK(std::vector{found.access_key, found.secret_key, found.session_token, found.region, found.endpoint} ==
          std::vector<std::string>{"a", "b", "c", "d", "e"});
    const variables specific({{"AWS_REGION", "f"}, {"AWS_ENDPOINT_URL_S3", "g"}});
    CHECK(hocket::data::s3_from_environment().region == "f");
    CHECK(hocket::data::s3_from_environment().endpoint == "g");
  }
  const variables one({{"AWS_ACCESS_KEY_ID", "a"}, {"AWS_SECRET_ACCESS_KEY", ""}});
  CHECK(raised_reason(errc::bad_environment, [] { hocket::data::s3_from_environment(); }) ==
        "set both AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or neither");
}
