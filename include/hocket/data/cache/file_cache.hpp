// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Remote files on a local disk: each is downloaded once by one process of the host, and mapped by all that need it.
///
/// @code
/// hocket::data::file_cache cache("/scratch/cache", source, {.bytes = 200'000'000'000});
/// const hocket::data::token_file tokens(cache.open("https://example.org/tokens-0.bin"));
/// @endcode
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/crc32c.hpp>
#include <hocket/core/deadline.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/platform/file_size_limit.hpp>
#include <hocket/core/platform/locked_file.hpp>
#include <hocket/core/platform/mapped_file.hpp>
#include <hocket/core/platform/wait_limit.hpp>
#include <hocket/core/text.hpp>
#include <hocket/data/cache/cache_counts.hpp>
#include <hocket/data/cache/folder.hpp>
#include <hocket/data/cache/names.hpp>
#include <hocket/data/cache/partial_record.hpp>
#include <hocket/data/input.hpp>
#include <hocket/data/remote/source.hpp>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace data {

struct cache_options {
  std::uint64_t bytes = 0;                                     ///< most that files in the folder have together
  std::size_t piece_bytes = std::size_t{4} << 20;              ///< that one call of the source reads
  std::chrono::nanoseconds timeout = std::chrono::minutes(5);  ///< longest wait for another process without progress
  /// Called after each piece, by the thread that downloads, with the number of bytes that are written.
  std::function<void(const remote_file&, std::uint64_t)> on_piece = nullptr;
};

/// What `file_cache::open` may do.
struct open_rules {
  /// Sets `needed` to the names of files that must not be removed to make room, sorted, as `cached_name` returns them.
  /// It is called while no process can change the folder.
  std::function<failure(const detail::cache_folder::guard&, needed_names& needed)> find_needed = nullptr;
  /// Ends waits and downloads with `aborted`, once it is true. What was downloaded remains.
  const std::atomic<bool>* cancelled = nullptr;
  bool waits = true;  ///< false: where the file is neither there nor can be downloaded now, the result is `aborted`
};

/// A cache in a folder that any number of processes of one host share. May be used by several threads; the source must
/// outlive it. All processes must state the same bound.
///
/// A file that is in use is not removed. To make room, the files whose last use is the longest ago are removed; a
/// reservation counts the whole of a file that is being downloaded, so that the bound holds at any time. If a
/// downloader dies or fails, the next process that needs the file continues with what was written, if the version is
/// the same and is stated.
class file_cache {
 public:
  /// Makes the folder if necessary. Raises `system` if that fails, and `invalid_argument` if an option is 0.
  file_cache(std::string folder, remote_source& source, cache_options options)
      : folder_(std::move(folder)), source_(source), options_(valid(std::move(options))) {
    if (failure cause = folder_.make()) raise(std::move(cause));
  }

  const std::string& folder() const noexcept { return folder_.path(); }
  std::chrono::nanoseconds timeout() const noexcept { return options_.timeout; }

  /// Returns the version of a file that this object uses: that of the first call for this name. Raises the failure of
  /// the source, and `invalid_argument` if it does not set the name.
  remote_file describe(const std::string& name) {
    {
      const std::lock_guard lock(mutex_);
      const auto found = described_.find(name);
      if (found != described_.end()) return found->second;
    }
    remote_file result;
    if (failure cause = source_.describe(name, result)) raise(std::move(cause));
    if (result.name.empty()) refuse("the source describes '" + name + "' without a name, which distinguishes files");
    const std::lock_guard lock(mutex_);
    return described_.emplace(name, std::move(result)).first->second;
  }
  /// Returns the versions of several files, in this order.
  std::vector<remote_file> describe(const std::vector<std::string>& names) {
    std::vector<remote_file> result;
    for (const std::string& each : names) result.push_back(describe(each));
    return result;
  }

  /// Returns a file, which is in the cache until the last copy of the result is destroyed. Downloads it if it is not
  /// there; if another process or thread does that, waits for it. Raises the failure of the source; `invalid_argument`
  /// if the file is larger than the bound; `timeout` if another process makes no progress, or if all room is in use;
  /// `corrupted` if a checksum or a file in the folder is wrong; and `system` if the operating system reports an error.
  opened_file open(const std::string& name) { return open(describe(name)); }
  opened_file open(const remote_file& file, const open_rules& rules = {}) {
    opened_file result;
    if (failure cause = try_open(file, rules, result)) raise(std::move(cause));
    return result;
  }

  /// Raises `invalid_argument` if the largest `count` of the files are larger than the bound together: call it before
  /// the first download, with the number of files that the processes of the host use at a time.
  void require_room(std::span<const remote_file> files, std::uint64_t count) const {
    std::vector<std::uint64_t> sizes;
    for (const remote_file& each : files) sizes.push_back(each.bytes);
    std::sort(sizes.begin(), sizes.end(), std::greater<>());
    std::uint64_t rest = options_.bytes;
    for (std::size_t i = 0; i < sizes.size() && i < count; ++i) {
      if (sizes[i] > rest) {
        refuse(hocket::detail::concat({"the bound of ", options_.bytes, " bytes for '", folder(),
                                       "' is too small: ", count, " files are used at a time, and the largest ", i + 1,
                                       " of them have more: use smaller groups of shards, or a larger bound"}));
      }
      rest -= sizes[i];
    }
  }

  /// Returns the failure of `open` as a value.
  failure try_open(const remote_file& file, const open_rules& rules, opened_file& result) {
    if (file.bytes > options_.bytes) {
      return make_failure(errc::invalid_argument,
                          hocket::detail::concat({"'", file.name, "' has ", file.bytes, " bytes, and the cache '",
                                                  folder(), "' is for at most ", options_.bytes}));
    }
    const std::string name = cached_name(file);
    deadline limit = deadline::after(options_.timeout);
    std::uint64_t progress = 0;
    for (detail::polling_pause pause;; pause()) {
      attempt now;
      if (failure cause = open_whole(file, name, now, result)) return cause;
      if (!now.is_done) {
        if (failure cause = begin_download(file, name, rules, now)) return cause;
      }
      if (now.is_mine) return finish_download(file, name, rules, now, result);
      if (now.is_done) {
        count(counts_->hits);
        return {};
      }
      if (std::exchange(progress, now.written) != now.written) limit = deadline::after(options_.timeout);
      if (!rules.waits || is_cancelled(rules)) return cancelled(file);
      if (limit.passed()) return late(file, now);
    }
  }

  /// Returns the bytes that files in the folder have, those included that are reserved for downloads. Raises as `open`.
  std::uint64_t bytes_in_use() const {
    std::uint64_t result = 0;
    detail::cache_folder::guard locked;
    failure cause = lock(locked);
    if (!cause) cause = folder_.count_bytes(result, locked);
    if (cause) raise(std::move(cause));
    return result;
  }

  /// Returns what this object counts, which remains valid after it.
  std::shared_ptr<const cache_counts> counts() const noexcept { return counts_; }

  /// The folder, for classes that store their own files in it.
  const detail::cache_folder& files() const noexcept { return folder_; }

 private:
  /// What one attempt to open a file has found.
  struct attempt {
    bool is_done = false;           ///< the file is open
    bool is_mine = false;           ///< this thread downloads `partial`
    bool has_no_room = false;       ///< all files are in use
    std::uint64_t unavailable = 0;  ///< bytes of files that could not be removed
    std::uint64_t written = 0;      ///< by the process that downloads
    platform::locked_file partial;
  };

  /// Keeps a mapping, and the lock of its file.
  struct locked_mapping {
    platform::locked_file file;
    platform::mapped_file mapping;

    locked_mapping(platform::locked_file opened, std::string& problem)
        : file(std::move(opened)), mapping(file.descriptor(), problem) {}
    locked_mapping(const locked_mapping&) = delete;
    locked_mapping& operator=(const locked_mapping&) = delete;
    ~locked_mapping() { file.touch(); }  // if that fails, the file is removed earlier than it should be
  };

  static cache_options valid(cache_options options) {
    if (options.bytes == 0 || options.bytes > most_file_bytes)
      refuse(hocket::detail::concat({"the bound of a cache must be 1 to ", most_file_bytes, " bytes"}));
    if (options.piece_bytes == 0) refuse("a piece of a download must have at least one byte");
    return options;
  }
  [[noreturn]] static void refuse(std::string reason) {
    raise(errc::invalid_argument, std::move(reason), {.operation = "data::file_cache"});
  }

  static void count(std::atomic<std::uint64_t>& of, std::uint64_t more = 1) noexcept {
    of.fetch_add(more, std::memory_order_relaxed);
  }

  static bool is_cancelled(const open_rules& rules) noexcept {
    return rules.cancelled != nullptr && rules.cancelled->load(std::memory_order_relaxed);
  }
  static failure cancelled(const remote_file& file) {
    return make_failure(errc::aborted, hocket::detail::concat({"the wait for '", file.name, "' was cancelled"}));
  }

  failure lock(detail::cache_folder::guard& result, const open_rules& rules = {}) const {
    return folder_.lock(deadline::after(options_.timeout), result, rules.cancelled);
  }

  failure late(const remote_file& file, const attempt& now) const {
    const std::string waited = platform::seconds_text(options_.timeout);
    if (!now.has_no_room) {
      return make_failure(errc::timeout,
                          hocket::detail::concat({"another process has '", folder_.partial(cached_name(file)),
                                                  "' locked, and has written nothing for ", waited}));
    }
    return make_failure(
        errc::timeout,
        hocket::detail::concat({"there was no room for the ", file.bytes, " bytes of '", file.name, "' in '", folder(),
                                "' for ", waited, ": ", now.unavailable, " of ", options_.bytes,
                                " bytes are in use: use smaller groups of shards, or a larger bound"}));
  }

  /// Opens a file that is whole, unless it is not there or another process is about to rename or remove it.
  failure open_whole(const remote_file& file, const std::string& name, attempt& now, opened_file& result) {
    const std::string path = folder_.whole(name);
    platform::locked_file opened;
    int error = opened.open(path, platform::access::read);
    if (error == ENOENT) return {};
    if (error != 0) return detail::cache_failure("open", path, error);
    error = opened.try_lock(platform::lock_kind::shared);
    if (error == EWOULDBLOCK) return {};
    if (error != 0) return detail::lock_failure(path, error);
    if (!opened.is_at(path)) return {};
    opened.touch();
    now.is_done = true;
    return map(file, path, std::move(opened), result);
  }

  failure map(const remote_file& file, const std::string& path, platform::locked_file opened, opened_file& result) {
    std::string problem;
    auto mapped = std::make_shared<const locked_mapping>(std::move(opened), problem);
    if (!problem.empty())
      return make_failure(errc::system, hocket::detail::concat({"cannot map '", path, "': ", problem}));
    const auto bytes = mapped->mapping.bytes();
    if (bytes.size() == file.bytes) {
      result = {file.name, bytes, std::move(mapped)};
      return {};
    }
    return make_failure(errc::corrupted,
                        hocket::detail::concat({"'", path, "' has ", bytes.size(), " bytes instead of the ", file.bytes,
                                                " of '", file.name, "': remove it"}));
  }

  /// Locks the partial file and reserves room, if no other process has it and there is room.
  failure begin_download(const remote_file& file, const std::string& name, const open_rules& rules, attempt& now) {
    detail::cache_folder::guard locked;
    if (failure cause = lock(locked, rules)) return cause;
    const std::string path = folder_.partial(name), whole = folder_.whole(name);
    platform::locked_file existing;
    if (existing.open(whole, platform::access::read) == 0) return {};  // since the last look
    if (int error = now.partial.open(path, platform::access::create); error != 0)
      return detail::cache_failure("open", path, error);
    platform::file_status status;
    if (int error = now.partial.status(status); error != 0) return detail::cache_failure("examine", path, error);
    now.written = status.bytes;
    const int error = now.partial.try_lock(platform::lock_kind::exclusive);
    if (error == EWOULDBLOCK) return {};
    if (error != 0) return detail::lock_failure(path, error);
    needed_names needed;
    if (rules.find_needed) {
      if (failure cause = rules.find_needed(locked, needed)) return cause;
    }
    detail::cache_folder::room found;
    failure cause = folder_.make_room(name, file.bytes, options_.bytes, needed, found, locked);
    count(counts_->evictions, found.removed_files);
    count(counts_->evicted_bytes, found.removed_bytes);
    if (cause) return cause;
    now.has_no_room = !found.is_reserved;
    now.unavailable = found.unavailable;
    if (now.has_no_room) return now.written == 0 ? folder_.remove_partial(name, locked) : failure();
    cause = continue_or_restart(file, name, now, locked);
    if (cause) return cause;
    now.is_mine = true;
    return {};
  }

  /// Continues a partial file of this version; otherwise empties the file, and records the version.
  failure continue_or_restart(const remote_file& file, const std::string& name, attempt& now,
                              const detail::cache_folder::guard& locked) {
    const partial_record wanted{file.name, file.bytes, file.version, detail::boot_text()};
    partial_record found;
    bool has_record = false;
    if (failure cause = folder_.read_record(name, found, has_record, locked)) return cause;
    const bool continues =
        has_record && found == wanted && now.written <= file.bytes && !file.version.empty() && !wanted.boot.empty();
    if (continues) return {};
    now.written = 0;
    if (int error = now.partial.resize(0); error != 0)
      return detail::cache_failure("empty", folder_.partial(name), error);
    return folder_.write_record(name, wanted, locked);
  }

  failure finish_download(const remote_file& file, const std::string& name, const open_rules& rules, attempt& now,
                          opened_file& result) {
    if (failure cause = write_pieces(file, name, rules, now)) return cause;
    const std::string partial = folder_.partial(name), whole = folder_.whole(name);
    if (int error = now.partial.sync(); error != 0) return detail::cache_failure("write", partial, error);
    detail::cache_folder::guard locked;  // so that no process removes the file while the lock changes
    if (failure cause = lock(locked, rules)) return cause;
    if (!now.partial.is_at(partial)) {
      return make_failure(errc::system, hocket::detail::concat({"'", partial,
                                                                "' was removed or replaced while it was written: only "
                                                                "caches may change the files of a folder in use"}));
    }
    if (int error = platform::rename_file(partial, whole); error != 0)
      return detail::cache_failure("rename", partial, error);
    count(counts_->downloads);
    if (failure cause = folder_.remove_record(name, locked)) return cause;
    if (int error = now.partial.try_lock(platform::lock_kind::shared); error != 0)
      return detail::lock_failure(whole, error);
    return map(file, whole, std::move(now.partial), result);
  }

  failure write_pieces(const remote_file& file, const std::string& name, const open_rules& rules, attempt& now) {
    const std::string path = folder_.partial(name);
    if (failure cause = platform::exceeds_file_size_limit(file.bytes)) {
      cause.reason = hocket::detail::concat({"cannot write '", path, "': ", cause.reason});
      return cause;
    }
    std::vector<std::byte> piece(static_cast<std::size_t>(std::min<std::uint64_t>(options_.piece_bytes, file.bytes)));
    crc32c sum;
    if (file.crc32c) {
      if (failure cause = add_written(path, now, piece, sum)) return cause;
    }
    while (now.written < file.bytes) {
      if (is_cancelled(rules)) return cancelled(file);
      const auto next = std::span(piece).first(
          static_cast<std::size_t>(std::min<std::uint64_t>(piece.size(), file.bytes - now.written)));
      if (failure cause = source_.read(file, now.written, next)) return cause;
      if (int error = now.partial.write(next, now.written); error != 0)
        return detail::cache_failure("write", path, error);
      now.written += next.size();
      count(counts_->downloaded_bytes, next.size());
      if (file.crc32c) sum.add(next);
      if (options_.on_piece) options_.on_piece(file, now.written);
    }
    return file.crc32c && sum.value() != *file.crc32c ? wrong_checksum(file, name, sum.value()) : failure();
  }

  /// Adds what an earlier download has written to a checksum.
  static failure add_written(const std::string& path, const attempt& now, std::span<std::byte> piece, crc32c& sum) {
    for (std::uint64_t at = 0; at < now.written;) {
      const auto next = piece.first(static_cast<std::size_t>(std::min<std::uint64_t>(piece.size(), now.written - at)));
      if (int error = now.partial.read(next, at); error != 0) return detail::cache_failure("read", path, error);
      sum.add(next);
      at += next.size();
    }
    return {};
  }

  /// Removes the download, so that the next attempt does not continue with the wrong bytes.
  failure wrong_checksum(const remote_file& file, const std::string& name, std::uint32_t found) {
    detail::cache_folder::guard locked;
    if (failure cause = lock(locked)) return cause;
    if (failure cause = folder_.remove_partial(name, locked)) return cause;
    return make_failure(errc::corrupted, hocket::detail::concat({"'", file.name, "', version '", file.version,
                                                                 "', has the CRC-32C ", detail::hexadecimal(found),
                                                                 " instead of ", detail::hexadecimal(*file.crc32c)}));
  }

  detail::cache_folder folder_;
  remote_source& source_;
  const cache_options options_;
  const std::shared_ptr<cache_counts> counts_ = std::make_shared<cache_counts>();
  std::mutex mutex_;
  std::map<std::string, remote_file> described_;
};

}  // namespace data
HOCKET_END_NAMESPACE
