// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Life after a failure: the ranks that are left agree on who they are, and go on with a communicator of their own.
///
/// They can't ask anybody, as the rank that kept the store may be the one that died, and more of them may die while
/// they talk. So they agree among themselves, by the votes of group/survivor_consensus.hpp:
///
/// 1. Each tells all others whom it misses, and hears all others, but for those it finds gone. Put together, that is
///    its proposal.
/// 2. In the order of ranks, each takes up the last proposal that it has heard from a rank before it, and passes it on
///    to those behind. Whoever is the first rank that stays alive makes all others agree with it. This is the
///    hierarchical consensus of Guerraoui and Rodrigues ("Reliable Distributed Programming"), which needs that no rank
///    is found gone while it takes part.
/// 3. They make the communicator, and agree in the same way on whether all of them could. If not, because one more has
///    died meanwhile, all begin again.
#pragma once

#include <hocket/collective/host/call_settings.hpp>
#include <hocket/communicator/communicator.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/explanation.hpp>
#include <hocket/core/options.hpp>

#include <source_location>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// As `shrink`.
template <class Domain>
communicator<Domain> shrink_to_survivors(const communicator<Domain>& comm, const call_settings& settings,
                                         const std::source_location& site);

template <class Given>
consteval sentence explain_shrink() {
  if constexpr (!call_options<Given>) {
    return "shrink(...) takes nothing but the communicator and options: shrink(comm, with(timeout(5s)))";
  } else if constexpr (!Given::template only<kind::timeout>) {
    return "with(...): shrink can use a timeout and nothing else; wrap it in hint(...) to have it ignored";
  } else {
    return {};
  }
}

template <class Given>
  requires(static_cast<bool>(explain_shrink<Given>()))
constexpr auto why_not_shrunk() {
  return in_words([] { return explain_shrink<Given>(); });
}

}  // namespace detail

/// Makes a communicator of those ranks of `comm` that are left, in the same order. `comm` is over then, whether it had
/// failed or not.
///
/// Collective over the ranks that live: each must call it. Those that die meanwhile are left out, or, if they die at
/// the very end, found lost by the first call on the new communicator. Nothing else is needed: no store, no rank in
/// particular. The new communicator has the old one's default timeout. Processes get new connections, as what has died
/// may have spoiled the old ones; threads share the old communicator's wires.
/// **Cost.** About 6 (p-1) small messages for each of p ranks, and the time it takes to notice who is gone.
/// **Errors.** Throws `error`: `timeout` names a rank that lives and does not call, or for which one waits that is in another
/// call; `aborted`: `abort` was called during it, here or on the rank that is named. After these two all may call again, also
/// those whose call came to no end. `revoked`: `comm` was shrunk before; `peer_lost`: the others have lost this rank, or
/// had decided to go on when its last call ended by one of these two; what making a communicator throws.
template <class Domain, call_options Options = options<>>
  requires(Options::template only<kind::timeout>)
communicator<Domain> shrink(const communicator<Domain>& comm, const Options& options = {},
                            const std::source_location& site = std::source_location::current()) {
  return detail::shrink_to_survivors(comm, detail::settings_of(options), site);
}

/// Deleted: see what it says.
template <class Domain, class Given, auto Why = detail::why_not_shrunk<Given>()>
communicator<Domain> shrink(const communicator<Domain>&, const Given&) = delete;

HOCKET_END_NAMESPACE

#if !defined(HOCKET_SEPARATE_COMPILATION)
#include <hocket/group/impl/shrink.ipp>
#endif
