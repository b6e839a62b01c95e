// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Manifests whose checksum is right, and whose contents are not: no reader may use them.
#include <hocket/checkpoint/folder.hpp>
#include <hocket/checkpoint/manifest.hpp>
#include <hocket/checkpoint/shard_reader.hpp>

#include "support/catch.hpp"
#include "support/scratch.hpp"
#include "support/text.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace {

using namespace hocket::checkpoint;
using hocket_test::contains;

/// A manifest of tensor "w" of 2 x 8 bytes, with these parts in one file.
manifest with_parts(const std::vector<rectangle>& parts) {
  manifest result;
  result.at = {0, 1, 1};
  result.shards.push_back({"shard", std::uint64_t{1} << 42, std::uint64_t{1} << 41});
  result.tensors.push_back({"w", element_type::u8, {2, 8}, {}});
  for (const rectangle& each : parts) result.tensors[0].parts.push_back({0, each, 0, 0, 0});
  return result;
}

/// Returns why a checkpoint with this manifest is not read; empty if it is.
std::string refusal_on_reading(const manifest& what) {
  const hocket_test::scratch_directory folder_of_all;
  const std::string name = name_of(what.at);
  std::filesystem::create_directory(folder_of_all.path() + '/' + name);
  folder_of_all.write(name + "/manifest.json", encode_manifest(what));
  hocket::platform::file_system files;
  std::string text;
  manifest found;
  const hocket::failure cause = folder(files, folder_of_all.path()).read(what.at, text, found);
  if (cause) CHECK(cause.code == hocket::errc::corrupted);
  return cause.reason;
}

}  // namespace

TEST_CASE("a manifest whose parts are not each element once is refused, whatever the sum of their volumes") {
  CHECK(refusal_on_reading(with_parts({whole_of({2, 8})})) == "");
  CHECK(refusal_on_reading(with_parts({{{0, 0}, {2, 4}}, {{0, 4}, {1, 4}}, {{1, 4}, {1, 4}}})) == "");
  struct {
    std::vector<rectangle> parts;
    const char* stated;
  } const cases[] = {
      {{{{0, 0}, {2, 4}}, {{0, 0}, {2, 4}}}, "parts [0:2, 0:4] and [0:2, 0:4] of tensor 'w' have elements in common"},
      {{{{0, 0}, {1, 8}}, {{0, 4}, {2, 4}}}, "parts [0:1, 0:8] and [0:2, 4:8] of tensor 'w' have elements in common"},
      {{{{0, 0}, {1, 8}}, {{1, 0}, {1, 7}}}, "the parts of tensor 'w' have 15 elements instead of 16"},
      {{}, "the parts of tensor 'w' have 0 elements instead of 16"},
  };
  for (const auto& each : cases) {
    CAPTURE(each.stated);
    const manifest what = with_parts(each.parts);
    CHECK(contains(refusal_on_reading(what), each.stated));
    hocket::platform::file_system files;
    CHECK(contains(verify(files, "none", what).reason, each.stated));
  }
}

TEST_CASE("a manifest with a name of two tensors, or with a part that is too large, is refused") {
  manifest twice = with_parts({whole_of({2, 8})});
  twice.tensors.push_back({"w", element_type::u8, {2, 2, 2, 2}, {{0, whole_of({2, 2, 2, 2}), 0, 0, 0}}});
  CHECK(contains(refusal_on_reading(twice), "it has two tensors \"w\""));

  manifest large = with_parts({});
  const std::uint64_t elements = std::uint64_t{1} << 40;
  large.tensors[0] = {"w", element_type::u8, {elements}, {{0, whole_of({elements}), 0, 0, 0}}};
  CHECK(contains(refusal_on_reading(large),
                 "a part of tensor \"w\" has 1099511627776 bytes, more than the 16777216 that a part may have"));
}

TEST_CASE("a part is compared with the type and the shape of its tensor, also where these follow it") {
  const std::string front = R"({"format":"hocket checkpoint","version":1,"epoch":0,"step":1,"attempt":1,"metadata":{},)"
                            R"("shards":[{"file":"s","bytes":64,"blocks_at":60}],"tensors":[{"name":"w",)"
                            R"("parts":[{"shard":0,"begin":[0],"size":[8],"at":32,"crc32c":0,"first_block":0}],)";
  const auto problem_with_type = [&](const std::string& type) {
    std::string text = front + "\"dtype\":\"" + type + R"(","shape":[8]}])";
    const std::uint32_t sum = hocket::crc32c().add(std::as_bytes(std::span(text))).value();
    text += ",\n\"crc32c\":" + std::to_string(sum) + "}\n";
    manifest found;
    return read_manifest(text, found);
  };
  CHECK(problem_with_type("F32") == "");
  CHECK(contains(problem_with_type("F64"), "a part of tensor \"w\" is not within the tensor and the file"));
}

TEST_CASE("tensors are found by their names, and what is not there is not") {
  manifest what;
  for (const char* const name : {"b", "a", "", "d", "c"}) what.tensors.push_back({name, element_type::u8, {}, {}});
  const tensor_index index(what);
  for (const tensor_description& each : what.tensors) CHECK(index.find(each.name) == &each);
  for (const char* const name : {"aa", "e", "B"}) CHECK(index.find(name) == nullptr);
  CHECK(index.find_twice() == nullptr);
}
