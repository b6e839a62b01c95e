// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// hocket-checkpoint lists, shows, verifies and converts the checkpoints that hocket::checkpoint::store writes. See
/// `hocket-checkpoint --help`.
#include "convert.hpp"
#include "progress.hpp"
#include "show.hpp"
#include "text.hpp"

#include <hocket/checkpoint/folder.hpp>
#include <hocket/checkpoint/shard_reader.hpp>

#include <CLI/CLI.hpp>

#include <cstdio>
#include <exception>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using namespace checkpoint_tool;
using hocket::checkpoint::folder;
using hocket::checkpoint::manifest;
using hocket::checkpoint::position;

constexpr int failed = 1;
constexpr int bad_usage = 2;

int list(const std::string& path) {
  hocket::platform::file_system files;
  const folder all(files, path);
  bool is_damaged = false;
  std::printf("%-28s %10s %8s %14s %8s\n", "checkpoint", "step", "epoch", "bytes", "tensors");
  for (const position& each : valid_in(all)) {
    std::string text;
    manifest found;
    if (const hocket::failure cause = all.read(each, text, found)) {
      std::printf("%-28s %s\n", name_of(each).c_str(), cause.reason.c_str());
      is_damaged = true;
      continue;
    }
    std::printf("%-28s %10llu %8llu %14s %8zu\n", name_of(each).c_str(), number(each.step), number(each.epoch),
                bytes_text(bytes_in(found)).c_str(), found.tensors.size());
  }
  return is_damaged ? failed : 0;
}

int show(const std::string& path, const std::string& name, bool as_json) {
  if (!std::filesystem::is_regular_file(path)) return show_checkpoint(path, name, as_json);
  if (!name.empty()) throw std::runtime_error("--at is for a folder of checkpoints, and '" + path + "' is a file");
  return show_file(path, as_json);
}

int verify(const std::string& path, const std::string& name) {
  hocket::platform::file_system files;
  const folder all(files, path);
  std::vector<position> which = name.empty() ? valid_in(all) : std::vector{position_of(name)};
  bool is_damaged = false;
  for (const position& each : which) {
    std::string text;
    manifest found;
    hocket::failure cause = all.read(each, text, found);
    if (!cause) {
      progress bar("verifying " + name_of(each), bytes_in(found));
      cause =
          hocket::checkpoint::verify(files, all.path_of(each), found, [&](std::uint64_t bytes) { bar.show(bytes); });
    }
    std::printf("%s: %s\n", name_of(each).c_str(), cause ? cause.reason.c_str() : "whole");
    is_damaged = is_damaged || cause;
  }
  return is_damaged ? failed : 0;
}

}  // namespace

int main(int count, char** arguments) {
  std::string path, name, to, file;
  int ranks = 0;
  bool as_json = false;
  CLI::App app("Lists, shows, verifies and converts the checkpoints of a training.");
  app.require_subcommand(1);
  const auto add = [&](const char* command, const char* what) {
    CLI::App* const added = app.add_subcommand(command, what);
    added->add_option("FOLDER", path, "the folder of all checkpoints, which has folders such as step-200.0.1")
        ->required();
    return added;
  };
  CLI::App* const list_command = add("list", "lists the checkpoints, newest first");
  CLI::App* const show_command = add("show", "shows the tensors of a checkpoint, or of one safetensors file");
  show_command->add_flag("--json", as_json, "print the manifest, or the header of the file");
  CLI::App* const verify_command = add("verify", "reads all bytes, and compares their checksums");
  CLI::App* const convert_command = add("convert", "writes a checkpoint for another number of ranks, or as one file");
  const char* const newest = "name of the checkpoint, such as step-200.0.1 (default: the newest)";
  show_command->add_option("--at", name, newest);
  verify_command->add_option("--at", name, "name of the checkpoint, such as step-200.0.1 (default: all)");
  convert_command->add_option("--at", name, newest);
  CLI::Option* const by_ranks =
      convert_command->add_option("--ranks", ranks, "number of files, each with an equal share of each tensor")
          ->check(CLI::Range(1, 4096));
  convert_command->add_option("--to", to, "the folder of checkpoints to write to")->needs(by_ranks);
  by_ranks->needs("--to");
  convert_command->add_option("--file", file, "one safetensors file, with whole tensors, which must not exist")
      ->excludes(by_ranks);
  app.footer(
      "Exit status: 0 for success, 1 if a checkpoint is damaged or can't be read, 2 if the arguments are wrong.");
  try {
    app.parse(count, arguments);
    if (*convert_command && to.empty() && file.empty())
      throw CLI::RequiredError("--ranks N --to FOLDER, or --file FILE");
  } catch (const CLI::ParseError& problem) {
    return app.exit(problem) == 0 ? 0 : bad_usage;
  }
  try {
    if (*list_command) return list(path);
    if (*show_command) return show(path, name, as_json);
    if (*verify_command) return verify(path, name);
    return file.empty() ? convert_to_ranks(path, name, to, ranks) : convert_to_file(path, name, file);
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "hocket-checkpoint: %s\n", problem.what());
    return failed;
  }
}
