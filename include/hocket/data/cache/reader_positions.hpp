// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// How far the readers of a host have come in the order of groups of shards. Each has a file in the folder of the
/// cache, which it keeps locked and which states its turn; so the others know what it still needs, and whether it
/// lives.
///
/// Turns count groups over all epochs: group 2 of epoch 1 of an order with 10 groups is turn 12.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/deadline.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/json_line.hpp>
#include <hocket/core/json_reader.hpp>
#include <hocket/core/platform/locked_file.hpp>
#include <hocket/core/text.hpp>
#include <hocket/data/cache/folder.hpp>
#include <hocket/data/cache/names.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace data {

/// One of the readers of a host that use the same files in the same order: by default the only one. With processes, it
/// is the local rank and the number of local ranks.
struct host_reader {
  int reader = 0;
  int readers = 1;
};

namespace detail {

inline constexpr std::string_view reader_format = "hocket reader";

inline std::string encode_turn(std::uint64_t turn) {
  return hocket::detail::concat({"{\"format\":", hocket::detail::json_text(reader_format), ",\"turn\":", turn, "}\n"});
}

/// Reads what `encode_turn` has written. Returns what is wrong; empty if nothing is.
inline std::string read_turn(std::string_view text, std::uint64_t& result) {
  hocket::detail::json_reader reader(text);
  std::string format;
  bool has_turn = false;
  reader.object([&](const std::string& key) {
    if (key == "format") format = reader.text();
    else if (key == "turn") result = reader.unsigned_integer(), has_turn = true;
    else reader.skip();
  });
  reader.end();
  if (!reader.ok()) return hocket::detail::concat({"byte ", reader.offset(), ": ", reader.problem()});
  return format == reader_format && has_turn ? "" : "it does not state the turn of a reader";
}

/// One reader, and what it knows of the others. One thread at a time.
class reader_positions {
 public:
  static constexpr std::uint64_t ended = UINT64_MAX;  ///< turn of a reader that needs nothing more

  /// The slowest of the readers that live.
  struct slowest {
    std::uint64_t turn = 0;
    int reader = 0;
    bool has_all = true;  ///< false: `reader` has not started yet
  };

  /// `files` identifies the files that the readers read, and their order.
  reader_positions(const cache_folder& folder, std::uint64_t files, const host_reader& self)
      : folder_(folder), files_(files), self_(self), seen_(static_cast<std::size_t>(std::max(self.readers, 1))) {}
  reader_positions(const reader_positions&) = delete;
  reader_positions& operator=(const reader_positions&) = delete;
  /// The last reader that ends removes the files of all.
  ~reader_positions() {
    cache_folder::guard locked;
    if (!own_ || folder_.lock(deadline::after(std::chrono::seconds(1)), locked)) return;
    own_.close();
    for (int i = 0; i < self_.readers; ++i) {
      state found;
      if (ask(i, found) || found.is_alive) return;
    }
    for (int i = 0; i < self_.readers; ++i) platform::remove_file(path_of(i));
  }

  /// Takes part, at turn 0.
  failure start(const deadline& limit) {
    cache_folder::guard locked;
    if (failure cause = folder_.lock(limit, locked)) return cause;
    const std::string path = path_of(self_.reader);
    if (int error = own_.open(path, platform::access::create); error != 0) return cache_failure("open", path, error);
    const int error = own_.try_lock(platform::lock_kind::exclusive);
    if (error == 0) return begin(path, locked);
    own_.close();
    if (error != EWOULDBLOCK) return lock_failure(path, error);
    return make_failure(errc::invalid_argument,
                        hocket::detail::concat({"reader ", self_.reader, " of ", self_.readers, " of '", folder_.path(),
                                                "' exists already: each rank of a host needs a number of its own"}));
  }

  std::uint64_t own_turn() const noexcept { return turn_; }

  failure move_to(std::uint64_t turn, const cache_folder::guard&) { return write(turn); }

  /// Finds the slowest reader. Ignores those that have ended or died since this one has started.
  failure find_slowest(slowest& result, const cache_folder::guard&) {
    result = {turn_, self_.reader, true};
    for (int i = 0; i < self_.readers; ++i) {
      if (i == self_.reader) continue;
      state found;
      if (failure cause = ask(i, found)) return cause;
      if (found.is_alive || found.changed >= started_) seen_[static_cast<std::size_t>(i)] = true;
      if (!seen_[static_cast<std::size_t>(i)]) result = {0, i, false};
      else if (found.is_alive && found.turn < result.turn) result = {found.turn, i, result.has_all};
    }
    return {};
  }

 private:
  static constexpr std::size_t most_bytes = 4096;

  std::string path_of(int reader) const {
    return hocket::detail::concat(
        {folder_.path(), "/reader-", hexadecimal(files_), '-', reader, "-of-", self_.readers});
  }

  failure write(std::uint64_t turn) {
    const std::string text = encode_turn(turn);
    int error = own_.write(std::as_bytes(std::span(text)), 0);
    if (error == 0) error = own_.resize(text.size());
    if (error != 0) return cache_failure("write", path_of(self_.reader), error);
    turn_ = turn;
    return {};
  }

  /// What the file of a reader states. Its process is gone unless it is locked.
  struct state {
    bool is_alive = false;
    std::uint64_t turn = 0;
    std::int64_t changed = INT64_MIN;  ///< when the file was written
  };

  failure begin(const std::string& path, const cache_folder::guard& locked) {
    platform::file_status status;
    if (failure cause = write(0)) return cause;
    if (int error = own_.status(status); error != 0) return cache_failure("examine", path, error);
    started_ = status.changed;
    slowest ignored;  // this one may be the only one that sees some reader alive
    return find_slowest(ignored, locked);
  }

  failure ask(int reader, state& result) const {
    const std::string path = path_of(reader);
    platform::locked_file file;
    int error = file.open(path, platform::access::read);
    if (error == ENOENT) return {};
    if (error != 0) return cache_failure("open", path, error);
    error = file.try_lock(platform::lock_kind::shared);
    if (error != 0 && error != EWOULDBLOCK) return lock_failure(path, error);
    platform::file_status status;
    result.is_alive = error == EWOULDBLOCK;
    if (error = file.status(status); error != 0) return cache_failure("examine", path, error);
    result.changed = status.changed;
    return result.is_alive ? read(path, file, status.bytes, result.turn) : failure();
  }

  static failure read(const std::string& path, const platform::locked_file& file, std::uint64_t bytes,
                      std::uint64_t& turn) {
    std::string text(static_cast<std::size_t>(std::min<std::uint64_t>(bytes, most_bytes)), '\0');
    if (int error = file.read(std::as_writable_bytes(std::span(text)), 0); error != 0)
      return cache_failure("read", path, error);
    const std::string problem = read_turn(text, turn);
    if (problem.empty()) return {};
    return make_failure(errc::corrupted, hocket::detail::concat({"'", path, "' is damaged: ", problem}));
  }

  const cache_folder& folder_;
  std::uint64_t files_;
  host_reader self_;
  std::vector<bool> seen_;
  platform::locked_file own_;
  std::uint64_t turn_ = 0;
  std::int64_t started_ = 0;  ///< when this reader has started, by the clock of the file system
};

}  // namespace detail
}  // namespace data
HOCKET_END_NAMESPACE
