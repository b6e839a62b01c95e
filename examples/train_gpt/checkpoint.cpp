// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "checkpoint.hpp"

#include "report.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <stdexcept>
#include <utility>
#include <vector>

namespace gpt {
namespace {

namespace fs = std::filesystem;

constexpr const char* first_line = "train_gpt checkpoint, form 1";

std::string name_of(int steps) { return "step-" + std::to_string(steps); }

const char* precision_of(const checkpoint& part) { return part.narrow ? "bfloat16" : "float"; }

void write(std::ostream& file, const checkpoint& part) {
  file.precision(17);
  file << first_line << '\n';
  file << "ranks " << part.ranks << "\nsteps " << part.steps << ' ' << part.memory.optimizer_steps << ' '
       << part.skipped;
  file << "\nshape " << part.shape.layers << ' ' << part.shape.width << ' ' << part.shape.heads << ' '
       << part.shape.context << "\nseed " << part.seed << "\nprecision " << precision_of(part) << '\n';
  if (part.scale) {
    file << "scale " << part.scale->value << ' ' << part.scale->patience << ' ' << part.scale->finite << ' '
         << part.scale->skipped << '\n';
  }
  for (const saved_piece& each : part.memory.pieces) {
    file << "piece " << each.elements << ' ' << each.first << ' ' << each.values.size() << ' ' << each.array << '\t'
         << each.parameter << '\n';
    file.write(reinterpret_cast<const char*>(each.values.data()),
               static_cast<std::streamsize>(each.values.size() * sizeof(float)));
    file << '\n';
  }
  file << "end\n";
}

/// Reads one part.
class part_reader {
 public:
  part_reader(const std::string& path, const std::set<std::string>& needed)
      : path_(path), needed_(needed), file_(path, std::ios::binary) {
    if (!file_) refuse("the file can't be read");
    std::error_code problem;
    bytes_ = fs::file_size(path, problem);
    if (line() != first_line) refuse("the file is not part of a checkpoint of this program");
  }

  /// Reads the whole part.
  checkpoint read() {
    checkpoint found;
    for (std::string each = line(); each != "end"; each = line()) {
      std::istringstream words(each);
      std::string what;
      words >> what;
      if (what == "ranks") {
        words >> found.ranks;
      } else if (what == "steps") {
        words >> found.steps >> found.memory.optimizer_steps >> found.skipped;
      } else if (what == "shape") {
        words >> found.shape.layers >> found.shape.width >> found.shape.heads >> found.shape.context;
      } else if (what == "seed") {
        words >> found.seed;
      } else if (what == "precision") {
        std::string precision;
        words >> precision;
        found.narrow = precision == "bfloat16";
      } else if (what == "scale") {
        hocket::loss_scale_state& scale = found.scale.emplace();
        words >> scale.value >> scale.patience >> scale.finite >> scale.skipped;
      } else if (what == "piece") {
        read_piece(words, found.memory);
      } else {
        refuse("unknown line: '" + each.substr(0, 60) + "'");
      }
      if (!words) refuse("incomplete line: '" + each.substr(0, 60) + "'");
    }
    if (found.ranks < 1) refuse("the number of ranks is missing");
    return found;
  }

  [[noreturn]] void refuse(const std::string& why) const {
    throw std::runtime_error("--resume: '" + path_ + "': " + why);
  }

 private:
  std::string line() {
    std::string text;
    if (!std::getline(file_, text)) refuse("the file is truncated");
    return text;
  }

  void read_piece(std::istringstream& words, saved_memory& memory) {
    saved_piece piece;
    std::size_t count = 0;
    words >> piece.elements >> piece.first >> count;
    words.get();
    if (!words || !std::getline(words, piece.array, '\t')) return;
    std::getline(words, piece.parameter);
    if (count > bytes_ / sizeof(float)) refuse("the file is truncated");
    if (needed_.contains(piece.parameter)) {
      piece.values.resize(count);
      file_.read(reinterpret_cast<char*>(piece.values.data()), static_cast<std::streamsize>(count * sizeof(float)));
      memory.pieces.push_back(std::move(piece));
    } else {
      file_.ignore(static_cast<std::streamsize>(count * sizeof(float)));
    }
    if (!line().empty()) refuse("a piece is longer than its header states");
    words.clear();
  }

  std::string path_;
  const std::set<std::string>& needed_;
  std::ifstream file_;
  std::uintmax_t bytes_ = 0;
};

/// Returns the options that must equal those of the training that wrote the checkpoint.
std::vector<std::pair<std::string, std::string>> identity_of(const checkpoint& of) {
  return {{"--layers", std::to_string(of.shape.layers)}, {"--width", std::to_string(of.shape.width)},
          {"--heads", std::to_string(of.shape.heads)},   {"--context", std::to_string(of.shape.context)},
          {"--seed", std::to_string(of.seed)},           {"--precision", precision_of(of)}};
}

void check_goes_with(const checkpoint& found, const checkpoint& wanted) {
  const auto kept = identity_of(found), asked = identity_of(wanted);
  for (std::size_t i = 0; i < kept.size(); ++i) {
    if (kept[i] == asked[i]) continue;
    const auto& [option, value] = kept[i];
    throw std::runtime_error("--resume: the checkpoint is of a training with " + option + ' ' + value + ", not " +
                             option + ' ' + asked[i].second + ": pass the former");
  }
}

/// Throws if only one of the two trainings scales its loss.
void check_scales_as(const checkpoint& found, const checkpoint& wanted) {
  if (found.scale.has_value() == wanted.scale.has_value()) return;
  std::ostringstream scale;
  if (found.scale) scale << found.scale->value;
  throw std::runtime_error("--resume: the checkpoint is of a training " +
                           (found.scale ? "whose loss is scaled: pass --loss-scale " + scale.str()
                                        : std::string("whose loss is not scaled: omit --loss-scale")));
}

/// Returns the values, apart from those options, that must be equal in all parts of a checkpoint.
std::vector<std::pair<std::string, std::string>> moment_of(const checkpoint& part) {
  std::ostringstream scale;
  scale.precision(17);
  if (part.scale) {
    scale << part.scale->value << ' ' << part.scale->patience << ' ' << part.scale->finite << ' '
          << part.scale->skipped;
  }
  return {{"number of ranks", std::to_string(part.ranks)},
          {"number of steps", std::to_string(part.steps)},
          {"number of optimizer steps", std::to_string(part.memory.optimizer_steps)},
          {"number of skipped steps", std::to_string(part.skipped)},
          {"loss scale", part.scale ? scale.str() : "none"}};
}

void check_agrees(const part_reader& reader, const checkpoint& part, const checkpoint& first) {
  const auto own = moment_of(part), others = moment_of(first);
  for (std::size_t i = 0; i < own.size(); ++i) {
    if (own[i] == others[i]) continue;
    reader.refuse("its " + own[i].first + " is " + own[i].second + ", that of rank-0 " + others[i].second +
                  ": all parts in the folder must be of one checkpoint");
  }
}

/// Returns the name of the latest checkpoint; empty if there is none.
std::string latest_in(const std::string& folder) {
  std::ifstream file(fs::path(folder) / "latest");
  std::string name;
  std::getline(file, name);
  return name;
}

/// Returns whether `text` consists of `begin`, digits and `end`.
bool is_numbered(const std::string& text, const std::string& begin, const std::string& end = "") {
  if (text.size() <= begin.size() + end.size() || !text.starts_with(begin) || !text.ends_with(end)) return false;
  return std::all_of(text.begin() + static_cast<std::ptrdiff_t>(begin.size()),
                     text.end() - static_cast<std::ptrdiff_t>(end.size()), [](char c) { return c >= '0' && c <= '9'; });
}

/// Returns whether a file is the part of a rank, complete or unfinished.
bool is_part(const fs::directory_entry& each) {
  const std::string name = each.path().filename().string();
  return each.is_regular_file() && (is_numbered(name, "rank-") || is_numbered(name, "rank-", ".part"));
}

/// Returns whether a folder contains a checkpoint and nothing else: other files must not be removed.
bool is_checkpoint(const fs::directory_entry& each) {
  if (!each.is_directory() || !is_numbered(each.path().filename().string(), "step-")) return false;
  return std::all_of(fs::directory_iterator(each.path()), fs::directory_iterator(), is_part);
}

}  // namespace

void write_part(const std::string& folder, const checkpoint& part, int rank) {
  const fs::path here = fs::path(folder) / name_of(part.steps);
  fs::create_directories(here);
  std::ostringstream text;
  write(text, part);
  write_file((here / ("rank-" + std::to_string(rank))).string(), text.str());
}

void complete(const std::string& folder, int steps, int ranks) {
  write_file((fs::path(folder) / "latest").string(), name_of(steps) + "\n");
  remove_unfinished(folder);
  std::set<std::string> parts;
  for (int rank = 0; rank < ranks; ++rank) parts.insert("rank-" + std::to_string(rank));
  for (const auto& each : fs::directory_iterator(fs::path(folder) / name_of(steps))) {
    if (is_part(each) && parts.count(each.path().filename().string()) == 0) fs::remove(each.path());
  }
}

void remove_unfinished(const std::string& folder) {
  remove_unfinished_file((fs::path(folder) / "latest").string());
  const std::string latest = latest_in(folder);
  std::error_code missing;
  for (const auto& each : fs::directory_iterator(folder, missing)) {
    if (each.path().filename() != latest && is_checkpoint(each)) fs::remove_all(each.path());
  }
}

std::string latest_of(const std::string& folder) {
  std::string name = latest_in(folder);
  if (name.empty()) {
    throw std::runtime_error("--resume: there is no checkpoint in '" + folder +
                             "': pass the folder that was passed as --checkpoint");
  }
  return name;
}

int steps_of_latest(const std::string& folder) {
  const std::string begin = "step-", name = latest_of(folder);
  return is_numbered(name, begin) ? std::atoi(name.c_str() + begin.size()) : 0;
}

checkpoint read_checkpoint(const std::string& folder, const checkpoint& wanted, const std::set<std::string>& needed) {
  const fs::path here = fs::path(folder) / latest_of(folder);
  checkpoint found;
  for (int rank = 0; rank == 0 || rank < found.ranks; ++rank) {
    part_reader reader((here / ("rank-" + std::to_string(rank))).string(), needed);
    checkpoint part = reader.read();
    check_goes_with(part, wanted);
    if (rank == 0) {
      check_scales_as(part, wanted);
      found = std::move(part);
      continue;
    }
    check_agrees(reader, part, found);
    std::move(part.memory.pieces.begin(), part.memory.pieces.end(), std::back_inserter(found.memory.pieces));
  }
  return found;
}

}  // namespace gpt
