// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// What a rank that waits does with the control messages of its peers, and whom it blames when it has waited too long.
///
/// Where calls go as they should, a call only looks whether a message has come; a wait comes here after some microseconds
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

/// Where a call stands that waits for `awaited`.
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

/// Says where this rank's call stands.
using position_query = function_view<waiting_call()>;
/// Gets the answer of a rank.
using answer_handler = function_view<void(int, const answer&)>;

/// Tells `peer` of one of this rank's calls, so that either of the two finds out if theirs differs.
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

/// Whether two ranks' calls are equal, and all before them.
inline bool is_equal(const call_record& own, const inquiry& theirs) noexcept {
#if HOCKET_ASSERTION_LEVEL >= 3
  if (own.description != theirs.description) return false;
#endif
  return own.signature == theirs.signature && own.history == theirs.start.history;
}

/// Of this rank's calls before the one in question the first that differs from the peer's; if that is further back
/// than the peer has told, the earliest that it has. Null if none of them is known here.
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

/// What `describe` says of a call without where it was made.
inline std::string_view without_site(std::string_view described) noexcept {
  return described.substr(0, described.rfind(", called at "));
}

/// Of two ranks whose calls `own`, of `rank`, and `theirs`, of `peer`, differ. The last call of `rank` is the one in which
/// that shows. Other ranks are told the same words, so these name both by number.
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

/// Compares what the peer is in with this rank's call of the same number. Nothing if that has not begun here, or if
/// calls before it differ, too: the peer is told of the first of these, and what it finds there says more.
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

/// What this rank says when rank `peer` asks.
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

/// Reads what has come, as `poll_control_messages` says.
template <class State>
HOCKET_COLD outcome read_control_messages(State& state, position_query where, answer_handler on_answer) {
  auto& open = state.open_inquiries();
  transport::control_message mail;
  while (!state.revoked() && state.endpoints().fetch(mail)) {
    std::optional<control> words = decode(mail.bytes, state.size());
    if (!words) continue;
    if (auto* const told = std::get_if<revocation>(&*words)) {
      state.accept_revocation(*told);
    } else if (auto* const asked = std::get_if<inquiry>(&*words)) {
      open.push_back({mail.sender, std::move(*asked), false, {}});
    } else if (const auto* const wanted = std::get_if<question>(&*words)) {
      state.endpoints().post(mail.sender, encode(answer_to(state, mail.sender, *wanted, where)));
    } else if (const auto* const answered = std::get_if<answer>(&*words)) {
      on_answer(mail.sender, *answered);
    } else if (auto* const voted = std::get_if<vote>(&*words)) {
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

/// Reads what has come, if something has. Returns a mismatch if one was found; a revocation shows in the state.
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

/// A peer has raised this rank's flag: waits for the message that says why, which was sent before; but not for long,
/// nor longer than `most`, nor once it is called off. Who raised it, the flag does not tell.
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
       "a peer has ended the communicator, and its message that says which, and why, has not come"});
}

/// Tells the awaited peer which call this rank is in, so that either of the two finds out if they differ.
template <class State>
void inquire(State& state, const waiting_call& own) {
  const call_record* const call = state.calls().find(own.sequence);
  if (call != nullptr && own.awaited >= 0 && own.awaited != state.rank()) inquire_about(state, own.awaited, *call);
}

/// The data has shown that the peer's call is another than ours: gets the words for it, or leaves `cause` as it is if the
/// peer does not answer soon. Both ranks do this, or the peer has left the call.
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

/// Asks `peer`, and waits for what it says: no longer than `longest`, nor once this rank's call is called off or fails for
/// another reason, which is `instead` then.
template <class State>
HOCKET_COLD std::optional<answer> ask(State& state, int peer, const question& wanted, std::chrono::nanoseconds longest,
                                      position_query where, stop_query cancelled, outcome& instead) {
  std::optional<answer> said;
  state.endpoints().post(peer, encode(wanted));
  const deadline last = deadline::after(longest);
  while (!said && !last.passed() && !cancelled()) {
    state.endpoints().progress();
    instead = poll_control_messages(state, where, [&](int rank, const answer& each) {
      if (rank == peer) said = each;
    });
    if (!instead.failed() && state.revoked()) instead = state.cause();
    if (instead.failed()) break;
    platform::yield();
  }
  return said;
}

/// A message has another length than it should: adds to `cause` what its sender says of the call that it comes from, if that
/// is in a call now.
template <class State>
HOCKET_COLD failure with_call_of_sender(State& state, const question& wanted, position_query where, failure cause,
                                        stop_query cancelled) {
  outcome instead;
  const auto soon = std::chrono::milliseconds(300);
  const auto said = ask(state, cause.context.peer, wanted, soon, where, cancelled, instead);
  if (said && !said->call.empty()) {
    append(cause.reason, {"; rank ", cause.context.peer, "'s call is ", said->call});
  }
  return cause;
}

/// How long a rank gets to say whom it waits for, once a call has given up after `waited`: where a core has much else to do,
/// one that is in a call may be slow to answer.
inline std::chrono::nanoseconds time_to_answer(std::chrono::nanoseconds waited) noexcept {
  return std::clamp<std::chrono::nanoseconds>(waited / 4, std::chrono::milliseconds(50),
                                              std::chrono::milliseconds(500));
}

/// Follows the chain of those who wait for each other, from `suspect` on, to the one at its end, and names it in `cause`.
/// `ask(rank)` gives what that rank says, or nothing: then it is in no call, stopped, or behind a link that is cut.
/// `is_over()`, asked after each of them: the cause is another one, which the caller knows of.
template <class State, class Ask, class IsOver>
HOCKET_COLD void follow_chain(const State& state, int suspect, failure& cause, Ask ask, IsOver is_over) {
  for (int step = 0; suspect >= 0 && suspect != state.rank() && step < state.size(); ++step) {
    const std::optional<answer> said = ask(suspect);
    if (is_over()) return;
    append(cause.reason, {"; rank ", suspect});
    cause.context.peer = suspect;
    if (!said) {
      cause.reason += " does not answer: it is in no call on this communicator, or stopped";
      if (!state.has_windows()) cause.reason += ", or the link to it is cut";
      return;
    }
    append(cause.reason, {" is in ", said->call});
    if (said->awaited >= 0) append(cause.reason, {", and waits for rank ", said->awaited});
    suspect = said->awaited;
  }
}

/// Names in `cause`, which is a timeout, the rank at the end of the chain that begins with this rank's call. A failure that a
/// peer reports meanwhile, or a mismatch, comes in its place.
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
    std::optional<answer> said = ask(state, rank, question{}, time_to_answer(waited), where, cancelled, instead);
    answered = said.has_value();
    return said;
  };
  follow_chain(state, own.awaited, cause, asked, [&] { return instead.failed() || (!answered && cancelled()); });
  return instead.failed() ? instead.cause() : cause;
}

}  // namespace detail
HOCKET_END_NAMESPACE
