// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// How far the readers of a host have come in the order of groups of shards. Each has a file in the folder of the cache,
/// which it keeps locked and which states its turn; so the others know what it still needs, and whether it lives.
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
  ~reader_positions() {
    if (own_) platform::remove_file(path_of(self_.reader));
  }

  /// Takes part, at turn 0.
  failure start(const deadline& limit) {
    cache_folder::guard locked;
    if (failure cause = folder_.lock(limit, locked)) return cause;
    const std::string path = path_of(self_.reader);
    if (int error = own_.open(path, platform::access::create); error != 0) return cache_failure("open", path, error);
    const int error = own_.try_lock(platform::lock_kind::exclusive);
    if (error == 0) return write(0);
    own_.close();
    if (error != EWOULDBLOCK) return lock_failure(path, error);
    return make_failure(errc::invalid_argument,
                        hocket::detail::concat({"reader ", self_.reader, " of ", self_.readers, " of '", folder_.path(),
                                                "' exists already: each rank of a host needs a number of its own"}));
  }

  std::uint64_t own_turn() const noexcept { return turn_; }

  failure move_to(std::uint64_t turn, const cache_folder::guard&) { return write(turn); }

  /// Finds the slowest reader. Ignores those that have ended or died since they were seen.
  failure find_slowest(slowest& result, const cache_folder::guard&) {
    result = {turn_, self_.reader, true};
    for (int i = 0; i < self_.readers && result.has_all; ++i) {
      if (i == self_.reader) continue;
      std::uint64_t turn = 0;
      bool is_alive = false;
      if (failure cause = ask(i, turn, is_alive)) return cause;
      if (is_alive) seen_[static_cast<std::size_t>(i)] = true;
      if (is_alive && turn < result.turn) result = {turn, i, true};
      if (!seen_[static_cast<std::size_t>(i)]) result = {0, i, false};
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

  failure ask(int reader, std::uint64_t& turn, bool& is_alive) const {
    const std::string path = path_of(reader);
    platform::locked_file file;
    int error = file.open(path, platform::access::read);
    if (error == ENOENT) return {};
    if (error != 0) return cache_failure("open", path, error);
    error = file.try_lock(platform::lock_kind::shared);
    if (error == 0) return {};  // its process is gone
    if (error != EWOULDBLOCK) return lock_failure(path, error);
    is_alive = true;
    return read(path, file, turn);
  }

  static failure read(const std::string& path, const platform::locked_file& file, std::uint64_t& turn) {
    platform::file_status status;
    if (int error = file.status(status); error != 0) return cache_failure("examine", path, error);
    std::string text(static_cast<std::size_t>(std::min<std::uint64_t>(status.bytes, most_bytes)), '\0');
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
};

}  // namespace detail
}  // namespace data
HOCKET_END_NAMESPACE
