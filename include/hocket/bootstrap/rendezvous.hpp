// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// State machine of the TCP store's server, without sockets: which ranks are present, which keys are set, and which
/// requests wait until which deadline. The caller passes the time and sends the answers: tests need no network.
#pragma once

#include <hocket/bootstrap/store.hpp>
#include <hocket/bootstrap/tcp_protocol.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/deadline.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/text.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE

namespace bootstrap::detail {

/// How a rank has left.
enum class leave_kind {
  lost,          ///< its connection ended without a goodbye or cancel message
  goodbye,       ///< it sent a goodbye message: it needs the store no longer
  cancelled,     ///< it sent a cancel message: another thread of the rank cancelled its start-up
  never_joined,  ///< its launcher reports that it failed before it joined
};

/// Functions add answers, which the caller takes by `take_answers` and sends. One thread only.
class rendezvous {
 public:
  /// An answer to send on the connection of a rank.
  struct answer {
    int rank;
    reply what;
  };

  rendezvous(int ranks, std::string token)
      : ranks_(ranks), token_(std::move(token)), presence_(static_cast<std::size_t>(ranks)) {}

  /// Admits a rank (status 0) or returns why it is refused. `origin` is the rank's address, for messages. Start-up
  /// fails for all ranks if a hello has another number of ranks, a rank out of range or that of a connected process.
  reply greet(const hello& greeting, const std::string& origin = {}) {
    const reply verdict = check_greeting(greeting, origin);
    if (verdict.status == static_cast<std::uint32_t>(errc::mismatch)) end(verdict);
    if (greeting.rank >= 0 && greeting.rank < ranks_) {
      member& claimed = presence_[static_cast<std::size_t>(greeting.rank)];
      if (verdict.status == 0) {
        claimed = {state::joined, {}, origin};
      } else if (claimed.current == state::absent) {
        claimed.refused_because = blob_text(*verdict.body);
      }
    }
    return verdict;
  }

  /// Handles a launcher's report that a rank has failed. Ignored after it has joined: then its connection shows that.
  void note_peer_failure(hello greeting) {
    greeting.rank = decode_failed_rank(greeting.rank);
    if (check_greeting(greeting, {}).status == 0) leave(greeting.rank, leave_kind::never_joined);
  }

  /// Serves a request of `rank`, which must have joined and must not wait. Call `leave` for a goodbye, and `cancel`.
  void handle(int rank, request&& what, deadline::clock::time_point now = deadline::clock::now()) {
    if (contradicted_ && !is_leave_request(what.kind)) {
      answers_.push_back({rank, first_failure_});
      return;
    }
    switch (what.kind) {
      case request_kind::set: return set(rank, std::move(what));
      case request_kind::get: return get(rank, what, now);
      case request_kind::add: return add(rank, what);
      case request_kind::gather: return gather(rank, std::move(what), now);
      case request_kind::goodbye:
      case request_kind::cancel: return;
    }
  }

  /// Removes the wait of a rank that cancels, and returns its answer: what it waited for. Call `leave` afterwards.
  reply cancel(int rank, deadline::clock::time_point now = deadline::clock::now()) {
    const auto found =
        std::find_if(waiting_.begin(), waiting_.end(), [&](const auto& each) { return each.rank == rank; });
    if (found == waiting_.end()) return refusal(errc::aborted, "start-up was cancelled");
    const waiter mine = *found;
    waiting_.erase(found);
    const std::chrono::nanoseconds waited = now - mine.since;
    if (mine.kind == request_kind::gather) {
      return missing_refusal(errc::aborted, "start-up was cancelled: ", mine.key, gatherings_[mine.key], waited);
    }
    return refusal(errc::aborted, hocket::detail::concat({"start-up was cancelled: no rank has set '", mine.key,
                                                          "' after ", platform::seconds_text(waited)}));
  }

  /// Handles that `rank` has left. A goodbye fails gatherings, but no wait for a key, which another rank may set.
  void leave(int rank, leave_kind how) {
    std::erase_if(waiting_, [rank](const waiter& each) { return each.rank == rank; });
    presence_[static_cast<std::size_t>(rank)] = {state_after(how), {}, {}};
    const reply verdict = gone_refusal(rank);
    fail_gatherings(verdict);
    if (how != leave_kind::goodbye) end_waits(verdict);
  }

  /// Ends all waits whose deadline has passed. A gathering fails for all ranks if the wait of one rank has timed out.
  void expire(deadline::clock::time_point now = deadline::clock::now()) {
    for (std::size_t i = 0; i < waiting_.size();) {
      if (!waiting_[i].until.passed(now)) {
        ++i;
        continue;
      }
      const waiter late = waiting_[i];
      waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(i));
      if (late.kind == request_kind::gather) {
        gathering& group = gatherings_[late.key];
        const reply verdict = missing_refusal(errc::timeout, "", late.key, group, late.allowed);
        answers_.push_back({late.rank, verdict});
        fail(late.key, group, verdict);
        i = 0;
      } else {
        answers_.push_back(
            {late.rank, refusal(errc::timeout, hocket::detail::concat({"no rank set '", late.key, "' within ",
                                                                       platform::seconds_text(late.allowed)}))});
      }
    }
  }

  /// Returns the first failure; its status is 0 if there is none. The server sends it to all ranks before it ends,
  /// because they would otherwise learn only that rank 0 has left.
  const reply& first_failure() const noexcept { return first_failure_; }

  /// True if every rank has joined, or is known to have failed or left.
  bool all_ranks_accounted_for() const noexcept {
    const auto absent = [](const member& each) { return each.current == state::absent; };
    return std::none_of(presence_.begin(), presence_.end(), absent);
  }

  /// True if a rank is gone, or two ranks contradict each other, and other ranks have yet to join and learn of it.
  bool must_wait_to_report_failure() const noexcept {
    return (contradicted_ || first_failure_.status == static_cast<std::uint32_t>(errc::peer_lost)) &&
           !all_ranks_accounted_for();
  }

  /// Answers all requests that still wait, because the server ends.
  void close() {
    for (const waiter& each : waiting_) {
      answers_.push_back({each.rank, refusal(errc::peer_lost, "rank 0 has closed the store", 0)});
    }
    waiting_.clear();
  }

  deadline next_deadline() const noexcept {
    deadline next;
    for (const waiter& each : waiting_) {
      if (each.until.when() < next.when()) next = each.until;
    }
    return next;
  }

  std::vector<answer> take_answers() { return std::exchange(answers_, {}); }

 private:
  enum class state { absent, joined, left, lost, cancelled, never_joined };

  struct member {
    state current = state::absent;
    std::string refused_because;  ///< why a connection that claimed to be this rank was refused
    std::string origin;           ///< address of the rank, if known
  };

  struct waiter {
    int rank;
    request_kind kind;
    std::string key;
    deadline until;
    std::chrono::nanoseconds allowed;
    deadline::clock::time_point since;
  };

  struct gathering {
    std::vector<blob> blobs;
    std::vector<bool> present;
    int count = 0;
    reply verdict;  ///< set on failure; permanent, so that all ranks see the same failure
  };

  static state state_after(leave_kind how) noexcept {
    switch (how) {
      case leave_kind::goodbye: return state::left;
      case leave_kind::cancelled: return state::cancelled;
      case leave_kind::never_joined: return state::never_joined;
      case leave_kind::lost: break;
    }
    return state::lost;
  }
  static bool is_gone(state current) noexcept { return current != state::absent && current != state::joined; }

  static reply refusal(errc code, std::string_view reason, int peer = -1) {
    return make_refusal(static_cast<std::uint32_t>(code), reason, peer);
  }

  reply check_greeting(const hello& greeting, const std::string& origin) const {
    const std::string who = hocket::detail::concat({"rank ", greeting.rank});
    if (greeting.byte_order != byte_order_mark) {
      const auto order = [](std::uint32_t mark, bool own) {
        const bool little = (std::endian::native == std::endian::little) == own;
        return own || mark == 0x04030201 ? std::string(little ? "little" : "big") + "-endian" : "of unknown byte order";
      };
      return refusal(errc::refused, hocket::detail::concat({"rank 0 is ", order(byte_order_mark, true), ", but ", who,
                                                            " is ", order(greeting.byte_order, false),
                                                            ": run all ranks on machines with the same byte order"}));
    }
    if (greeting.protocol != protocol_version || greeting.version != library_version) {
      return refusal(
          errc::refused,
          hocket::detail::concat({"rank 0 runs hocket ", version_text(library_version), " (protocol ", protocol_version,
                                  "), ", who, " runs hocket ", version_text(greeting.version), " (protocol ",
                                  greeting.protocol, "): build all ranks with the same version"}));
    }
    if (!equal_in_constant_time(greeting.token, token_)) {
      return refusal(errc::refused, hocket::detail::concat({"the token of ", who,
                                                            " is not that of rank 0: give all ranks of one job the "
                                                            "same HOCKET_TOKEN, and use another port for each job"}));
    }
    if (greeting.ranks != ranks_ || greeting.rank < 0 || greeting.rank >= ranks_) {
      return refusal(
          errc::mismatch,
          hocket::detail::concat(
              {"rank 0 expects ", ranks_, " ranks, but ", who, " of ", greeting.ranks,
               " connected: set the same HOCKET_RANKS in all processes, and HOCKET_RANK to 0 up to HOCKET_RANKS - 1"}));
    }
    const auto& [before, refused_because, place] = presence_[static_cast<std::size_t>(greeting.rank)];
    if (before == state::joined) {
      const std::string places =
          place.empty() || origin.empty() ? "" : hocket::detail::concat({", at ", place, " and at ", origin});
      return refusal(
          errc::mismatch,
          hocket::detail::concat({"two processes claim to be ", who, places, ": give each process its own rank"}),
          greeting.rank);
    }
    if (before == state::never_joined) {
      return refusal(
          errc::peer_lost,
          hocket::detail::concat({who, " failed before it joined, as its launcher reports: start the whole job again"}),
          greeting.rank);
    }
    if (before == state::lost || before == state::cancelled) {
      return refusal(
          errc::peer_lost,
          hocket::detail::concat(
              {who, before == state::lost ? " was lost: it crashed or was killed" : " has cancelled its start-up",
               ": start the whole job again"}),
          greeting.rank);
    }
    // A process that joins as a rank that has left belongs to the next start-up, and must wait for its server.
    if (before == state::left) return make_refusal(status_server_closing, "");
    return {};
  }

  void end(const reply& verdict) {
    contradicted_ = contradicted_ || first_failure_.status == 0;
    fail_gatherings(verdict);
    end_waits(verdict);
  }

  void fail_gatherings(const reply& verdict) {
    for (auto& [key, each] : gatherings_) {
      if (!each.verdict.status) fail(key, each, verdict);
    }
  }

  void end_waits(const reply& verdict) {
    remember(verdict);
    for (const waiter& each : waiting_) answers_.push_back({each.rank, verdict});
    waiting_.clear();
  }

  void set(int rank, request&& what) {
    const auto body = std::make_shared<const blob>(std::move(what.value));
    for (const waiter& each : waiting_) {
      if (waits_for_key(each, what.key)) answers_.push_back({each.rank, {0, -1, 0, body}});
    }
    std::erase_if(waiting_, [&](const waiter& each) { return waits_for_key(each, what.key); });
    values_[std::move(what.key)] = body;
    answers_.push_back({rank, {}});
  }

  static bool waits_for_key(const waiter& each, std::string_view key) {
    return each.kind == request_kind::get && each.key == key;
  }

  void get(int rank, const request& what, deadline::clock::time_point now) {
    if (const auto found = values_.find(what.key); found != values_.end()) {
      answers_.push_back({rank, {0, -1, 0, found->second}});
    } else {
      add_waiter(rank, what, now);
    }
  }

  void add(int rank, const request& what) {
    std::int64_t& counter = counters_[what.key];
    counter = static_cast<std::int64_t>(static_cast<std::uint64_t>(counter) + static_cast<std::uint64_t>(what.number));
    answers_.push_back({rank, {0, -1, counter, nullptr}});
  }

  void gather(int rank, request&& what, deadline::clock::time_point now) {
    gathering& group = gatherings_[what.key];
    const auto slot = static_cast<std::size_t>(rank);
    if (group.blobs.empty() && group.verdict.status == 0) {
      group.blobs.resize(static_cast<std::size_t>(ranks_));
      group.present.resize(static_cast<std::size_t>(ranks_));
    }
    if (group.verdict.status != 0) {
      answers_.push_back({rank, group.verdict});
      return;
    }
    if (group.present[slot]) {
      answers_.push_back(
          {rank, refusal(errc::mismatch,
                         hocket::detail::concat({"this rank has already taken part in '", what.key, "'"}), rank)});
      return;
    }
    group.blobs[slot] = std::move(what.value);
    group.present[slot] = true;
    ++group.count;
    add_waiter(rank, what, now);
    if (group.count == ranks_) {
      answer_gathering(what.key, make_reply(joined_blobs(group.blobs)));
      gatherings_.erase(what.key);
    } else if (const int gone = find_missing_gone_rank(group); gone >= 0) {
      fail(what.key, group, gone_refusal(gone));
    }
  }

  int find_missing_gone_rank(const gathering& group) const {
    for (std::size_t rank = 0; rank < presence_.size(); ++rank) {
      if (is_gone(presence_[rank].current) && !group.present[rank]) return static_cast<int>(rank);
    }
    return -1;
  }

  void add_waiter(int rank, const request& what, deadline::clock::time_point now) {
    constexpr auto longest = static_cast<std::uint64_t>(std::chrono::nanoseconds::max().count());
    const std::chrono::nanoseconds allowed(static_cast<std::int64_t>(std::min(what.nanoseconds, longest)));
    waiting_.push_back({rank, what.kind, what.key, deadline::after(allowed, now), allowed, now});
  }

  /// Answers all ranks that wait in the gathering `key`, which has completed or failed, and removes their waits.
  void answer_gathering(const std::string& key, const reply& verdict) {
    const auto concerned = [&](const waiter& each) { return each.kind == request_kind::gather && each.key == key; };
    for (const waiter& each : waiting_) {
      if (concerned(each)) answers_.push_back({each.rank, verdict});
    }
    std::erase_if(waiting_, concerned);
  }

  void fail(const std::string& key, gathering& group, const reply& verdict) {
    remember(verdict);
    answer_gathering(key, verdict);
    group.verdict = verdict;
    group.blobs = {};
  }

  void remember(const reply& verdict) {
    if (first_failure_.status == 0) first_failure_ = verdict;
  }

  /// Returns the refusal for requests that need a rank that has left, or an earlier failure, which is the cause.
  reply gone_refusal(int rank) const {
    if (first_failure_.status != 0) return first_failure_;
    const state current = presence_[static_cast<std::size_t>(rank)].current;
    if (current == state::cancelled) return refusal(errc::aborted, cancelled_text(rank, ranks_), rank);
    return refusal(errc::peer_lost,
                   hocket::detail::concat(
                       {"rank ", rank, " of ", ranks_,
                        current == state::never_joined ? " failed before it joined, as its launcher reports"
                        : current == state::lost ? " was lost: it crashed, was killed, or gave up at its own deadline"
                                                 : " had joined, but left before the other ranks were done"}),
                   rank);
  }

  reply missing_refusal(errc code, const std::string& front, const std::string& key, const gathering& group,
                        std::chrono::nanoseconds waited) const {
    std::vector<int> missing;
    std::string notes;
    for (std::size_t rank = 0; rank < presence_.size(); ++rank) {
      if (group.present[rank]) continue;
      missing.push_back(static_cast<int>(rank));
      if (missing.size() > 4) continue;
      const std::string who = hocket::detail::concat({"rank ", rank});
      if (presence_[rank].current == state::joined)
        hocket::detail::append(notes, {"; ", who, " is connected, but has not yet taken part in '", key, "'"});
      const std::string& note = presence_[rank].refused_because;
      if (!note.empty())
        hocket::detail::append(notes, {"; a process that claimed to be ", who, " was refused: ", note});
    }
    const int first = missing.empty() ? -1 : missing.front();
    return refusal(code, front + missing_text(missing, ranks_, waited) + notes, first);
  }

  int ranks_;
  std::string token_;
  std::vector<member> presence_;
  std::map<std::string, std::shared_ptr<const blob>> values_;
  std::map<std::string, std::int64_t> counters_;
  std::map<std::string, gathering> gatherings_;
  std::vector<waiter> waiting_;
  std::vector<answer> answers_;
  reply first_failure_;
  bool contradicted_ = false;  ///< the first failure is a contradiction: every request is refused with it
};

}  // namespace bootstrap::detail

HOCKET_END_NAMESPACE
