// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The blocking form of a call on whatever the caller has in the place of a communicator: one that was moved from is
/// told as any other misuse, by a code too.
#pragma once

#include <hocket/collective/host/call.hpp>
#include <hocket/communicator/communicator.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>

#include <source_location>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// Out of line, so that call sites stay as small as those of `run_call`.
template <class Spec, class Domain, class Options>
HOCKET_NO_INLINE outcome run_spec(const communicator<Domain>& comm, const Spec& spec, const Options& options,
                                  const std::source_location& site) {
  const std::source_location at = site;  // read in any case, g++ passes it in a register
  if (communicator_access::is_moved_from(comm)) [[unlikely]]
    return used_after_move(Spec::name, at);
  return run_call(comm, spec, options, at);
}

}  // namespace detail
HOCKET_END_NAMESPACE
