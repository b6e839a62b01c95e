// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The folder in which checkpoints are, and the protocol by which one becomes valid at once.
///
///     FOLDER/latest                                   the name of a valid checkpoint: for people, not for loading
///     FOLDER/lock                                     locked by the process that saves, and its name
///     FOLDER/step-200.0.1/manifest.json               written last: without it, the folder is no checkpoint
///     FOLDER/step-200.0.1/shard-0-of-4.safetensors
///
/// A checkpoint's name is its step, epoch and attempt. A save never touches the files of a valid checkpoint. What must
/// be durable before what: the files before the manifest's bytes have its name, and a manifest's new name before any
/// file of that checkpoint is removed.
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
#include <iterator>
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

/// Which checkpoints are kept when a new one is valid. One that loading has refused does not count, and is kept, too.
struct retention {
  std::size_t last = 3;     ///< this many of the newest, at least one
  std::uint64_t every = 0;  ///< and those whose step is a multiple of this; 0: no others
};

/// One process at a time may change a folder: rank 0, after `lock`. Any number may read it.
class folder {
 public:
  folder(platform::file_system& files, std::string path) : files_(files), path_(std::move(path)) {}

  const std::string& path() const noexcept { return path_; }
  std::string path_of(const position& at) const { return path_ + '/' + name_of(at); }

  /// Makes a new folder for a checkpoint of a step, after `lock`. Its position is after those of all valid checkpoints:
  /// where the program has gone back to an earlier step, a new epoch begins. Removes first what saves have left that
  /// ended early, because the storage may have no room for both.
  failure begin(std::uint64_t step, position& result) {
    std::vector<std::string> ignored;  // whatever remains, this save has a name of its own
    if (failure cause = remove_invalid(ignored)) return cause;
    std::vector<position> valid;
    if (failure cause = find_valid(valid)) return cause;
    result = {0, step, 0};
    const bool goes_back = !valid.empty() && step <= valid.front().step;
    if (!valid.empty()) result.epoch = valid.front().epoch;
    if (goes_back && result.epoch == UINT64_MAX) return no_later(valid.front(), "epoch");
    result.epoch += goes_back ? 1 : 0;
    std::vector<std::string> names;
    if (failure cause = list(path_, names)) return cause;
    for (const std::string& name : names) {
      const auto found = position_named(name);
      if (found && found->epoch == result.epoch && found->step == step)
        result.attempt = std::max(result.attempt, found->attempt);
    }
    if (result.attempt == UINT64_MAX) return no_later(result, "attempt");
    ++result.attempt;
    const int error = files_.make_folder(path_of(result));
    return error == 0 ? failure() : detail::file_failure("make the folder", path_of(result), error);
  }

  /// Makes this process, which `self` names, the only one that saves, until this object is destroyed. Makes the folder
  /// of all checkpoints if there is none. Where the file system has no locks, it does nothing more.
  failure lock(const std::string& self) {
    if (failure cause = make()) return cause;
    if (lock_.get() >= 0) return {};
    const std::string path = path_ + "/lock";
    platform::file_descriptor opened;
    const int error = files_.lock(path, opened);
    if (error == EWOULDBLOCK) return locked_by_another(opened.get());
    const bool has_no_locks = error == ENOLCK || error == ENOSYS || error == EOPNOTSUPP;
    if (has_no_locks) return {};
    if (error != 0) return detail::file_failure("lock", path, error);
    lock_ = std::move(opened);
    std::string name = self.substr(0, most_name_bytes - 1);
    name.resize(most_name_bytes, '\n');  // over the whole name of the process before
    std::size_t ignored = 0;
    files_.write(lock_.get(), std::as_bytes(std::span(name)), 0, ignored);
    return {};
  }

  /// Returns whether this process finds the folder of a checkpoint.
  bool has(const position& at) const {
    platform::file_descriptor opened;
    return files_.open(path_of(at), platform::file_use::folder, opened) != ENOENT;
  }

  /// Makes the entries of a checkpoint's folder durable: each process that has written a file there does so.
  failure sync_entries(const position& at) { return sync_folder(path_of(at)); }

  /// Makes a checkpoint valid, after all of its files and their entries are durable. `writers` name the process that
  /// has written each file, such as "rank 3 on host b", and `self` this one.
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

  /// Sets `result` to the positions of the checkpoints that have a manifest, newest first; none if there is no folder.
  /// A manifest that can't be opened counts as one: `read` returns the reason.
  failure find_valid(std::vector<position>& result) const {
    std::vector<position> all, again;
    if (failure cause = find_all(again)) return cause;
    do {
      all = std::exchange(again, {});
      result.clear();
      std::copy_if(all.begin(), all.end(), std::back_inserter(result),
                   [&](const position& at) { return may_have_manifest(at); });
      if (result.size() == all.size()) break;
      // Another process may have removed one after the list was made, and saved another before.
      if (failure cause = find_all(again)) return cause;
    } while (again != all);
    return {};
  }

  /// Reads the text of a manifest, and checks its checksum and its contents: its parts are each element of each tensor
  /// once.
  failure read(const position& at, std::string& text, manifest& result) const {
    const std::string path = path_of(at) + '/' + manifest_name;
    if (failure cause = read_text(path, text)) return cause;
    std::string problem = read_manifest(text, result);
    if (problem.empty() && result.at != at) problem = "it is the manifest of another checkpoint: " + name_of(result.at);
    if (problem.empty()) problem = problem_with_parts(result);
    if (problem.empty()) return {};
    return make_failure(errc::corrupted, hocket::detail::concat({"'", path, "': ", problem}));
  }

  /// States that a checkpoint can't be loaded, so that `retire` does not count it.
  void refuse(const position& at) { refused_.push_back(at); }

  /// Makes the checkpoints invalid that `rule` does not keep. Their files remain. Those that were refused remain valid,
  /// because the reason may pass. Adds the reasons to `remaining` why some can't be made invalid.
  failure retire(const retention& rule, std::vector<std::string>& remaining) {
    std::vector<position> all;
    if (failure cause = find_valid(all)) return cause;
    std::erase_if(
        all, [&](const position& at) { return std::find(refused_.begin(), refused_.end(), at) != refused_.end(); });
    for (std::size_t i = std::max<std::size_t>(1, rule.last); i < all.size(); ++i) {
      if (rule.every != 0 && all[i].step % rule.every == 0) continue;
      if (failure cause = invalidate(all[i])) remaining.push_back(std::move(cause.reason));
    }
    return {};
  }

  /// Removes folders of checkpoints that are not valid, or never were. Adds the reasons to `remaining` why some can't
  /// be removed: that is no failure of a save.
  failure remove_invalid(std::vector<std::string>& remaining) {
    std::vector<position> all;
    if (failure cause = find_all(all)) return cause;
    for (const position& at : all) {
      if (may_have_manifest(at)) continue;
      if (failure cause = remove(path_of(at))) remaining.push_back(std::move(cause.reason));
    }
    return {};
  }

  /// Removes what a save that has failed has written. What can't be removed remains for the next `begin`.
  void abandon(const position& at) {
    if (!may_have_manifest(at)) static_cast<void>(remove(path_of(at)));
  }

  static constexpr const char* manifest_name = "manifest.json";

 private:
  static constexpr std::size_t most_name_bytes = 256;
  static constexpr const char* removed_name = "manifest.removed";  ///< of the manifest of a checkpoint that is not kept

  failure locked_by_another(int file) {
    std::string name(most_name_bytes, '\n');
    std::size_t count = 0;
    files_.read(file, std::as_writable_bytes(std::span(name)), 0, count);
    name.resize(std::min(name.find('\n'), count));
    return make_failure(errc::system,
                        hocket::detail::concat(
                            {"another process saves in '", path_, "'", name.empty() ? "" : ": ", name,
                             ". End it, or save to another folder; a store holds the folder from its first save on"}));
  }

  failure list(const std::string& path, std::vector<std::string>& names) const {
    const int error = files_.list(path, names);
    return error == 0 ? failure() : detail::file_failure("list the folder", path, error);
  }

  static failure no_later(const position& newest, const char* what) {
    return make_failure(errc::invalid_argument, hocket::detail::concat({"'", name_of(newest), "' has the last ", what,
                                                                        " that there is: save to another folder"}));
  }

  /// Adds the positions that names of the folder state, newest first, whatever they are names of; none if there is no
  /// folder.
  failure find_all(std::vector<position>& result) const {
    std::vector<std::string> names;
    const int error = files_.list(path_, names);
    if (error == ENOENT) return {};
    if (error != 0) return detail::file_failure("list the folder", path_, error);
    for (const std::string& name : names) {
      if (const auto at = position_named(name)) result.push_back(*at);
    }
    std::sort(result.begin(), result.end(), std::greater<>());
    return {};
  }

  /// One call, because another process may remove the checkpoint. Other errors must not look like a missing manifest,
  /// because a folder without one is removed.
  bool may_have_manifest(const position& at) const {
    platform::file_descriptor opened;
    const int error = files_.open(path_of(at) + '/' + manifest_name, platform::file_use::read, opened);
    return error != ENOENT && error != ENOTDIR;
  }

  /// Also a folder that exists may have an entry that is not durable: its maker may have ended before it synced the
  /// parent.
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
    if (error != 0) return detail::read_failure("open", path, 0, error);
    if (bytes > most_manifest_bytes)
      return make_failure(errc::corrupted, hocket::detail::concat(
                                               {"'", path, "' has ", bytes, " bytes, more than a manifest may have"}));
    text.resize(static_cast<std::size_t>(bytes));
    std::size_t filled = 0;
    while (filled < text.size()) {
      std::size_t count = 0;
      error = files_.read(opened.get(), std::as_writable_bytes(std::span(text).subspan(filled)), filled, count);
      if (error != 0) return detail::read_failure("read", path, filled, error);
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

  /// Fails if the folder of a checkpoint is a link: its files may be those of another folder of checkpoints.
  failure require_own(const std::string& in) {
    platform::file_descriptor opened;
    const int error = files_.open(in, platform::file_use::folder_itself, opened);
    if (error == 0 || error == ENOENT) return {};
    failure cause = detail::file_failure("remove the folder", in, error);
    if (error == ENOTDIR) cause.reason += " (a file, or a link, which is not followed)";
    return cause;
  }

  /// After this, the checkpoint is not valid; after a crash, it may be so again, and whole.
  failure invalidate(const position& at) {
    const std::string in = path_of(at);
    if (failure cause = require_own(in)) return cause;
    const std::string path = in + '/' + manifest_name;
    const int error = files_.rename(path, in + '/' + removed_name);
    return error == 0 ? failure() : detail::file_failure("rename", path, error);
  }

  failure remove(const std::string& in) {
    if (failure cause = require_own(in)) return cause;
    std::vector<std::string> names;
    const int problem = files_.list(in, names);
    if (problem != 0) return problem == ENOENT ? failure() : detail::file_failure("list the folder", in, problem);
    // The manifest must not come back after a crash, without its files.
    if (std::find(names.begin(), names.end(), removed_name) != names.end()) {
      if (failure cause = sync_folder(in)) return cause;
    }
    for (const std::string& name : names) {
      const int error = files_.remove(in + '/' + name);
      if (error != 0 && error != ENOENT) return detail::file_failure("remove", in + '/' + name, error);
    }
    const int error = files_.remove_folder(in);
    return error == 0 || error == ENOENT ? failure() : detail::file_failure("remove the folder", in, error);
  }

  platform::file_system& files_;
  const std::string path_;
  platform::file_descriptor lock_;
  std::vector<position> refused_;
  bool has_durable_entry_ = false;  ///< the folder itself, in its parent
};

}  // namespace checkpoint
HOCKET_END_NAMESPACE
