// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The fields of HTTP answers: what is read from them, and what is refused. No request is made.
#include "support/catch.hpp"

#include <hocket/data/remote/http_fields.hpp>
#include <hocket/data/remote/range_answer.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace hocket::data::detail;

/// Returns "first-last/total", with "*" for what is not stated; empty if the value is refused.
std::string content_range_text(std::string_view value) {
  const auto found = parse_content_range(value);
  if (!found) return "";
  const std::string range =
      found->is_satisfied ? std::to_string(found->first) + "-" + std::to_string(found->last) : std::string("*");
  return range + "/" + (found->total ? std::to_string(*found->total) : std::string("*"));
}

}  // namespace

TEST_CASE("Content-Range has a range within the file, or the length of the file") {
  for (const std::string valid : {"0-0/1", "0-9/10", "5-9/*", "*/0", "*/18446744073709551615",
                                  "18446744073709551613-18446744073709551614/18446744073709551615"})
    CHECK(content_range_text("bytes " + valid) == valid);
  CHECK(content_range_text("Bytes  0-9/10") == "0-9/10");
  for (const std::string_view invalid :
       {"", "bytes", "bytes ", "bytes */*", "bytes /", "bytes 0-/1", "bytes -0/1", "bytes 0/1", "bytes 0-9",
        "bytes 1-0/9", "bytes 0-9/9", "bytes 0-9/-1", "bytes +0-9/10", "bytes 0 - 9/10",
        "bytes 0-9/18446744073709551616", "bytes=0-9/10", "items 0-9/10", "bytes 0x0-9/10", "bytes 0-9/10,20-29/30"}) {
    INFO(invalid);
    CHECK(content_range_text(invalid) == "");
  }
}

TEST_CASE("an ETag is a text in quotes") {
  for (const std::string_view valid : {"\"\"", "\"x\"", "W/\"x\"", "\"a,b-2\""}) CHECK(parse_etag(valid) == valid);
  for (const std::string_view invalid :
       {"", "\"", "x", "x\"", "\"x", "w/\"x\"", "W/", "W/\"", "\"x\"y\"", "\"x y\"", "\"\x80\""}) {
    INFO(invalid);
    CHECK(!parse_etag(invalid));
  }
}

TEST_CASE("a checksum is four bytes in base64") {
  CHECK(parse_crc32c("4waSgw==") == 0xe3069283U);
  CHECK(parse_crc32c("AAAAAA==") == 0U);
  CHECK(parse_crc32c("/////w==") == 0xffffffffU);
  for (const std::string_view invalid : {"", "4waSgw", "4waSgw==-2", "4waSgwA=", "4wa!gw==", "4waSgw==4waSgw=="})
    CHECK(!parse_crc32c(invalid));
}

TEST_CASE("only the code of an error document is used") {
  CHECK(storage_error_code("<?xml?><Error><Code>NoSuchKey</Code><Key>k</Key></Error>") == "NoSuchKey");
  for (const std::string_view none : {"", "<Code>", "<Code>NoSuchKey", "<Code>a b</Code>", "<Code>a\x1b[0m</Code>"})
    CHECK(storage_error_code(none) == "");
  CHECK(storage_error_code("<Code>" + std::string(65, 'x') + "</Code>") == "");
}

TEST_CASE("names of object storage have a bucket and a key") {
  const auto found = parse_storage_name("s3://my.bucket-1/a//b/");
  REQUIRE(found);
  CHECK(found->bucket == "my.bucket-1");
  CHECK(found->key == "a//b/");
  CHECK(encoded_path("aZ09-._~/ %+\xff") == "aZ09-._~/%20%25%2B%FF");
}

TEST_CASE("objects have URLs") {
  struct {
    std::string_view endpoint, bucket, url;
  } const cases[]{
      {"", "bucket", "https://bucket.s3.eu-west-3.amazonaws.com/a%20b/c"},
      {"", "my.bucket", "https://s3.eu-west-3.amazonaws.com/my.bucket/a%20b/c"},
      {"http://host:9000", "bucket", "http://host:9000/bucket/a%20b/c"},
      {"https://host/storage//", "my.bucket", "https://host/storage/my.bucket/a%20b/c"},
  };
  for (const auto& each : cases) CHECK(storage_url(each.endpoint, "eu-west-3", {each.bucket, "a b/c"}) == each.url);
}

TEST_CASE("a URL is shown without its query and its user name") {
  CHECK(shown_url("http://user:password@host/a@b") == "http://...@host/a@b");
  CHECK(shown_url("http://host/a@b") == "http://host/a@b");
  CHECK(shown_url("http://host/a?b=c") == "http://host/a?...");
  CHECK(shown_url("s3://bucket/\xff") == "s3://bucket/\xef\xbf\xbd");
}

TEST_CASE("a status line begins the fields again") {
  answer_fields fields;
  for (const std::string_view line :
       {"HTTP/1.1 302 Found\r\n", "ETag: \"a\"\r\n", "Content-Range: bytes 0-0/1\r\n", "\r\n", "HTTP/2 206\r\n",
        "etag:\"b\"\r\n", "CONTENT-RANGE: bytes 0-1/2\r\n", "no colon\r\n"})
    fields.add(line);
  CHECK(fields.problem() == "");
  CHECK(fields.version() == "\"b\"");
  REQUIRE(fields.range);
  CHECK(fields.range->last == 1);
}
