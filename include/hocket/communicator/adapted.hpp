// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The same group of ranks over an adapted transport: `with_faults` has things go wrong on purpose.
#pragma once

#include <hocket/communicator/communicator.hpp>
#include <hocket/communicator/split.hpp>
#include <hocket/core/config.hpp>
#include <hocket/transport/adaptor/faults.hpp>
#include <hocket/transport/adaptor/faulty.hpp>
#include <hocket/transport/concept.hpp>

#include <cstddef>
#include <memory>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// Collective over `comm`: a communicator of its ranks on an `Adapted` of its wire.
template <class Adapted, class Wire, class Shared>
communicator<Adapted> adapt(const communicator<Wire>& comm, std::shared_ptr<Shared> shared) {
  auto& state = communicator_access::state(comm);
  std::vector<int> everybody(static_cast<std::size_t>(comm.size()));
  std::iota(everybody.begin(), everybody.end(), 0);
  transport::opening how;
  how.context = agree_on_context(comm);
  how.members = state.members();
  how.rank = comm.rank();
  how.exchange = [&](std::span<const std::byte> blob) { return gather_blobs(comm, blob, everybody); };
  communicator<Adapted> made(std::make_shared<Adapted>(state.wire(), std::move(shared)), std::move(how),
                             state.layout().staging_bytes);
  made.set_timeout(comm.timeout());
  communicator_access::state(made).recorder().inherit(state.recorder());
  return made;
}

}  // namespace detail

/// A communicator of the ranks of `comm` on which `what` goes wrong, whatever transport it is: so that a program can try
/// what it does then. Faults count the steps of what is called on it, on parts of it and on what `shrink` makes of it.
///
/// Collective over `comm`; `what` must be equal on all ranks. Small reductions take the long way here, in which each step
/// can be disturbed. **Threads.** The communicator and its parts must be used by one thread. **Errors.** As `split`.
template <class Wire>
communicator<adaptor::faulty<Wire>> with_faults(const communicator<Wire>& comm, const adaptor::faults& what) {
  const int rank_in_world = detail::communicator_access::state(comm).wire()->rank();
  return detail::adapt<adaptor::faulty<Wire>>(comm, std::make_shared<adaptor::misfortune>(what, rank_in_world));
}

HOCKET_END_NAMESPACE
