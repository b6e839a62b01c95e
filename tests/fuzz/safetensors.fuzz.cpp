// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Headers of safetensors files: the input is the begin of a file; its last byte says how many bytes of data follow.
#include "fuzz.hpp"

#include <hocket/checkpoint/safetensors.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hocket::checkpoint;
  using fuzz::require;
  if (size == 0) return 0;
  const std::uint64_t data_bytes = data[size - 1];
  const std::string bytes(reinterpret_cast<const char*>(data), size - 1);
  std::array<std::byte, safetensors_length_bytes> front{};
  std::memcpy(front.data(), bytes.data(), std::min(bytes.size(), front.size()));
  std::string problem;
  const std::uint64_t length = safetensors_header_length(front, bytes.size() + data_bytes, problem);
  if (!problem.empty() || bytes.size() < safetensors_length_bytes) return 0;
  safetensors_header found;
  const std::string json = bytes.substr(safetensors_length_bytes, length);
  if (!read_safetensors_header(json, data_bytes, found).empty()) return 0;
  std::uint64_t covered = 0;
  for (const stored_tensor& each : found.tensors) {
    require(each.end <= data_bytes && each.begin <= each.end, "tensors are within the data");
    covered += each.end - each.begin;
  }
  require(covered == data_bytes, "tensors have all bytes once");
  const std::string encoded = encode_safetensors_header(found, 8);
  safetensors_header again;
  require(read_safetensors_header(encoded.substr(safetensors_length_bytes), data_bytes, again).empty(),
          "an encoded header is read");
  require(encode_safetensors_header(again, 8) == encoded, "a header is read as it was encoded");
  return 0;
}
