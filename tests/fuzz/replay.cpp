// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// replay PATH...: runs a fuzz target, without a fuzzer, on files and on the files in directories; and on each of them
/// truncated at every length, and with every byte set to 0x00 and to 0xff.
#include "fuzz.hpp"

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

namespace {

namespace files = std::filesystem;

// Only this number of bytes at the beginning of a file are truncated and changed.
constexpr std::size_t most_positions = 512;

std::string current_file;
const char* current_change = "";
std::size_t current_position = 0;

void say_which_input(int signal) {
  std::fprintf(stderr, "replay: failed on %s%s%zu\n", current_file.c_str(), current_change, current_position);
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

/// Copies the input to a separate allocation of exactly this size, so that sanitizers detect reads past its end.
void run(const std::vector<std::uint8_t>& bytes, std::size_t size, const char* change, std::size_t position) {
  current_change = change;
  current_position = position;
  const std::unique_ptr<std::uint8_t[]> exact(new std::uint8_t[size]);
  std::copy_n(bytes.begin(), size, exact.get());
  LLVMFuzzerTestOneInput(exact.get(), size);
}

std::size_t run_file(const files::path& path) {
  current_file = path.string();
  std::ifstream stream(path, std::ios::binary);
  if (!stream) {
    std::fprintf(stderr, "replay: cannot read %s\n", current_file.c_str());
    std::exit(1);
  }
  std::vector<std::uint8_t> bytes{std::istreambuf_iterator<char>(stream), {}};
  run(bytes, bytes.size(), ", all of it: ", bytes.size());
  std::size_t count = 1;
  for (std::size_t i = 0; i < std::min(bytes.size(), most_positions); ++i) {
    run(bytes, i, ", cut to length ", i);
    const std::uint8_t before = bytes[i];
    bytes[i] = 0x00;
    run(bytes, bytes.size(), ", with 0x00 at ", i);
    bytes[i] = 0xff;
    run(bytes, bytes.size(), ", with 0xff at ", i);
    bytes[i] = before;
    count += 3;
  }
  return count;
}

}  // namespace

int main(int argc, char** argv) {
  for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL}) std::signal(signal, say_which_input);
  std::vector<files::path> paths;
  for (int i = 1; i < argc; ++i) {
    if (files::is_directory(argv[i])) {
      for (const auto& entry : files::directory_iterator(argv[i])) paths.push_back(entry.path());
    } else {
      paths.emplace_back(argv[i]);
    }
  }
  std::sort(paths.begin(), paths.end());
  std::size_t inputs = 0;
  for (const files::path& path : paths) inputs += run_file(path);
  std::printf("%zu inputs out of %zu files\n", inputs, paths.size());
  return paths.empty() ? 1 : 0;
}
