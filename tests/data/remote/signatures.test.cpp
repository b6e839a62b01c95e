// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Objects in storage that checks signatures. signatures.py starts it, and sets the variables that name it.
// needs: curl
#include "data/remote/remote_reads.hpp"
#include "support/catch.hpp"
#include "support/text.hpp"

#include <hocket/data/remote/curl.hpp>

#include <cstdint>
#include <string>

TEST_CASE("objects are read from storage that checks signatures", "[.][signatures]") {
  using namespace http_test;
  auto options = quick_options();
  options.s3 = hocket::data::s3_from_environment();
  REQUIRE(!options.s3.access_key.empty());
  hocket::data::http_source web(options);

  for (const std::string name : {"s3://shards/plain", "s3://shards/a folder/b+c=d&\xc3\xa4~(1).tar"}) {
    INFO(name);
    hocket::data::remote_file found;
    REQUIRE(web.describe(name, found).reason == "");
    CHECK(found.bytes == 900'000);
    CHECK(hocket::data::detail::is_strong_etag(found.version));
    for (const std::uint64_t first : {std::uint64_t{0}, std::uint64_t{123'457}, found.bytes - 1}) {
      const read_result got = read_bytes(web, found, first, static_cast<std::size_t>(found.bytes - first));
      CHECK(got.cause.reason == "");
      bool is_right = true;  // the object repeats the digits from 1 to 9
      for (std::size_t i = 0; i < got.bytes.size(); ++i)
        is_right = is_right && got.bytes[i] == static_cast<char>('1' + (first + i) % 9);
      CHECK(is_right);
    }
    found.version = "\"another\"";
    CHECK(read_bytes(web, found, 0, 10).cause.code == hocket::errc::corrupted);
  }

  hocket::data::remote_file found;
  REQUIRE(web.describe("s3://shards/checksum", found).reason == "");
  CHECK(found.crc32c == 0xe3069283U);  // of "123456789"
  CHECK(hocket_test::contains(web.describe("s3://shards/none", found).reason, "status 404"));

  const hocket::data::remote_file plain{"s3://shards/plain", 900'000, "", {}};
  options.s3.secret_key += "x";
  hocket::data::http_source wrong(options);
  CHECK(hocket_test::contains(wrong.describe("s3://shards/plain", found).reason, "status 403: check the credentials"));
  CHECK(hocket_test::contains(read_bytes(wrong, plain, 0, 1).cause.reason, "status 403 (SignatureDoesNotMatch)"));
}
