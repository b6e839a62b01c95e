// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// A group of ranks that communicate: the first argument of every collective.
#pragma once

#include <hocket/communicator/state.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/deadline.hpp>
#include <hocket/core/error.hpp>
#include <hocket/transport/concept.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE

namespace detail {
struct communicator_access;
}  // namespace detail

/// A group of ranks over one transport. Movable, not copyable: `split` makes a new one.
///
/// **Threads.** Use one communicator from one thread at a time: a second one is refused with `concurrent_use`.
/// Different communicators of one rank may be used from different threads at the same time. `abort` may be called from
/// any thread.
/// **Failure.** The first failure of a call on any rank ends the communicator on all of them; then only `shrink` goes
/// on.
/// **Destruction.** Local: no other rank is waited for. Requests must be waited for before.
template <class Wire>
class communicator {
 public:
  using wire_type = Wire;

  /// For transports: a communicator of `how.members` on `through`. Collective over the members.
  communicator(std::shared_ptr<Wire> through, transport::opening how, std::size_t staging_bytes)
      : state_(std::make_shared<state_type>(std::move(through), std::move(how), staging_bytes)) {}

  communicator(communicator&&) noexcept = default;
  communicator& operator=(communicator&&) noexcept = default;

  int rank() const noexcept { return state_->rank(); }
  int size() const noexcept { return state_->size(); }

  /// Makes the operation under way, or else the next one, fail with `errc::aborted`, on this rank and then on all
  /// others, and all later ones with `errc::revoked`. From any thread. The others hear of it from that operation, or when
  /// this rank destroys the communicator.
  void abort() noexcept { state_->abort(); }
  /// Ends the communicator on all ranks, with the caller's words: for what goes wrong between two calls. The others'
  /// operation under way, or else their next one, fails with `errc::aborted` and "rank R reports: REASON"; this rank's
  /// next one likewise. Without it they would hear `peer_lost` once this rank has gone. Does nothing if the communicator
  /// has failed before. From the thread that uses it; waits for nobody.
  void revoke(std::string reason) const { state_->revoke_unheard(make_failure(errc::aborted, std::move(reason))); }
  /// Whether an earlier failure ended this communicator.
  bool revoked() const noexcept { return state_->revoked(); }

  /// How long calls wait that say nothing else; 60 s unless set. Need not be equal on all ranks.
  std::chrono::nanoseconds timeout() const noexcept { return state_->timeout(); }
  template <class Rep, class Period>
  void set_timeout(std::chrono::duration<Rep, Period> timeout) noexcept {
    state_->set_timeout(detail::saturated(timeout));
  }

  /// What this rank has moved by its calls on this communicator, those under way included as far as they are. From the
  /// thread that uses it.
  hocket::traffic traffic() const noexcept { return state_->moved(); }

  /// The directory to which each rank writes what it did last, once this communicator has failed, for `hocket-flight`
  /// to read: see docs/when-it-fails.md. Nothing is written unless it is set. Need not be equal on all ranks. `split`
  /// and `shrink` pass it on.
  const std::string& flight_recorder() const noexcept { return state_->recorder().directory(); }
  void set_flight_recorder(std::string directory) { state_->recorder().set_directory(std::move(directory)); }

 private:
  friend struct detail::communicator_access;
  using state_type = detail::communicator_state<Wire>;

  std::shared_ptr<state_type> state_;
};

namespace detail {

/// The collectives' way into a communicator.
struct communicator_access {
  template <class Wire>
  static communicator_state<Wire>& state(const communicator<Wire>& comm) noexcept {
    return *comm.state_;
  }
  template <class Wire>
  static const std::shared_ptr<communicator_state<Wire>>& shared_state(const communicator<Wire>& comm) noexcept {
    return comm.state_;
  }
};

template <class T>
struct is_communicator : std::false_type {};
template <class Wire>
struct is_communicator<communicator<Wire>> : std::true_type {};

}  // namespace detail

HOCKET_END_NAMESPACE
