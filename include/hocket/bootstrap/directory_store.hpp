// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// A store in a directory that all ranks see, local or on a shared file system, for hosts where no port can be opened.
///
/// Each job is a session: a separate directory, which rank 0 creates under a random name. Another rank cannot know
/// whether a session that it finds is active or was left behind by a job that crashed. So it writes a random word into
/// every session, and joins the one in which rank 0 repeats its word. Rank 0 removes leftover sessions once all
/// ranks have joined; the last rank to leave removes the session. Jobs that share a directory at the same time need
/// different tokens; sessions left behind by a job with another token are removed when they are a week old.
///
/// A rank whose start-up is cancelled writes a marker file, which also ends the waits of the other ranks. Rank 0 writes
/// one if a rank of its host has joined and its process ends; ranks on that host do so if rank 0's process ends; and a
/// launcher (launch.hpp) does so if any rank fails. The end of any other process is not detected: the ranks time out.
///
/// Waiting ranks poll every 1 to 50 ms; a network file system may show new files seconds later.
#pragma once

#include <hocket/bootstrap/process_notes.hpp>
#include <hocket/bootstrap/rendezvous.hpp>
#include <hocket/bootstrap/store.hpp>
#include <hocket/bootstrap/tcp_protocol.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/platform/directory.hpp>
#include <hocket/core/text.hpp>

#include <chrono>
#include <cstdint>
#include <ctime>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE

namespace bootstrap {

/// All ranks pass the same values, except `rank`.
struct directory_store_options {
  int rank = 0;
  int ranks = 1;
  std::string directory;  ///< created if missing, except its parents and anything in the root
  std::string token;
};

/// Move-only; one thread at a time.
class directory_store {
 public:
  /// Waits for all ranks. **Errors.** `timeout` names the missing ranks; `refused`: another version or byte order;
  /// `bad_environment`: the directory cannot be used; `aborted`: start-up was cancelled on this rank or `context.peer`;
  /// `peer_lost`: the process of `context.peer` has ended.
  directory_store(const directory_store_options& options, const wait_limit& limit) : directory_store(options) {
    check();
    const failure cause = options_.rank == 0 ? admit_all(limit) : join(limit);
    failed_ = static_cast<bool>(cause);
    if (cause) fail("connect", cause);
  }

  directory_store(directory_store&& other) noexcept
      : options_(std::move(other.options_)), base_(std::move(other.base_)),
        session_(std::exchange(other.session_, std::string())), notes_(std::move(other.notes_)) {}
  directory_store& operator=(directory_store&&) = delete;
  ~directory_store() { leave(); }

  void set(std::string_view key, byte_view value, const wait_limit& /*limit*/) {
    if (failure cause = platform::write_file(session_, file_name(key), value)) fail("store.set", std::move(cause));
  }

  /// Polls at least once, even if the limit has passed.
  blob get(std::string_view key, const wait_limit& limit) {
    const std::string path = session_ + '/' + file_name(key);
    blob value;
    failure cause = poll(
        limit, [&] { return platform::read_file(path, value); },
        [&](std::chrono::nanoseconds waited) {
          return make_failure(errc::timeout, hocket::detail::concat(
                                                 {"no rank set '", key, "' within ", platform::seconds_text(waited)}));
        });
    if (cause) fail("store.get", std::move(cause));
    return value;
  }

 private:
  explicit directory_store(const directory_store_options& options)
      : options_(options), base_(hocket::detail::concat({options.directory, "/hocket-", token_digest(options.token)})) {
  }

  template <class T>
  static bool contains(const std::vector<T>& all, const T& one) noexcept {
    for (const T& each : all) {
      if (each == one) return true;
    }
    return false;
  }

  /// Only distinguishes jobs (FNV-1a); `rendezvous` compares the token itself.
  static std::string token_digest(std::string_view token) {
    std::uint64_t hash = 0xcbf29ce484222325U;
    for (const char each : token) hash = (hash ^ static_cast<unsigned char>(each)) * 0x100000001b3U;
    std::string text;
    for (int shift = 60; shift >= 0; shift -= 4) text += "0123456789abcdef"[(hash >> shift) & 15U];
    return text;
  }

  void check() const {
    std::string wrong;
    if (options_.ranks < 1 || options_.rank < 0 || options_.rank >= options_.ranks) {
      wrong = hocket::detail::concat(
          {"rank ", options_.rank, " of ", options_.ranks, " is not a rank: give 0 <= rank < ranks"});
    } else if (options_.token.size() > detail::max_token_size) {
      wrong = hocket::detail::concat(
          {"the token has ", options_.token.size(), " bytes: give at most ", detail::max_token_size});
    }
    if (!wrong.empty()) fail("connect", make_failure(errc::invalid_argument, wrong));
  }

  /// Waits until `done()`. If the limit ends the wait, the failure is that of `missing(waited)`, with the code of the
  /// limit's end.
  template <typename Done, typename Missing>
  failure poll(const wait_limit& limit, Done&& done, Missing&& missing) {
    const auto begin = deadline::clock::now();
    const std::chrono::nanoseconds allowed = detail::allowed_time(limit);
    std::chrono::nanoseconds pause = std::chrono::milliseconds(1);
    for (;;) {
      if (failure peer_failure = read_cancellation()) return peer_failure;
      if (done()) return {};
      if (failure lost = seen_death()) return lost;
      if (failure end = platform::nap(pause, limit)) {
        const bool cancelled = end.code == errc::aborted;
        if (cancelled) cancel();
        failure cause = missing(cancelled ? deadline::clock::now() - begin : allowed);
        if (cancelled) cause.reason.insert(0, "start-up was cancelled: ");
        cause.code = end.code;
        return cause;
      }
      pause = std::min<std::chrono::nanoseconds>(pause * 2, std::chrono::milliseconds(50));
    }
  }

  /// Writes a marker file into every session that this rank has joined or tried to join.
  void cancel() const {
    std::vector<std::string> places = joined_;
    if (!session_.empty()) places = {session_};
    for (const std::string& place : places) {
      static_cast<void>(detail::note_end(place, detail::cancelled_note, options_.rank));
    }
  }

  /// Returns the failure to report if another rank cancelled start-up.
  failure read_cancellation() const {
    const int rank = session_.empty() ? -1 : detail::noted_end(session_, detail::cancelled_note, options_.ranks);
    if (rank < 0 || rank == options_.rank) return {};
    return make_failure(errc::aborted, detail::cancelled_text(rank, options_.ranks), {.peer = rank});
  }

  /// Returns the failure to report if a rank's process has ended, or a rank failed before it joined. A launcher that
  /// checks late may find two failed ranks, one of which failed because of the other. So a rank that another rank saw
  /// end takes precedence over the rank that the launcher names. Its marker is read last, because it is written first.
  failure seen_death() {
    const int failed = detail::noted_end(options_.directory, detail::failed_note, options_.ranks);
    int rank = session_.empty() ? -1 : detail::noted_end(session_, detail::died_note, options_.ranks);
    if (rank < 0) rank = failed;
    if (rank < 0 && !session_.empty()) rank = dead_rank();
    if (rank < 0 || rank == options_.rank) return {};
    return make_failure(errc::peer_lost,
                        hocket::detail::concat({"rank ", rank, " of ", options_.ranks,
                                                " has ended during start-up: it failed, crashed or was killed"}),
                        {.peer = rank});
  }

  /// Returns a rank whose process has ended, and writes a marker for all ranks; -1 if there is none. Rank 0 watches all
  /// others, and they watch rank 0. A rank that has left in order does not count: its process may end.
  int dead_rank() {
    const int first = options_.rank == 0 ? 1 : 0, last = options_.rank == 0 ? options_.ranks : 1;
    for (int rank = first; rank < last; ++rank) {
      if (!notes_.has_ended(session_, rank) || has_left(rank)) continue;
      static_cast<void>(detail::note_end(session_, detail::died_note, rank));
      return rank;
    }
    return -1;
  }

  bool has_left(int rank) const {
    return ::access(hocket::detail::concat({session_, "/left.", rank}).c_str(), F_OK) == 0;
  }

  // ── Rank 0 ──────────────────────────────────────────────────────────────────────────────────────────────────────

  failure admit_all(const wait_limit& limit) {
    if (failure cause = make_session()) return cause;
    detail::rendezvous admission(options_.ranks, options_.token);
    std::vector<int> here{0};
    failure cause;
    failure end = poll(
        limit,
        [&] {
          cause = admit_some(admission, here);
          return cause || here.size() == static_cast<std::size_t>(options_.ranks);
        },
        [&](std::chrono::nanoseconds waited) { return missing_failure(here, waited); });
    if (end.code == errc::aborted) {
      static_cast<void>(admit_some(admission, here));  // a rank that has just arrived sees the marker too
      return end;
    }
    if (end) cause = std::move(end);
    if (failure problem = publish_verdict(cause); problem && !cause) cause = problem;
    if (!cause) remove_left_behind();
    return cause;
  }

  /// Refuses a directory whose parent does not exist, or is the root: most likely a typing error.
  failure check_parent() const {
    struct stat found {};
    if (::stat(options_.directory.c_str(), &found) == 0) return {};
    std::string_view path = options_.directory;
    while (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
    const std::size_t slash = path.rfind('/');
    const std::string parent(slash == std::string_view::npos ? "." : path.substr(0, slash));
    const std::string what = hocket::detail::concat({"there is no directory '", options_.directory, "', and "});
    const std::string right = "; set HOCKET_STORE=dir:///path of a directory that all ranks can write";
    if (parent.empty()) {
      return make_failure(errc::bad_environment,
                          hocket::detail::concat({what, "hocket creates none in the root of the file system", right}));
    }
    if (::stat(parent.c_str(), &found) == 0) return {};
    return make_failure(errc::bad_environment,
                        hocket::detail::concat({what, "it can't be created: there is no '", parent, '\'', right}));
  }

  /// Creates the session. Retries, because the last rank of an earlier job may remove the base at the same time.
  failure make_session() {
    if (failure mistyped = check_parent()) return mistyped;
    const std::string path = hocket::detail::concat({base_, "/session-", platform::random_name()});
    int error = 0;
    for (int attempt = 0; attempt < 100; ++attempt) {
      ::mkdir(options_.directory.c_str(), 0700);
      ::mkdir(base_.c_str(), 0700);
      if (::mkdir(path.c_str(), 0700) == 0) {
        session_ = path;
        return notes_.leave(session_, options_.rank);
      }
      error = errno;
    }
    return platform::system_failure(hocket::detail::concat({"cannot create '", path,
                                                            "' (set HOCKET_STORE=dir:///path of a directory that all "
                                                            "ranks can write)"}),
                                    error, errc::bad_environment);
  }

  failure admit_some(detail::rendezvous& admission, std::vector<int>& here) const {
    for (const std::string& name : platform::list_directory(session_)) {
      blob note;
      if (name.substr(0, 5) != "join." || !platform::read_file(session_ + '/' + name, note)) continue;
      detail::hello greeting;
      std::size_t size = 0;
      if (detail::decode(note, greeting, size) != detail::decoded::complete) continue;
      if (contains(here, greeting.rank)) continue;
      const detail::reply verdict = admission.greet(greeting);
      const std::string seen = "seen." + name.substr(5);
      if (failure cause = platform::write_file(session_, seen, byte_view(note).subspan(size))) return cause;
      if (verdict.status != 0) {
        return detail::reported_failure(verdict.status, greeting.rank, blob_text(*verdict.body), options_.ranks);
      }
      here.push_back(greeting.rank);
    }
    return {};
  }

  failure publish_verdict(const failure& cause) const {
    blob verdict;
    detail::append_integer(verdict, static_cast<std::int32_t>(cause.code.value()));
    detail::append_integer(verdict, static_cast<std::int32_t>(cause.context.peer));
    detail::append_bytes(verdict, text_bytes(cause.reason));
    return platform::write_file(session_, "verdict", verdict);
  }

  void remove_left_behind() const {
    for (const std::string& name : platform::list_directory(base_)) {
      const std::string path = base_ + '/' + name;
      if (path != session_) platform::remove_flat_directory(path);
    }
    for (const std::string& name : platform::list_directory(options_.directory)) {
      const std::string base = options_.directory + '/' + name;
      if (name.starts_with("hocket-") && base != base_) remove_old_sessions(base);
    }
  }

  /// Removes old sessions of jobs with another token. Compares times of the file system, which may have its own clock.
  void remove_old_sessions(const std::string& base) const {
    constexpr std::time_t week = 7 * 24 * 3600;
    struct stat own {};
    if (::lstat(session_.c_str(), &own) != 0) return;
    for (const std::string& name : platform::list_directory(base)) {
      const std::string path = base + '/' + name;
      struct stat theirs {};
      const bool is_session = name.starts_with("session-") || name.starts_with("ended-");
      if (!is_session || ::lstat(path.c_str(), &theirs) != 0 || !S_ISDIR(theirs.st_mode)) continue;
      if (own.st_mtime - theirs.st_mtime > week) platform::remove_flat_directory(path);
    }
    ::rmdir(base.c_str());
  }

  // ── The other ranks ─────────────────────────────────────────────────────────────────────────────────────────────

  failure join(const wait_limit& limit) {
    const std::string word = platform::random_name();
    failure end = poll(
        limit, [&] { return find_session(word); },
        [&](std::chrono::nanoseconds waited) {
          return make_failure(errc::timeout,
                              hocket::detail::concat({"rank 0 has not shown up in '", options_.directory, "' after ",
                                                      platform::seconds_text(waited),
                                                      ": is it running, with the same HOCKET_STORE and HOCKET_TOKEN?"}),
                              {.peer = 0});
        });
    if (end) return end;
    blob verdict;
    const std::string path = session_ + "/verdict";
    // Rank 0 enforces the deadline, and its verdict arrives a little later.
    end = poll(
        limit.later_by(std::chrono::milliseconds(200)), [&] { return platform::read_file(path, verdict); },
        [&](std::chrono::nanoseconds waited) { return missing_failure(ranks_here(), waited); });
    if (end) return end;
    detail::blob_reader reader(verdict);
    const auto code = reader.integer<std::int32_t>();
    const auto peer = reader.integer<std::int32_t>();
    if (!reader.ok())
      return make_failure(errc::mismatch,
                          hocket::detail::concat({"'", path, "' is too short to be the verdict of rank 0"}));
    if (code == 0) return {};
    return detail::reported_failure(code, peer, reader.rest_as_text(), options_.ranks);
  }

  /// Writes `word` into every session, and selects the session in which rank 0 repeats it.
  bool find_session(const std::string& word) {
    for (const std::string& name : platform::list_directory(base_)) {
      if (name.substr(0, 8) != "session-") continue;
      const std::string path = base_ + '/' + name;
      const std::string rank = std::to_string(options_.rank);
      blob seen;
      if (platform::read_file(hocket::detail::concat({path, "/seen.", rank}), seen) && blob_text(seen) == word) {
        session_ = path;
        return true;
      }
      if (contains(joined_, path)) continue;
      detail::hello greeting;
      greeting.rank = options_.rank;
      greeting.ranks = options_.ranks;
      greeting.token = options_.token;
      blob note = detail::encode(greeting);
      detail::append_bytes(note, text_bytes(word));
      // If these fail, the session is being removed.
      if (notes_.leave(path, options_.rank) || platform::write_file(path, "join." + rank, note)) continue;
      joined_.push_back(path);
    }
    return false;
  }

  std::vector<int> ranks_here() const {
    std::vector<int> here{0};
    for (int rank = 1; rank < options_.ranks; ++rank) {
      if (::access(hocket::detail::concat({session_, "/join.", rank}).c_str(), F_OK) == 0) here.push_back(rank);
    }
    return here;
  }

  failure missing_failure(const std::vector<int>& here, std::chrono::nanoseconds waited) const {
    std::vector<int> missing;
    for (int rank = 0; rank < options_.ranks; ++rank) {
      if (!contains(here, rank)) missing.push_back(rank);
    }
    if (missing.empty()) missing.push_back(0);
    return make_failure(errc::timeout, detail::missing_text(missing, options_.ranks, waited),
                        {.peer = missing.front()});
  }

  // ── All ranks ───────────────────────────────────────────────────────────────────────────────────────────────────

  /// The last rank to leave removes the session. It renames the session first, so that no rank finds it half removed.
  /// If start-up has failed, only the ranks that have joined count.
  void leave() noexcept {
    if (session_.empty()) return;
    static_cast<void>(platform::write_file(session_, hocket::detail::concat({"left.", options_.rank}), {}));
    std::size_t left = 0;
    for (const std::string& name : platform::list_directory(session_)) {
      // A rank whose process has ended can't write that it leaves.
      if (name.starts_with("left.") || name == detail::died_note) ++left;
    }
    if (left < (failed_ ? ranks_here().size() : static_cast<std::size_t>(options_.ranks))) return;
    const std::string ended = hocket::detail::concat({base_, "/ended-", session_.substr(session_.rfind('-') + 1)});
    if (::rename(session_.c_str(), ended.c_str()) != 0) return;
    platform::remove_flat_directory(ended);
    ::rmdir(base_.c_str());
  }

  /// Encodes a key as a file name: each character other than a letter or a digit becomes %xx.
  std::string file_name(std::string_view key) const {
    std::string name = "key.";
    for (const char each : key) {
      const auto code = static_cast<unsigned char>(each);
      const bool plain = (each >= '0' && each <= '9') || (each >= 'a' && each <= 'z') || (each >= 'A' && each <= 'Z');
      if (plain) {
        name += each;
      } else {
        name += '%';
        name += "0123456789abcdef"[code >> 4];
        name += "0123456789abcdef"[code & 15];
      }
    }
    if (name.size() > 250) {
      const std::string text =
          hocket::detail::concat({"the key '", key, "' is too long for a file name: use at most 80 bytes"});
      fail("store", make_failure(errc::invalid_argument, text));
    }
    return name;
  }

  [[noreturn]] void fail(const char* operation, failure cause) const {
    cause.context = detail::store_context(operation, options_.rank, options_.ranks, cause.context.peer);
    raise(std::move(cause));
  }

  directory_store_options options_;
  std::string base_;
  std::string session_;
  std::vector<std::string> joined_;
  bool failed_ = false;  ///< start-up has failed, and this rank knows it
  detail::process_notes notes_;
};

}  // namespace bootstrap

HOCKET_END_NAMESPACE
