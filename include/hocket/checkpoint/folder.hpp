// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The folder in which checkpoints are, and the protocol by which one becomes valid at once.
///
///     FOLDER/latest                                   the name of a valid checkpoint: for people, not for loading
///     FOLDER/step-200.0.1/manifest.json               written last: without it, the folder is no checkpoint
///     FOLDER/step-200.0.1/shard-0-of-4.safetensors
///
/// A checkpoint's name is its step, epoch and attempt. A save never touches the files of a valid checkpoint. What must be
/// durable before what: the files before the manifest's bytes have its name, and a manifest's new name before any file of
/// that checkpoint is removed.
#pragma once

#include <hocket/checkpoint/manifest.hpp>
#include <hocket/checkpoint/shard_writer.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/platform/file_system.hpp>
#include <hocket/core/text.hpp>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace checkpoint {

/// Most bytes of a manifest that is read.
inline constexpr std::uint64_t most_manifest_bytes = std::uint64_t{1} << 30;

/// Returns "step-200.0.1" for step 200, epoch 0, attempt 1.
inline std::string name_of(const position& at) {
  return hocket::detail::concat({"step-", at.step, ".", at.epoch, ".", at.attempt});
}

/// Returns the position with this name; nothing if it is no name of a checkpoint.
inline std::optional<position> position_named(std::string_view name) noexcept {
  constexpr std::string_view prefix = "step-";
  if (!name.starts_with(prefix)) return std::nullopt;
  const char* at = name.data() + prefix.size();
  const char* const end = name.data() + name.size();
  position result;
  for (std::uint64_t* const each : {&result.step, &result.epoch, &result.attempt}) {
    if (each != &result.step && (at == end || *at++ != '.')) return std::nullopt;
    const auto [next, error] = std::from_chars(at, end, *each);
    if (error != std::errc() || (next - at > 1 && *at == '0')) return std::nullopt;
    at = next;
  }
  return at == end ? std::optional(result) : std::nullopt;
}

/// Which checkpoints are kept when a new one is valid.
struct retention {
  std::size_t last = 3;     ///< this many of the newest, at least one
  std::uint64_t every = 0;  ///< and those whose step is a multiple of this; 0: no others
};

/// One process at a time may change a folder: rank 0.
class folder {
 public:
  folder(platform::file_system& files, std::string path) : files_(files), path_(std::move(path)) {}

  const std::string& path() const noexcept { return path_; }
  std::string path_of(const position& at) const { return path_ + '/' + name_of(at); }

  /// Makes a new folder for a checkpoint of a step, and the folder of all checkpoints if there is none. Its position is after
  /// those of all valid checkpoints: where the program has gone back to an earlier step, a new epoch begins.
  failure begin(std::uint64_t step, position& result) {
    if (failure cause = make()) return cause;
    std::vector<position> valid;
    if (failure cause = find_valid(valid)) return cause;
    result = {0, step, 0};
    if (!valid.empty()) result.epoch = valid.front().epoch + (step <= valid.front().step ? 1 : 0);
    std::vector<std::string> names;
    if (failure cause = list(path_, names)) return cause;
    for (const std::string& name : names) {
      const auto found = position_named(name);
      if (found && found->epoch == result.epoch && found->step == step)
        result.attempt = std::max(result.attempt, found->attempt);
    }
    ++result.attempt;
    const int error = files_.make_folder(path_of(result));
    return error == 0 ? failure() : detail::file_failure("make the folder", path_of(result), error);
  }

  /// Makes the entries of a checkpoint's folder durable: each process that has written a file there does so.
  failure sync_entries(const position& at) { return sync_folder(path_of(at)); }

  /// Makes a checkpoint valid, after all of its files and their entries are durable. `writers` name the process that has
  /// written each file, such as "rank 3 on host b", and `self` this one.
  failure commit(const manifest& what, std::span<const std::string> writers, const std::string& self) {
    const std::string in = path_of(what.at);
    for (std::size_t i = 0; i < what.shards.size(); ++i) {
      if (failure cause = check_length(in + '/' + what.shards[i].file, what.shards[i].bytes, writers[i], self))
        return cause;
    }
    if (failure cause = write_text(in + "/manifest.new", encode_manifest(what), true)) return cause;
    const int error = files_.rename_to_new(in + "/manifest.new", in + '/' + manifest_name);
    if (error != 0) return detail::file_failure("rename", in + "/manifest.new", error);
    if (failure cause = sync_folder(in)) return cause;
    if (failure cause = sync_folder(path_)) return cause;
    note_latest(what.at);
    return {};
  }

  /// Sets `result` to the positions of the checkpoints that have a manifest, newest first.
  failure find_valid(std::vector<position>& result) const {
    result.clear();
    std::vector<std::string> names;
    if (failure cause = list(path_, names)) return cause;
    for (const std::string& name : names) {
      const auto at = position_named(name);
      bool is_valid = false;
      if (!at) continue;
      if (failure cause = find_manifest(*at, is_valid)) return cause;
      if (is_valid) result.push_back(*at);
    }
    std::sort(result.begin(), result.end(), std::greater<>());
    return {};
  }

  /// Reads the text of a manifest, and checks its checksum and its contents: its parts are each element of each tensor once.
  failure read(const position& at, std::string& text, manifest& result) const {
    const std::string path = path_of(at) + '/' + manifest_name;
    if (failure cause = read_text(path, text)) return cause;
    std::string problem = read_manifest(text, result);
    if (problem.empty() && result.at != at) problem = "it is the manifest of another checkpoint: " + name_of(result.at);
    if (problem.empty()) problem = problem_with_parts(result);
    if (problem.empty()) return {};
    return make_failure(errc::corrupted, hocket::detail::concat({"'", path, "': ", problem}));
  }

  /// Makes the checkpoints invalid that `rule` does not keep. Their files remain.
  failure retire(const retention& rule) {
    std::vector<position> all;
    if (failure cause = find_valid(all)) return cause;
    for (std::size_t i = std::max<std::size_t>(1, rule.last); i < all.size(); ++i) {
      if (rule.every != 0 && all[i].step % rule.every == 0) continue;
      if (failure cause = invalidate(all[i])) return cause;
    }
    return {};
  }

  /// Removes folders of checkpoints before `newest` that are not valid, or never were.
  failure remove_invalid_before(const position& newest) {
    std::vector<std::string> names;
    if (failure cause = list(path_, names)) return cause;
    for (const std::string& name : names) {
      const auto at = position_named(name);
      if (!at || *at > newest) continue;
      bool is_valid = false;
      if (failure cause = find_manifest(*at, is_valid)) return cause;
      if (is_valid) continue;
      if (failure cause = remove(path_of(*at))) return cause;
    }
    return {};
  }

  static constexpr const char* manifest_name = "manifest.json";

 private:
  failure list(const std::string& path, std::vector<std::string>& names) const {
    const int error = files_.list(path, names);
    return error == 0 ? failure() : detail::file_failure("list the folder", path, error);
  }

  /// An error must not look like a missing manifest, because a checkpoint without one is removed.
  failure find_manifest(const position& at, bool& is_there) const {
    std::vector<std::string> names;
    if (failure cause = list(path_of(at), names)) return cause;
    is_there = std::find(names.begin(), names.end(), manifest_name) != names.end();
    return {};
  }

  /// Also a folder that exists may have an entry that is not durable: its maker may have ended before it synced the parent.
  failure make() {
    const int error = files_.make_folder(path_);
    if (error != 0 && error != EEXIST) return detail::file_failure("make the folder", path_, error);
    if (error == EEXIST && has_durable_entry_) return {};
    const std::string parent = path_ + "/..";  // whatever the form of the path
    const int problem = try_sync_folder(parent);
    const bool is_of_others = error == EEXIST && problem == EACCES;  // such as a folder in /home
    if (problem != 0 && !is_of_others) return detail::file_failure("sync the folder", parent, problem);
    has_durable_entry_ = true;
    return {};
  }

  failure sync_folder(const std::string& path) {
    const int error = try_sync_folder(path);
    return error == 0 ? failure() : detail::file_failure("sync the folder", path, error);
  }
  int try_sync_folder(const std::string& path) {
    platform::file_descriptor opened;
    const int error = files_.open(path, platform::file_use::folder, opened);
    return error != 0 ? error : files_.sync(opened.get());
  }

  failure check_length(const std::string& path, std::uint64_t expected, const std::string& writer,
                       const std::string& self) {
    platform::file_descriptor opened;
    std::uint64_t bytes = 0;
    int error = files_.open(path, platform::file_use::read, opened);
    if (error == 0) error = files_.size_of(opened.get(), bytes);
    if (error == 0 && bytes == expected) return {};
    const std::string seen = error == 0 ? hocket::detail::concat({"finds ", bytes}) : "can't open it";
    failure cause = make_failure(
        errc::system,
        hocket::detail::concat({writer, " has written ", expected, " bytes of '", path, "', but ", self, " ", seen,
                                ": the folder of checkpoints must be one that all hosts share"}));
    if (error != 0) cause.reason += hocket::detail::concat({" (", std::generic_category().message(error), ")"});
    return cause;
  }

  failure write_text(const std::string& path, const std::string& text, bool is_durable) {
    platform::file_descriptor opened;
    int error = files_.remove(path);  // of a process that ended early
    error = files_.open(path, platform::file_use::create, opened);
    if (error != 0) return detail::file_failure("create", path, error);
    std::uint64_t offset = 0;
    while (offset < text.size()) {
      std::size_t written = 0;
      error = files_.write(opened.get(), std::as_bytes(std::span(text).subspan(offset)), offset, written);
      if (error != 0) return detail::file_failure("write", path, offset, error);
      offset += written;
    }
    if (is_durable) error = files_.sync(opened.get());
    return error == 0 ? failure() : detail::file_failure("sync", path, error);
  }

  failure read_text(const std::string& path, std::string& text) const {
    platform::file_descriptor opened;
    std::uint64_t bytes = 0;
    int error = files_.open(path, platform::file_use::read, opened);
    if (error == 0) error = files_.size_of(opened.get(), bytes);
    if (error != 0) return detail::file_failure("open", path, error);
    if (bytes > most_manifest_bytes)
      return make_failure(errc::corrupted, hocket::detail::concat(
                                               {"'", path, "' has ", bytes, " bytes, more than a manifest may have"}));
    text.resize(static_cast<std::size_t>(bytes));
    std::size_t filled = 0;
    while (filled < text.size()) {
      std::size_t count = 0;
      error = files_.read(opened.get(), std::as_writable_bytes(std::span(text).subspan(filled)), filled, count);
      if (error != 0) return detail::file_failure("read", path, filled, error);
      if (count == 0) break;
      filled += count;
    }
    text.resize(filled);
    return {};
  }

  /// For people who look into the folder. Its failure is no failure of the save.
  void note_latest(const position& at) {
    const std::string path = path_ + "/latest";
    if (!write_text(path + ".new", name_of(at) + '\n', false)) files_.rename(path + ".new", path);
  }

  /// After this, the checkpoint is not valid, also after a crash.
  failure invalidate(const position& at) {
    const std::string in = path_of(at);
    const std::string path = in + '/' + manifest_name;
    const int error = files_.rename(path, in + "/manifest.removed");
    if (error != 0) return detail::file_failure("rename", path, error);
    return sync_folder(in);
  }

  failure remove(const std::string& in) {
    std::vector<std::string> names;
    if (failure cause = list(in, names)) return cause;
    for (const std::string& name : names) {
      const int error = files_.remove(in + '/' + name);
      if (error != 0 && error != ENOENT) return detail::file_failure("remove", in + '/' + name, error);
    }
    const int error = files_.remove_folder(in);
    return error == 0 || error == ENOENT ? failure() : detail::file_failure("remove the folder", in, error);
  }

  platform::file_system& files_;
  const std::string path_;
  bool has_durable_entry_ = false;  ///< the folder itself, in its parent
};

}  // namespace checkpoint
HOCKET_END_NAMESPACE
