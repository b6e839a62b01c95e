// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Agreement among the ranks of a revoked communicator on the survivors. Collectives no longer work there, so the ranks
/// send votes, as control messages; group/shrink.hpp describes the steps. A vote is a text with the number of its round
/// and of its step. A round is one attempt of all ranks to complete `shrink`. If a round fails, the ranks call `shrink`
/// again, which begins the next round. A rank that was stopped meanwhile joins the newest round of which it has
/// received a vote.
#pragma once

#include <hocket/collective/host/call.hpp>
#include <hocket/communicator/control.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/deadline.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/platform/cpu.hpp>
#include <hocket/core/text.hpp>
#include <hocket/engine/drive.hpp>
#include <hocket/transport/concept.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// One rank's view of the votes on a revoked communicator. All ranks call the same functions in the same order.
template <class State>
class survivor_consensus {
 public:
  /// By rank: the content of its vote, or nothing if the vote did not arrive or the rank is excluded.
  using collected_votes = std::vector<std::optional<std::string>>;

  survivor_consensus(State& state, deadline until, const call_site& call) : state_(state), until_(until), call_(call) {
    join_newest_round();
  }

  /// Starts a new round on this rank, or joins the newest round of which a vote is known; then all ranks take part.
  void join_newest_round() {
    record_newest_votes();
    vote_history& history = state_.votes();
    ++history.last_round;
    for (const auto& [voter, each] : history.received) history.last_round = std::max(history.last_round, each.round);
    round_ = history.last_round;
    std::erase_if(history.received,
                  [&](const known_vote& each) { return each.second.round < round_ && !completed_earlier_round(each); });
    superseded_ = false;
    concludes_in_.reset();
    decision_deadline_.reset();
    takes_part_.assign(index(state_.size()), true);
    wait_positions_.assign(index(state_.size()), std::nullopt);
  }

  /// True if a peer votes in a later round, which makes the results of this round invalid.
  bool superseded() const noexcept { return superseded_; }

  /// Excludes `rank` from voting.
  void exclude(int rank) { takes_part_[index(rank)] = false; }
  bool takes_part(int rank) const { return takes_part_[index(rank)]; }

  /// All-gathers `own` as vote `number`. Vote numbers must increase from call to call within a round.
  collected_votes gather(std::uint32_t number, const std::string& own) {
    cast(number, own, 0);
    collected_votes all(takes_part_.size());
    for (int rank = 0; rank < state_.size(); ++rank) {
      if (takes_part(rank)) all[index(rank)] = rank == state_.rank() ? own : from(rank, number);
    }
    return all;
  }

  /// Like `gather`, for text that may be too long for one vote: uses up to `most_votes_per_gather` vote numbers, the
  /// first of which is `number`. The result has no vote for a rank if its text is missing or invalid.
  collected_votes gather_long(std::uint32_t number, const std::string& own) {
    collected_votes all(takes_part_.size());
    const std::string message = framed(own);
    for (std::size_t begin = 0, end = message.size(); begin < end; begin += most_bytes_per_vote) {
      const collected_votes parts =
          gather(number++, begin < message.size() ? message.substr(begin, most_bytes_per_vote) : "");
      for (std::size_t rank = 0; rank < all.size(); ++rank) {
        if (begin == 0) {
          all[rank] = parts[rank];
        } else if (all[rank] && parts[rank]) {
          *all[rank] += *parts[rank];
        } else {
          all[rank].reset();
        }
        if (all[rank]) end = std::max(end, std::min(framed_size(*all[rank]), most_bytes_per_gather));
      }
    }
    for (auto& each : all) {
      if (each && each->size() != framed_size(*each)) each.reset();
      if (each) each->erase(0, sizeof(std::uint32_t));
    }
    return all;
  }
  static constexpr std::uint32_t most_votes_per_gather = 1100;

  /// Sleeps 1 ms before the next attempt. Checks abort and deadline, because a sole survivor never waits for votes.
  void pause(const failure& cause) {
    if (state_.aborted()) cancel();
    if (until_.passed()) {
      fail(make_failure(errc::timeout, concat({"could not make the communicator of the survivors within ",
                                               describe(call_.timeout), cause ? ": " + cause.reason : ""})));
    }
    platform::nap(1'000'000);  // ns
  }

  /// Declares vote `number` the last one. A rank A that has cast it leaves the round. A higher rank B with A's vote
  /// waits at most 50 ms for the votes of other ranks, because A may already wait for B. If A's last vote is `success`,
  /// and B has left the round before it got that vote, B can't rejoin A: B's next call of `shrink` fails.
  void conclude_in(std::uint32_t number, const std::string& success) {
    concludes_in_ = number;
    state_.votes().conclusion = {round_, number, success};
  }

  /// Returns the same text on all ranks: the proposal of the lowest rank whose vote reaches the higher ranks.
  std::string agree(std::uint32_t number, std::string proposal) {
    bool is_first = true;
    for (int rank = 0; rank < state_.rank(); ++rank) {
      if (!takes_part(rank)) continue;
      is_first = false;
      if (std::optional<std::string> theirs = from(rank, number)) proposal = std::move(*theirs);
    }
    if (is_first) check_objections();
    cast(number, proposal, state_.rank() + 1);
    if (concludes_in_ == number) concludes_in_.reset();
    return proposal;
  }

 private:
  static constexpr std::size_t most_bytes_per_vote = transport::control_message::most_bytes - 64;
  static constexpr std::size_t most_bytes_per_gather = most_votes_per_gather * most_bytes_per_vote;
  /// Number of a vote by which its sender reports that it has stopped voting; the vote's content is the reason.
  static constexpr std::uint32_t cancelled = std::numeric_limits<std::uint32_t>::max();

  static std::size_t index(int rank) noexcept { return static_cast<std::size_t>(rank); }

  /// Returns `content` after its length.
  static std::string framed(const std::string& content) {
    const auto length = static_cast<std::uint32_t>(content.size());
    return std::string(reinterpret_cast<const char*>(&length), sizeof length) + content;
  }
  /// Returns the size of a framed text, length included, of which `text` is the beginning.
  static std::size_t framed_size(const std::string& text) noexcept {
    std::uint32_t length = 0;
    if (text.size() < sizeof length) return 0;
    std::memcpy(&length, text.data(), sizeof length);
    return sizeof length + length;
  }

  void cast(std::uint32_t number, const std::string& content, int first) {
    if (superseded_) return;
    const std::vector<std::byte> message = encode(vote{round_, number, content});
    for (int rank = first; rank < state_.size(); ++rank) {
      if (rank != state_.rank() && takes_part(rank)) state_.endpoints().post(rank, message);
    }
  }

  using known_vote = std::pair<int, vote>;

  /// Result of `read_votes(rank, number)`. Pointers refer to the received votes.
  struct reading {
    const known_vote* awaited = nullptr;    ///< vote `number` of `rank`
    const known_vote* objection = nullptr;  ///< vote of a rank that has stopped voting
    bool is_ahead = false;                  ///< `rank` has cast a later vote
    bool is_decided = false;                ///< a lower rank than this one has cast the last vote: see `conclude_in`
  };

  reading read_votes(int rank, std::uint32_t number) {
    reading found;
    bool is_over = false;
    for (const known_vote& message : state_.votes().received) {
      const auto& [voter, each] = message;
      is_over = is_over || each.round > round_;
      if (completed_earlier_round(message)) fail(left_behind(voter));
      if (each.round != round_) continue;
      if (each.number == cancelled && takes_part(voter)) found.objection = &message;
      found.is_decided = found.is_decided || (concludes_in_ == each.number && voter < state_.rank());
      if (voter == rank && each.number == number) found.awaited = &message;
      found.is_ahead = found.is_ahead || (voter == rank && each.number > number);
    }
    superseded_ = superseded_ || (is_over && !found.is_decided);
    return found;
  }

  /// Waits for vote `number` of `rank`. Returns nothing if `rank` is gone or ahead, or the round superseded or decided.
  std::optional<std::string> from(int rank, std::uint32_t number) {
    std::optional<deadline> last_chance, grace_deadline;
    for (unsigned polls = 1;; ++polls) {
      const reading found = read_votes(rank, number);
      if (found.awaited != nullptr) return found.awaited->second.content;
      const bool is_cancelled = found.objection != nullptr || state_.aborted();
      if (found.is_decided && !grace_deadline) grace_deadline = deadline::after(std::chrono::milliseconds(50));
      if (found.is_decided && (is_cancelled || until_.passed() || grace_deadline->passed())) return std::nullopt;
      if (is_cancelled && may_fail_round()) fail_aborted(found.objection);
      if (!is_cancelled && (found.is_ahead || superseded_)) return std::nullopt;
      const bool late = last_chance && last_chance->passed();
      if (read_control_messages(rank)) continue;
      if (late) return std::nullopt;
      // Votes that the rank sent before it left may be in transit.
      if (!last_chance && state_.endpoints().gone(rank)) last_chance = deadline::after(std::chrono::milliseconds(10));
      check_limits(rank);
      polls < 1000 ? platform::yield() : platform::nap(50'000);
    }
  }

  /// Called by the lowest rank, which decides without waiting for votes: fails if another rank has cancelled the round.
  void check_objections() {
    read_control_messages(state_.rank());
    const reading found = read_votes(state_.rank(), 0);
    if (found.objection != nullptr || state_.aborted()) fail_aborted(found.objection);
  }

  /// Records the round and number of each rank's newest vote, because votes of earlier rounds are discarded.
  void record_newest_votes() {
    auto& newest = state_.votes().newest;
    newest.resize(index(state_.size()));
    for (const auto& [voter, each] : state_.votes().received) {
      newest[index(voter)] = std::max(newest[index(voter)], std::pair(each.round, each.number));
    }
  }

  /// Returns the live rank whose newest vote is the oldest, `awaited` if several are equally old. The awaited rank may
  /// only be late because it waits for that rank in turn.
  int longest_silent(int awaited) {
    record_newest_votes();
    const auto& newest = state_.votes().newest;
    int silent = awaited;
    for (int rank = 0; rank < state_.size(); ++rank) {
      if (rank == state_.rank() || !takes_part(rank) || state_.endpoints().gone(rank)) continue;
      if (newest[index(rank)] < newest[index(silent)]) silent = rank;
    }
    return silent;
  }

  bool read_control_messages(int awaited) {
    state_.endpoints().progress();
    state_.endpoints().discard();
    transport::control_message mail;
    bool moved = false;
    while (state_.endpoints().fetch(mail)) {
      std::optional<control> message = decode(mail.bytes, state_.size());
      if (message && std::holds_alternative<question>(*message)) {
        const waiting_call own{call_.operation, call_.site, 0, awaited};
        state_.endpoints().post(mail.sender, encode(answer{own.awaited, own.text()}));
      }
      if (message) note_wait_position(mail.sender, *message);
      if (!message || !std::holds_alternative<vote>(*message)) continue;
      state_.votes().received.emplace_back(mail.sender, std::move(std::get<vote>(*message)));
      moved = true;
    }
    return moved;
  }

  /// Records which rank `rank` waits for: the one in its answer, or the culprit of its failed call.
  void note_wait_position(int rank, const control& message) {
    if (const auto* const reply = std::get_if<answer>(&message)) wait_positions_[index(rank)] = *reply;
    const auto* const details = std::get_if<revocation>(&message);
    if (details == nullptr || details->culprit < 0 || !takes_part(details->culprit) ||
        state_.endpoints().gone(details->culprit))
      return;
    wait_positions_[index(rank)] = answer{details->culprit, "a failing call"};
  }

  /// Asks `rank` which rank it waits for; returns nothing if `rank` does not answer in time.
  std::optional<answer> query_wait_position(int rank) {
    state_.endpoints().post(rank, encode(question{}));
    const deadline last = deadline::after(time_to_answer(call_.timeout));
    while (!wait_positions_[index(rank)] && !last.passed() && !state_.aborted()) {
      if (!read_control_messages(rank)) platform::yield();
    }
    return wait_positions_[index(rank)];
  }

  /// True if the vote ended an earlier round with success for its sender but not for this rank, which can't rejoin.
  bool completed_earlier_round(const known_vote& each) const {
    return each.second.round < round_ && each.second == state_.votes().conclusion;
  }
  static failure left_behind(int rank) {
    return make_failure(
        errc::peer_lost,
        concat({"rank ", rank,
                " continues with the communicator that the last call of shrink made; this rank left that call "
                "before it got the result, and can't rejoin"}),
        {.peer = rank});
  }

  /// Returns whether a cancelled round may fail. In its last step, other ranks first get 5 ms to send their decision.
  bool may_fail_round() {
    if (!concludes_in_) return true;
    if (!decision_deadline_) decision_deadline_ = deadline::after(std::chrono::milliseconds(5));
    return decision_deadline_->passed();
  }

  void check_limits(int awaited) {
    if (!until_.passed()) return;
    const int silent = longest_silent(awaited);
    failure late = make_failure(
        errc::timeout, concat({"waited ", describe(call_.timeout), " for rank ", silent, " to call shrink too"}));
    follow_chain(
        state_, silent, late, [&](int rank) { return query_wait_position(rank); }, [&] { return state_.aborted(); });
    if (state_.aborted()) cancel();
    fail(std::move(late));
  }

  /// Fails because of `abort`, on this rank if `objection` is null, else on its sender. All ranks may call again.
  [[noreturn]] void fail_aborted(const known_vote* objection) {
    if (objection == nullptr) cancel();
    const auto& [voter, each] = *objection;
    fail(make_failure(errc::aborted, concat({"rank ", voter, " reports: ", each.content}), {.peer = voter}));
  }

  /// Sends the cancellation to the other ranks and fails.
  [[noreturn]] void cancel() {
    failure cause = state_.consume_abort();
    cast(cancelled, cause.reason, 0);
    const deadline last = deadline::after(std::chrono::milliseconds(2));
    while (!state_.endpoints().posted() && !last.passed()) state_.endpoints().progress();
    fail(std::move(cause));
  }

  [[noreturn]] void fail(failure cause) const { raise(in_context(std::move(cause), state_, call_)); }

  State& state_;
  const deadline until_;
  const call_site call_;
  std::uint32_t round_ = 0;
  bool superseded_ = false;
  std::optional<std::uint32_t> concludes_in_;
  std::optional<deadline> decision_deadline_;
  std::vector<bool> takes_part_;
  std::vector<std::optional<answer>> wait_positions_;  ///< by rank: its last known answer
};

}  // namespace detail
HOCKET_END_NAMESPACE
