// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Definitions of <hocket/collective/host/point_to_point.hpp>: messages between two ranks while they are in flight.
#pragma once

#include <hocket/collective/host/call_settings.hpp>
#include <hocket/collective/host/impl/call.ipp>
#include <hocket/collective/host/point_to_point.hpp>
#include <hocket/communicator/communicator_guard.hpp>
#include <hocket/communicator/message_order.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/platform/ticks.hpp>
#include <hocket/engine/direct_run.hpp>
#include <hocket/engine/drive.hpp>
#include <hocket/engine/operation.hpp>
#include <hocket/transport/concept.hpp>
#include <hocket/transport/operation_event.hpp>

#include <cstddef>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// The places of a message among those of its communicator while it is in flight.
class message_turn {
 public:
  template <class State>
  message_turn(State& state, const message_spec& spec) {
    if (spec.to != no_peer) sent_.emplace(state.sends(), spec.to, spec.channel, spec.tag);
    if (spec.from != no_peer) received_.emplace(state.receives(), spec.from, spec.channel, spec.tag);
  }

  /// Call them only before the message is in transit, and before it has arrived.
  bool may_send() const noexcept { return sent_->is_first(); }
  bool may_receive() const noexcept { return received_->is_first(); }
  /// Records that the whole message is in transit (`note_sent`) or has arrived (`note_received`).
  void note_sent() noexcept { sent_.reset(); }
  void note_received() noexcept { received_.reset(); }
  /// True if there is nothing to receive, too.
  bool received() const noexcept { return !received_; }
  /// Returns whether the message waits for an earlier one.
  bool is_behind() const noexcept { return (sent_ && !may_send()) || (received_ && !may_receive()); }
  failure overdue() const {
    if (!is_behind()) return {};
    return make_failure(errc::timeout,
                        "an earlier message of the same tag, to or from the same rank, has not completed");
  }

 private:
  std::optional<message_order::place> sent_, received_;
};

/// A message to a peer in one piece.
template <class State>
class outgoing_message {
 public:
  /// Tries to send the message; returns whether it is in transit. Call it with the same arguments until it is.
  bool begin(State& state, call_kind kind, int to, const transport::message_id& id, std::span<const std::byte> bytes,
             failure& fail) {
    if (begun_) return true;
    begun_ = state.endpoints().try_send(sending_, to, id, bytes.data(), bytes.size(), fail);
    if (begun_) state.counts().note_sent(kind, to, bytes.size());
    return begun_;
  }
  bool begun() const noexcept { return begun_; }
  /// Returns, after `begin`, whether the sent buffer is no longer needed.
  bool drained(State& state) { return state.endpoints().drained(sending_); }

 private:
  typename State::endpoints_type::sending sending_{};
  bool begun_ = false;
};

/// A message from a peer in one piece.
template <class State>
class incoming_message {
 public:
  /// Returns whether the message has been stored in `bytes`. Call it with the same arguments until it has.
  bool arrived(State& state, int from, const transport::message_id& id, std::span<std::byte> bytes, failure& fail) {
    const void* const message = state.endpoints().try_receive(receiving_, from, id, bytes.data(), bytes.size(), fail);
    if (message == nullptr) return false;
    if (message != bytes.data() && !bytes.empty()) std::memcpy(bytes.data(), message, bytes.size());
    state.endpoints().release(receiving_);
    state.counts().note_received(from, bytes.size());
    return true;
  }
  /// Returns how many bytes have been stored, as far as known, until the message is complete.
  std::size_t received_bytes() const noexcept {
    return transport::received_bytes<typename State::endpoints_type>(receiving_);
  }

 private:
  typename State::endpoints_type::receiving receiving_{};
};

template <class State>
class message_exchange final : public operation {
 public:
  message_exchange(State& state, const message_spec& spec, bool on_device = false)
      : state_(state), spec_(spec), on_device_(on_device), turn_(state, spec), drained_(spec.to == no_peer) {}

  /// Records that the message to the peer is in transit, and that its buffer is no longer needed.
  void note_sent() noexcept {
    turn_.note_sent();
    drained_ = true;
  }

  machine_status advance() override {
    const bool sent_now = send();
    const bool moved = receive() || sent_now;
    if (cause_) return machine_status::failed;
    if (turn_.received() && drained_) return machine_status::done;
    return moved ? machine_status::progressed : machine_status::blocked;
  }
  const failure& reported() const override { return cause_; }
  failure overdue() const override { return turn_.overdue(); }
  bool waits_for_peers() const noexcept override { return !on_device_; }
  transport::awaited_events awaited_events() const override {
    using event = transport::operation_event;
    transport::awaited_events result = transport::every_event;
    if (!drained_ && !out_.begun()) return result;
    result[0] = result[1];
    if (!drained_) result[0] = event::receipt(id(0), spec_.to);
    if (!turn_.received()) result[1] = event::arrival(id(0), spec_.from);
    return result;
  }
  void locate(error_context& context) override {
    if (!turn_.is_behind()) context.peer = turn_.received() ? spec_.to : spec_.from;
  }

 private:
  transport::message_id id(std::uint32_t type) const noexcept { return {spec_.tag, spec_.channel, type, on_device_}; }

  bool send() {
    if (drained_) return false;
    if (!out_.begun()) {
      if (!turn_.may_send() ||
          !out_.begin(state_, kind_of_message(spec_), spec_.to, id(spec_.sent_type), spec_.out, cause_))
        return false;
      turn_.note_sent();
    }
    drained_ = out_.drained(state_);
    return drained_;
  }

  bool receive() {
    if (turn_.received() || !turn_.may_receive()) return false;
    const std::size_t before = in_.received_bytes();
    if (!in_.arrived(state_, spec_.from, id(spec_.received_type), spec_.in, cause_))
      return in_.received_bytes() != before;
    turn_.note_received();
    return true;
  }

  State& state_;
  const message_spec spec_;
  const bool on_device_;
  message_turn turn_;
  bool drained_;
  outgoing_message<State> out_;
  incoming_message<State> in_;
  failure cause_;
};

/// Counts and logs a message whose call began at `begun`.
template <class State>
HOCKET_ALWAYS_INLINE log_entry log_message(State& state, const message_spec& spec, const call_site& call, bool blocks,
                                           std::uint64_t begun) {
  const call_kind kind = kind_of_message(spec);
  state.counts().note_call(kind);
  const auto rank = [](int peer) { return peer == no_peer ? -1 : peer; };
  return enter(state.calls(),
               message_record{spec.name,
                              rank(spec.to),
                              rank(spec.from),
                              spec.tag,
                              spec.out.size(),
                              spec.in.size(),
                              state.last_sequence(),
                              call.site,
                              {begun, 0}},
               state.timed(kind, blocks, begun));
}

/// Tries to complete short messages without an operation state, if no others are in flight and the peer is on time:
/// making one and driving it would take longer than the communication. Returns whether that succeeded. `is_sent` is set
/// once the message to the peer is in transit, and `entry` once the messages have a log entry.
template <class State>
bool exchange_directly(State& state, const message_spec& spec, const call_site& call, bool& is_sent, log_entry& entry) {
  auto& endpoints = state.endpoints();
  const std::size_t most_bytes = endpoints.eager_bytes();
  if (!can_run_directly(state) || spec.out.size() > most_bytes || spec.in.size() > most_bytes || most_bytes == 0)
    return false;
  if (state.sends().size() > 0 || state.receives().size() > 0) return false;
  const auto id = [&](std::uint32_t type) { return transport::message_id{spec.tag, spec.channel, type}; };
  if (spec.to != no_peer) {
    if (!endpoints.send_eagerly(spec.to, id(spec.sent_type), spec.out.data(), spec.out.size())) return false;
    state.counts().note_sent(kind_of_message(spec), spec.to, spec.out.size());
    is_sent = true;
  }
  entry = log_message(state, spec, call, true, platform::ticks());
  const auto receive = [&] {
    return endpoints.receive_eagerly(spec.from, id(spec.received_type), spec.in.size(), [&](const std::byte* message) {
      if (!spec.in.empty()) std::memcpy(spec.in.data(), message, spec.in.size());
    });
  };
  brief_wait wait;
  if (spec.from != no_peer) {
    wait.result = receive();
    if (wait.result == transport::eager_receive::not_arrived) wait = await_briefly(state, receive);
    if (!wait.succeeded()) return false;
    state.counts().note_received(spec.from, spec.in.size());
  }
  entry.ends(wait.has_yielded);
  return true;
}

/// A locator for messages, which have neither a sequence number nor steps.
struct no_place {
  constexpr void operator()(error_context&) const noexcept {}
};

/// Checks a message in an entered communicator.
template <class State, class Spec>
outcome check_message(State& state, const Spec& spec, const call_settings& settings, const call_site& call) {
  outcome refused = refuse_early(state, settings, call.timeout);
  if (!refused.failed()) refused = spec.check(state);
  if (refused.failed()) return refuse(state, refused.cause(), call);
  return {};
}

template <class Domain, class Spec>
outcome run_message(const communicator<Domain>& comm, const Spec& spec, const call_settings& settings,
                    const std::source_location& site) {
  if (communicator_access::is_moved_from(comm)) [[unlikely]]
    return used_after_move(spec.message().name, site);
  auto& state = communicator_access::state(comm);
  const call_site call = site_of(state, spec.message().name, settings, site);
  const communicator_guard here(state);
  outcome refused = here.refused();
  if (refused.failed()) return in_context(refused.cause(), state, call);
  return if_memory_lasts(state, call, no_place{}, [&] {
    if (outcome wrong = check_message(state, spec, settings, call); wrong.failed()) return wrong;
    using state_type = communicator_state<Domain>;
    log_entry entry;
    bool is_sent = false;
    constexpr bool may_be_direct =
        std::is_same_v<Spec, message_spec> && transport::sends_eagerly<typename state_type::endpoints_type>;
    if constexpr (may_be_direct) {
      if (exchange_directly(state, spec, call, is_sent, entry)) return outcome();
    }
    const std::uint64_t begun = platform::ticks();
    typename Spec::template operation_state<state_type> operation_state(state, spec);
    if constexpr (may_be_direct) {
      if (is_sent) operation_state.note_sent();
    }
    // The peer may read the memory of the operation state: it must not be destroyed before the peer is informed.
    return if_memory_lasts(state, call, no_place{}, [&] {
      operation_state.poll();
      if (entry.what() == log_entry::kind::none) entry = log_message(state, spec.message(), call, true, begun);
      operation_state.set_entry(entry);
      return drive(state, operation_state, settings.stop, call);
    });
  });
}

template <class Domain, class Spec>
request start_message(const communicator<Domain>& comm, const Spec& spec, const call_settings& settings,
                      const std::source_location& site) {
  using state_type = communicator_state<Domain>;
  const auto& state = communicator_access::shared_state(comm);
  const call_site call = site_of(*state, spec.message().name, settings, site);
  const communicator_guard here(*state);
  const outcome refused = here.refused();
  if (refused.failed()) raise(in_context(refused.cause(), *state, call));
  using started_type = started<state_type, typename Spec::template operation_state<state_type>>;
  std::unique_ptr<started_type> pending;
  deliver(if_memory_lasts(*state, call, no_place{}, [&]() -> outcome {
    if (outcome wrong = check_message(*state, spec, settings, call); wrong.failed()) return wrong;
    const log_entry entry = log_message(*state, spec.message(), call, false, platform::ticks());
    pending = std::make_unique<started_type>(state, call, settings.stop, spec);
    pending->set_entry(entry);
    pending->move_on();
    return {};
  }));
  return request(std::move(pending));
}

}  // namespace detail
HOCKET_END_NAMESPACE
