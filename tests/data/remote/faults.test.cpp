// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Servers that fail, or that do not say the truth: each read ends in bounded time, with the right bytes or with an error
/// that says what was wrong. It never ends with other bytes.
// needs: curl
#include "data/remote/http_server.hpp"
#include "data/remote/remote_reads.hpp"
#include "support/catch.hpp"
#include "support/text.hpp"

#include <hocket/data/remote/curl.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

using namespace http_test;
using hocket::errc;
using hocket::data::http_source;
using hocket::data::remote_file;

constexpr std::uint64_t wanted_first = 1000;
constexpr std::size_t wanted_size = 5000;

const version& good_file() {
  static const version instance{random_bytes(20000, 1)};
  return instance;
}
std::string wanted_bytes() { return good_file().bytes.substr(wanted_first, wanted_size); }

/// Answers with status 206, these fields, and `body`.
handler answers_with(const std::string& fields, std::string body = wanted_bytes()) {
  return
      [=](const request&, const connection& to) { return to.send(answer_text("206 Partial Content", fields, body)); };
}
handler answers_with_status(const std::string& status, const std::string& fields = "", std::string body = "") {
  return [=](const request&, const connection& to) { return to.send(answer_text(status, fields, body)); };
}
/// Sends `begin` and then `more` for as long as the peer receives.
handler never_ends(const std::string& begin, const std::string& more) {
  return [=](const request&, const connection& to) {
    bool receives = to.send(begin);
    while (receives) receives = to.send(more);
    return false;
  };
}
/// Answers the first `count` requests like `fault`, and later ones rightly.
handler at_first(int count, handler fault) {
  return [=](const request& asked, const connection& to) {
    return asked.number <= count ? fault(asked, to) : serve_range(good_file(), asked, to);
  };
}
/// Sends `count` bytes of the range, and closes the connection.
handler ends_after(std::size_t count) {
  return [=](const request& asked, const connection& to) {
    const std::string total = std::to_string(good_file().bytes.size());
    const std::size_t size = asked.last - asked.first + 1;
    to.send("HTTP/1.1 206 Partial Content\r\n" + good_file().fields + range_field(asked.first, asked.last, total) +
            "Content-Length: " + std::to_string(size) + "\r\n\r\n" + good_file().bytes.substr(asked.first, count));
    return false;
  };
}
bool closes(const request&, const connection&) { return false; }
bool never_answers(const request&, const connection& to) {
  to.wait_until_closed();
  return false;
}

const std::string right_range = range_field(wanted_first, wanted_first + wanted_size - 1, "20000");
const std::string tag = "ETag: \"one\"\r\n";

struct fault {
  std::string_view name;
  handler answer;
  int requests;                 ///< that must have been made
  errc code{};                  ///< of the error; none if the bytes must be right
  std::string_view words = "";  ///< which the error must contain
};

void check_fault(const fault& each) {
  INFO(each.name);
  const server tested(each.answer);
  http_source web(quick_options());
  const remote_file file{tested.url("/a/b?signature=hidden"), 20000, "\"one\"", {}};
  const auto begin = std::chrono::steady_clock::now();
  const read_result got = read_bytes(web, file, wanted_first, wanted_size);
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(60));  // twice the limit of a call
  CHECK(tested.requests() == each.requests);
  if (each.code == errc{}) {
    CHECK(got.cause.reason == "");
    CHECK((got.bytes == wanted_bytes()));  // in parentheses: bytes are not printed
    return;
  }
  CHECK(got.cause.code == each.code);
  INFO(got.cause.reason);
  CHECK(hocket_test::contains(got.cause.reason, each.words));
  CHECK(hocket_test::contains(got.cause.reason, tested.url("/a/b?...'")));
  CHECK(!hocket_test::contains(got.cause.reason, "hidden"));
}

}  // namespace

TEST_CASE("a failure that passes is followed by the right bytes") {
  const std::string date = "Retry-After: Fri, 31 Dec 2100 23:59:59 GMT\r\n";
  const std::vector<fault> faults{
      {"none", at_first(0, closes), 1},
      {"503 twice", at_first(2, answers_with_status("503 Service Unavailable", "", "busy")), 3},
      {"500, 502 and 504 end as 503 does", at_first(1, answers_with_status("500 Internal Server Error")), 2},
      {"429 with a number of seconds", at_first(2, answers_with_status("429 Slow", "Retry-After: 3600\r\n")), 3},
      {"429 with a date", at_first(1, answers_with_status("429 Slow", date)), 2},
      {"429 with a field that is no time", at_first(1, answers_with_status("429 Slow", "Retry-After: -soon\r\n")), 2},
      {"closes before it answers", at_first(2, closes), 3},
      {"ends within the header",
       at_first(1,
                [](const request&, const connection& to) {
                  to.send("HTTP/1.1 206 Partial Content\r\nETag: \"on");
                  return false;
                }),
       2},
      {"ends before the body", at_first(1, ends_after(0)), 2},
      {"ends within the body", at_first(1, ends_after(777)), 2},
      {"codings that leave the bytes as they are",
       answers_with(tag + right_range + "Content-Encoding: identity\r\nContent-Encoding: aws-chunked\r\n"), 1},
      {"ends within the body three times", at_first(3, ends_after(1)), 4},
      {"never answers, once", at_first(1, never_answers), 2},
  };
  for (const fault& each : faults) check_fault(each);
}

TEST_CASE("a failure that stays is reported after all attempts") {
  const std::vector<fault> faults{
      {"503", answers_with_status("503 Service Unavailable"), 4, errc::system,
       "attempt 4: the server answers with status 503"},
      {"closes", closes, 4, errc::unreachable, "attempt 4"},
      {"ends after no byte", ends_after(0), 4, errc::corrupted, "the answer ends after 0 of the 5000 bytes"},
      {"ends after some", ends_after(100), 4, errc::corrupted, "the answer ends after 100 of the 4700 bytes"},
      {"never answers", never_answers, 4, errc::timeout, "too slow"},
      {"a body shorter than the range", answers_with(tag + right_range, wanted_bytes().substr(0, 10)), 2,
       errc::corrupted,
       "attempt 2: the bytes 1010 to 5999 are asked for, and the server answers with the bytes 1000 to 5999"},
  };
  for (const fault& each : faults) check_fault(each);
}

TEST_CASE("an answer that is wrong is refused at once") {
  const std::string chunks =
      "HTTP/1.1 206 Partial Content\r\n" + tag + right_range + "Transfer-Encoding: chunked\r\n\r\n";
  const std::vector<fault> faults{
      {"a body longer than the range, in chunks", never_ends(chunks, "1000\r\n" + std::string(4096, 'x') + "\r\n"), 1,
       errc::corrupted, "the server sends more than the 5000 bytes"},
      {"a length longer than the range", answers_with(tag + right_range, wanted_bytes() + "x"), 1, errc::corrupted,
       "answers with 5001 bytes, and its range has 5000"},
      {"another range", answers_with(tag + range_field(0, 4999, "20000")), 1, errc::corrupted,
       "the bytes 1000 to 5999 are asked for, and the server answers with the bytes 0 to 4999"},
      {"a shorter range", answers_with(tag + range_field(1000, 1001, "20000")), 1, errc::corrupted,
       "the bytes 1000 to 1001"},
      {"no range", answers_with(tag), 1, errc::corrupted, "Content-Range is incomplete"},
      {"several ranges", answers_with(tag + "Content-Type: multipart/byteranges; boundary=x\r\n"), 1, errc::corrupted,
       "Content-Range is incomplete"},
      {"a range of a file of unknown length", answers_with(tag + range_field(1000, 5999, "*")), 1, errc::corrupted,
       "Content-Range is incomplete"},
      {"a range that is no number", answers_with(tag + "Content-Range: bytes 1000-x/20000\r\n"), 1, errc::corrupted,
       "the field Content-Range is malformed"},
      {"a range beyond 64 bits", answers_with(tag + "Content-Range: bytes 1000-5999/18446744073709551616\r\n"), 1,
       errc::corrupted, "the field Content-Range is malformed"},
      {"two ranges", answers_with(tag + right_range + right_range), 1, errc::corrupted, "occurs twice"},
      {"two versions", answers_with(tag + "ETag: \"two\"\r\n" + right_range), 1, errc::corrupted, "occurs twice"},
      {"no version", answers_with(right_range), 1, errc::corrupted, "states no version"},
      {"a date instead of the ETag", answers_with("Last-Modified: Mon, 01 Jan 2024 00:00:00 GMT\r\n" + right_range), 1,
       errc::corrupted, "states no version"},
      {"another version", answers_with("ETag: \"two\"\r\n" + right_range), 1, errc::corrupted,
       "the file has changed: version \"one\" of 20000 bytes is being read, and the server now has version \"two\" of "
       "20000"},
      {"another length", answers_with(tag + range_field(1000, 5999, "30000")), 1, errc::corrupted,
       "the server now has version \"one\" of 30000 bytes"},
      {"the whole of another version", answers_with_status("200 OK", "ETag: \"two\"\r\n", std::string(30000, 'x')), 1,
       errc::corrupted, "version \"two\" of 30000 bytes"},
      {"a file that became shorter", answers_with_status("416 No", "Content-Range: bytes */50\r\n"), 1, errc::corrupted,
       "without ETag and Last-Modified of 50 bytes"},
      {"a range of a compressed form", answers_with(tag + right_range + "Content-Encoding: gzip\r\n"), 1, errc::system,
       "the content coding 'gzip'"},
      {"two codings", answers_with(tag + right_range + "content-encoding: identity\r\nContent-Encoding: br, gzip\r\n"),
       1, errc::system, "the content coding 'br, gzip'"},
      {"the whole file", answers_with_status("200 OK", tag, good_file().bytes), 1, errc::system,
       "the whole file instead of the bytes 1000 to 5999: use a server that serves ranges"},
      {"a whole file that never ends", never_ends("HTTP/1.1 200 OK\r\n" + tag + "\r\n", std::string(4096, 'x')), 1,
       errc::system, "the whole file instead"},
      {"400", answers_with_status("400 Bad Request"), 1, errc::system, "status 400"},
      {"403", answers_with_status("403 Forbidden", "", "<Error><Code>AccessDenied</Code>hidden</Error>"), 1,
       errc::system, "status 403 (AccessDenied): this file needs credentials"},
      {"404", answers_with_status("404 Not Found"), 1, errc::system, "status 404: there is no such file"},
      {"404 that never ends", never_ends("HTTP/1.1 404 Not Found\r\n\r\n", std::string(4096, 'x')), 1, errc::system,
       "status 404"},
      {"a header that never ends",
       never_ends("HTTP/1.1 206 Partial Content\r\n", "X-Field: " + std::string(1000, 'x') + "\r\n"), 1,
       errc::corrupted, "the header of the answer has more than 65536 bytes"},
      {"a line of a header that never ends",
       never_ends("HTTP/1.1 206 Partial Content\r\nX-Field: ", std::string(1000, 'x')), 1, errc::unreachable, ""},
      {"interim answers that never end", never_ends("", "HTTP/1.1 100 Continue\r\n\r\n"), 1, errc::corrupted,
       "the header of the answer has more than 65536 bytes"},
      {"no HTTP", never_ends("HELLO\r\n", "hello\r\n"), 1, errc::unreachable, "HTTP/0.9"},
      {"a length that is none", never_ends("HTTP/1.1 206 Partial Content\r\nContent-Length: -5\r\n\r\n", "x"), 1,
       errc::corrupted, ""},
      {"a redirection that never ends",
       never_ends("HTTP/1.1 302 Found\r\nLocation: /b\r\nContent-Length: 1000000000000\r\n\r\n",
                  std::string(4096, 'x')),
       1, errc::corrupted, "the body of a redirection has more than 1048576 bytes"},
      {"a redirection to itself", answers_with_status("302 Found", "Location: /b\r\n"), 6, errc::unreachable, "5"},
      {"a redirection to a local file", answers_with_status("302 Found", "Location: file:///etc/passwd\r\n"), 1,
       errc::unreachable, "rotocol"},
  };
  for (const fault& each : faults) check_fault(each);
}

TEST_CASE("of an answer that never ends, little is received") {
  const std::string block(4096, 'x');
  struct {
    std::string_view name;
    std::string begin, more;
  } const answers[]{
      {"a header", "HTTP/1.1 206 Partial Content\r\n", "X-Field: " + block + "\r\n"},
      {"a line of a header", "HTTP/1.1 206 Partial Content\r\nX-Field: ", block},
      {"a range", "HTTP/1.1 206 Partial Content\r\n" + tag + right_range + "\r\n", block},
      {"a whole file", "HTTP/1.1 200 OK\r\n" + tag + "\r\n", block},
      {"an error document", "HTTP/1.1 404 Not Found\r\n\r\n", block},
      {"a redirection", "HTTP/1.1 302 Found\r\nLocation: /b\r\nTransfer-Encoding: chunked\r\n\r\n",
       "1000\r\n" + block + "\r\n"},
      {"a document of another status", "HTTP/1.1 300 Multiple Choices\r\n\r\n", block},
  };
  for (const auto& each : answers) {
    INFO(each.name);
    std::atomic<std::uint64_t> sent{0};
    {
      const server tested([&](const request&, const connection& to) {
        for (bool receives = to.send(each.begin); receives; receives = to.send(each.more)) sent += each.more.size();
        return false;
      });
      http_source web(quick_options());
      CHECK(read_bytes(web, {tested.url(), 20000, "\"one\"", {}}, wanted_first, wanted_size).cause);
    }
    CHECK(sent < std::uint64_t{32} << 20U);  // most of it is in the buffers of the connection
  }
}

TEST_CASE("a server that is too slow ends in a timeout") {
  const server dripping([](const request& asked, const connection& to) {
    to.send("HTTP/1.1 206 Partial Content\r\n" + tag + range_field(asked.first, asked.last, "20000") + "\r\n");
    for (std::size_t i = asked.first; i <= asked.last && to.send(good_file().bytes.substr(i, 1)); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return false;
  });
  const remote_file file{dripping.url(), 20000, "\"one\"", {}};

  SECTION("by its rate") {
    http_source web(quick_options());
    const read_result got = read_bytes(web, file, wanted_first, wanted_size);
    CHECK(got.cause.code == errc::timeout);
    CHECK(dripping.requests() == 4);
  }
  SECTION("by the limit of the call, which includes the pauses") {
    auto options = quick_options();
    options.least_rate = 1;
    options.timeout = std::chrono::milliseconds(300);
    http_source web(options);
    const read_result got = read_bytes(web, file, wanted_first, wanted_size);
    CHECK(got.cause.code == errc::timeout);
    CHECK(hocket_test::contains(got.cause.reason, "does not allow another attempt"));
    CHECK(dripping.requests() == 1);
  }
}

TEST_CASE("a pause that exceeds the time limit is not waited for") {
  const server busy(answers_with_status("503 Busy", "Retry-After: 3000\r\n"));
  auto options = quick_options();
  options.timeout = std::chrono::seconds(100);
  options.longest_pause = std::chrono::seconds(1000);
  http_source web(options);
  const read_result got = read_bytes(web, {busy.url(), 20000, "\"one\"", {}}, wanted_first, wanted_size);
  CHECK(got.cause.code == errc::system);
  CHECK(
      hocket_test::contains(got.cause.reason, "status 503; the time limit of the call does not allow another attempt"));
  CHECK(busy.requests() == 1);
}

TEST_CASE("a connection that fails does not affect other attempts and later calls") {
  const server good([](const request& asked, const connection& to) { return serve_range(good_file(), asked, to); });
  const server redirects([](const request& asked, const connection& to) {
    return to.send(answer_text("302 Found", "Location: " + asked.path.substr(1) + "\r\n", ""));
  });
  std::string refusing;
  { refusing = server(closes).url(); }
  struct {
    std::string_view name;
    std::string url;
    std::string_view words;
  } const failures[]{
      {"a name that is not resolved", "http://host.invalid/file", "attempt 4: Could not resolve host"},
      {"a port without a server", refusing, "attempt 4: Failed to connect"},
      {"a redirection to a name that is not resolved", redirects.url("/http://host.invalid/"),
       "attempt 4: Could not resolve host"},
      {"a redirection to a port without a server", redirects.url("/" + refusing), "attempt 4: Failed to connect"},
      {"a redirection to a local file", redirects.url("/file:///etc/passwd"), "rotocol"},
      {"a redirection to a port that is none", redirects.url("/http://127.0.0.1:99999/"), "Port number"},
  };
  http_source web(quick_options());
  for (const auto& each : failures) {
    INFO(each.name);
    for (int i = 0; i < 2; ++i) {
      const read_result got = read_bytes(web, {each.url, 20000, "\"one\"", {}}, wanted_first, wanted_size);
      INFO(got.cause.reason);
      CHECK(got.cause);
      CHECK(hocket_test::contains(got.cause.reason, each.words));
    }
    const read_result got = read_bytes(web, {good.url(), 20000, "\"one\"", {}}, wanted_first, wanted_size);
    CHECK(got.cause.reason == "");
    CHECK((got.bytes == wanted_bytes()));
  }
}

TEST_CASE("requests, retries and bytes are counted") {
  const server tested(at_first(2, ends_after(777)));
  http_source web(quick_options());
  const auto counts = web.counts();
  CHECK(counts->requests + counts->retries + counts->bytes == 0);
  const remote_file file{tested.url(), 20000, "\"one\"", {}};
  CHECK(!read_bytes(web, file, wanted_first, wanted_size).cause);
  CHECK(counts->requests == 3);
  CHECK(counts->retries == 2);
  CHECK(counts->bytes == wanted_size);
  CHECK(!read_bytes(web, file, 0, 10).cause);
  CHECK(counts->requests == 4);
  CHECK(counts->retries == 2);
  CHECK(counts->bytes == wanted_size + 10);
}

TEST_CASE("a host without a server is unreachable") {
  std::string url;
  { url = server(closes).url(); }
  http_source web(quick_options());
  const read_result got = read_bytes(web, {url, 20000, "\"one\"", {}}, wanted_first, wanted_size);
  CHECK(got.cause.code == errc::unreachable);
  CHECK(hocket_test::contains(got.cause.reason, "attempt 4: Failed to connect"));
}
