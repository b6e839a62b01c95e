// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// pictures FOLDER
//
// Fails if a picture in FOLDER, docs/pictures, is not well-formed, does not shrink with its window, has no colours for dark
// pages, or has words that contrast too little with what is below them. Prints each offence as FILE: what is wrong.
#include "draw/picture.hpp"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace {

std::string offence_of(const std::string& picture) {
  std::string found = draw_test::malformed(picture);
  if (found.empty()) found = draw_test::unfit_for_pages(picture);
  if (!found.empty()) return found;
  found = draw_test::faint_words(picture);
  return found.empty() ? "" : "hard to read: " + found;
}

}  // namespace

int main(int count, char** arguments) try {
  if (count != 2) {
    std::fprintf(stderr, "usage: pictures FOLDER\n");
    return 2;
  }
  std::vector<std::filesystem::path> paths;
  for (const auto& each : std::filesystem::directory_iterator(arguments[1])) {
    if (each.path().extension() == ".svg") paths.push_back(each.path());
  }
  std::sort(paths.begin(), paths.end());
  int offences = 0;
  for (const std::filesystem::path& path : paths) {
    std::ifstream file(path);
    const std::string found = offence_of(std::string(std::istreambuf_iterator<char>(file), {}));
    if (found.empty()) continue;
    std::printf("%s: %s\n", path.filename().c_str(), found.c_str());
    ++offences;
  }
  std::printf("%zu pictures, %d offences\n", paths.size(), offences);
  return offences != 0 || paths.empty();
} catch (const std::exception& error) {
  std::fprintf(stderr, "pictures: %s\n", error.what());
  return 2;
}
