// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Files of a folder as remote files.
#include "support/catch.hpp"
#include "support/scratch.hpp"

#include <hocket/core/error.hpp>
#include <hocket/data/cache/file_cache.hpp>
#include <hocket/data/remote/folder_source.hpp>

#include <array>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <span>
#include <string>

TEST_CASE("files of a folder are read, and changes between two reads are errors") {
  using hocket::data::remote_file;
  const hocket_test::scratch_directory scratch;
  hocket::data::folder_source tested(scratch.path());
  const std::string path = scratch.path() + "/a";
  std::array<char, 3> read{};
  const auto into = std::as_writable_bytes(std::span(read));
  struct change {
    std::function<void()> make;
    std::string expected;
  };
  for (const change& each : {
           change{[] {}, ""},
           change{[&] { scratch.write("a", "01234"); }, "' has changed while it was used: it had 6 bytes (changed at "},
           change{[&] {
                    scratch.write("a", "abcdef");
                    std::filesystem::last_write_time(
                        path, std::filesystem::file_time_type::clock::now() + std::chrono::seconds(5));
                  },
                  "' has changed while it was used"},
           change{[&] { std::filesystem::remove(path); }, "cannot open '" + path + "': No such file"},
       }) {
    scratch.write("a", "012345");
    remote_file file;
    CHECK_FALSE(tested.describe("a", file));
    CHECK(file.bytes == 6);
    each.make();
    const hocket::failure found = tested.read(file, 2, into);
    CHECK_THAT(found.reason, Catch::Contains(each.expected));
    CHECK(static_cast<bool>(found) == !each.expected.empty());
    if (!found) CHECK(std::string(read.data(), 3) == "234");
  }
  remote_file missing;
  CHECK_THAT(tested.describe("none", missing).reason, Catch::Contains("cannot open '" + scratch.path() + "/none'"));
  CHECK_THAT(tested.describe(".", missing).reason, Catch::Contains("cannot open '"));
}
