// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// A slot for one message of a row, which is sent or received again in each step. `send_async` and `recv_async`
/// allocate the operation that they start; a slot reuses its storage, so that a step allocates nothing.
#pragma once

#include <hocket/collective/host/call_settings.hpp>
#include <hocket/collective/host/impl/point_to_point.ipp>
#include <hocket/collective/host/point_to_point.hpp>
#include <hocket/communicator/communicator.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/platform/ticks.hpp>
#include <hocket/transport/concept.hpp>

#include <cstddef>
#include <cstring>
#include <memory>
#include <optional>
#include <source_location>
#include <system_error>
#include <utility>

HOCKET_BEGIN_NAMESPACE
namespace pipeline::detail {

namespace core = hocket::detail;

/// A message over a transport in real time. Not movable: the communicator has its address until it completes.
template <class Domain>
class message_slot {
 public:
  message_slot() = default;
  message_slot(const message_slot&) = delete;
  message_slot& operator=(const message_slot&) = delete;
  ~message_slot() { finish(); }

  /// Waits for the previous message, then starts this one. Raises what `send_async` and `recv_async` raise.
  void start(const communicator<Domain>& comm, const core::message_spec& spec, const std::source_location& site) {
    finish();
    const auto& state = core::communicator_access::shared_state(comm);
    const core::call_site call{spec.name, site, state->timeout()};
    const core::communicator_guard here(*state);
    const outcome refused = here.refused();
    if (refused.failed()) raise(core::in_context(refused.cause(), *state, call));
    core::deliver(core::if_memory_lasts(*state, call, core::no_place{}, [&]() -> outcome {
      if (outcome wrong = core::check_message(*state, spec, core::default_settings, call); wrong.failed()) return wrong;
      operation_state_.emplace(state, call, core::stop_check(), spec);
      operation_state_->set_entry(core::log_message(*state, spec, call, false, platform::ticks()));
      operation_state_->move_on();
      return {};
    }));
  }

  /// Returns whether the message is complete; drives it if not. Raises `error` if it failed.
  bool test() {
    if (operation_state_ && !operation_state_->test()) return false;
    conclude();
    return true;
  }

  /// Waits until the message is complete. Raises `error` if it failed.
  void wait() {
    if (operation_state_) operation_state_->wait();
    conclude();
  }

 private:
  using state_type = core::communicator_state<Domain>;

  void finish() noexcept {
    if (operation_state_) operation_state_->wait_undelivered();
    operation_state_.reset();
  }

  /// Removes a completed message, so that the communicator no longer checks it. A failure stays, to be raised again.
  void conclude() {
    if (operation_state_ && operation_state_->cause()) raise(operation_state_->cause());
    operation_state_.reset();
  }

  std::optional<core::started<state_type, core::message_exchange<state_type>>> operation_state_;
};

/// A message in virtual time. The network stores sent messages, so a send completes immediately. A receive is performed
/// only when the row waits for it: earlier, it would move the rank's clock to the arrival of the message.
template <class Domain>
  requires transport::keeps_virtual_time<typename Domain::endpoints_type>
class message_slot<Domain> {
 public:
  void start(const communicator<Domain>& comm, const core::message_spec& spec, const std::source_location& site) {
    state_ = core::communicator_access::shared_state(comm);
    spec_ = spec;
    call_ = {spec.name, site, state_->timeout()};
    state_->counts().note_call(core::kind_of_message(spec));
    over_ = spec.to != core::no_peer;
    if (!over_) return;
    typename Domain::endpoints_type::sending sent;
    failure fail;
    if (!state_->endpoints().try_send(sent, spec.to, id(), spec.out.data(), spec.out.size(), fail))
      fail_call(std::move(fail));
    state_->counts().note_sent(core::kind_of_message(spec), spec.to, spec.out.size());
  }

  bool test() {
    if (over_) return true;
    poll_control_messages();
    typename Domain::endpoints_type::receiving received;
    failure fail;
    const void* const message =
        state_->endpoints().try_receive(received, spec_.from, id(), spec_.in.data(), spec_.in.size(), fail);
    if (fail) fail_call(std::move(fail));
    if (message == nullptr) return false;
    if (!spec_.in.empty()) std::memcpy(spec_.in.data(), message, spec_.in.size());
    state_->endpoints().release(received);
    state_->counts().note_received(spec_.from, spec_.in.size());
    over_ = true;
    return true;
  }

  void wait() {
    failure fail;
    while (!test()) {
      if (state_->endpoints().broken(fail)) fail_call(std::move(fail));
    }
  }

 private:
  transport::message_id id() const noexcept { return {spec_.tag, spec_.channel, 0}; }
  void locate(error_context& at) const noexcept { at.peer = over_ ? spec_.to : spec_.from; }

  void poll_control_messages() {
    const auto where = [&] { return core::position_of(call_, [&](error_context& at) { locate(at); }); };
    const outcome compared = core::poll_control_messages(*state_, where);
    if (compared.failed()) fail_call(compared.cause());
    if (state_->revoked()) fail_call(state_->consume_cause());
  }

  [[noreturn]] void fail_call(failure cause) {
    over_ = true;
    raise(core::end_failed_call(*state_, std::move(cause), call_, [&](error_context& at) { locate(at); }));
  }

  std::shared_ptr<core::communicator_state<Domain>> state_;
  core::message_spec spec_;
  core::call_site call_;
  bool over_ = true;
};

}  // namespace pipeline::detail
HOCKET_END_NAMESPACE
