// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Communicators of the same ranks over an adapted transport: `with_faults` injects faults, `traced` records all steps
/// and messages.
#pragma once

#include <hocket/collective/recv.hpp>
#include <hocket/collective/send.hpp>
#include <hocket/communicator/communicator.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/strong_types.hpp>
#include <hocket/group/any_transport.hpp>
#include <hocket/group/chosen_ranks.hpp>
#include <hocket/group/exchange.hpp>
#include <hocket/transport/adaptor/faults.hpp>
#include <hocket/transport/adaptor/faulty.hpp>
#include <hocket/transport/adaptor/traced.hpp>
#include <hocket/transport/concept.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <memory>
#include <source_location>
#include <span>
#include <string>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace detail {

struct adapting {
  static constexpr const char* name = "with_faults, or traced";
};

/// Collective over `comm`: makes a communicator of its ranks on an `Adapted` of its domain.
template <class Adapted, class Domain, class Shared>
communicator<Adapted> adapt(const communicator<Domain>& comm, std::shared_ptr<Shared> shared,
                            const std::source_location& site) {
  auto& state = communicator_access::state(comm);
  transport::open_parameters how = open_parameters_of(state, all_ranks(state), exchange_over<adapting>(comm, site));
  how.context = agree_on_context(comm, site);
  communicator<Adapted> made(std::make_shared<Adapted>(state.domain(), std::move(shared)), std::move(how),
                             state.layout().staging_bytes);
  made.set_timeout(comm.timeout());
  communicator_access::state(made).recorder().inherit(state.recorder());
  return made;
}

}  // namespace detail

/// Returns a communicator of the ranks of `comm` on which the faults `what` occur, over any transport, so that a
/// program can test how it handles them. A fault's step number counts the steps of calls on this communicator, on
/// communicators split from it and on those that `shrink` makes of it.
///
/// Collective over `comm`; `what` must be equal on all ranks. Small reductions do not use the direct path here, so that
/// each step can fail. **Threads.** One thread must use the result and all its parts. **Errors.** Like `split`.
template <class Domain>
communicator<adaptor::faulty<Domain>> with_faults(const communicator<Domain>& comm, const adaptor::faults& what,
                                                  const std::source_location& site = std::source_location::current()) {
  const int rank_in_world = detail::communicator_access::state(comm).domain()->rank();
  return detail::adapt<adaptor::faulty<Domain>>(comm, std::make_shared<adaptor::fault_injector>(what, rank_in_world),
                                                site);
}

/// Returns a communicator of the ranks of `comm` that records each step and each message of calls on it, and on
/// communicators split from it, for `write_trace`. Collective over `comm`. Recording a step may allocate, so the times
/// show which rank waits for which, but are not accurate to nanoseconds. **Errors.** Like `split`.
template <class Domain>
communicator<adaptor::traced<Domain>> traced(const communicator<Domain>& comm,
                                             const std::source_location& site = std::source_location::current()) {
  const int rank_in_world = detail::communicator_access::state(comm).domain()->rank();
  return detail::adapt<adaptor::traced<Domain>>(comm, std::make_shared<adaptor::trace_log>(rank_in_world), site);
}

namespace detail {

/// Returns, on rank 0, what must be added to times of rank `other` to get rank 0's times; 0 on `other`. Both ranks call
/// it. A difference below the time of a round trip counts as 0, because ranks of one host have the same clock.
template <class Domain>
double clock_difference(const communicator<Domain>& comm, int other) {
  constexpr int rounds = 8;
  double best = 0, shortest = 0;
  for (int round = 0; round < rounds; ++round) {
    double theirs = 0;
    if (comm.rank() != 0) {
      recv(comm, std::span(&theirs, 1), peer{0});
      theirs = adaptor::trace_log::now();
      send(comm, std::span<const double>(&theirs, 1), peer{0});
      continue;
    }
    const double begin = adaptor::trace_log::now();
    send(comm, std::span<const double>(&begin, 1), peer{other});
    recv(comm, std::span(&theirs, 1), peer{other});
    const double took = adaptor::trace_log::now() - begin;
    if (round > 0 && took >= shortest) continue;
    shortest = took;
    best = begin + took / 2 - theirs;
  }
  return std::abs(best) < shortest ? 0 : best;
}

/// Pauses recording while it exists.
class trace_pause {
 public:
  explicit trace_pause(adaptor::trace_log& log) noexcept : log_(log) { log_.pause(true); }
  trace_pause(const trace_pause&) = delete;
  trace_pause& operator=(const trace_pause&) = delete;
  ~trace_pause() { log_.pause(false); }

 private:
  adaptor::trace_log& log_;
};

/// Returns what must be added to the times of this rank's records to get times on rank 0's clock that begin when the first
/// of the logs was made. Collective.
template <class Domain>
double to_common_time(const communicator<Domain>& comm, double begin) {
  std::vector<double> differences(static_cast<std::size_t>(comm.size()));
  double first = begin;
  for (int rank = 1; rank < comm.size(); ++rank) {
    if (comm.rank() != 0 && comm.rank() != rank) continue;
    double theirs = begin;
    differences[static_cast<std::size_t>(rank)] = clock_difference(comm, rank);
    if (comm.rank() == 0) {
      recv(comm, std::span(&theirs, 1), peer{rank});
      first = std::min(first, theirs + differences[static_cast<std::size_t>(rank)]);
    } else {
      send(comm, std::span<const double>(&theirs, 1), peer{0});
      recv(comm, std::span(&theirs, 1), peer{0});
      return theirs;
    }
  }
  for (int rank = 1; rank < comm.size(); ++rank) {
    const double offset = differences[static_cast<std::size_t>(rank)] - first;
    send(comm, std::span(&offset, 1), peer{rank});
  }
  return -first;
}

}  // namespace detail

/// Writes the records of all ranks of `comm` into one file at `path`, for Perfetto (ui.perfetto.dev). Rank 0 writes the
/// file; the other ranks send their records to it.
///
/// **Times.** Microseconds since the first rank has called `traced`, on rank 0's clock. What the clock of another rank is
/// ahead or behind is estimated now, by the shortest of 8 messages to it and back: the error is less than half of the time
/// that these took. A difference below that time is taken as none, because the ranks of one host have one clock.
///
/// Collective over `comm`; records are retained, so a later trace contains them again. **Cost.** Some 200 bytes for
/// each step, message and value of a counter; while the file is written, rank 0 also has the text of one rank, 150 bytes
/// for each. **Errors.** Throws `error`: `bad_environment` on rank 0 if the file can't be
/// written; and the errors of `send` and `recv`.
template <class Domain>
void write_trace(const communicator<adaptor::traced<Domain>>& comm, const std::string& path) {
  adaptor::trace_log& own = *detail::communicator_access::state(comm).domain()->shared();
  const detail::trace_pause quiet(own);
  std::string part = own.events(detail::to_common_time(comm, own.begin()));
  if (comm.rank() != 0) {
    const std::uint64_t size = part.size();
    send(comm, std::span(&size, 1), peer{0});
    send(comm, std::span<const char>(part), peer{0});
    return;
  }
  std::ofstream file(path);
  file << adaptor::trace_begin << part;
  for (int rank = 1; rank < comm.size(); ++rank) {  // also if the file can't be written: the other ranks wait
    std::uint64_t size = 0;
    recv(comm, std::span(&size, 1), peer{rank});
    part.resize(size);
    recv(comm, std::span(part), peer{rank});
    file << part;
  }
  if (file << adaptor::trace_end << std::flush) return;
  raise(errc::bad_environment, detail::concat({"write_trace: '", path, "' can't be written"}));
}

HOCKET_END_NAMESPACE
