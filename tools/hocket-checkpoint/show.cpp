// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "show.hpp"
#include "text.hpp"

#include <hocket/checkpoint/folder.hpp>
#include <hocket/checkpoint/safetensors.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <system_error>

namespace checkpoint_tool {

namespace {

using namespace hocket::checkpoint;

/// Returns a text of a file in one line. Control characters could change what the terminal shows.
std::string shown(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }, '?');
  return text;
}

template <class Metadata>
void print_metadata(const Metadata& metadata) {
  for (const auto& [key, value] : metadata) std::printf("%s: %s\n", shown(key).c_str(), shown(value).c_str());
  std::printf("\n%-40s %-8s %-24s %14s %8s\n", "tensor", "type", "shape", "bytes", "parts");
}

void print_tensor(const std::string& name, element_type type, const sizes_type& extents, std::size_t parts) {
  std::printf("%-40s %-8s %-24s %14s %8zu\n", shown(name).c_str(), std::string(name_of(type)).c_str(),
              shape_text(extents).c_str(), bytes_text(whole_of(extents).volume() * bytes_of(type)).c_str(), parts);
}

/// Reads the header of a safetensors file, and its JSON. Throws an error that names the file if it is none.
safetensors_header read_header(const std::string& path, std::string& json) {
  const auto fail = [&](const std::string& problem) { throw std::runtime_error("'" + path + "': " + problem); };
  std::ifstream file(path, std::ios::binary);
  if (!file) fail(std::generic_category().message(errno));
  const std::uint64_t bytes = std::filesystem::file_size(path);
  std::array<std::byte, safetensors_length_bytes> front{};
  file.read(reinterpret_cast<char*>(front.data()), front.size());
  std::string problem;
  const std::uint64_t length = safetensors_header_length(front, bytes, problem);
  if (!problem.empty()) fail(problem);
  json.resize(static_cast<std::size_t>(length));
  file.read(json.data(), static_cast<std::streamsize>(length));
  if (!file) fail("the header can't be read");
  safetensors_header result;
  problem = read_safetensors_header(json, bytes - safetensors_length_bytes - length, result);
  if (!problem.empty()) fail(problem);
  return result;
}

}  // namespace

int show_checkpoint(const std::string& path, const std::string& name, bool as_json) {
  hocket::platform::file_system files;
  const folder all(files, path);
  std::string text;
  const manifest found = manifest_of(all, name, text);
  if (as_json) {
    std::fputs(text.c_str(), stdout);
    return 0;
  }
  std::printf("%s: %zu tensors, %s in %zu files\n", name_of(found.at).c_str(), found.tensors.size(),
              bytes_text(bytes_in(found)).c_str(), found.shards.size());
  print_metadata(found.metadata);
  for (const tensor_description& each : found.tensors)
    print_tensor(each.name, each.type, each.extents, each.parts.size());
  return 0;
}

int show_file(const std::string& path, bool as_json) {
  std::string json;
  const safetensors_header found = read_header(path, json);
  if (as_json) {
    std::printf("%s\n", json.c_str());
    return 0;
  }
  std::uint64_t bytes = 0;
  for (const stored_tensor& each : found.tensors) bytes += each.end - each.begin;
  std::printf("%s: %zu tensors, %s\n", path.c_str(), found.tensors.size(), bytes_text(bytes).c_str());
  print_metadata(found.metadata);
  for (const stored_tensor& each : found.tensors) print_tensor(each.name, each.type, each.extents, 1);
  return 0;
}

}  // namespace checkpoint_tool
