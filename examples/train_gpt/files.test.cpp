// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What train_gpt reads from files: a checkpoint with any damage is refused, and so is what is no text.
#include "checkpoint.hpp"
#include "crc32c.hpp"
#include "report.hpp"
#include "text.hpp"

#include "support/catch.hpp"
#include "support/scratch.hpp"
#include "support/text.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <sys/stat.h>

namespace {

using namespace gpt;
using hocket_test::contains;
using hocket_test::read_file;
using hocket_test::scratch_directory;

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

/// Returns the error of `act`, or an empty string.
template <class Act>
std::string error_of(Act act) {
  try {
    act();
  } catch (const std::runtime_error& problem) {
    return problem.what();
  }
  return "";
}

// ---- the checksum ---------------------------------------------------------------------------------------------------

TEST_CASE("the checksum has the published values") {
  struct known {
    std::string bytes;
    std::uint32_t value;
  };
  std::string rising, falling;
  for (int i = 0; i < 32; ++i) rising += static_cast<char>(i);
  falling.assign(rising.rbegin(), rising.rend());
  const known all[] = {{"", 0},
                       {"123456789", 0xe3069283U},
                       {std::string(32, '\0'), 0x8a9136aaU},
                       {std::string(32, '\xff'), 0x62a8ab43U},
                       {rising, 0x46dd794eU},
                       {falling, 0x113fdb5cU}};
  for (const known& each : all) CHECK(crc32c_of(bytes_of(each.bytes)) == each.value);
  CHECK(crc32c_text(0x1a2b3cU) == "crc32c 001a2b3c");
}

TEST_CASE("the checksum does not depend on how the bytes are divided") {
  std::string text;
  for (std::uint64_t i = 0; i < 45; ++i) text += static_cast<char>(mix(i));
  const std::uint32_t whole = crc32c_of(bytes_of(text));
  for (std::size_t first = 0; first <= text.size(); ++first) {
    for (std::size_t second = first; second <= text.size(); ++second) {
      crc32c divided;
      divided.add(bytes_of(text).first(first));
      divided.add(bytes_of(text).subspan(first, second - first));
      divided.add(bytes_of(text).subspan(second));
      if (divided.value() != whole) CHECK(divided.value() == whole);
    }
  }
}

// ---- checkpoints ----------------------------------------------------------------------------------------------------

checkpoint part_of_rank(int rank) {
  checkpoint part;
  part.ranks = 2;
  part.steps = 7;
  part.shape = {.layers = 2, .width = 16, .heads = 2, .context = 8};
  part.seed = 5;
  part.scale = hocket::loss_scale_state{.value = 1024, .patience = 1, .finite = 3, .skipped = 2};
  part.skipped = 2;
  part.memory.optimizer_steps = 5;
  for (const char* const parameter : {"embedding", "layer 0 gain", "scores"}) {
    for (const char* const array : {"parameter", "first moment"}) {
      saved_piece piece{array, parameter, 60, static_cast<std::size_t>(30 * rank), {}};
      for (std::uint64_t i = 0; i < 30; ++i) piece.values.push_back(static_cast<float>(0.5 + uniform(mix(i))));
      part.memory.pieces.push_back(piece);
    }
  }
  return part;
}

const std::set<std::string>& needed_parameters() {
  static const std::set<std::string> needed{"embedding", "scores"};  // the other one is skipped
  return needed;
}

/// A complete checkpoint of two ranks.
struct saved_checkpoint {
  scratch_directory folder;

  saved_checkpoint() {
    for (const int rank : {0, 1}) write_part(folder.path(), part_of_rank(rank), rank);
    complete(folder.path(), 7, 2);
  }

  std::string error() const {
    return error_of([&] { static_cast<void>(read()); });
  }
  /// Writes a new file: some file systems wait for the disk when an existing one is truncated and written.
  void replace(const std::string& name, const std::string& text) const {
    std::filesystem::remove(folder.path() + '/' + name);
    folder.write(name, text);
  }
  checkpoint read() const { return read_checkpoint(folder.path(), part_of_rank(0), needed_parameters()); }
};

TEST_CASE("a checkpoint is read as it was written, and its checksum tells it from others") {
  const saved_checkpoint saved;
  const checkpoint found = saved.read();
  CHECK(found.ranks == 2);
  CHECK(found.steps == 7);
  CHECK(found.memory.optimizer_steps == 5);
  CHECK(found.skipped == 2);
  REQUIRE(found.scale);
  CHECK(found.scale->value == 1024);
  REQUIRE(found.memory.pieces.size() == 8);
  std::size_t next = 0;
  for (const int rank : {0, 1}) {
    for (const saved_piece& written : part_of_rank(rank).memory.pieces) {
      if (needed_parameters().count(written.parameter) == 0) continue;
      const saved_piece& each = found.memory.pieces[next++];
      CHECK(each.array == written.array);
      CHECK(each.parameter == written.parameter);
      CHECK(each.first == written.first);
      CHECK(each.values == written.values);
    }
  }
  CHECK(saved.read().checksum == found.checksum);
  // A difference in a piece that this rank does not need counts, too.
  checkpoint other = part_of_rank(1);
  other.memory.pieces[2].values[3] += 1;
  write_part(saved.folder.path(), other, 1);
  CHECK(saved.read().checksum != found.checksum);
}

/// What a disk, a copy or an editor may do to a file. Returns nothing if the bytes would not change.
using damage = std::function<std::optional<std::string>(const std::string& whole, std::size_t at)>;

std::optional<std::string> with_zeros(const std::string& whole, std::size_t at, std::size_t count) {
  std::string changed = whole;
  const std::size_t end = std::min(whole.size(), at + count);
  std::fill(changed.begin() + static_cast<std::ptrdiff_t>(at), changed.begin() + static_cast<std::ptrdiff_t>(end),
            '\0');
  return changed;
}

struct named_damage {
  std::string name;
  damage apply;
};

std::vector<named_damage> all_damage() {
  std::vector<named_damage> all;
  for (int bit = 0; bit < 8; ++bit) {
    all.push_back({"flipped bit " + std::to_string(bit), [bit](const std::string& whole, std::size_t at) {
                     std::string changed = whole;
                     changed[at] = static_cast<char>(changed[at] ^ (1 << bit));
                     return std::optional(changed);
                   }});
  }
  for (const std::size_t count : {1U, 4U, 400U}) {
    all.push_back({std::to_string(count) + " zeroed bytes",
                   [count](const std::string& whole, std::size_t at) { return with_zeros(whole, at, count); }});
  }
  all.push_back({"end", [](const std::string& whole, std::size_t at) { return std::optional(whole.substr(0, at)); }});
  all.push_back({"removed byte", [](const std::string& whole, std::size_t at) {
                   return std::optional(std::string(whole).erase(at, 1));
                 }});
  all.push_back({"inserted byte", [](const std::string& whole, std::size_t at) {
                   return std::optional(std::string(whole).insert(at, 1, 'x'));
                 }});
  return all;
}

/// Number after `words` in `text`; nothing if they do not occur.
std::optional<std::size_t> number_after(const std::string& text, const std::string& words) {
  const std::size_t at = text.find(words);
  if (at == std::string::npos) return std::nullopt;
  return std::stoul(text.substr(at + words.size()));
}

/// Returns what is wrong with the error for damage at byte `at`; empty if it names the file and a range with this byte.
std::string shortcoming(const std::string& error, const std::string& file, std::size_t at) {
  if (error.empty()) return "accepted";
  if (!contains(error, "'" + file + "'")) return "does not name the file: " + error;
  const auto begin = number_after(error, "damaged between byte "), end = number_after(error, " and byte ");
  const auto confirmed = number_after(error, "damaged after byte ");
  if (begin && (*begin > at || !end || at > *end)) return "names another range: " + error;
  if (confirmed && *confirmed > at) return "names a later byte: " + error;
  return "";
}

void check_every_damage(const saved_checkpoint& saved, const std::string& name) {
  const std::string path = saved.folder.path() + '/' + name, whole = read_file(path);
  REQUIRE(whole.size() > 20);
  for (const named_damage& each : all_damage()) {
    std::size_t tried = 0;
    for (std::size_t at = 0; at < whole.size(); ++at) {
      const std::optional<std::string> changed = each.apply(whole, at);
      if (!changed || *changed == whole) continue;
      ++tried;
      saved.replace(name, *changed);
      const std::string wrong = shortcoming(saved.error(), path, at);
      INFO(name << ", " << each.name << " at byte " << at << " of " << whole.size());
      if (!wrong.empty()) CHECK(wrong == "");
    }
    INFO(name << ", " << each.name);
    CHECK(tried > whole.size() / 2);
  }
  saved.replace(name, whole + "x");
  CHECK(contains(saved.error(), path));
  saved.replace(name, whole);
  CHECK(saved.error() == "");
}

TEST_CASE("a part of a checkpoint with any damage to header, pieces or end is refused with file and bytes") {
  const saved_checkpoint saved;
  check_every_damage(saved, "step-7/rank-1");
}

TEST_CASE("a damaged name of the latest checkpoint is refused, and no checkpoint is removed then") {
  const saved_checkpoint saved;
  check_every_damage(saved, "latest");
  const std::string whole = read_file(saved.folder.path() + "/latest");
  std::filesystem::create_directory(saved.folder.path() + "/step-9");
  for (const std::string& content : {std::string(whole.size(), '\0'), std::string(), std::string("step-8\n")}) {
    saved.replace("latest", content);
    remove_unfinished(saved.folder.path());
    CHECK(saved.folder.names() == std::vector<std::string>{"latest", "step-7", "step-9"});
  }
  saved.replace("latest", whole);
  remove_unfinished(saved.folder.path());
  CHECK(saved.folder.names() == std::vector<std::string>{"latest", "step-7"});
}

TEST_CASE("a damaged block of 400 bytes in the values of a piece is located within that piece") {
  const saved_checkpoint saved;
  checkpoint large = part_of_rank(1);
  for (saved_piece& each : large.memory.pieces) each.values.resize(5000, 1.5F);
  write_part(saved.folder.path(), large, 1);
  const std::string name = "step-7/rank-1", whole = read_file(saved.folder.path() + '/' + name);
  CHECK(saved.error() == "");
  for (std::size_t at = 1000; at + 400 < whole.size(); at += 3777) {
    saved.replace(name, *with_zeros(whole, at, 400));
    const std::string error = saved.error();
    INFO(at << ": " << error);
    CHECK(shortcoming(error, saved.folder.path() + '/' + name, at) == "");
    const auto begin = number_after(error, "damaged between byte "), end = number_after(error, " and byte ");
    if (begin && end) CHECK(*end - *begin < 20'100 + 1024);  // a piece and the longest line
  }
}

TEST_CASE("whole parts of different checkpoints are refused with what differs") {
  struct difference {
    void (*make)(checkpoint& part);
    std::string words;
  };
  const difference differences[] = {
      {[](checkpoint& part) { part.ranks = 3; }, "its number of ranks is 3, that of rank-0 2"},
      {[](checkpoint& part) { part.memory.optimizer_steps = 4; },
       "its number of optimizer steps is 4, that of rank-0 5"},
      {[](checkpoint& part) { part.skipped = 1; }, "its number of skipped steps is 1, that of rank-0 2"},
      {[](checkpoint& part) { part.scale->value = 8; }, "its loss scale is 8 1 3 2, that of rank-0 1024 1 3 2"},
      {[](checkpoint& part) { part.scale.reset(); }, "its loss scale is none, that of rank-0 1024 1 3 2"}};
  for (const difference& each : differences) {
    const saved_checkpoint saved;
    checkpoint other = part_of_rank(1);
    each.make(other);
    write_part(saved.folder.path(), other, 1);
    CHECK(contains(saved.error(), "/step-7/rank-1': " + each.words));
  }
  const saved_checkpoint saved;
  for (const int rank : {0, 1}) {
    checkpoint other = part_of_rank(rank);
    other.steps = 6;
    write_part(saved.folder.path(), other, rank);
  }
  std::filesystem::remove_all(saved.folder.path() + "/step-7");
  std::filesystem::rename(saved.folder.path() + "/step-6", saved.folder.path() + "/step-7");
  CHECK(contains(saved.error(), "/step-7/rank-0': it has 6 steps, so it is not of step-7"));
}

TEST_CASE("a checkpoint without checksums is refused with the reason") {
  const saved_checkpoint saved;
  const std::string part = read_file(saved.folder.path() + "/step-7/rank-0");
  const std::string first_line = "train_gpt checkpoint, form 2";
  REQUIRE(part.starts_with(first_line + "\n"));
  saved.replace("step-7/rank-0", "train_gpt checkpoint, form 1" + part.substr(first_line.size()));
  CHECK(contains(saved.error(),
                 "/step-7/rank-0': the file is of form 1, and this version of train_gpt reads only form 2"));
  saved.replace("latest", "step-7\n");
  CHECK(contains(saved.error(), "/latest': the file has no checksum, so the checkpoint is of form 1"));
  CHECK(contains(error_of([&] { static_cast<void>(steps_of_latest(saved.folder.path())); }), "form 1"));
}

TEST_CASE("a part, or the file that names it, that is no regular file is refused with its kind") {
  struct kind {
    std::string name;
    void (*make)(const std::string& path);
    std::string words;
  };
  const kind kinds[] = {
      {"missing", [](const std::string&) {}, "No such file or directory"},
      {"folder", [](const std::string& path) { std::filesystem::create_directory(path); }, "it is a folder"},
      {"pipe", [](const std::string& path) { REQUIRE(::mkfifo(path.c_str(), 0600) == 0); }, "it is a pipe"},
      {"device", [](const std::string& path) { std::filesystem::create_symlink("/dev/zero", path); }, "it is a device"},
      {"empty", [](const std::string& path) { write_file(path, ""); }, ""}};
  for (const char* const name : {"step-7/rank-1", "latest"}) {
    for (const kind& each : kinds) {
      const saved_checkpoint saved;
      const std::string path = saved.folder.path() + '/' + name;
      std::filesystem::remove(path);
      each.make(path);
      const std::string error = saved.error();
      INFO(name << ", " << each.name << ": " << error);
      CHECK(contains(error, saved.folder.path()));
      const bool has_no_checkpoint = std::string(name) == "latest" && each.name == "missing";
      CHECK(contains(error, has_no_checkpoint ? "there is no checkpoint" : each.words));
    }
  }
}

// ---- the text -------------------------------------------------------------------------------------------------------

TEST_CASE("input that is not a regular file of text is refused with its name and kind") {
  const scratch_directory folder;
  folder.write("empty", "");
  folder.write("text", "some text");
  folder.write("packed", "\x1f\x8b...");
  REQUIRE(::mkfifo((folder.path() + "/pipe").c_str(), 0600) == 0);
  struct refusal {
    std::string path;
    std::string words;
  };
  const refusal cases[] = {{folder.path() + "/nothing", "No such file or directory; pass a regular file"},
                           {folder.path(), "it is a folder, not a regular file; pass a regular file"},
                           {folder.path() + "/pipe", "it is a pipe, not a regular file; pass a regular file"},
                           {"/dev/zero", "it is a device, not a regular file; pass a regular file"},
                           {folder.path() + "/empty", "it is empty; pass a regular file"},
                           {folder.path() + "/packed", "is compressed: unpack it first"}};
  for (const auto& [path, words] : cases) {
    const std::string error = error_of([&] { static_cast<void>(read_text(path)); });
    INFO(error);
    CHECK(contains(error, "the text '" + path + "'"));
    CHECK(contains(error, words));
  }
  const std::vector<std::uint8_t> text = read_text(folder.path() + "/text");
  CHECK(std::string(text.begin(), text.end()) == "some text");
}

}  // namespace
