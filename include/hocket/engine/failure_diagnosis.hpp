// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// How a waiting rank handles control messages of its peers, and how it finds the culprit after a timeout.
///
/// On the fast path a call only checks whether a message has arrived; a wait reads messages after some microseconds
/// without progress.
#pragma once

#include <hocket/communicator/call_log.hpp>
#include <hocket/communicator/control.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/deadline.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/function_view.hpp>
#include <hocket/core/platform/cpu.hpp>
#include <hocket/core/text.hpp>
#include <hocket/engine/call_site.hpp>
#include <hocket/transport/concept.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <source_location>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// Position of a call that waits for `awaited`.
struct waiting_call {
  const char* operation = "";
  std::source_location site{};
  std::uint32_t sequence = 0;  ///< 0: a message between two ranks
  int awaited = -1;

  std::string text() const {
    if (site.line() == 0) return operation;
    return concat({operation, ", called at ", site.file_name(), ':', site.line()});
  }
};

/// Returns the position of this rank's call.
using position_query = function_view<waiting_call()>;
/// Receives the answer of a rank.
using answer_handler = function_view<void(int, const answer&)>;

/// Describes one of this rank's calls to `peer`, so that either of the two detects a difference from its own call.
template <class State>
void inquire_about(State& state, int peer, const call_record& call) {
  inquiry asked{{call.sequence, call.history}, call.signature, describe(call)};
#if HOCKET_ASSERTION_LEVEL >= 3
  asked.description = call.description;
#endif
  const call_record* earlier = &call;
  for (call_start& each : asked.before) {
    if (earlier != nullptr) earlier = state.calls().find(earlier->sequence - 1);
    if (earlier != nullptr) each = {earlier->sequence, earlier->history};
  }
  state.endpoints().post(peer, encode(std::move(asked)));
}

/// Returns whether two ranks' calls, and all calls before them, are equal.
inline bool is_equal(const call_record& own, const inquiry& theirs) noexcept {
#if HOCKET_ASSERTION_LEVEL >= 3
  if (own.description != theirs.description) return false;
#endif
  return own.signature == theirs.signature && own.history == theirs.start.history;
}

/// Returns the first of this rank's calls before the one in question that differs from the peer's; if the difference
/// lies further back than the inquiry reaches, the earliest known one. Null if none of them is known here.
inline const call_record* first_different(const call_log& calls, const inquiry& theirs) {
  const call_record* found = nullptr;
  for (const call_start& each : theirs.before) {
    const call_record* const own = each.sequence == 0 ? nullptr : calls.find(each.sequence);
    if (own == nullptr) break;
    found = own;
    if (own->sequence == each.sequence && own->history == each.history) break;
  }
  return found;
}

/// Returns the result of `describe` without the call site.
inline std::string_view without_site(std::string_view described) noexcept {
  return described.substr(0, described.rfind(", called at "));
}

/// Mismatch of `own`, a call of `rank`, and `theirs`, a call of `peer`. `is_last`: whether `own` is the last call
/// of `rank`. Other ranks get the same text, so it names both ranks by number.
inline failure differing_calls(const call_record& own, bool is_last, int rank, int peer, const inquiry& theirs) {
  const std::string ours = describe(own), me = concat({"rank ", rank}), other = concat({"rank ", peer});
  std::string reason =
      concat({is_last ? "" : "in an earlier call, ", other, is_last ? " is in " : " was in ", theirs.call});
  if (without_site(theirs.call) == without_site(ours)) {
    const std::string_view counts = std::string_view(own.operation).ends_with("_v") ? "counts for some rank or " : "";
    if (own.signature == theirs.signature) {
      append(reason, {" after other calls than those of ", me});
    } else {
      append(reason,
             {" with other ", counts, "options, such as require(checksummed), cuda::staging or pieces of double_tree"});
    }
  }
  append(reason, {", ", me, " was in ", ours,
                  ": operation, count, type, reduction operation, root, algorithm and the order of calls must be equal "
                  "on all ranks"});
  return make_failure(errc::mismatch, std::move(reason), {.peer = peer});
}

/// Compares the peer's call with this rank's call of the same number. Returns nothing if this rank has not begun that
/// call, or if earlier calls differ too: the peer then gets an inquiry about the first of these, which explains more.
template <class State>
std::optional<failure> compare(State& state, open_inquiry& each) {
  const std::uint32_t sequence = each.asked.start.sequence;
  const auto behind = static_cast<std::int32_t>(state.last_sequence() - sequence);
  if (behind < 0) return std::nullopt;
  const call_record* const own = state.calls().find(sequence);
  if (own == nullptr || is_equal(*own, each.asked)) return failure{};
  if (own->history != each.asked.start.history && !each.pursued) {
    if (const call_record* const first = first_different(state.calls(), each.asked); first != nullptr) {
      inquire_about(state, each.peer, *first);
      each.until = deadline::after(std::chrono::milliseconds(200));
      each.pursued = true;
    }
  }
  if (each.pursued && !each.until.passed()) return std::nullopt;
  return differing_calls(*own, own == state.calls().last(), state.rank(), each.peer, each.asked);
}

/// Returns this rank's answer to a question of `peer`.
template <class State>
answer answer_to(const State& state, int peer, const question& asked, position_query where) {
  if (asked.about == question::subject::position) {
    const waiting_call own = where();
    return {own.awaited, own.text()};
  }
  if (asked.about == question::subject::call) {
    const call_record* const call = state.calls().find(asked.number);
    return {-1, call != nullptr ? describe(*call) : std::string()};
  }
  const message_record* const message = state.calls().last_message(
      [&](const message_record& each) { return each.to == peer && each.tag == asked.number; });
  return {-1, message != nullptr ? describe(*message) : std::string()};
}

/// Implements `poll_control_messages`.
template <class State>
HOCKET_COLD outcome read_control_messages(State& state, position_query where, answer_handler on_answer) {
  auto& open = state.open_inquiries();
  transport::control_message mail;
  while (!state.revoked() && state.endpoints().fetch(mail)) {
    std::optional<control> message = decode(mail.bytes, state.size());
    if (!message) continue;
    if (auto* const details = std::get_if<revocation>(&*message)) {
      state.accept_revocation(*details);
    } else if (auto* const asked = std::get_if<inquiry>(&*message)) {
      open.push_back({mail.sender, std::move(*asked), false, {}});
    } else if (const auto* const wanted = std::get_if<question>(&*message)) {
      state.endpoints().post(mail.sender, encode(answer_to(state, mail.sender, *wanted, where)));
    } else if (const auto* const answered = std::get_if<answer>(&*message)) {
      on_answer(mail.sender, *answered);
    } else if (auto* const voted = std::get_if<vote>(&*message)) {
      state.votes().received.emplace_back(mail.sender, std::move(*voted));
    }
  }
  for (std::size_t i = 0; i < open.size() && !state.revoked();) {
    const std::optional<failure> found = compare(state, open[i]);
    if (found && *found) return *found;
    if (found) {
      open.erase(open.begin() + static_cast<std::ptrdiff_t>(i));
    } else {
      ++i;
    }
  }
  return {};
}

/// Reads control messages, if any have arrived. Returns a mismatch if one was found; a revocation changes `state`.
template <class State>
outcome poll_control_messages(State& state, position_query where, answer_handler on_answer) {
  if (!state.endpoints().has_control_message() && state.open_inquiries().empty()) [[likely]]
    return {};
  return read_control_messages(state, where, on_answer);
}

template <class State>
outcome poll_control_messages(State& state, position_query where) {
  return poll_control_messages(state, where, [](int, const answer&) {});
}

/// Waits for the message that explains a raised flag, which the peer sent before; for at most 2 s and `most`, and until
/// the call is cancelled. The flag does not identify the peer.
template <class State>
HOCKET_COLD void await_revocation_reason(State& state, position_query where, std::chrono::nanoseconds most,
                                         stop_query cancelled) {
  const deadline last = deadline::after(std::min<std::chrono::nanoseconds>(most, std::chrono::seconds(2)));
  for (;;) {
    static_cast<void>(poll_control_messages(state, where));
    if (state.revoked() || cancelled()) return;
    if (last.passed()) break;
    if (!state.endpoints().progress()) platform::yield();
  }
  state.accept_revocation(
      {static_cast<std::int32_t>(errc::revoked), -1, -1,
       "a peer has ended the communicator, but its message with the rank and the reason has not arrived"});
}

/// Describes this rank's call to the awaited peer, so that either of the two detects a difference.
template <class State>
void inquire(State& state, const waiting_call& own) {
  const call_record* const call = state.calls().find(own.sequence);
  if (call != nullptr && own.awaited >= 0 && own.awaited != state.rank()) inquire_about(state, own.awaited, *call);
}

/// Adds the descriptions of both calls to a mismatch that the data has shown; returns `cause` unchanged if the peer
/// does not answer soon. Both ranks do this, unless the peer has left the call.
template <class State>
HOCKET_COLD failure with_both_calls(State& state, position_query where, failure cause, stop_query cancelled) {
  waiting_call own = where();
  own.awaited = cause.context.peer;
  inquire(state, own);
  const deadline last = deadline::after(std::chrono::milliseconds(300));
  while (own.sequence != 0 && !last.passed() && !cancelled()) {
    const outcome found = poll_control_messages(state, where);
    if (found.failed()) return found.cause();
    if (state.revoked()) return state.cause();
    if (!state.endpoints().progress()) platform::yield();
  }
  return cause;
}

/// Sends a question to `peer` and waits for the answer: for at most `longest`, and until this rank's call is cancelled
/// or fails for another reason, which is stored in `instead`.
template <class State>
HOCKET_COLD std::optional<answer> ask(State& state, int peer, const question& wanted, std::chrono::nanoseconds longest,
                                      position_query where, stop_query cancelled, outcome& instead) {
  std::optional<answer> reply;
  state.endpoints().post(peer, encode(wanted));
  const deadline last = deadline::after(longest);
  while (!reply && !last.passed() && !cancelled()) {
    state.endpoints().progress();
    instead = poll_control_messages(state, where, [&](int rank, const answer& each) {
      if (rank == peer) reply = each;
    });
    if (!instead.failed() && state.revoked()) instead = state.cause();
    if (instead.failed()) break;
    platform::yield();
  }
  return reply;
}

/// Adds to `cause`, a message of unexpected length, the sender's description of the call that sent it, if the sender is
/// in a call now.
template <class State>
HOCKET_COLD failure with_call_of_sender(State& state, const question& wanted, position_query where, failure cause,
                                        stop_query cancelled) {
  outcome instead;
  const auto soon = std::chrono::milliseconds(300);
  const auto reply = ask(state, cause.context.peer, wanted, soon, where, cancelled, instead);
  if (reply && !reply->call.empty()) {
    append(cause.reason, {"; rank ", cause.context.peer, "'s call is ", reply->call});
  }
  return cause;
}

/// How long a rank may take to answer which rank it waits for, after a call has waited for `waited`: on a busy core
/// even a rank that is in a call may answer slowly.
inline std::chrono::nanoseconds time_to_answer(std::chrono::nanoseconds waited) noexcept {
  return std::clamp<std::chrono::nanoseconds>(waited / 4, std::chrono::milliseconds(50),
                                              std::chrono::milliseconds(500));
}

/// Follows the chain of ranks that wait for each other, from `suspect`, and names the rank at its end in `cause`.
/// `ask(rank)` returns that rank's answer, or nothing if it is in no call, is stopped, or its link is cut. `is_over()`,
/// called after each answer, returns true if the caller has found another cause.
template <class State, class Ask, class IsOver>
HOCKET_COLD void follow_chain(const State& state, int suspect, failure& cause, Ask ask, IsOver is_over) {
  for (int step = 0; suspect >= 0 && suspect != state.rank() && step < state.size(); ++step) {
    const std::optional<answer> reply = ask(suspect);
    if (is_over()) return;
    append(cause.reason, {"; rank ", suspect});
    cause.context.peer = suspect;
    if (!reply) {
      cause.reason += " does not answer: it is in no call on this communicator, or stopped";
      if (!state.has_windows()) cause.reason += ", or the link to it is cut";
      return;
    }
    append(cause.reason, {" is in ", reply->call});
    if (reply->awaited >= 0) append(cause.reason, {", and waits for rank ", reply->awaited});
    suspect = reply->awaited;
  }
}

/// Names the rank at the end of the chain that begins with this rank's call in `cause`, a timeout. Returns instead a
/// mismatch that is found, or a failure that a peer reports, meanwhile.
template <class State>
HOCKET_COLD failure find_culprit(State& state, position_query where, std::chrono::nanoseconds waited, failure cause,
                                 stop_query cancelled) {
  const waiting_call own = where();
  if (own.awaited == state.rank()) {
    cause.reason += ", which is this rank itself: use send_recv for that, or begin with send_async or recv_async";
  }
  outcome instead;
  bool answered = false;
  const auto asked = [&](int rank) {
    std::optional<answer> reply = ask(state, rank, question{}, time_to_answer(waited), where, cancelled, instead);
    answered = reply.has_value();
    return reply;
  };
  follow_chain(state, own.awaited, cause, asked, [&] { return instead.failed() || (!answered && cancelled()); });
  return instead.failed() ? instead.cause() : cause;
}

}  // namespace detail
HOCKET_END_NAMESPACE
