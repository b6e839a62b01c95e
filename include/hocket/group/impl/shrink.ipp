// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Definitions of <hocket/group/shrink.hpp>.
#pragma once

#include <hocket/collective/host/call.hpp>
#include <hocket/communicator/communicator.hpp>
#include <hocket/communicator/communicator_guard.hpp>
#include <hocket/communicator/control.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/deadline.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/options.hpp>
#include <hocket/core/text.hpp>
#include <hocket/engine/drive.hpp>
#include <hocket/group/chosen_ranks.hpp>
#include <hocket/group/shrink.hpp>
#include <hocket/group/survivor_consensus.hpp>
#include <hocket/transport/concept.hpp>
#include <hocket/transport/contexts.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <source_location>
#include <span>
#include <string>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// The lost ranks, and the context number of the new communicator.
struct survivor_set {
  std::uint32_t context = 0;
  std::vector<bool> lost;

  /// The number, and one bit per rank.
  std::string text() const {
    std::string result(sizeof context + (lost.size() + 7) / 8, '\0');
    std::memcpy(result.data(), &context, sizeof context);
    for (std::size_t i = 0; i < lost.size(); ++i) {
      char& eight = result[sizeof context + i / 8];
      if (lost[i]) eight = static_cast<char>(eight | (1 << (i % 8)));
    }
    return result;
  }

  /// Returns an empty set if `text` is invalid for `ranks` ranks, or if its context number is.
  static survivor_set parse(const std::string& text, std::size_t ranks) {
    survivor_set result;
    if (text.size() != sizeof context + (ranks + 7) / 8) return result;
    std::memcpy(&result.context, text.data(), sizeof context);
    if (result.context == 0 || result.context > transport::contexts::most) return {};
    for (std::size_t i = 0; i < ranks; ++i) result.lost.push_back((text[sizeof context + i / 8] >> (i % 8) & 1) != 0);
    return result;
  }

  void add(const survivor_set& other) {
    context = std::max(context, other.context);
    for (std::size_t i = 0; i < other.lost.size(); ++i) lost[i] = lost[i] || other.lost[i];
  }
};

template <class Domain>
class shrinking {
  using state_type = communicator_state<Domain>;
  using consensus_type = survivor_consensus<state_type>;

 public:
  shrinking(state_type& state, const call_site& call)
      : state_(state), call_(call), consensus_(state, deadline::after(call.timeout), call) {}

  communicator<Domain> run() {
    constexpr std::size_t most_ranks = (transport::control_message::most_bytes - 64) * 8;
    if (index(state_.size()) > most_ranks) {
      fail(errc::invalid_argument, "this communicator has too many ranks for shrink");
    }
    for (;;) {
      if (std::optional<communicator<Domain>> made = elect()) return std::move(*made);
      consensus_.join_newest_round();
    }
  }

 private:
  /// Steps of one attempt: agreement on survivors, exchanges of the new communicator, and whether all could make it.
  static constexpr std::uint32_t steps_per_attempt = 8192;
  static constexpr std::uint32_t first_exchange = 2;
  static constexpr std::uint32_t last_steps = steps_per_attempt - 2;

  inline static const std::string yes = "yes", again = "again";

  static std::size_t index(int rank) noexcept { return static_cast<std::size_t>(rank); }

  /// Result of one attempt to make the communicator: the communicator, or the reason of the failure.
  struct attempt {
    std::optional<communicator<Domain>> made;
    failure cause;
  };

  /// Returns nothing if the other ranks vote in a later call.
  std::optional<communicator<Domain>> elect() {
    for (std::uint32_t first = 0;; first += steps_per_attempt) {
      const survivor_set agreed = agree_on_members(first);
      if (consensus_.superseded()) return std::nullopt;
      attempt own = make(agreed, first);
      const std::string decision = agree_on_outcome(first, own);
      if (consensus_.superseded()) return std::nullopt;
      if (decision == yes) return std::move(own.made);
      if (decision != again) refuse(decision);
      consensus_.pause(own.cause);
    }
  }

  survivor_set agree_on_members(std::uint32_t first) {
    const std::size_t ranks = index(state_.size());
    survivor_set own{state_.domain()->contexts().propose(), std::vector<bool>(ranks)};
    for (int rank = 0; rank < state_.size(); ++rank) {
      own.lost[index(rank)] = !consensus_.takes_part(rank) || (rank != state_.rank() && state_.endpoints().gone(rank));
    }
    const auto all = consensus_.gather(first, own.text());
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      const survivor_set theirs = all[rank] ? survivor_set::parse(*all[rank], ranks) : survivor_set{};
      theirs.lost.empty() ? static_cast<void>(own.lost[rank] = true) : own.add(theirs);
    }
    const survivor_set agreed = survivor_set::parse(consensus_.agree(first + 1, own.text()), ranks);
    if (consensus_.superseded()) return {};
    if (agreed.lost.empty()) fail(errc::system, "a peer sent an invalid vote");
    if (agreed.lost[index(state_.rank())]) {
      fail(errc::peer_lost, "the other ranks have lost their connection to this rank, and continue without it");
    }
    for (int rank = 0; rank < state_.size(); ++rank) {
      if (agreed.lost[index(rank)]) consensus_.exclude(rank);
    }
    return agreed;
  }

  attempt make(const survivor_set& agreed, std::uint32_t first) {
    std::vector<int> ranks = all_ranks(state_);
    std::erase_if(ranks, [&](int rank) { return !consensus_.takes_part(rank); });
    std::uint32_t number = first + first_exchange;
    transport::open_parameters how = open_parameters_of(state_, ranks, [&](std::span<const std::byte> blob) {
      number += consensus_type::most_votes_per_gather;
      return exchange(number - consensus_type::most_votes_per_gather, blob, ranks);
    });
#if HOCKET_HAS_EXCEPTIONS
    try {
      return {open(agreed.context, std::move(how)), {}};
    } catch (const error& cause) {
      if (cause.code() == errc::timeout || cause.code() == errc::aborted) throw;
      return {std::nullopt, cause.cause()};
    }
#else
    return {open(agreed.context, std::move(how)), {}};
#endif
  }

  std::optional<communicator<Domain>> open(std::uint32_t context, transport::open_parameters how) {
    std::shared_ptr<Domain> through = Domain::renewed(state_.domain(), how);
    if (through == state_.domain()) {
      if (!through->contexts().claim(context)) return std::nullopt;
      how.context = context;
    }
    return communicator<Domain>(std::move(through), std::move(how), state_.layout().staging_bytes);
  }

  std::vector<std::vector<std::byte>> exchange(std::uint32_t number, std::span<const std::byte> blob,
                                               const std::vector<int>& ranks) {
    const auto all = consensus_.gather_long(number, {reinterpret_cast<const char*>(blob.data()), blob.size()});
    std::vector<std::vector<std::byte>> result;
    for (const int rank : ranks) {
      const std::optional<std::string>& content = all[index(rank)];
      if (!content) fail(errc::peer_lost, "a survivor is gone", rank);
      const auto* const begin = reinterpret_cast<const std::byte*>(content->data());
      result.emplace_back(begin, begin + content->size());
    }
    return result;
  }

  /// Returns what all ranks do after an attempt: use the new communicator, try again without the ranks that were lost
  /// meanwhile, or fail for a rank's reason that would occur again, such as lack of memory.
  std::string agree_on_outcome(std::uint32_t first, const attempt& own) {
    consensus_.conclude_in(first + last_steps + 1, yes);
    const auto all = consensus_.gather(first + last_steps, own.made                  ? yes
                                                           : is_retryable(own.cause) ? again
                                                                                     : refusal(own));
    std::string decision = yes;
    for (int rank = 0; rank < state_.size(); ++rank) {
      if (!consensus_.takes_part(rank) || all[index(rank)] == yes) continue;
      const std::string reported = all[index(rank)].value_or(again);
      if (decision == yes || decision == again) decision = reported;
    }
    return consensus_.agree(first + last_steps + 1, decision);
  }

  /// True if another attempt may succeed: the context number was taken meanwhile, or a peer caused the failure.
  static bool is_retryable(const failure& cause) {
    return !cause || cause.context.peer >= 0 || cause.code == errc::peer_lost || cause.code == errc::unreachable ||
           cause.code == errc::revoked;
  }

  /// Encodes error code, rank and reason; always longer than the other verdicts.
  std::string refusal(const attempt& own) const {
    constexpr std::size_t most_words = 512;
    const std::array<std::int32_t, 2> numbers{own.cause.code.value(), state_.rank()};
    return std::string(reinterpret_cast<const char*>(numbers.data()), sizeof numbers) +
           own.cause.reason.substr(0, most_words);
  }
  [[noreturn]] void refuse(const std::string& text) const {
    std::array<std::int32_t, 2> numbers{};
    if (text.size() >= sizeof numbers) std::memcpy(numbers.data(), text.data(), sizeof numbers);
    const auto [code, rank] = numbers;
    const bool known = code >= static_cast<int>(errc::timeout) && code <= static_cast<int>(errc::system);
    if (!known || rank < 0 || rank >= state_.size()) fail(errc::system, "a peer sent an invalid vote");
    const std::string reason_text = "can't make the communicator of the survivors: " + text.substr(sizeof numbers);
    if (rank == state_.rank()) fail(static_cast<errc>(code), reason_text);
    fail(static_cast<errc>(code), concat({"rank ", rank, " reports: ", reason_text}), rank);
  }

  [[noreturn]] void fail(errc code, std::string reason, int peer = -1) const {
    raise(in_context(make_failure(code, std::move(reason), {.peer = peer}), state_, call_));
  }

  state_type& state_;
  const call_site call_;
  consensus_type consensus_;
};

template <class Domain>
communicator<Domain> shrink_to_survivors(const communicator<Domain>& comm, const call_settings& settings,
                                         const std::source_location& site) {
  auto& state = communicator_access::state(comm);
  const call_site call = site_of(state, "shrink", settings, site);
  const communicator_guard here(state);
  if (const outcome refused = here.refused(); refused.failed()) raise(in_context(refused.cause(), state, call));
  if (call.timeout.count() < 0) raise(in_context(negative_timeout(call.timeout), state, call));
  if (state.retired()) {
    raise(in_context(
        make_failure(errc::revoked, "this communicator was shrunk before: use the communicator that shrink returned"),
        state, call));
  }
  state.stop_reading();
  communicator<Domain> made = shrinking<Domain>(state, call).run();
  state.retire(
      in_context(make_failure(errc::revoked, "shrink has replaced this communicator by another one"), state, call));
  made.set_timeout(comm.timeout());
  communicator_access::state(made).recorder().inherit(state.recorder());
  return made;
}

}  // namespace detail
HOCKET_END_NAMESPACE
