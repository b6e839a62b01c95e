// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// hocket-data checks files of samples, and writes the indices of tar files. See `hocket-data --help`.
#include "check.hpp"

#include <CLI/CLI.hpp>

#if defined(HOCKET_DATA_HAS_ARCHIVE)
#include <hocket/data/archive.hpp>
#endif

#include <cstdint>
#include <cstdio>
#include <exception>
#include <limits>
#include <map>
#include <string>
#include <vector>

namespace {

using namespace data_tool;

constexpr int failed = 1;
constexpr int bad_usage = 2;

#if defined(HOCKET_DATA_HAS_ARCHIVE)
constexpr bool has_archive = true;
#else
constexpr bool has_archive = false;
#endif

int index(const std::vector<std::string>& paths) {
#if defined(HOCKET_DATA_HAS_ARCHIVE)
  for (const std::string& each : paths) {
    const hocket::data::tar_content found = hocket::data::write_tar_index(each);
    for (const std::string& name : found.left_out)
      std::fprintf(stderr, "hocket-data: '%s' has no key and kind: it is left out\n", name.c_str());
    std::printf("%s.index: %zu samples\n", each.c_str(), found.index.samples.size());
  }
  return 0;
#else
  std::fprintf(stderr, "hocket-data: %s: this program was built without libarchive, which `index` needs\n",
               paths.front().c_str());
  return failed;
#endif
}

}  // namespace

int main(int count, char** arguments) {
  check_options options;
  std::vector<std::string> paths;
  const std::map<std::string, file_type> types{{"tokens16", file_type::tokens16}, {"tokens32", file_type::tokens32},
                                               {"indexed", file_type::indexed},   {"npy", file_type::npy},
                                               {"text", file_type::text},         {"tar", file_type::tar}};
  CLI::App app("Checks files of training samples, and writes the indices of tar files.");
  app.require_subcommand(1);
  CLI::App* const check_command =
      app.add_subcommand("check", "finds samples that are empty, occur twice, are out of range, or are damaged");
  check_command->add_option("FILE", paths, "files of samples")->required();
  std::string type;
  const char* const by_name = "how they are read (default: by the name: .npy, .tar, .idx, .bin of 16 bits, or text)";
  check_command->add_option("--type", type, by_name)
      ->check(CLI::IsMember({"tokens16", "tokens32", "indexed", "npy", "text", "tar"}));
  check_command->add_option("--length", options.length, "tokens of a sample of a token file (default: 1024)")
      ->check(CLI::Range(std::uint64_t{1}, std::numeric_limits<std::uint64_t>::max()));
  check_command->add_option("--vocabulary", options.vocabulary, "tokens must be below this number (default: any)");
  check_command->add_option("--list", options.most_listed, "findings of each kind that are listed (default: 5)");
  CLI::App* const index_command = app.add_subcommand(
      "index", has_archive ? "writes FILE.tar.index, by which the samples of FILE.tar are read in any order"
                           : "not available: this program was built without libarchive");
  index_command->add_option("FILE", paths, "tar files without compression")->required();
  app.footer(
      "Exit status: 0 for success, 1 if something was found or a file can't be read, 2 if the arguments are wrong.");
  try {
    app.parse(count, arguments);
  } catch (const CLI::ParseError& problem) {
    return app.exit(problem) == 0 ? 0 : bad_usage;
  }
  try {
    if (*index_command) return index(paths);
    if (!type.empty()) options.type = types.at(type);
    bool is_any = false;
    for (const std::string& each : paths) {
      options.path = each;
      is_any = has_findings(options) || is_any;
    }
    return is_any ? failed : 0;
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "hocket-data: %s\n", problem.what());
    return failed;
  }
}
