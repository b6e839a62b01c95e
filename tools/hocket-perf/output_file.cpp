// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "output_file.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <system_error>

#include <unistd.h>

namespace perf {

namespace {

/// Where the text of a file is written to first, and what it replaces then.
struct output_place {
  std::string written, replaced;  ///< equal where nothing is replaced
};

output_place destination_of(const std::string& file) {
  namespace fs = std::filesystem;
  std::error_code problem;
  const fs::file_status found = fs::status(file, problem);
  const bool is_new = !fs::exists(found) && !fs::is_symlink(fs::symlink_status(file, problem));
  if (!is_new && !fs::is_regular_file(found)) return {file, file};
  // A link stays: the file that it names is replaced.
  const fs::path named = fs::weakly_canonical(file, problem);
  const std::string replaced = problem ? file : named.string();
  return {replaced + ".unfinished-" + std::to_string(::getpid()), replaced};
}

bool write_text(const std::string& file, const std::string& text) {
  std::FILE* const opened = std::fopen(file.c_str(), "w");
  if (opened == nullptr) return false;
  const bool written = std::fwrite(text.data(), 1, text.size(), opened) == text.size();
  return std::fclose(opened) == 0 && written;
}

}  // namespace

bool can_write(const std::string& file) {
  const output_place place = destination_of(file);
  if (place.written == place.replaced) {
    if (!std::filesystem::is_directory(file))
      return ::access(file.c_str(), W_OK) == 0 || errno == ENOENT;  // a link to no file yet
    errno = EISDIR;
    return false;
  }
  if (::access(place.replaced.c_str(), W_OK) != 0 && errno != ENOENT) return false;
  const bool written = write_text(place.written, "");
  return written && std::remove(place.written.c_str()) == 0;
}

void write_file(const std::string& file, const std::string& text, const std::string& option) {
  const output_place place = destination_of(file);
  const bool replaces = place.written != place.replaced;
  bool done = write_text(place.written, text);
  if (done && replaces) done = std::rename(place.written.c_str(), place.replaced.c_str()) == 0;
  if (done) return;
  const std::string reason = std::strerror(errno);
  if (replaces) std::remove(place.written.c_str());
  throw std::runtime_error(option + ": cannot write '" + file + "': " + reason);
}

}  // namespace perf
