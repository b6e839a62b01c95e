// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The folder of a cache, which all processes of a host share: who may change it, what is in it, and what is removed
/// from it to make room.
///
/// Each file has a lock. Its readers share it, and its downloader has it alone, under the name of a partial file that
/// becomes that of the whole one; so what is in use can't be removed, and a downloader that dies frees its file at
/// once. Names, reservations and removals change only under the lock of the folder, `lock`, which is held briefly.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/deadline.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/platform/cpu.hpp>
#include <hocket/core/platform/directory.hpp>
#include <hocket/core/platform/input_file.hpp>
#include <hocket/core/platform/locked_file.hpp>
#include <hocket/core/platform/output_file.hpp>
#include <hocket/core/text.hpp>
#include <hocket/data/cache/names.hpp>
#include <hocket/data/cache/partial_record.hpp>
#include <hocket/data/input.hpp>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace data {

/// Names of files that must not be removed from a cache although no process has them open; sorted.
using needed_names = std::vector<std::string>;

namespace detail {

inline failure cache_failure(std::string_view what, const std::string& path, int error) {
  std::string reason =
      hocket::detail::concat({"cannot ", what, " '", path, "': ", std::generic_category().message(error)});
  if (error == EINVAL || error == ELOOP) reason += ": it must be a regular file";
  return make_failure(errc::system, std::move(reason));
}

inline failure lock_failure(const std::string& path, int error) {
  return make_failure(errc::system,
                      hocket::detail::concat({"cannot lock '", path, "': ", std::generic_category().message(error),
                                              ": a cache needs a folder on a disk of this host"}));
}

/// Returns what identifies the time since the host was started; empty if that is unknown.
inline std::string boot_text() {
  std::vector<std::byte> content;
  if (!platform::read_file("/proc/sys/kernel/random/boot_id", content)) return {};
  std::string text(text_of(content));
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

/// Waits that become longer, up to 20 ms.
class polling_pause {
 public:
  void operator()() {
    platform::nap(static_cast<long>(next_.count()));
    next_ = std::min<std::chrono::nanoseconds>(2 * next_, std::chrono::milliseconds(20));
  }

 private:
  std::chrono::nanoseconds next_ = std::chrono::milliseconds(1);
};

/// Functions whose last parameter is a `guard` need the lock of the folder.
class cache_folder {
 public:
  explicit cache_folder(std::string path) : path_(std::move(path)) {}

  /// The lock of the folder, until it is destroyed.
  class guard {
    friend class cache_folder;
    platform::locked_file file_;
  };

  const std::string& path() const noexcept { return path_; }
  std::string whole(std::string_view name) const { return hocket::detail::concat({path_, '/', name}); }
  std::string partial(std::string_view name) const {
    return hocket::detail::concat({path_, '/', name, partial_suffix});
  }
  std::string record(std::string_view name) const { return hocket::detail::concat({path_, '/', name, record_suffix}); }

  /// Makes the folder unless it exists.
  failure make() const {
    const int error = platform::make_folders(path_);
    return error == 0 ? failure() : cache_failure("make the folder", path_, error);
  }

  /// Waits for the lock of the folder until `limit`, or until `cancelled`, which is the failure `aborted`.
  failure lock(const deadline& limit, guard& result, const std::atomic<bool>* cancelled = nullptr) const {
    const std::string path = path_ + "/lock";
    for (polling_pause pause;; pause()) {
      if (const int error = result.file_.open(path, platform::access::create); error != 0)
        return cache_failure("open", path, error);
      const int error = result.file_.try_lock(platform::lock_kind::exclusive);
      if (error == 0 && result.file_.is_at(path)) return {};
      if (error != 0 && error != EWOULDBLOCK) return lock_failure(path, error);
      if (cancelled != nullptr && cancelled->load(std::memory_order_relaxed))
        return make_failure(errc::aborted,
                            hocket::detail::concat({"the wait for the lock '", path, "' was cancelled"}));
      if (limit.passed())
        return make_failure(errc::timeout, hocket::detail::concat({"the lock '", path,
                                                                   "' of a cache is not free: a process "
                                                                   "that holds it does not continue"}));
    }
  }

  /// Reads the record of a partial download. `found` is false if there is none. A damaged record is an error.
  failure read_record(std::string_view name, partial_record& result, bool& found, const guard&) const {
    const std::string path = record(name);
    platform::locked_file opened;
    const int error = opened.open(path, platform::access::read);
    opened.close();
    found = error == 0;
    if (error == ENOENT) return {};
    const bool is_of_another_kind = error == EINVAL || error == ELOOP;
    if (!found && !is_of_another_kind) return cache_failure("open", path, error);
    std::string text;
    platform::input_file file(path, platform::file_kinds::regular);
    std::string problem = platform::read_whole(file, most_record_bytes, text);
    if (problem.empty()) problem = read_partial_record(text, result);
    if (problem.empty()) return {};
    return make_failure(errc::corrupted, hocket::detail::concat({"'", path, "' is damaged: ", problem,
                                                                 ": remove it and the partial file beside it"}));
  }

  /// Writes the record of a partial download so that it is whole or not there, also after a loss of power.
  failure write_record(std::string_view name, const partial_record& what, const guard&) const {
    const std::string path = record(name), next = path_ + "/record.new", text = encode_partial_record(what);
    if (text.size() > most_record_bytes) {
      return make_failure(errc::invalid_argument,
                          hocket::detail::concat({"a remote file has a name and a version of ", what.name.size(),
                                                  " and ", what.version.size(), " bytes, and a cache records at most ",
                                                  most_record_bytes, " of both"}));
    }
    platform::locked_file file;
    int error = file.open(next, platform::access::create);
    if (error == 0) error = file.resize(0);
    if (error == 0) error = file.write(std::as_bytes(std::span(text)), 0);
    if (error == 0) error = file.sync();
    if (error == 0) error = platform::rename_file(next, path);
    return error == 0 ? failure() : cache_failure("write", path, error);
  }

  failure remove_record(std::string_view name, const guard&) const { return removed(record(name)); }
  /// Removes a partial download.
  failure remove_partial(std::string_view name, const guard&) const {
    if (failure cause = removed(partial(name))) return cause;
    return removed(record(name));
  }

  /// What a reservation has found.
  struct room {
    bool is_reserved = false;
    std::uint64_t unavailable = 0;  ///< bytes of files that are open, needed, or being downloaded
    std::uint64_t removed_files = 0, removed_bytes = 0;
  };

  /// Removes files until `bytes` more are within `bound`, the least recently used first, except those that are open or
  /// needed, and `name`. Removes nothing if that is not enough, unless a reader opens a file at this time.
  failure make_room(std::string_view name, std::uint64_t bytes, std::uint64_t bound, const needed_names& needed,
                    room& result, const guard& locked) const {
    std::vector<entry> entries;
    if (failure cause = list(name, entries, locked)) return cause;
    std::uint64_t used = 0;
    if (failure cause = sum(entries, used)) return cause;
    result.unavailable = used;
    // Counts first, so that no file is removed without effect. At most one file is open at a time: there may be more
    // files than a process may open.
    for (const bool removes : {false, true}) {
      std::uint64_t freed = 0;
      for (const entry& each : entries) {
        if (used - freed + bytes <= bound) break;
        if (std::binary_search(needed.begin(), needed.end(), each.name)) continue;
        bool is_free = false;
        if (failure cause = free_unused(each, removes, is_free)) return cause;
        if (!is_free) continue;
        freed += each.bytes;
        if (removes) ++result.removed_files, result.removed_bytes += each.bytes;
      }
      result.unavailable = used - freed;
      result.is_reserved = result.unavailable + bytes <= bound;
      if (!result.is_reserved) return {};
    }
    return {};
  }

  /// Returns the bytes that all files have, and those that partial downloads will have.
  failure count_bytes(std::uint64_t& result, const guard& locked) const {
    std::vector<entry> entries;
    if (failure cause = list({}, entries, locked)) return cause;
    return sum(entries, result);
  }

 private:
  static constexpr std::size_t most_record_bytes = std::size_t{1} << 20;

  struct entry {
    std::string name;
    bool is_partial = false;
    std::uint64_t bytes = 0;  ///< of a partial download: of the whole file, which are reserved
    std::int64_t used = 0;    ///< time of the last use
  };

  static bool exists(const std::string& path) {
    platform::locked_file file;
    return file.open(path, platform::access::read) != ENOENT;
  }

  /// Lists the files of the cache, except `omitted`, in order of their last use. Other files are ignored.
  failure list(std::string_view omitted, std::vector<entry>& result, const guard& locked) const {
    std::vector<std::string> names;
    if (const int error = platform::list_directory(path_, names); error != 0)
      return cache_failure("list the files of", path_, error);
    for (const std::string& file_name : names) {
      if (failure cause = remove_if_orphan(file_name)) return cause;
      entry found{file_name, file_name.ends_with(partial_suffix)};
      if (found.is_partial) found.name.resize(found.name.size() - partial_suffix.size());
      if (!is_cached_name(found.name) || found.name == omitted) continue;
      bool is_there = true;
      if (failure cause = examine(found, is_there, locked)) return cause;
      if (is_there) result.push_back(std::move(found));
    }
    std::sort(result.begin(), result.end(),
              [](const entry& a, const entry& b) { return std::tie(a.used, a.name) < std::tie(b.used, b.name); });
    return {};
  }

  /// Removes the record of a download that is no longer there: a process has died between two changes of the folder.
  failure remove_if_orphan(std::string_view file_name) const {
    if (!file_name.ends_with(record_suffix)) return {};
    const std::string_view name = file_name.substr(0, file_name.size() - record_suffix.size());
    return is_cached_name(name) && !exists(partial(name)) ? removed(record(name)) : failure();
  }

  failure examine(entry& which, bool& is_there, const guard& locked) const {
    platform::locked_file file;
    platform::file_status status;
    int error = file.open(path_of(which), platform::access::read);
    is_there = error != ENOENT;
    if (!is_there) return {};
    if (error == 0) error = file.status(status);
    if (error != 0) return cache_failure("examine", path_of(which), error);
    which.bytes = status.bytes;
    which.used = status.changed;
    if (!which.is_partial) return {};
    partial_record record;
    bool has_record = false;
    if (failure cause = read_record(which.name, record, has_record, locked)) return cause;
    which.bytes = std::max(which.bytes, record.bytes);
    return {};
  }

  /// Finds whether a file is unused, and removes it if that is wanted, while no reader can lock it.
  failure free_unused(const entry& which, bool removes, bool& is_free) const {
    const std::string path = path_of(which);
    platform::locked_file file;
    int error = file.open(path, platform::access::read);
    if (error != 0) return cache_failure("open", path, error);
    error = file.try_lock(platform::lock_kind::exclusive);
    is_free = error == 0;
    if (!is_free) return error == EWOULDBLOCK ? failure() : lock_failure(path, error);
    return removes ? remove(which) : failure();
  }

  /// Sets `result` to the sum of the files' bytes. Fails if a damaged record states more than there can be.
  failure sum(const std::vector<entry>& entries, std::uint64_t& result) const {
    result = 0;
    for (const entry& each : entries) {
      if (each.bytes > most_file_bytes || result > most_file_bytes) {
        return make_failure(errc::corrupted, hocket::detail::concat({"the records in '", path_, "' state more than ",
                                                                     most_file_bytes, " bytes: remove the folder"}));
      }
      result += each.bytes;
    }
    return {};
  }

  failure remove(const entry& which) const {
    if (failure cause = removed(path_of(which))) return cause;
    return which.is_partial ? removed(record(which.name)) : failure();
  }

  static failure removed(const std::string& path) {
    const int error = platform::remove_file(path);
    return error == 0 || error == ENOENT ? failure() : cache_failure("remove", path, error);
  }

  std::string path_of(const entry& which) const { return which.is_partial ? partial(which.name) : whole(which.name); }

  std::string path_;
};

}  // namespace detail
}  // namespace data
HOCKET_END_NAMESPACE
