// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Definitions of <hocket/group/split.hpp>.
#pragma once

#include <hocket/collective/host/impl/call.ipp>
#include <hocket/collective/host/move.hpp>
#include <hocket/communicator/communicator.hpp>
#include <hocket/communicator/communicator_guard.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/deadline.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/options.hpp>
#include <hocket/core/strong_types.hpp>
#include <hocket/engine/drive.hpp>
#include <hocket/engine/failure_diagnosis.hpp>
#include <hocket/group/chosen_ranks.hpp>
#include <hocket/group/exchange.hpp>
#include <hocket/group/split.hpp>
#include <hocket/transport/concept.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <source_location>
#include <span>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace detail {

struct splitting {
  static constexpr const char* name = "split";
};

/// What a rank passes to `split`.
struct split_choice {
  int part, order;
};

/// A stop token that is triggered 200 ms after a communicator has ended: by then, all ranks that can have reached the
/// same point. Triggered immediately if this rank aborts the communicator.
template <class State>
class end_of {
 public:
  explicit end_of(State& state) noexcept : state_(&state) {}

  bool stop_requested() const {
    if (state_->aborted()) return true;
    if (ended_) return until_.passed();
    static_cast<void>(poll_control_messages(*state_, [] { return waiting_call{.operation = "split"}; }));
    ended_ = state_->revoked() || state_->flagged();
    until_ = deadline::after(std::chrono::milliseconds(200));
    return false;
  }

 private:
  State* state_;
  mutable bool ended_ = false;
  mutable deadline until_;
};

/// Converts a failure on a part of `comm`, which consists of the ranks `chosen`, to a failure on `comm`.
template <class Domain>
failure revocation_of_part(failure cause, const communicator<Domain>& comm, const std::vector<int>& chosen,
                           const std::source_location& site) {
  const int peer = cause.context.peer;
  cause.context = error_context{.operation = "split", .rank = comm.rank(), .ranks = comm.size(), .site = site};
  if (peer >= 0) cause.context.peer = chosen[static_cast<std::size_t>(peer)];
  return cause;
}

/// Opens this rank's endpoint of a part. Errors name ranks of `comm`.
template <class Domain>
communicator<Domain> open_part(const communicator<Domain>& comm, transport::open_parameters how,
                               [[maybe_unused]] const std::vector<int>& chosen,
                               [[maybe_unused]] const std::source_location& site) {
  auto& state = communicator_access::state(comm);
#if HOCKET_HAS_EXCEPTIONS
  try {
    return communicator<Domain>(state.domain(), std::move(how), state.layout().staging_bytes);
  } catch (const error& caught) {
    if (caught.context().operation != nullptr) throw;  // from a call on `comm`
    raise(revocation_of_part(caught.cause(), comm, chosen, site));
  }
#else
  return communicator<Domain>(state.domain(), std::move(how), state.layout().staging_bytes);
#endif
}

/// Returns when all members of a part of `comm` have made it. A member that could not has ended `comm`.
template <class Domain>
void await_all(const communicator<Domain>& comm, const communicator<Domain>& part, const std::vector<int>& chosen,
               const std::source_location& site) {
  auto& state = communicator_access::state(comm);
  const communicator_guard here(state);
  if (const outcome refused = here.refused(); refused.failed()) raise(refused.cause());
  state.stop_reading();
  const auto until_the_end = end_of(state);
  call_settings settings;
  settings.stop = stop_check::of(until_the_end);
  const auto call = make_move<plan::collective_kind::barrier>(std::span<const std::byte>(), std::span<std::byte>());
  outcome ended = run_call(part, call, settings, site);
  if (!ended.failed()) return;
  // This rank may learn that a member abandons the part because of `comm` before it learns the reason.
  if (ended.code() == errc::aborted && state.usable()) {
    await_revocation_reason(
        state, [&] { return waiting_call{.operation = "split", .site = site}; }, comm.timeout(),
        [&] { return state.aborted(); });
  }
  if (const outcome over = refuse_if_over(state, never_stopped{}, comm.timeout()); over.failed()) {
    raise(in_context(over.cause(), state, {.operation = "split", .site = site}));
  }
  raise(revocation_of_part(ended.cause(), comm, chosen, site));
}

}  // namespace detail

template <class Domain>
communicator<Domain> split(const communicator<Domain>& comm, color part, key order, const std::source_location& site) {
  if (detail::communicator_access::is_moved_from(comm)) raise(detail::used_after_move("split", site));
  const detail::split_choice own{part.value, order.value};
  const auto all = detail::gather_values<detail::splitting>(comm, std::span(&own, 1), site);

  std::vector<int> chosen;  // in `comm`
  for (int rank = 0; rank < comm.size(); ++rank) {
    if (all[static_cast<std::size_t>(rank)].part == part.value) chosen.push_back(rank);
  }
  std::stable_sort(chosen.begin(), chosen.end(), [&](int a, int b) {
    return all[static_cast<std::size_t>(a)].order < all[static_cast<std::size_t>(b)].order;
  });

  auto& state = detail::communicator_access::state(comm);
  transport::open_parameters how =
      detail::open_parameters_of(state, chosen, detail::exchange_over<detail::splitting>(comm, chosen, site));
  how.context = detail::agree_on_context(comm, site);
  communicator<Domain> made = detail::open_part(comm, std::move(how), chosen, site);
  made.set_timeout(comm.timeout());
  detail::await_all(comm, made, chosen, site);
  detail::communicator_access::state(made).recorder().inherit(state.recorder());
  return made;
}

HOCKET_END_NAMESPACE
