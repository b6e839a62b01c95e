// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Messages between two ranks whose buffers are in device memory: `send`, `recv` and `send_recv`.
///
/// If the transport carries device memory, the host message carries it without staging. Otherwise a message is sent in
/// chunks, through pinned memory on both sides: while one chunk is in transit, the next is copied from the sender's
/// device and the last to the receiver's. The directions of a `send_recv` are independent of each other.
#pragma once

#include <hocket/collective/device/call_resources.hpp>
#include <hocket/collective/device/memory.hpp>
#include <hocket/collective/host/impl/point_to_point.ipp>
#include <hocket/collective/host/point_to_point.hpp>
#include <hocket/communicator/planned_call.hpp>
#include <hocket/communicator/signature.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/engine/operation.hpp>
#include <hocket/transport/concept.hpp>
#include <hocket/transport/cuda_ipc/context_scope.hpp>
#include <hocket/transport/cuda_ipc/memory_space.hpp>
#include <hocket/transport/cuda_ipc/staging.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// A host message whose buffers are in memory of other kinds.
template <class Driver>
struct device_message {
  message_spec host;
  cuda_ipc::memory_space out_tag;
  cuda_ipc::memory_space in_tag;
  cuda::stream_of<Driver> stream;
  mutable std::shared_ptr<device_call_resources<Driver>> resources =
      nullptr;  ///< set by `check`, where running out of memory is handled

  const message_spec& message() const noexcept { return host; }
  bool sends() const noexcept { return host.to != no_peer; }
  bool receives() const noexcept { return host.from != no_peer; }

 protected:
  template <class State>
  outcome check(State& state, std::size_t lanes) const {
    outcome wrong = host.check(state);
    if (wrong.failed()) return wrong;
    using buffer = typename device_call_resources<Driver>::buffer;
    const bool both = sends() && receives();
    const buffer out{both ? "out" : "the buffer", out_tag, host.out.data(), host.out.size()};
    const buffer in{both ? "in" : "the buffer", in_tag, host.in.data(), host.in.size()};
    resources = std::make_shared<device_call_resources<Driver>>(stream);
    if (both) return resources->check(state, std::array{out, in}, lanes);
    return resources->check(state, std::array{sends() ? out : in}, lanes);
  }
};

/// Returns the type signature that such a message has instead of that of a host message: both sides must pass tagged
/// buffers, and raw bytes match only raw bytes. It includes the size, which the messages of chunks do not show.
template <class T>
std::uint32_t device_signature(const char* way, std::size_t bytes, std::size_t chunk_bytes) noexcept {
  if constexpr (!HOCKET_MISMATCH_DETECTION) return 0;
  return mix(mix(mix(type_signature<T>(), hash_text(way)), bytes), chunk_bytes) | transport::tagged_buffer;
}

// ── Carried ────────────────────────────────────────────────────────────────────────────────────────────────────────

template <class Driver>
struct device_aware_message : device_message<Driver> {
  template <class State>
  class operation_state;

  template <class State>
  outcome check(State& state) const {
    return device_message<Driver>::check(state, 1);
  }
};

/// The operation state: the host's, which begins when the stream reaches the call.
template <class Driver>
template <class State>
class device_aware_message<Driver>::operation_state final : public operation {
 public:
  operation_state(State& state, const device_aware_message& spec)
      : resources_(spec.resources), exchange_(state, spec.host, true) {}

  machine_status advance() override {
    std::optional<cuda_ipc::context_scope<Driver>> scope;
    cause_ = resources_->enter(scope);
    if (!cause_) cause_ = resources_->await_stream(reached_);
    if (cause_) return machine_status::failed;
    return reached_ ? exchange_.advance() : machine_status::blocked;
  }

  const failure& reported() const override { return cause_ ? cause_ : exchange_.reported(); }
  bool has_full_cause() const override { return cause_ || exchange_.has_full_cause(); }
  failure overdue() const override { return reached_ ? failure() : device_call_resources<Driver>::overdue(); }
  void locate(error_context& context) override {
    if (reached_) exchange_.locate(context);
  }

 private:
  const std::shared_ptr<device_call_resources<Driver>> resources_;
  message_exchange<State> exchange_;
  bool reached_ = false;  ///< the stream has reached this call
  failure cause_;
};

// ── Staged ─────────────────────────────────────────────────────────────────────────────────────────────────────────

/// The chunks of a message.
class message_chunks {
 public:
  message_chunks(std::size_t bytes, std::size_t chunk_bytes) noexcept
      : bytes_(bytes), cut_(chunk_bytes), count_(segments_of(bytes_, cut_)) {}

  std::uint32_t count() const noexcept { return count_; }  ///< at least one, also for an empty message
  std::size_t largest() const noexcept { return std::min(bytes_, cut_); }
  std::size_t begin(std::uint32_t chunk) const noexcept { return chunk * cut_; }
  std::size_t size(std::uint32_t chunk) const noexcept { return std::min(cut_, bytes_ - begin(chunk)); }

 private:
  std::size_t bytes_;
  std::size_t cut_;
  std::uint32_t count_;
};

/// The state of one direction of a message, and its peer.
template <class State, class Driver>
class staged_direction {
 public:
  struct opening {
    device_call_resources<Driver>& resources;
    std::size_t lane;  ///< its number in `resources`
    bool is_direct;    ///< the host reads or writes the buffer without staging
    call_kind kind;
    int peer;
    transport::message_id id;
    std::size_t chunk_bytes;
  };

  staged_direction(State& state, const opening& how, std::size_t bytes)
      : state_(state), resources_(how.resources), lane_(how.lane), is_direct_(how.is_direct), kind_(how.kind),
        peer_(how.peer), id_(how.id), chunks_(bytes, how.chunk_bytes) {}
  staged_direction(const staged_direction&) = delete;
  staged_direction& operator=(const staged_direction&) = delete;

  bool over() const noexcept { return over_; }
  /// Returns whether it waits for the stream or a copy, and not for the peer.
  bool waits_for_stream() const noexcept { return waits_ && !over_; }
  int peer() const noexcept { return peer_; }

 protected:
  static constexpr std::uint32_t slot_count = cuda_ipc::staging_slots;

  ~staged_direction() = default;

  cuda_ipc::staging_lane<Driver>& lane() const noexcept { return resources_.lane(lane_); }
  failure await_stream() { return resources_.await_stream(reached_, lane_); }

  State& state_;
  device_call_resources<Driver>& resources_;
  const std::size_t lane_;
  const bool is_direct_;
  const call_kind kind_;
  const int peer_;
  const transport::message_id id_;
  const message_chunks chunks_;
  bool reached_ = false;  ///< the stream has reached this call
  bool waits_ = true;     ///< see `waits_for_stream`; valid until `over_`
  bool over_ = false;
};

template <class State, class Driver>
class staged_sending : public staged_direction<State, Driver> {
 public:
  using typename staged_direction<State, Driver>::opening;

  staged_sending(State& state, const opening& how, std::span<const std::byte> bytes)
      : staged_direction<State, Driver>(state, how, bytes.size()), bytes_(bytes) {}

  /// Advances the direction. The stream's context must be current.
  failure advance(message_turn& turn, bool& moved) {
    failure found = this->is_direct_ ? this->await_stream() : this->resources_.follow(this->lane_);
    if (!found && (this->reached_ || !this->is_direct_)) found = begin_copies_to_host();
    if (!found) found = send(turn, moved);
    while (!found && drained_ < sent_ && send_slot(drained_)->drained(this->state_)) {
      send_slot(drained_++).reset();
      moved = true;
    }
    this->waits_ = sent_ == drained_ && !held_;
    this->over_ = drained_ == this->chunks_.count();
    return found;
  }

 private:
  std::optional<outgoing_message<State>>& send_slot(std::uint32_t chunk) noexcept {
    return send_slots_[chunk % send_slots_.size()];
  }

  /// Begins copies to the host while slots are free. In a direct buffer, chunks count as copied.
  failure begin_copies_to_host() {
    while (copies_begun_ < this->chunks_.count() && copies_begun_ < drained_ + this->slot_count) {
      if (!this->is_direct_) {
        bool ready = false;
        failure found = this->lane().prepare(copies_begun_ % this->slot_count, this->chunks_.largest(), ready);
        if (found || !ready) return found;
        const std::span<const std::byte> theirs = part(copies_begun_);
        if (!theirs.empty()) {
          found = this->lane().copy_down(this->lane().memory(copies_begun_ % this->slot_count), theirs.data(),
                                         theirs.size());
        }
        if (!found) found = this->lane().note_down(copies_begun_ % this->slot_count);
        if (found) return found;
      }
      ++copies_begun_;
    }
    return {};
  }

  /// Sends the chunks that have been copied to the host, in order.
  failure send(message_turn& turn, bool& moved) {
    held_ = false;
    while (sent_ < copies_begun_) {
      bool ready = this->is_direct_;
      failure found;
      if (!ready) found = this->lane().is_down(sent_ % this->slot_count, ready);
      if (found || !ready) return found;
      held_ = true;
      if (!turn.may_send()) return found;
      auto& message = send_slot(sent_);
      if (!message) message.emplace();
      const std::byte* const from =
          this->is_direct_ ? part(sent_).data() : this->lane().memory(sent_ % this->slot_count);
      if (!message->begin(this->state_, this->kind_, this->peer_, this->id_, {from, part(sent_).size()}, found))
        return found;
      held_ = false;
      moved = true;
      if (++sent_ == this->chunks_.count()) turn.note_sent();
    }
    return {};
  }

  std::span<const std::byte> part(std::uint32_t chunk) const noexcept {
    return bytes_.subspan(this->chunks_.begin(chunk), this->chunks_.size(chunk));
  }

  const std::span<const std::byte> bytes_;
  std::uint32_t copies_begun_ = 0;  ///< chunks whose copy to the host has begun
  std::uint32_t sent_ = 0;
  std::uint32_t drained_ = 0;  ///< sent chunks that the peer no longer needs
  bool held_ = false;          ///< a chunk waits for the peer, or for an earlier message
  std::array<std::optional<outgoing_message<State>>, cuda_ipc::staging_slots> send_slots_;
};

template <class State, class Driver>
class staged_receiving : public staged_direction<State, Driver> {
 public:
  using typename staged_direction<State, Driver>::opening;

  staged_receiving(State& state, const opening& how, std::span<std::byte> bytes)
      : staged_direction<State, Driver>(state, how, bytes.size()), bytes_(bytes) {}

  /// Advances the direction. The stream's context must be current.
  failure advance(message_turn& turn, bool& moved) {
    failure found = this->await_stream();
    for (bool more = true; more && !found;) {
      more = false;
      found = receive(turn, more);
      if (!found) found = begin_copies_to_device(more);
      moved = moved || more;
    }
    if (found || taken_ < this->chunks_.count()) return found;
    if (!this->is_direct_) found = this->lane().join(this->resources_.stream());
    this->over_ = !found;
    return found;
  }

 private:
  /// Receives one chunk, if it has arrived and a slot is free.
  failure receive(message_turn& turn, bool& moved) {
    if (received_ == this->chunks_.count()) return {};
    this->waits_ = true;
    if (this->is_direct_) {
      if (!this->reached_) return {};
    } else {
      if (received_ >= taken_ + this->slot_count) return {};
      bool ready = false;
      failure found = this->lane().prepare(received_ % this->slot_count, this->chunks_.largest(), ready);
      if (found || !ready) return found;
    }
    this->waits_ = false;
    if (!turn.may_receive()) return {};
    const std::span<std::byte> theirs = part(received_);
    std::byte* const to = this->is_direct_ ? theirs.data() : this->lane().memory(received_ % this->slot_count);
    failure found;
    if (!in_.arrived(this->state_, this->peer_, this->id_, {to, theirs.size()}, found)) return found;
    moved = true;
    if (++received_ == this->chunks_.count()) turn.note_received();
    return {};
  }

  /// Begins copies of received chunks to the device.
  failure begin_copies_to_device(bool& moved) {
    if (this->is_direct_) {
      taken_ = received_;
      return {};
    }
    while (this->reached_ && taken_ < received_) {
      const std::span<std::byte> theirs = part(taken_);
      failure found;
      if (!theirs.empty()) {
        found = this->lane().copy_up(theirs.data(), this->lane().memory(taken_ % this->slot_count), theirs.size());
      }
      if (!found) found = this->lane().note_up(taken_ % this->slot_count);
      if (found) return found;
      ++taken_;
      moved = true;
    }
    this->waits_ = this->waits_ || taken_ < received_;
    return {};
  }

  std::span<std::byte> part(std::uint32_t chunk) const noexcept {
    return bytes_.subspan(this->chunks_.begin(chunk), this->chunks_.size(chunk));
  }

  const std::span<std::byte> bytes_;
  std::uint32_t received_ = 0;
  std::uint32_t taken_ = 0;  ///< chunks whose copy to the device has begun
  incoming_message<State> in_;
};

template <class Driver>
struct staged_message : device_message<Driver> {
  template <class State>
  class operation_state;

  std::size_t chunk_bytes;

  template <class State>
  outcome check(State& state) const {
    outcome wrong = check_chunk(chunk_bytes, std::max(this->host.in.size(), this->host.out.size()));
    if (wrong.failed()) return wrong;
    return device_message<Driver>::check(state, this->sends() && this->receives() ? 2 : 1);
  }
};

template <class Driver>
template <class State>
class staged_message<Driver>::operation_state final : public operation {
 public:
  operation_state(State& state, const staged_message& spec) : resources_(spec.resources), turn_(state, spec.host) {
    const auto opening = [&](std::size_t lane, cuda_ipc::memory_space tag, int peer, std::uint32_t type) {
      const transport::message_id id{.sequence = spec.host.tag, .channel = spec.host.channel, .signature = type};
      const bool is_direct = tag == cuda_ipc::memory_space::pinned;
      return typename staged_direction<State, Driver>::opening{
          *resources_, lane, is_direct, kind_of_message(spec.host), peer, id, spec.chunk_bytes};
    };
    if (spec.sends()) out_.emplace(state, opening(0, spec.out_tag, spec.host.to, spec.host.sent_type), spec.host.out);
    if (spec.receives()) {
      const std::size_t lane = spec.sends() ? 1 : 0;
      in_.emplace(state, opening(lane, spec.in_tag, spec.host.from, spec.host.received_type), spec.host.in);
    }
  }
  ~operation_state() override {
    if (!is_over()) resources_->settle();
  }

  machine_status advance() override {
    std::optional<cuda_ipc::context_scope<Driver>> scope;
    bool moved = false;
    cause_ = resources_->enter(scope);
    if (!cause_ && out_ && !out_->over()) cause_ = out_->advance(turn_, moved);
    if (!cause_ && in_ && !in_->over()) cause_ = in_->advance(turn_, moved);
    if (cause_) return machine_status::failed;
    if (is_over()) return machine_status::done;
    return moved ? machine_status::progressed : machine_status::blocked;
  }

  const failure& reported() const override { return cause_; }
  failure overdue() const override {
    const bool waits = (out_ && out_->waits_for_stream()) || (in_ && in_->waits_for_stream());
    return waits ? device_call_resources<Driver>::overdue() : turn_.overdue();
  }
  void locate(error_context& context) override {
    if (overdue()) return;
    if (in_ && !in_->over()) {
      context.peer = in_->peer();
    } else if (out_) {
      context.peer = out_->peer();
    }
  }

 private:
  bool is_over() const noexcept { return (!out_ || out_->over()) && (!in_ || in_->over()); }

  const std::shared_ptr<device_call_resources<Driver>> resources_;
  message_turn turn_;
  std::optional<staged_sending<State, Driver>> out_;
  std::optional<staged_receiving<State, Driver>> in_;
  failure cause_;
};

}  // namespace detail
HOCKET_END_NAMESPACE
