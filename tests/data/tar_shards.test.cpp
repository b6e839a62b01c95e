// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Tar files by their index. tests/tools/hocket_data has the tests of indices of real tar files.
#include <hocket/core/error.hpp>
#include <hocket/data/loader.hpp>
#include <hocket/data/order.hpp>
#include <hocket/data/tar_index.hpp>
#include <hocket/data/tar_shards.hpp>

#include "support/catch.hpp"
#include "support/scratch.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using namespace hocket::data;

/// Writes a shard of samples "0" to "count - 1"; sample i has a file `txt` with `name` and i, and an empty file `b.c`.
std::string write_shard(const hocket_test::scratch_directory& scratch, const std::string& name, std::size_t count) {
  std::string bytes(512, '\0');
  tar_index index;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string content = name + std::to_string(i);
    index.samples.push_back({std::to_string(i), {{"txt", bytes.size(), content.size()}, {"b.c", bytes.size(), 0}}});
    bytes += content;
  }
  index.bytes = bytes.size();
  scratch.write(name, bytes);
  scratch.write(name + ".index", encode_tar_index(index));
  return scratch.path() + '/' + name;
}

std::string text_of(const tar_sample& sample) {
  const auto bytes = sample.find("txt");
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

TEST_CASE("samples of several tar files are read by their number") {
  const hocket_test::scratch_directory scratch;
  const tar_shards tested({write_shard(scratch, "a", 2), write_shard(scratch, "b", 0), write_shard(scratch, "c", 3)});
  CHECK(tested.sizes() == std::vector<std::uint64_t>{2, 0, 3});
  std::vector<std::string> found;
  for (std::uint64_t i = 0; i < tested.size(); ++i) found.push_back(text_of(tested.sample(i)));
  CHECK(found == std::vector<std::string>{"a0", "a1", "c0", "c1", "c2"});
  const tar_sample last = tested.sample(4);
  CHECK(last.key == "2");
  CHECK(last.files.size() == 2);
  CHECK(last.find("b.c").empty());
  CHECK(last.find("jpg").empty());
  CHECK_THROWS_WITH(tested.sample(5), Catch::Contains("sample 5 is asked for, and there are 5"));
  CHECK(tar_shards({}).size() == 0);

  loader batches(order(listed_shards{tested.sizes(), 1}, 3), tested, share(0, 1), {.batch = 2});
  std::vector<std::string> loaded;
  for (const auto& batch : batches.epoch()) {
    for (const tar_sample& each : batch.samples) loaded.push_back(text_of(each));
  }
  std::sort(loaded.begin(), loaded.end());
  CHECK(loaded == found);
}

TEST_CASE("names of files are split at the first dot after the last slash") {
  using parts = std::pair<std::string_view, std::string_view>;
  CHECK(split_name("a.jpg") == parts{"a", "jpg"});
  CHECK(split_name("x.y/a.seg.png") == parts{"x.y/a", "seg.png"});
  CHECK(split_name("x.y/a") == parts{"x.y/a", ""});
  CHECK(split_name("x/.a") == parts{"x/", "a"});
  CHECK(split_name("") == parts{"", ""});
}

TEST_CASE("an index that is damaged, or of another file, is an error that names it") {
  const hocket_test::scratch_directory scratch;
  const std::string path = write_shard(scratch, "a", 2), index = path + ".index";
  const std::string valid = hocket_test::read_file(index);
  CHECK_NOTHROW(tar_shards({path}));
  const auto replaced = [&](const std::string& what, const std::string& with) {
    std::string text = valid;
    return text.replace(text.find(what), what.size(), with);
  };
  struct fault {
    std::string text, expected;
  };
  for (const fault& each : {
           fault{"", "'" + index + "': byte 0: "},
           fault{valid.substr(0, valid.size() / 2), "'" + index + "': byte "},
           fault{replaced("hocket tar index", "other"), "it is no index that hocket-data has written"},
           fault{replaced("\"version\":1", "\"version\":9"), "version 9 of the format"},
           fault{replaced("\"at\":512", "\"at\":99999"), "a file is not within the 516 bytes"},
           fault{replaced("\"at\":512", "\"at\":-1"), "'" + index + "': byte "},
           fault{replaced("\"bytes\":516", "\"bytes\":517"),
                 "'" + path + "' has 516 bytes, and its index is of a file of 517"},
       }) {
    scratch.write("a.index", each.text);
    CHECK_THROWS_WITH(tar_shards({path}), Catch::Contains(each.expected));
  }
  CHECK_THROWS_WITH(tar_shards({scratch.path() + "/none"}), Catch::Contains("cannot map '"));
}
