// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// An adaptor that injects faults into any transport, to test how a program reacts to them.
///
/// Faults affect messages, the flags that ranks write into each other's windows, polls, and control messages. They do
/// not affect what peers read from a rank's memory. If ranks are threads, the end of a communicator is always reported,
/// because it prevents a rank from freeing memory that others read.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/deadline.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/text.hpp>
#include <hocket/plan/action.hpp>
#include <hocket/transport/adaptor/faults.hpp>
#include <hocket/transport/adaptor/forwarding.hpp>
#include <hocket/transport/concept.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace adaptor {

/// State of the faults of one rank. Its communicators share it, so one thread must use all of them.
class fault_injector {
 public:
  /// `rank` is this rank in the world.
  fault_injector(const faults& all, int rank) : rank_(rank) {
    for (const fault& each : all) {
      if (each.rank == rank || (each.what == fault_kind::cut && each.peer == rank)) waiting_.push_back(each);
    }
  }

  /// Returns the next fault of the step that is about to be taken; null if there is none. Both ranks of a cut get it,
  /// each at its own step of that number.
  const fault* next() {
    const auto due =
        std::find_if(waiting_.begin(), waiting_.end(), [&](const fault& each) { return each.step <= step_; });
    if (due == waiting_.end()) return nullptr;
    now_ = *due;
    waiting_.erase(due);
    return &now_;
  }
  void step_done() noexcept { ++step_; }

  void cut_from(const fault& how) { cut_.push_back(how.rank == rank_ ? how.peer : how.rank); }
  bool is_cut_from(int rank) const { return std::find(cut_.begin(), cut_.end(), rank) != cut_.end(); }

  void kill() noexcept { killed_ = true; }
  bool killed() const noexcept { return killed_; }

  void hold(std::chrono::nanoseconds time) { held_until_ = deadline::after(time); }
  void stop(std::chrono::nanoseconds time) { stopped_until_ = deadline::after(time); }
  bool held() const { return !held_until_.never() && !held_until_.passed(); }
  /// True if the rank neither acts nor answers.
  bool silent() const { return killed_ || (!stopped_until_.never() && !stopped_until_.passed()); }

  /// Arms a fault for the next message, or the next flag. An armed fault applies once.
  void arm_fault(fault_kind how) { armed_.push_back(how); }
  bool take_fault(fault_kind how) {
    const auto found = std::find(armed_.begin(), armed_.end(), how);
    if (found == armed_.end()) return false;
    armed_.erase(found);
    return true;
  }

  std::uint64_t step() const noexcept { return step_; }
  /// Returns the number of faults that have not happened yet.
  std::size_t waiting() const noexcept { return waiting_.size(); }

 private:
  const int rank_;
  faults waiting_;
  fault now_;
  std::uint64_t step_ = 0;
  std::vector<int> cut_;
  std::vector<fault_kind> armed_;
  deadline held_until_;
  deadline stopped_until_;
  bool killed_ = false;
};

template <class Endpoints>
class faulty_endpoints : public forwarding_endpoints<Endpoints> {
  using base = forwarding_endpoints<Endpoints>;

 public:
  struct sending {
    typename Endpoints::sending handle{};
    std::vector<std::byte> corrupted;    ///< sent instead of the caller's bytes
    typename Endpoints::sending copy{};  ///< handle of the copy of a message that is sent twice
    bool twice = false;
    bool lost = false;
  };

  faulty_endpoints(std::unique_ptr<Endpoints> inner, const transport::open_parameters& how,
                   std::shared_ptr<fault_injector> injector)
      : base(std::move(inner)), members_(how.members), injector_(std::move(injector)) {}

  // ── Steps ────────────────────────────────────────────────────────────────────────────────────────────────────────

  bool may_act(std::uint32_t sequence, unsigned lane, const plan::action& what, std::size_t bytes) {
    return !holds_back() && base::may_act(sequence, lane, what, bytes);
  }
  void on_step(std::uint32_t, unsigned, const plan::action&, std::size_t) { injector_->step_done(); }

  // ── Messages ─────────────────────────────────────────────────────────────────────────────────────────────────────

  bool try_send(sending& state, int peer, transport::message_id id, const void* data, std::size_t bytes,
                failure& fail) {
    if (id.point_to_point() && holds_back()) return false;
    state.lost = is_cut_from(peer) || injector_->take_fault(fault_kind::drop);
    if (!state.lost && !send_with_faults(state, peer, id, data, bytes, fail)) return false;
    if (id.point_to_point()) injector_->step_done();
    return true;
  }

  bool drained(sending& state) {
    if (state.lost) return true;
    return base::drained(state.handle) && (!state.twice || base::drained(state.copy));
  }

  const void* try_receive(typename base::receiving& state, int peer, transport::message_id id, void* buffer,
                          std::size_t bytes, failure& fail) {
    if (injector_->silent() || is_cut_from(peer)) return nullptr;
    return base::try_receive(state, peer, id, buffer, bytes, fail);
  }

  /// Called for each flag that this rank writes.
  bool flag_reaches(int peer) {
    return !injector_->killed() && !is_cut_from(peer) && !injector_->take_fault(fault_kind::drop);
  }

  // ── State ────────────────────────────────────────────────────────────────────────────────────────────────────────

  bool broken(failure& fail) {
    if (injector_->killed()) {
      fail = make_failure(errc::aborted,
                          hocket::detail::concat({"an injected fault ends this rank at step ", injector_->step()}));
      return true;
    }
    return !injector_->silent() && base::broken(fail);
  }

  void post(int peer, std::span<const std::byte> payload) {
    if (base::shares_address_space || (!injector_->killed() && !is_cut_from(peer))) base::post(peer, payload);
  }
  bool has_control_message() const { return !injector_->silent() && base::has_control_message(); }
  bool fetch(transport::control_message& received) {
    while (!injector_->silent() && base::fetch(received)) {
      if (base::shares_address_space || !is_cut_from(received.sender)) return true;
    }
    return false;
  }

 private:
  bool send_with_faults(sending& state, int peer, transport::message_id id, const void* data, std::size_t bytes,
                        failure& fail) {
    const bool truncated = bytes > 0 && injector_->take_fault(fault_kind::truncate);
    const bool corrupted = bytes > 0 && !truncated && injector_->take_fault(fault_kind::corrupt);
    if (corrupted) {
      const auto* const begin = static_cast<const std::byte*>(data);
      state.corrupted.assign(begin, begin + bytes);
      state.corrupted[injector_->step() * 7919 % bytes] ^= static_cast<std::byte>(1U << injector_->step() % 8);
    }
    const void* const sent = corrupted ? state.corrupted.data() : data;
    if (!base::try_send(state.handle, peer, id, sent, truncated ? bytes - 1 : bytes, fail)) {
      if (truncated) injector_->arm_fault(fault_kind::truncate);  // there was no room: retry with the fault
      if (corrupted) injector_->arm_fault(fault_kind::corrupt);
      return false;
    }
    failure ignored;
    if (injector_->take_fault(fault_kind::duplicate)) {
      state.twice = base::try_send(state.copy, peer, id, sent, bytes, ignored);
    }
    return true;
  }

  bool is_cut_from(int peer) const { return injector_->is_cut_from((*members_)[static_cast<std::size_t>(peer)]); }

  /// Applies the faults that are due now. Returns whether the step must wait.
  bool holds_back() {
    if (injector_->silent() || injector_->held()) return true;
    while (const fault* const due = injector_->next()) {
      switch (due->what) {
        case fault_kind::delay:
          if constexpr (base::virtual_time) {
            this->inner().hold_up(std::chrono::duration<double>(due->time).count());
          } else {
            injector_->hold(due->time);
            return true;
          }
          break;
        case fault_kind::stop: injector_->stop(due->time); return true;
        case fault_kind::kill: injector_->kill(); return true;
        case fault_kind::cut: injector_->cut_from(*due); break;
        default: injector_->arm_fault(due->what);
      }
    }
    return false;
  }

  const std::shared_ptr<const std::vector<int>> members_;
  const std::shared_ptr<fault_injector> injector_;
};

template <class Domain>
using faulty = adapted_domain<Domain, faulty_endpoints<typename Domain::endpoints_type>, fault_injector>;

}  // namespace adaptor
HOCKET_END_NAMESPACE
