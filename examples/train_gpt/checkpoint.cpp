// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "checkpoint.hpp"

#include "crc32c.hpp"
#include "report.hpp"

#include <hocket/core/platform/input_file.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <set>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gpt {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view family = "train_gpt checkpoint, form ";
constexpr std::string_view first_line = "train_gpt checkpoint, form 2";
constexpr std::string_view check_word = "crc32c ";

std::string name_of(int steps) { return "step-" + std::to_string(steps); }

const char* precision_of(const checkpoint& part) { return part.narrow ? "bfloat16" : "float"; }

/// Assembles a part in memory. Each section ends with a line that has the checksum of all bytes before this line, so a
/// reader knows between which of these lines a file is damaged.
class part_text {
 public:
  void add(std::string_view text) { text_ += text; }

  void end_section() {
    checksum_.add(std::as_bytes(std::span(text_).subspan(checked_)));
    checked_ = text_.size();
    text_ += crc32c_text(checksum_.value()) + '\n';
  }

  std::string take() noexcept { return std::move(text_); }

 private:
  std::string text_;
  crc32c checksum_;
  std::size_t checked_ = 0;
};

std::string header_of(const checkpoint& part) {
  std::ostringstream header;
  header.precision(17);
  header << first_line << '\n';
  header << "ranks " << part.ranks << "\nsteps " << part.steps << ' ' << part.memory.optimizer_steps << ' '
         << part.skipped;
  header << "\nshape " << part.shape.layers << ' ' << part.shape.width << ' ' << part.shape.heads << ' '
         << part.shape.context << "\nseed " << part.seed << "\nprecision " << precision_of(part) << '\n';
  if (part.scale) {
    header << "scale " << part.scale->value << ' ' << part.scale->patience << ' ' << part.scale->finite << ' '
           << part.scale->skipped << '\n';
  }
  return header.str();
}

std::string text_of(const checkpoint& part) {
  part_text text;
  text.add(header_of(part));
  text.end_section();
  for (const saved_piece& each : part.memory.pieces) {
    text.add("piece " + std::to_string(each.elements) + ' ' + std::to_string(each.first) + ' ' +
             std::to_string(each.values.size()) + ' ' + each.array + '\t' + each.parameter + '\n');
    text.add({reinterpret_cast<const char*>(each.values.data()), each.values.size() * sizeof(float)});
    text.add("\n");
    text.end_section();
  }
  text.add("end\n");
  text.end_section();
  return text.take();
}

/// The bytes of a file in order, with their checksum. Every read is of a byte that has not been read before.
class checked_bytes {
 public:
  explicit checked_bytes(const std::string& path) : file_(path, hocket::platform::file_kinds::regular) {}

  /// Why the file can't be read; empty if it can.
  const std::string& problem() const noexcept { return file_.problem(); }
  std::uint64_t position() const noexcept { return position_; }
  std::uint32_t checksum() const noexcept { return checksum_.value(); }
  /// Number of bytes behind the position, by the length that the file had when it was opened.
  std::uint64_t remaining() const noexcept { return file_.size() > position_ ? file_.size() - position_ : 0; }

  /// Reads exactly as many bytes as fit. Returns false if the file ends before.
  bool read(std::span<std::byte> to) {
    while (!to.empty()) {
      const std::span<const std::byte> next = available();
      if (next.empty()) return false;
      const std::size_t count = std::min(next.size(), to.size());
      std::copy_n(next.begin(), count, to.begin());
      consume(count);
      to = to.subspan(count);
    }
    return true;
  }

  /// Skips bytes, which the checksum includes. Returns false if the file ends before.
  bool skip(std::uint64_t bytes) {
    while (bytes > 0) {
      const std::size_t count = static_cast<std::size_t>(std::min<std::uint64_t>(available().size(), bytes));
      if (count == 0) return false;
      consume(count);
      bytes -= count;
    }
    return true;
  }

  bool is_at_end() { return available().empty(); }

 private:
  std::span<const std::byte> available() {
    if (next_ == filled_) {
      next_ = 0;
      filled_ = file_ ? file_.read(buffer_) : 0;
    }
    return std::span(buffer_).first(filled_).subspan(next_);
  }

  void consume(std::size_t count) {
    checksum_.add(std::span(buffer_).subspan(next_, count));
    next_ += count;
    position_ += count;
  }

  hocket::platform::input_file file_;
  std::vector<std::byte> buffer_ = std::vector<std::byte>(std::size_t{64} << 10);
  std::size_t next_ = 0;
  std::size_t filled_ = 0;
  std::uint64_t position_ = 0;
  crc32c checksum_;
};

/// Reads one part. What a section states is used only after its checksum has confirmed it; until then the number of its
/// values is only compared with the length of the file.
class part_reader {
 public:
  part_reader(const std::string& path, const std::set<std::string>& needed)
      : path_(path), needed_(needed), file_(path) {
    if (!file_.problem().empty()) refuse("the file can't be read: " + file_.problem());
    const std::string found = line();
    if (found == first_line) return;
    if (found.starts_with(family)) {
      refuse("the file is of " + found.substr(found.find(", ") + 2) +
             ", and this version of train_gpt reads only form 2, " +
             "which has checksums: resume with the version that wrote it, or train again");
    }
    refuse("the file is not part of a checkpoint of this program, or its first line is damaged");
  }

  /// Reads the whole part.
  checkpoint read() {
    checkpoint found;
    for (const std::string& each : header_lines()) read_header(each, found);
    if (found.ranks < 1) refuse("the number of ranks is missing");
    for (std::string each = line(); each != "end"; each = line()) read_piece(each, found.memory);
    end_section();
    found.checksum = file_.checksum();
    if (!file_.is_at_end()) refuse("bytes follow its end, at byte " + std::to_string(file_.position()));
    return found;
  }

  [[noreturn]] void refuse(const std::string& why) const {
    throw std::runtime_error("--resume: '" + path_ + "': " + why);
  }

 private:
  static constexpr std::size_t most_header_lines = 16, most_line_bytes = 1024;

  [[noreturn]] void refuse_damaged() const {
    refuse("the file is damaged between byte " + std::to_string(confirmed_) + " and byte " +
           std::to_string(file_.position()) +
           " (its checksum does not fit): restore the file from a copy, or train again");
  }

  [[noreturn]] void refuse_truncated() const {
    if (!file_.problem().empty()) refuse("the file can't be read: " + file_.problem());
    refuse("the file is truncated, or damaged after byte " + std::to_string(confirmed_) +
           ": restore the file from a copy, or train again");
  }

  std::string line() {
    before_line_ = file_.checksum();
    std::string text;
    for (char next = 0; text.size() <= most_line_bytes; text += next) {
      if (!file_.read(std::as_writable_bytes(std::span(&next, 1)))) refuse_truncated();
      if (next == '\n') return text;
    }
    refuse_damaged();
  }

  /// Compares `check`, the line that has just been read, with the checksum of the bytes before it.
  void confirm(const std::string& check) {
    if (check != crc32c_text(before_line_)) refuse_damaged();
    confirmed_ = file_.position();
  }

  void end_section() { confirm(line()); }

  std::vector<std::string> header_lines() {
    std::vector<std::string> lines;
    while (lines.size() < most_header_lines) {
      std::string each = line();
      if (each.starts_with(check_word)) {
        confirm(each);
        return lines;
      }
      lines.push_back(std::move(each));
    }
    refuse_damaged();
  }

  void read_header(const std::string& line, checkpoint& found) {
    std::istringstream words(line);
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
    } else {
      refuse("unknown line: '" + line.substr(0, 60) + "'");
    }
    if (!words) refuse("incomplete line: '" + line.substr(0, 60) + "'");
  }

  void read_piece(const std::string& header, saved_memory& memory) {
    std::istringstream words(header);
    saved_piece piece;
    std::string what;
    std::size_t count = 0;
    words >> what >> piece.elements >> piece.first >> count;
    words.get();
    if (!std::getline(words, piece.array, '\t') || !std::getline(words, piece.parameter) || what != "piece")
      refuse_damaged();
    if (count > file_.remaining() / sizeof(float)) refuse_truncated();
    const bool is_needed = needed_.contains(piece.parameter);
    if (is_needed) piece.values.resize(count);
    const bool is_whole =
        is_needed ? file_.read(std::as_writable_bytes(std::span(piece.values))) : file_.skip(count * sizeof(float));
    if (!is_whole) refuse_truncated();
    if (!line().empty()) refuse_damaged();
    end_section();
    if (is_needed) memory.pieces.push_back(std::move(piece));
  }

  std::string path_;
  const std::set<std::string>& needed_;
  checked_bytes file_;
  std::uint32_t before_line_ = 0;  ///< checksum of the bytes before the last line
  std::uint64_t confirmed_ = 0;    ///< number of bytes whose checksum is right
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

/// Returns whether `text` consists of `begin`, digits and `end`.
bool is_numbered(const std::string& text, const std::string& begin, const std::string& end = "") {
  if (text.size() <= begin.size() + end.size() || !text.starts_with(begin) || !text.ends_with(end)) return false;
  return std::all_of(text.begin() + static_cast<std::ptrdiff_t>(begin.size()),
                     text.end() - static_cast<std::ptrdiff_t>(end.size()), [](char c) { return c >= '0' && c <= '9'; });
}

/// The file `latest`: a line with the name of the checkpoint and the checksum of this name.
std::string manifest_of(const std::string& name) {
  return name + ' ' + crc32c_text(crc32c_of(std::as_bytes(std::span(name)))) + '\n';
}

fs::path manifest_in(const std::string& folder) { return fs::path(folder) / "latest"; }

bool has_manifest(const std::string& folder) {
  std::error_code unknown;
  return fs::exists(fs::symlink_status(manifest_in(folder), unknown));
}

/// Reads the name of the latest checkpoint. Returns what is wrong with the file, or an empty string.
std::string read_manifest(const std::string& folder, std::string& name) {
  std::string text;
  std::string problem =
      hocket::platform::read_whole(manifest_in(folder).string(), hocket::platform::file_kinds::regular, 1024, text);
  if (!problem.empty()) return "the file can't be read: " + problem;
  name = text.substr(0, text.find_first_of(" \n"));
  if (text == manifest_of(name) && is_numbered(name, "step-")) return "";
  if (text == name + '\n' && is_numbered(name, "step-")) {
    return "the file has no checksum, so the checkpoint is of form 1, and this version of train_gpt reads only form 2: "
           "resume with the version that wrote it, or train again";
  }
  return "the file is damaged: it must be a line such as '" + manifest_of("step-200").substr(0, 24) +
         "'; restore it from a copy, or train again";
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
  write_file((here / ("rank-" + std::to_string(rank))).string(), text_of(part));
}

void complete(const std::string& folder, int steps, int ranks) {
  write_file(manifest_in(folder).string(), manifest_of(name_of(steps)));
  remove_unfinished(folder);
  std::set<std::string> parts;
  for (int rank = 0; rank < ranks; ++rank) parts.insert("rank-" + std::to_string(rank));
  for (const auto& each : fs::directory_iterator(fs::path(folder) / name_of(steps))) {
    if (is_part(each) && parts.count(each.path().filename().string()) == 0) fs::remove(each.path());
  }
}

void remove_unfinished(const std::string& folder) {
  remove_unfinished_file(manifest_in(folder).string());
  std::string latest;
  // If the file that names the complete checkpoint is damaged, every checkpoint may be the complete one.
  if (has_manifest(folder) && !read_manifest(folder, latest).empty()) return;
  std::error_code missing;
  for (const auto& each : fs::directory_iterator(folder, missing)) {
    if (each.path().filename() != latest && is_checkpoint(each)) fs::remove_all(each.path());
  }
}

std::string latest_of(const std::string& folder) {
  if (!has_manifest(folder)) {
    throw std::runtime_error("--resume: there is no checkpoint in '" + folder +
                             "': pass the folder that was passed as --checkpoint");
  }
  std::string name;
  const std::string problem = read_manifest(folder, name);
  if (!problem.empty()) throw std::runtime_error("--resume: '" + manifest_in(folder).string() + "': " + problem);
  return name;
}

int steps_of_latest(const std::string& folder) {
  return std::atoi(latest_of(folder).c_str() + std::string_view("step-").size());
}

checkpoint read_checkpoint(const std::string& folder, const checkpoint& wanted, const std::set<std::string>& needed) {
  const std::string name = latest_of(folder);
  const fs::path here = fs::path(folder) / name;
  checkpoint found;
  crc32c checksums;
  for (int rank = 0; rank == 0 || rank < found.ranks; ++rank) {
    part_reader reader((here / ("rank-" + std::to_string(rank))).string(), needed);
    checkpoint part = reader.read();
    checksums.add(std::as_bytes(std::span(&part.checksum, 1)));
    check_goes_with(part, wanted);
    if (rank == 0) {
      if (name_of(part.steps) != name)
        reader.refuse("it has " + std::to_string(part.steps) + " steps, so it is not of " + name);
      check_scales_as(part, wanted);
      found = std::move(part);
      continue;
    }
    check_agrees(reader, part, found);
    std::move(part.memory.pieces.begin(), part.memory.pieces.end(), std::back_inserter(found.memory.pieces));
  }
  found.checksum = checksums.value();
  return found;
}

}  // namespace gpt
