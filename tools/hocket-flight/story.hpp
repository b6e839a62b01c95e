// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The cause of an incident, in words, as far as the records show it: a rank is missing, calls differ, a rank is slow,
/// ranks wait for each other, a link is broken, or the job was aborted.
#pragma once

#include "incident.hpp"
#include "words.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace flight {

/// The findings of one incident.
struct story {
  std::string kind;  ///< one word or two, for programs: see `story_builder`
  std::vector<int> culprits;
  std::string headline;
  std::vector<std::string> details;
};

class story_builder {
 public:
  story_builder(const incident& what, const std::vector<incident>& all) : incident_(what), all_(all) {}

  story build() {
    const record* const first = incident_.first();
    if (first == nullptr) {
      found("no failure", {}, "no record of this communicator contains a failure");
      return std::move(story_);
    }
    switch (first->failed->code) {
      case timeout: waited_in_vain(*first); break;
      case aborted: ended_on_purpose(*first); break;
      case peer_lost: lost(); break;
      case mismatch: differed(*first); break;
      case truncated: truncated_message(*first); break;
      default: found("other", {}, said_by(*first)); break;
    }
    other_missing_ranks();
    say("First reported by rank " + std::to_string(first->rank) + ", at " + moment(first->failed->time) + ": " +
        first->failed->text);
    return std::move(story_);
  }

 private:
  enum code { timeout = 1, aborted = 2, peer_lost = 3, mismatch = 4, truncated = 5 };

  void found(const char* kind, std::vector<int> culprits, std::string headline) {
    story_.kind = kind;
    story_.culprits = std::move(culprits);
    story_.headline = std::move(headline);
  }
  void say(std::string sentence) { story_.details.push_back(std::move(sentence)); }

  /// Returns the position of a rank at the time of the first failure, not a later one.
  position at_the_end(const record& who) const { return position_of(who, incident_.time()); }

  static std::string rank(int number) { return "rank " + std::to_string(number); }
  static std::string said_by(const record& who) { return rank(who.rank) + " failed: " + who.failed->name; }

  // ── A rank is gone ───────────────────────────────────────────────────────────────────────────────────────────────

  /// Returns pairs (rank, culprit that it names) for the ranks that detected the failure themselves.
  std::vector<std::pair<int, int>> blames() const {
    std::vector<std::pair<int, int>> result;
    for (const record* each : incident_.finders()) {
      if (each->failed->culprit >= 0) result.emplace_back(each->rank, each->failed->culprit);
    }
    return result;
  }

  void lost() {
    std::set<int> gone, left;
    std::vector<std::pair<int, int>> broken;
    for (const auto& [by, whom] : blames()) {
      const record* const other = incident_.of(whom);
      if (other == nullptr) {
        // A rank that completed its part without learning of a failure leaves no record.
        const bool in_order = incident_.of(by)->failed->text.find("it has left the communicator") != std::string::npos;
        (in_order ? left : gone).insert(whom);
      } else if (!other->failed || other->failed->on_leaving) {
        left.insert(whom);
      } else {
        broken.emplace_back(by, whom);
      }
    }
    if (!gone.empty()) return missing({gone.begin(), gone.end()});
    if (!left.empty()) return departed({left.begin(), left.end()});
    if (!broken.empty()) return broken_link(broken);
    found("missing rank", {}, said_by(*incident_.first()) + ", and no record names the rank that was lost");
  }

  void missing(const std::vector<int>& gone) {
    const std::string names = ranks(gone);
    const bool one = gone.size() == 1;
    found("missing rank", gone,
          names + (one ? " is missing: it has" : " are missing: they have") + " left no record, and the others lost " +
              (one ? "it" : "them"));
    say(std::string(one ? "Its process has" : "Their processes have") +
        " ended (killed, exited, or terminated by an exception), or the host is down. " +
        (one ? "Its own output and its" : "Their own output and their") +
        " host's log show the reason: check for the out-of-memory killer, a crash, or a preempted job.");
    for (const int each : gone) who_waited_for(each);
  }

  void who_waited_for(int whom) {
    for (const record* each : incident_.records()) {
      const position at = at_the_end(*each);
      if (at.awaits() == whom) return say(capital(rank(each->rank)) + " waited for it in " + describe(at) + ".");
    }
  }

  void departed(const std::vector<int>& left) {
    found("rank left", left,
          ranks(left) + (left.size() == 1 ? " has" : " have") + " left the communicator while others waited for " +
              (left.size() == 1 ? "it" : "them"));
    for (const int each : left) {
      const record* const known = incident_.of(each);
      say("It was in no call at that time: it had completed its part, or an exception had ended it. " +
          (known != nullptr ? "Its last call was " + last_of(*known).what + "."
                            : "It knew of no failure, and left no record."));
      who_waited_for(each);
    }
  }

  void other_missing_ranks() {
    std::vector<int> unexplained;
    for (const int each : incident_.missing()) {
      const auto& known = story_.culprits;
      if (std::find(known.begin(), known.end(), each) == known.end()) unexplained.push_back(each);
    }
    if (unexplained.empty()) return;
    const bool one = unexplained.size() == 1;
    say(capital(ranks(unexplained)) + (one ? " has" : " have") + " left no record either, and no rank names " +
        (one ? "it" : "them") +
        " as the cause: killed with the job, not yet informed, or without a recorder directory, as on another host.");
  }

  // ── A link is broken ─────────────────────────────────────────────────────────────────────────────────────────────

  void broken_link(const std::vector<std::pair<int, int>>& pairs) {
    std::set<int> ends;
    std::set<std::set<std::string>> hosts;
    for (const auto& [a, b] : pairs) {
      ends.insert({a, b});
      hosts.insert({host(a), host(b)});
    }
    const std::vector<int> both(ends.begin(), ends.end());
    found("link", both, "the link between " + ranks(both) + " is broken: all of them are alive and have left a record");
    for (const auto& [a, b] : pairs) {
      say(capital(rank(a)) + " (" + host(a) + ") received nothing from " + rank(b) + " (" + host(b) + ").");
    }
    const bool across = hosts.size() == 1 && hosts.begin()->size() == 2;
    say(across ? "All broken links are between these two hosts: check their network and firewalls, and which devices "
                 "UCX may "
                 "use (UCX_NET_DEVICES)."
               : "Check the network between their hosts, and which transports UCX may use (UCX_TLS, UCX_NET_DEVICES).");
  }

  std::string host(int of) const {
    const record* const found = incident_.of(of);
    return found == nullptr || found->host.empty() ? "unknown host" : found->host;
  }

  // ── A call timed out ─────────────────────────────────────────────────────────────────────────────────────────────

  /// Returns the chain of waiting ranks from `begin` to a rank that waits for none, or that is in the chain already.
  std::vector<int> chain_from(int begin) const {
    std::vector<int> result{begin};
    for (;;) {
      const record* const last = incident_.of(result.back());
      const int next = last == nullptr ? -1 : at_the_end(*last).awaits();
      if (next < 0 || next >= incident_.ranks()) return result;
      const bool seen = std::find(result.begin(), result.end(), next) != result.end();
      result.push_back(next);
      if (seen) return result;
    }
  }

  void waited_in_vain(const record& first) {
    std::vector<int> chain = chain_from(first.rank);
    const int culprit = first.failed->culprit;
    if (chain.size() == 1 && culprit >= 0 && culprit != first.rank) chain.push_back(culprit);
    const int end = chain.back();
    if (chain.size() == 1)
      return found("slow rank", {}, said_by(first) + ", and the records do not show which rank it waited for");
    if (const auto crossed = circle_across_communicators(first); !crossed.empty()) return crossing(crossed);
    if (incident_.of(end) == nullptr) return silent(end, first);
    const auto begin = std::find(chain.begin(), chain.end(), end);
    const position last = at_the_end(*incident_.of(end));
    if (begin + 1 != chain.end()) return circle({begin, chain.end() - 1});
    if (!last.anywhere()) return slow(*incident_.of(end), first);
    found("slow rank", {end}, rank(end) + " made no progress, and the records do not show what it waited for");
    say(capital(rank(end)) + " was in " + describe(last) + ".");
  }

  void silent(int who, const record& first) {
    if (const int known_as = world_rank_of(first, who); record_elsewhere(known_as) != nullptr) {
      found("slow rank", {who}, rank(who) + " did not arrive, and has left no record of this communicator");
      waiting_since(first);
      return elsewhere(known_as);
    }
    found("missing rank", {who}, rank(who) + " is missing: it has left no record, and did not answer");
    say("Its process was not seen to exit: it is stopped (a debugger, a full disk, a lost mount), it computes without "
        "making a call, or it waits for something else. If it still runs, inspect its stack (gdb -p, py-spy).");
    waiting_since(first);
    who_waited_for(who);
  }

  void waiting_since(const record& first) {
    const position at = at_the_end(first);
    const auto begin = at.in_call != nullptr      ? at.in_call->begin
                       : at.in_message != nullptr ? at.in_message->begin
                                                  : std::nullopt;
    if (begin)
      say(capital(rank(first.rank)) + " waited for " + duration(first.failed->time - *begin) + " in " + describe(at) +
          ".");
  }

  /// Describes a rank that left a record and was in no call when the other ranks timed out.
  void slow(const record& who, const record& first) {
    const std::string name = capital(rank(who.rank));
    const std::optional<arrival> came = arrival_of(who, first);
    if (came) {
      found("slow rank", {who.rank},
            rank(who.rank) + " was slow: the others waited for it, and timed out before it arrived");
      say(name + " reached " + came->where + ' ' + duration(came->when - incident_.time()) +
          " after the others had timed out.");
    } else {
      found("slow rank", {who.rank}, rank(who.rank) + " made no further call, and the others waited for it");
      say(name + " left the communicator " + duration(who.written - incident_.time()) +
          " after the others had timed out.");
    }
    const last_thing last = last_of(who, first.failed->sequence);
    const nanoseconds until = came ? came->when : who.written;
    say("Before that, its last call was " + last.what +
        (last.when ? ", after which it was in no call for " + duration(until - *last.when) : "") + '.');
    waiting_since(first);
    elsewhere(who.world_rank);
  }

  /// Time and place at which a rank arrived at a call too late.
  struct arrival {
    std::string where;
    nanoseconds when = 0;
  };

  /// `who` may even have completed the call in which the others timed out, because their parts were done before.
  static std::optional<arrival> arrival_of(const record& who, const record& first) {
    if (const call* const late = call_of(who, first.failed->sequence)) {
      const std::optional<nanoseconds> when = late->begin ? late->begin : late->end;
      if (when) return arrival{describe(*late), *when};
    }
    if (!who.failed || who.failed->on_leaving) return std::nullopt;
    const std::string where = place(who.failed->where);
    const std::string what = who.failed->operation.empty() ? "its next call" : who.failed->operation;
    return arrival{what + (where.empty() ? "" : " at " + where), who.failed->time};
  }

  /// Reports where a rank of the world was at that time on another communicator.
  void elsewhere(int world_rank) {
    const record* const other = record_elsewhere(world_rank);
    if (other == nullptr) return;
    say("Meanwhile it was in " + describe(at_the_end(*other)) + " on " + communicator(*other) + '.');
  }

  /// Returns the record of another communicator that shows a rank of the world in a call when this communicator failed;
  /// null if there is none.
  const record* record_elsewhere(int world_rank) const {
    for (const incident& other : all_) {
      if (&other == &incident_) continue;
      for (const record* each : other.records()) {
        if (each->world_rank == world_rank && at_the_end(*each).anywhere()) return each;
      }
    }
    return nullptr;
  }

  static int world_rank_of(const record& of, int rank) {
    return static_cast<std::size_t>(rank) < of.members.size() ? of.members[static_cast<std::size_t>(rank)] : rank;
  }
  static std::string communicator(const record& of) { return "communicator " + std::to_string(of.communicator); }

  /// Returns ranks that wait for each other, each for the next and the last for the first, in calls on several
  /// communicators: the record that each left of the communicator it waited on. Empty if there is no such circle.
  std::vector<const record*> circle_across_communicators(const record& first) const {
    std::vector<const record*> chain{&first};
    for (;;) {
      const record& last = *chain.back();
      const int awaited = at_the_end(last).awaits();
      if (awaited < 0) return {};
      const int next = world_rank_of(last, awaited);
      const auto seen =
          std::find_if(chain.begin(), chain.end(), [&](const record* each) { return each->world_rank == next; });
      if (seen != chain.end()) {
        const bool crosses = std::any_of(
            seen, chain.end(), [&](const record* each) { return each->communicator != (*seen)->communicator; });
        return crosses ? std::vector<const record*>(seen, chain.end()) : std::vector<const record*>();
      }
      const record* const here = last.communicator == first.communicator ? incident_.of(awaited) : nullptr;
      const record* const found = here != nullptr && at_the_end(*here).anywhere() ? here : record_elsewhere(next);
      // Records that contradict each other about the world rank of a member could make this loop endless.
      if (found == nullptr || std::find(chain.begin(), chain.end(), found) != chain.end()) return {};
      chain.push_back(found);
    }
  }

  void crossing(const std::vector<const record*>& members) {
    std::vector<int> all;
    for (const record* each : members) all.push_back(each->world_rank);
    found("deadlock", sorted(all),
          ranks(sorted(all)) + " of the world waited for each other in a circle, on several communicators");
    for (std::size_t i = 0; i < members.size(); ++i) {
      const record& each = *members[i];
      say(capital(rank(each.world_rank)) + " of the world waited for " +
          rank(members[(i + 1) % members.size()]->world_rank) + " in " + describe(at_the_end(each)) + " on " +
          communicator(each) + '.');
    }
    say("Ranks that share several communicators must call them in the same order, or use one thread for each.");
  }

  /// Describes ranks that wait for each other, each for the next, and the last for the first.
  void circle(const std::vector<int>& members) {
    std::set<std::int64_t> sequences;
    for (const int each : members) {
      const position at = at_the_end(*incident_.of(each));
      sequences.insert(at.in_call != nullptr ? at.in_call->sequence : 0);
    }
    if (sequences.size() == 1 && *sequences.begin() != 0) return no_progress(members);
    found("deadlock", members, ranks(sorted(members)) + " waited for each other in a circle");
    for (std::size_t i = 0; i < members.size(); ++i) {
      const int next = members[(i + 1) % members.size()];
      say(capital(rank(members[i])) + " waited for " + rank(next) + " in " +
          describe(at_the_end(*incident_.of(members[i]))) + ".");
    }
    say("Their calls do not match: sends, receives and collectives must be ordered so that at least one rank can make "
        "progress.");
  }

  /// Describes a call in which no rank makes progress: what the rank furthest behind waits for does not arrive.
  void no_progress(const std::vector<int>& members) {
    const auto step = [&](int each) { return at_the_end(*incident_.of(each)).in_call->step; };
    const int last = *std::min_element(members.begin(), members.end(), [&](int a, int b) { return step(a) < step(b); });
    const int sender = at_the_end(*incident_.of(last)).awaits();
    broken_link({{last, sender}});
    say("All are in the same call, " + describe(*at_the_end(*incident_.of(last)).in_call) + ". " + capital(rank(last)) +
        " is the furthest behind, at step " + std::to_string(step(last)) + ", while " + rank(sender) + " is at step " +
        std::to_string(step(sender)) + ": messages from the latter do not arrive.");
  }

  static std::vector<int> sorted(std::vector<int> which) {
    std::sort(which.begin(), which.end());
    return which;
  }

  // ── Calls differ ─────────────────────────────────────────────────────────────────────────────────────────────────

  void differed(const record& first) {
    std::map<std::string, std::vector<int>> calls;  // ranks by call
    std::vector<int> elsewhere;
    for (const record* each : incident_.records()) {
      const call* const own = call_of(*each, first.failed->sequence);
      own == nullptr ? elsewhere.push_back(each->rank) : calls[describe(*own)].push_back(each->rank);
    }
    std::vector<int> culprits;
    for (const auto& [text, who] : calls) {
      if (calls.size() > 1 && who.size() * 2 <= incident_.records().size())
        culprits.insert(culprits.end(), who.begin(), who.end());
    }
    const std::string number = first.failed->sequence == 0 ? "" : ' ' + std::to_string(first.failed->sequence);
    found("mismatch", sorted(culprits),
          "the ranks' calls" + (number.empty() ? "" : " number" + number) + " do not match");
    for (const auto& [text, who] : calls)
      say(capital(ranks(who)) + (who.size() == 1 ? " called " : " called ") + text + ".");
    if (!elsewhere.empty() && !calls.empty()) {
      say(capital(ranks(elsewhere)) + (elsewhere.size() == 1 ? " had" : " had") + " not reached that call.");
    }
    if (calls.size() > 1) {
      say("Fix the branch in which ranks differ: operation, count, type, reduction operation, root, algorithm and the "
          "order of calls must be equal on all ranks.");
    }
  }

  void truncated_message(const record& first) {
    const int culprit = first.failed->culprit;
    found("mismatch", {}, "a message did not fit the buffer of its receiver, " + rank(first.rank));
    say("Received by " + describe(at_the_end(first)) + ".");
    if (const record* const sender = culprit >= 0 ? incident_.of(culprit) : nullptr) {
      for (const message& each : sender->messages) {
        if (each.to == first.rank) say("Sent by rank " + std::to_string(culprit) + ": " + describe(each) + ".");
      }
    }
  }

  // ── The job was aborted ──────────────────────────────────────────────────────────────────────────────────────────

  void ended_on_purpose(const record& first) {
    found("aborted", {first.rank},
          rank(first.rank) + " was asked to end: abort() was called there, or a stop token was triggered");
  }

  // ── Words ────────────────────────────────────────────────────────────────────────────────────────────────────────

  static std::string describe(const position& at) {
    if (at.in_call != nullptr) return ::flight::describe(*at.in_call);
    return at.in_message != nullptr ? ::flight::describe(*at.in_message) : "no call";
  }
  static std::string describe(const call& what) { return ::flight::describe(what); }
  static std::string describe(const message& what) { return ::flight::describe(what); }

  struct last_thing {
    std::string what = "none at all";
    std::optional<nanoseconds> when;
  };

  /// Returns the last completed call, message or collective; before collective `sequence`, if that is not 0.
  static last_thing last_of(const record& who, std::int64_t sequence = 0) {
    const auto counts = [&](std::int64_t number) { return sequence == 0 || number < sequence; };
    const call* last = nullptr;
    for (const call& each : who.calls) {
      if (each.over && counts(each.sequence)) last = &each;
    }
    const message* later = nullptr;
    for (const message& each : who.messages) {
      if (each.over && counts(each.after) && (last == nullptr || each.after >= last->sequence)) later = &each;
    }
    if (later != nullptr) return {describe(*later), later->end ? later->end : later->begin};
    if (last != nullptr) return {describe(*last), last->end ? last->end : last->begin};
    return {};
  }

  const incident& incident_;
  const std::vector<incident>& all_;
  story story_;
};

/// Returns the story of `what`, which must be an element of `all`.
inline story story_of(const incident& what, const std::vector<incident>& all) {
  return story_builder(what, all).build();
}

}  // namespace flight
