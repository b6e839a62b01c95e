// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Marker files by which ranks that meet in a directory, and their launcher, record which ranks have ended. Each rank
/// publishes its process identity, so that processes of one host can watch each other; a marker names the ended rank.
#pragma once

#include <hocket/bootstrap/blob.hpp>
#include <hocket/bootstrap/process_identity.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/platform/directory.hpp>
#include <hocket/core/text.hpp>

#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <span>
#include <string>

HOCKET_BEGIN_NAMESPACE

namespace bootstrap::detail {

/// How a rank has ended: the names of the marker files.
inline constexpr const char* cancelled_note = "called_off";
inline constexpr const char* died_note = "died";              ///< written by another rank
inline constexpr const char* failed_note = ".hocket-failed";  ///< written by the launcher

inline failure note_end(const std::string& directory, const char* how, int rank) {
  blob note;
  append_integer(note, static_cast<std::int32_t>(rank));
  return platform::write_file(directory, how, note);
}

/// Returns the rank that ended in this way; -1 if the marker file is missing or invalid.
inline int noted_end(const std::string& directory, const char* how, int ranks) {
  blob note;
  if (!platform::read_file(directory + '/' + how, note)) return -1;
  blob_reader reader(note);
  const auto rank = reader.integer<std::int32_t>();
  return reader.ok() && rank >= 0 && rank < ranks ? rank : -1;
}

/// Process identities that ranks have published in a directory, and a watch on each process.
class process_notes {
 public:
  /// Publishes the process identity of `rank`, this rank, in `directory`.
  failure leave(const std::string& directory, int rank) const {
    return platform::write_file(directory, name_of(rank), std::as_bytes(std::span(&own_, 1)));
  }

  /// True if the process that `rank` has published in `directory` has ended. Also false if that can't be determined: on
  /// another host, or in another PID namespace.
  bool has_ended(const std::string& directory, int rank) {
    watched& one = all_[rank];
    if (!one.known) one.known = read(directory + '/' + name_of(rank));
    return one.known && own_.can_watch(*one.known) && one.watch.ended(*one.known);
  }

 private:
  struct watched {
    std::optional<process_identity> known;
    process_watch watch;
  };

  static std::string name_of(int rank) { return hocket::detail::concat({"process.", rank}); }

  static std::optional<process_identity> read(const std::string& path) {
    blob note;
    process_identity who;
    if (!platform::read_file(path, note) || note.size() != sizeof who) return std::nullopt;
    std::memcpy(&who, note.data(), sizeof who);
    return who;
  }

  process_identity own_ = own_identity();
  std::map<int, watched> all_;
};

}  // namespace bootstrap::detail

HOCKET_END_NAMESPACE
