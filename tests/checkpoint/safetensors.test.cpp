// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Headers of safetensors files.
#include <hocket/checkpoint/safetensors.hpp>

#include "support/catch.hpp"

#include <array>
#include <cstddef>
#include <cstring>
#include <string>

namespace {

using namespace hocket::checkpoint;

/// Reads the header at the beginning of a file that `data_bytes` bytes follow; returns what is wrong with it.
std::string read_file_header(const std::string& bytes, std::uint64_t data_bytes, safetensors_header& result) {
  std::array<std::byte, safetensors_length_bytes> front{};
  std::memcpy(front.data(), bytes.data(), std::min(bytes.size(), front.size()));
  std::string problem;
  const std::uint64_t length = safetensors_header_length(front, bytes.size() + data_bytes, problem);
  if (!problem.empty()) return problem;
  return read_safetensors_header(std::string_view(bytes).substr(safetensors_length_bytes, length), data_bytes, result);
}

std::string problem_with(const std::string& json, std::uint64_t data_bytes) {
  safetensors_header ignored;
  return read_safetensors_header(json, data_bytes, ignored);
}

}  // namespace

TEST_CASE("a safetensors header is read as it was written, and has the alignment that was asked for") {
  const safetensors_header written{{{"weight", element_type::bf16, {2, 3}, 0, 12},
                                    {"a \"b\"\n", element_type::f64, {}, 12, 20},
                                    {"empty", element_type::u8, {0, 7}, 20, 20},
                                    {"flags", element_type::boolean, {5}, 20, 25}},
                                   {{"step", "200"}, {"", "\u00e9"}}};
  for (const std::size_t alignment : {8U, 4096U}) {
    const std::string bytes = encode_safetensors_header(written, alignment);
    CHECK(bytes.size() % alignment == 0);
    safetensors_header read;
    REQUIRE(read_file_header(bytes, 25, read) == "");
    CHECK(read.metadata == written.metadata);
    REQUIRE(read.tensors.size() == written.tensors.size());
    for (std::size_t i = 0; i < read.tensors.size(); ++i) {
      const stored_tensor &one = read.tensors[i], &other = written.tensors[i];
      CHECK(one.name == other.name);
      CHECK(one.type == other.type);
      CHECK(one.extents == other.extents);
      CHECK((one.begin == other.begin && one.end == other.end));
    }
  }
  safetensors_header none;
  CHECK(read_file_header(encode_safetensors_header({}, 8), 0, none) == "");
}

TEST_CASE("every element type has a name and a size") {
  for (std::size_t i = 0; i < detail::element_types.size(); ++i) {
    const auto type = static_cast<element_type>(i);
    CHECK(element_type_named(name_of(type)) == type);
    CHECK(bytes_of(type) >= 1);
  }
  CHECK_FALSE(element_type_named("F128"));
  CHECK(name_of(element_type_of<hocket::bfloat16>()) == "BF16");
  CHECK(name_of(element_type_of<long>()) == "I64");
  CHECK(name_of(element_type_of<std::byte>()) == "U8");
}

TEST_CASE("damaged and hostile safetensors headers are refused, with the reason") {
  const std::string good = R"("w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]})";
  struct {
    std::string json;
    std::string problem;
  } const cases[] = {
      {"", "byte 8: the header is no JSON object"},
      {" {}", "byte 8: the header is no JSON object"},
      {"{", "header: a text was expected at byte 1 of it"},
      {"{}", "header: its tensors have 0 bytes, but 8 follow"},
      {"{" + good + "," + good + "}", "header: the object before has the key \"w\" twice at byte 107 of it"},
      {R"({"w":{"dtype":"F31","shape":[2],"data_offsets":[0,8]}})", "header: an unknown dtype at byte 14 of it"},
      {R"({"w":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})",
       "header: a whole number was expected at byte 29 of it"},
      {R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0]}})",
       "header: data_offsets are not two numbers at byte 48 of it"},
      {R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,9]}})",
       "header: the data_offsets of tensor \"w\" do not fit its shape and dtype at byte 50 of it"},
      {R"({"w":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}})",
       "header: the data_offsets of tensor \"w\" do not fit its shape and dtype at byte 70 of it"},
      {R"({"w":{"dtype":"F32","data_offsets":[0,8]}})",
       "header: tensor \"w\" lacks dtype, shape or data_offsets at byte 38 of it"},
      {R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"x":1}})",
       "header: an unknown key \"x\" at byte 53 of it"},
      {R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
       "header: tensor \"w\" begins at byte 4 of the data, where byte 0 is the first that is not used"},
      {"{" + good + R"(,"v":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
       "header: tensor \"v\" begins at byte 4 of the data, where byte 8 is the first that is not used"},
      {R"({"__metadata__":{"a":1}})", "header: a text was expected at byte 21 of it"},
  };
  for (const auto& each : cases) {
    CAPTURE(each.json);
    CHECK(problem_with(each.json, 8) == each.problem);
  }
  safetensors_header ignored;
  CHECK(read_file_header(std::string("\xff\xff\xff\xff\xff\xff\xff\x7f", 8), 100, ignored) ==
        "byte 0: a header of 9223372036854775807 bytes does not fit into 108 bytes");
  CHECK(read_file_header("abc", 0, ignored) == "byte 0: a header of 6513249 bytes does not fit into 3 bytes");
  CHECK(read_file_header(std::string("\x01\xe1\xf5\x05\0\0\0\0", 8), 200'000'000, ignored) ==
        "byte 0: the header has 100000001 bytes, more than the 100000000 that are allowed");
}
