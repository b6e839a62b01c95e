// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Recovery after a failure: the surviving ranks agree on the list of survivors, and continue with a new communicator.
///
/// No central service can decide, because the rank that ran the store may be the failed rank, and more ranks may fail
/// during the agreement. So survivors agree among themselves, by the votes of group/survivor_consensus.hpp:
///
/// 1. Each rank sends its list of lost ranks to all others, and receives their lists, except from ranks that it finds
///    lost. The union of the lists is its proposal.
/// 2. In rank order, each rank adopts the last proposal that it has received from a lower rank, and sends it to higher
///    ranks. So all agree with the first rank that stays alive. This is the hierarchical consensus of Guerraoui and
///    Rodrigues ("Reliable Distributed Programming"), which requires that no rank is reported lost while it takes part.
/// 3. The survivors make the communicator, and agree in the same way on whether all of them succeeded. If not, because
///    another rank has failed, all begin again.
#pragma once

#include <hocket/collective/host/call_settings.hpp>
#include <hocket/collective/host/option_diagnostics.hpp>
#include <hocket/communicator/communicator.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/options.hpp>

#include <source_location>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// See `shrink`.
template <class Domain>
communicator<Domain> shrink_to_survivors(const communicator<Domain>& comm, const call_settings& settings,
                                         const std::source_location& site);

}  // namespace detail

/// Makes a communicator of the surviving ranks of `comm`, in the same order. Ends `comm`, whether it had failed or not.
///
/// Collective over the surviving ranks: each must call it. Ranks that fail during the call are excluded, or, if they
/// fail during the last step, reported as lost by the first call on the new communicator. Needs no store and no
/// particular rank. The new communicator has the default timeout of the old one. Processes open new connections,
/// because the failure may have damaged the old ones; threads share the old communicator's connections.
/// **Cost.** About 6 (p-1) small messages for each of p ranks, and the time to detect which ranks have failed.
/// **Errors.** Throws `error`: `timeout` names a rank that is alive and does not call `shrink`, or for which a rank in
/// another call waits; `aborted`: `abort` was called during `shrink`, here or on the named rank. After these two, all
/// ranks may call again; a rank that is still in the earlier call joins the later one. `revoked`: `comm` was already
/// shrunk; `peer_lost`: the other ranks have lost this rank, or had already decided to continue when its last call
/// ended by one of these two. Errors of making a communicator are passed on.
template <class Domain, call_options Options = options<>>
  requires detail::accepted_by<Options, detail::timeout_options>
communicator<Domain> shrink(const communicator<Domain>& comm, const Options& options = {},
                            const std::source_location& site = std::source_location::current()) {
  return detail::shrink_to_survivors(comm, detail::settings_of(options), site);
}

/// Deleted: `Why` explains the mistake.
template <class Domain, class Given, auto Why = detail::why_not_options_of<detail::timeout_options, Given>()>
communicator<Domain> shrink(const communicator<Domain>&, const Given&, const auto&...) = delete;

HOCKET_END_NAMESPACE

#if !defined(HOCKET_SEPARATE_COMPILATION)
#include <hocket/group/impl/shrink.ipp>
#endif
