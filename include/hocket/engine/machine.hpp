// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The interpreter of plans: one resumable state machine per operation, over any transport.
///
/// `advance()` does what can be done now and returns; it never waits. The blocking form of a collective calls it in a
/// loop, the `_async` form passes the machine to the communicator, the simulator polls thousands of machines on one
/// thread. Lanes are advanced in turn. A large copy or reduction is split into slices, so that one call occupies the
/// thread for at most some tens of microseconds.
#pragma once

#include <hocket/communicator/communication_counts.hpp>
#include <hocket/communicator/state.hpp>
#include <hocket/core/checksum.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/platform/streaming_copy.hpp>
#include <hocket/core/text.hpp>
#include <hocket/engine/binding.hpp>
#include <hocket/engine/operands.hpp>
#include <hocket/plan/action.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace detail {

enum class machine_status : std::uint8_t {
  done,
  progressed,  ///< call again immediately
  blocked,     ///< no progress until a peer acts
  failed       ///< see `cause()`
};

template <class State>
class machine {
 public:
  using endpoints_type = typename State::endpoints_type;
  static constexpr bool paced = transport::paces_steps<endpoints_type>;

  static constexpr bool uncut = transport::keeps_virtual_time<endpoints_type>;

  /// Maximum number of bytes that one call of `advance` combines.
  static constexpr std::size_t slice_bytes = uncut ? std::numeric_limits<std::size_t>::max() : 128 * 1024;

  /// Maximum number of bytes that one call copies. Larger, because `memcpy` from a peer's memory is four times slower
  /// below the size at which it uses non-temporal stores (384 KiB as measured), and copying is faster than combining.
  static constexpr std::size_t copy_slice_bytes = uncut ? slice_bytes : 8 * slice_bytes;

  /// Maximum number of bytes of a message that are received into a buffer before they are combined.
  static constexpr std::size_t combined_part_bytes = 64 * 1024;

  /// `sequence` must come from the communicator. The binding's buffers must outlive the machine.
  machine(State& state, std::uint32_t sequence, binding bound)
      : state_(state), bound_(std::move(bound)), shape_(bound_.plan.shape(state.size())),
        kind_(kind_of(bound_.plan.collective().kind)), sequence_(sequence), operands_(state, bound_, slot()) {
    if (shape_.lanes > 1) further_lanes_ = std::make_unique<lane[]>(shape_.lanes - 1);
    if constexpr (paced) state_.endpoints().call(sequence_);
  }
  machine(const machine&) = delete;
  machine& operator=(const machine&) = delete;
  ~machine() {
    if constexpr (paced) state_.endpoints().leave(sequence_);
  }

  /// Regards the first actions of the only lane as performed. Call it before `advance`.
  void skip(unsigned performed) noexcept { first_lane_.position = performed; }

  machine_status advance() {
    if (!begun_ && !begin()) return machine_status::blocked;
    bool progressed = false;
    unsigned over = 0;
    for (unsigned i = 0; i < shape_.lanes; ++i) {
      switch (run(lane_at(i), i)) {
        case machine_status::done: ++over; break;
        case machine_status::progressed: progressed = true; break;
        case machine_status::blocked: break;
        case machine_status::failed: return machine_status::failed;
      }
    }
    if (over == shape_.lanes) {
      if constexpr (paced) state_.endpoints().leave(sequence_);
      state_.complete(sequence_);
      return machine_status::done;
    }
    return progressed ? machine_status::progressed : machine_status::blocked;
  }

  std::uint32_t sequence() const noexcept { return sequence_; }
  const failure& cause() const noexcept { return cause_; }
  /// True if the operation has not begun because peers may still use its slot.
  bool waits_for_credit() const noexcept { return !begun_ && shape_.peer_pointers && state_.has_turn(sequence_); }
  /// True if asking the peer would add nothing to `cause()`.
  bool has_full_cause() const noexcept { return has_full_cause_; }

  /// Adds the position of the first incomplete lane to `context`, for the message of a timeout.
  void locate(error_context& context) {
    context.sequence = sequence_;
    for (unsigned i = 0; i < shape_.lanes; ++i) {
      const lane& at = lane_at(i);
      if (at.over) continue;
      context.lane = static_cast<int>(i);
      context.step = static_cast<int>(at.position);
      const bool waits_to_drain = !at.loaded || (at.current.join && at.elements == 0);
      if (waits_to_drain && !at.sends.empty()) {
        context.peer = at.sends.front().peer;
      } else if (at.loaded) {
        context.peer = awaited_peer(at);
      }
      return;
    }
  }

 private:
  struct pending_send {
    int peer;
    std::vector<std::byte> sealed;            ///< the data to send, if it is not in the caller's memory
    typename endpoints_type::sending handle;  ///< destroyed before `sealed`: an abandoned send copies its data
  };

  struct lane {
    unsigned position = 0;
    unsigned length = 0;
    bool loaded = false;  ///< `current` is action `position`
    bool over = false;
    int next_peer = 0;         ///< of an action on all peers: peers before this one are done
    std::size_t elements = 0;  ///< of the current action: elements before this one are done
    std::size_t size = 0;      ///< of the current action, in elements
    plan::action current;
    const void* message = nullptr;  ///< data of a receive once it has arrived
    typename endpoints_type::receiving receiving{};
    std::vector<pending_send> sends;  ///< may not be drained yet
    std::vector<std::byte> sealed;    ///< data with checksum of a send that has not begun
  };

  lane& lane_at(unsigned i) noexcept { return i == 0 ? first_lane_ : further_lanes_[i - 1]; }
  unsigned slot() const noexcept { return sequence_ % transport::window; }
  std::size_t element_size() const noexcept { return bound_.element_kernel->size; }

  bool begin() {
    if (!state_.has_turn(sequence_)) return false;
    if (shape_.peer_pointers && state_.size() > 1) {
      if (!state_.has_credit(sequence_)) return false;
      operands_.expose();
    }
    if (shape_.scratch > 0) {
      state_.scratch(slot()).get(shape_.scratch * bound_.layout.largest_chunk() * element_size());
    }
    for (unsigned i = 0; i < shape_.lanes; ++i) {
      lane_at(i).length = bound_.plan.length(state_.size(), state_.rank(), i);
    }
    if constexpr (transport::observes_operations<endpoints_type>) {
      state_.endpoints().on_operation(sequence_, plan::to_string(bound_.plan.collective().kind), bound_.plan.name(),
                                      bound_.layout.size() * element_size());
    }
    if constexpr (paced) state_.endpoints().enter(sequence_, shape_.lanes);
    begun_ = true;
    return true;
  }

  // ── Lanes ────────────────────────────────────────────────────────────────────────────────────────────────────────

  machine_status run(lane& at, unsigned number) {
    if (at.over) return machine_status::done;
    bool progressed = false;
    for (;;) {
      if (!at.loaded) {
        if (at.position == at.length) {
          if (!may_end(number) || !all_drained(at)) {
            return progressed ? machine_status::progressed : machine_status::blocked;
          }
          at.over = true;
          return machine_status::done;
        }
        // Constructed in place: copying it in smaller parts right after the stores would stall.
        ::new (static_cast<void*>(&at.current))
            plan::action(bound_.plan.at(state_.size(), state_.rank(), number, at.position));
        at.loaded = true;
        at.size = operands_.element_count(at.current);
        at.next_peer = 0;
        at.elements = 0;
        at.message = nullptr;
      }
      if (!may_act(at, number)) return progressed ? machine_status::progressed : machine_status::blocked;
      if (at.current.join && at.elements == 0 && !all_drained(at)) {
        return progressed ? machine_status::progressed : machine_status::blocked;
      }
      switch (step(at, number)) {
        case machine_status::done: break;
        case machine_status::progressed: return machine_status::progressed;
        case machine_status::blocked: return progressed ? machine_status::progressed : machine_status::blocked;
        case machine_status::failed: return fail(at, number);
      }
      report(at, number);
      at.loaded = false;
      ++at.position;
      progressed = true;
    }
  }

  bool may_act(const lane& at, unsigned number) {
    if constexpr (paced) {
      return state_.endpoints().may_act(sequence_, number, at.current, at.size * element_size());
    } else {
      return true;
    }
  }

  bool may_end(unsigned number) {
    if constexpr (paced) {
      return state_.endpoints().may_end(sequence_, number);
    } else {
      return true;
    }
  }

  machine_status step(lane& at, unsigned number) {
    switch (at.current.kind) {
      case plan::action_kind::copy: return copy_slice(at, operands_.source(at.current));
      case plan::action_kind::send: return send(at);
      case plan::action_kind::receive: return receive(at, number, operands_.destination(at.current));
      case plan::action_kind::receive_reduce: return receive_reduce(at, number);
      case plan::action_kind::load: return load(at);
      case plan::action_kind::load_reduce: return load_reduce(at, number);
      case plan::action_kind::push: return push(at);
      case plan::action_kind::signal: return signal(at);
      case plan::action_kind::wait: return wait(at);
    }
    return machine_status::done;
  }

  bool all_drained(lane& at) {
    std::erase_if(at.sends, [&](auto& each) { return state_.endpoints().drained(each.handle); });
    return at.sends.empty();
  }

  machine_status send(lane& at) {
    const plan::action& what = at.current;
    typename endpoints_type::sending sending{};
    transport::message_id id{sequence_, what.channel};
    std::uint8_t& number = state_.numbers().sent(what.peer, id);
    id.signature = message_signature(bound_.signature, number);
    id.on_device = bound_.on_device != nullptr;
    const std::size_t bytes = at.size * element_size();
    if (bound_.checksummed && at.sealed.empty()) at.sealed = sealed(operands_.source(what), bytes);
    const void* const data = bound_.checksummed ? at.sealed.data() : operands_.source(what);
    const std::size_t length = bound_.checksummed ? at.sealed.size() : bytes;
    if (!state_.endpoints().try_send(sending, what.peer, id, data, length, cause_)) return blocked_or_failed();
    ++number;
    state_.counts().note_sent(kind_, what.peer, bytes);
    // Simulated ranks read the sent data until the lane continues or ends.
    const bool drained = state_.endpoints().drained(sending) && !(uncut && bound_.checksummed);
    if (!drained) {
      at.sends.push_back({what.peer, {}, std::move(sending)});
      at.sends.back().sealed =
          std::move(at.sealed);  // last: if the line above throws, the peer still reads `at.sealed`
    }
    at.sealed.clear();
    return machine_status::done;
  }

  machine_status try_receive(lane& at, unsigned number, void* buffer) {
    const plan::action& what = at.current;
    transport::message_id id{sequence_, what.channel};
    std::uint8_t& expected = state_.numbers().received(what.peer, id);
    id.signature = message_signature(bound_.signature, expected);
    id.on_device = bound_.on_device != nullptr;
    std::size_t bytes = at.size * element_size();
    if (bound_.checksummed) {
      bytes += sizeof(std::uint64_t);
      if constexpr (!endpoints_type::receives_in_place) buffer = state_.receive_buffer(slot(), number).get(bytes);
    }
    const std::size_t before = transport::received_bytes<endpoints_type>(at.receiving);
    at.message = state_.endpoints().try_receive(at.receiving, what.peer, id, buffer, bytes, cause_);
    if (at.message == nullptr) {
      const bool moved = transport::received_bytes<endpoints_type>(at.receiving) != before;
      return moved && !cause_ ? machine_status::progressed : blocked_or_failed();
    }
    ++expected;
    state_.counts().note_received(what.peer, at.size * element_size());
    if (!bound_.checksummed || is_intact(static_cast<const std::byte*>(at.message), bytes)) return machine_status::done;
    at.message = nullptr;
    cause_ = make_failure(errc::corrupted, "the message differs from what the peer sent: its checksum does not match",
                          {.peer = what.peer});
    return machine_status::failed;
  }

  static std::vector<std::byte> sealed(const std::byte* data, std::size_t bytes) {
    const std::uint64_t sum = checksum({data, bytes});
    std::vector<std::byte> result(bytes + sizeof sum);
    if (bytes > 0) std::memcpy(result.data(), data, bytes);
    std::memcpy(result.data() + bytes, &sum, sizeof sum);
    return result;
  }

  static bool is_intact(const std::byte* message, std::size_t bytes) noexcept {
    std::uint64_t sum = 0;
    std::memcpy(&sum, message + (bytes - sizeof sum), sizeof sum);
    return sum == checksum({message, bytes - sizeof sum});
  }

  machine_status receive(lane& at, unsigned number, std::byte* to) {
    if constexpr (transport::receives_in_parts<endpoints_type>) {
      if (in_parts()) return receive_in_parts(at, number);
    }
    if (at.message == nullptr) {
      if (const machine_status status = try_receive(at, number, to); status != machine_status::done) return status;
    }
    const bool in_place_already = at.message == to;
    const machine_status status =
        in_place_already ? machine_status::done : copy_slice(at, static_cast<const std::byte*>(at.message));
    if (status == machine_status::done) state_.endpoints().release(at.receiving);
    return status;
  }

  machine_status receive_reduce(lane& at, unsigned number) {
    if constexpr (transport::receives_in_parts<endpoints_type>) {
      if (in_parts()) return receive_in_parts(at, number);
    }
    if (at.message == nullptr) {
      void* buffer = nullptr;
      if constexpr (!endpoints_type::receives_in_place) {
        buffer = state_.receive_buffer(slot(), number).get(at.size * element_size());
      }
      if (const machine_status status = try_receive(at, number, buffer); status != machine_status::done) return status;
    }
    const std::size_t count = next_slice(at);
    combine(at, static_cast<const std::byte*>(at.message) + at.elements * element_size(), count);
    if (!slice_done(at, count)) return machine_status::progressed;
    state_.endpoints().release(at.receiving);
    return machine_status::done;
  }

  /// Combines the next `count` elements, which begin at `message`.
  void combine(const lane& at, const std::byte* message, std::size_t count) {
    const std::size_t offset = at.elements * element_size();
    const std::byte* const local = operands_.source(at.current) + offset;
    std::byte* const to = operands_.destination(at.current) + offset;
    if (at.current.message_first) {
      bound_.element_kernel->combine_two(bound_.operation, to, message, local, count);
    } else {
      bound_.element_kernel->combine_two(bound_.operation, to, local, message, count);
    }
  }

  /// Returns whether messages come in parts of whole elements.
  bool in_parts() const noexcept {
    if (bound_.checksummed || endpoints_type::part_multiple % element_size() != 0) return false;
    return state_.endpoints().receives_parts({.on_device = bound_.on_device != nullptr});
  }

  /// Receives the next part of a message, and copies or combines it while it is in the cache.
  machine_status receive_in_parts(lane& at, unsigned number) {
    const plan::action& what = at.current;
    const bool combines = what.kind == plan::action_kind::receive_reduce;
    const std::size_t size = element_size(), bytes = at.size * size;
    transport::message_id id{sequence_, what.channel};
    std::uint8_t& expected = state_.numbers().received(what.peer, id);
    id.signature = message_signature(bound_.signature, expected);
    const std::size_t room = combines ? std::min(combined_part_bytes, bytes) : copy_slice_bytes;
    std::byte* const buffer =
        combines ? state_.receive_buffer(slot(), number).get(room) : operands_.destination(what) + at.elements * size;
    std::size_t part = 0;
    const std::byte* const message =
        state_.endpoints().next_part(at.receiving, what.peer, id, buffer, room, bytes, part, cause_);
    if (message == nullptr) return blocked_or_failed();
    const std::size_t count = part / size;
    if (combines) {
      combine(at, message, count);
    } else if (message != buffer && part > 0) {
      bound_.element_kernel->copy(buffer, message, part);
    }
    at.elements += count;
    if (!state_.endpoints().finish_part(at.receiving, what.peer, bytes)) return machine_status::progressed;
    ++expected;
    state_.counts().note_received(what.peer, bytes);
    return machine_status::done;
  }

  machine_status load(lane& at) {
    const int peer = at.current.peer;
    if (operands_.has_two_layouts() && peer != state_.rank()) {
      const std::size_t sent = state_.signal_line_from(peer, slot()).length.load(std::memory_order_relaxed);
      const std::size_t wanted = bound_.out_layout->block(static_cast<std::uint32_t>(peer)).size;
      if (sent != wanted) [[unlikely]] {
        cause_ = transport::wrong_length(std::to_string(sent * element_size()), true, peer, {sequence_, 0},
                                         wanted * element_size(), true);
        return machine_status::failed;
      }
    }
    if (at.elements == 0 && peer != state_.rank()) state_.counts().note_read(kind_, peer, at.size * element_size());
    const auto from = operands_.source_at(peer, at.current);
    return from.mapped != nullptr || at.size == 0 ? copy_slice(at, from.mapped) : copy_unmapped_slice(at, from);
  }

  machine_status load_reduce(lane& at, [[maybe_unused]] unsigned number) {
    constexpr std::size_t few = 16;
    std::array<const void*, few> few_sources;
    std::vector<const void*> many_sources;
    const auto ranks = static_cast<std::size_t>(state_.size());
    const void** sources = few_sources.data();
    if (ranks > few) {
      many_sources.resize(ranks);
      sources = many_sources.data();
    }
    const std::size_t first = at.elements;
    std::size_t count = next_slice(at);
    std::byte* buffer = nullptr;
    if constexpr (transport::copies_memory<endpoints_type>) {
      if (copies_contributions(at.current)) {
        count = next_slice(at, copied_slice_bytes());
        buffer = state_.receive_buffer(slot(), number).get(ranks * count * element_size());
      }
    }
    if (first == 0) note_contributions(at);
    for (int peer = 0; peer < state_.size(); ++peer) {
      const std::size_t bytes = count * element_size();
      std::byte* const room = buffer == nullptr ? nullptr : buffer + static_cast<std::size_t>(peer) * bytes;
      sources[peer] = contribution_of(peer, at.current, first * element_size(), room, bytes);
      if (sources[peer] == nullptr && count > 0) return blocked_or_failed();
    }
    if (count > 0) {
      std::byte* const to = operands_.destination(at.current) + first * element_size();
      bound_.element_kernel->combine_many(bound_.operation, to, sources, ranks, count);
      operands_.copy_to_staging(at.current, first, count);
    }
    return slice_done(at, count) ? machine_status::done : machine_status::progressed;
  }

  /// Counts the bytes of all peers' contributions: pushed to this rank, or to be read.
  void note_contributions(const lane& at) noexcept {
    const std::size_t bytes = at.size * element_size();
    const bool were_pushed = at.current.from == plan::region::inbox;
    for_each_peer(plan::all_peers, [&](int peer) {
      if (were_pushed) {
        state_.counts().note_received(peer, bytes);
      } else {
        state_.counts().note_read(kind_, peer, bytes);
      }
    });
  }

  /// Returns whether some contributions must be copied before they are combined.
  bool copies_contributions(const plan::action& what) noexcept {
    if (!state_.endpoints().copies_any_memory() || what.from == plan::region::inbox) return false;
    for (int peer = 0; peer < state_.size(); ++peer) {
      if (operands_.source_at(peer, what).mapped == nullptr) return true;
    }
    return false;
  }

  /// Slices of all ranks stay in the cache together until they are combined.
  std::size_t copied_slice_bytes() const noexcept {
    return std::max<std::size_t>(8192, 2 * combined_part_bytes / static_cast<std::size_t>(state_.size()));
  }

  /// Returns the address of `bytes` bytes of the contribution of `peer`, after the first `offset`: in place or in
  /// `room`. Null if they can't be read now.
  const std::byte* contribution_of(int peer, const plan::action& what, std::size_t offset, std::byte* room,
                                   std::size_t bytes) {
    if (what.from == plan::region::inbox) {
      if (peer != state_.rank()) return state_.push_line_from(peer, slot()).payload + offset;
      return bound_.in + bound_.layout.begin(what.chunk) * element_size() + offset;
    }
    auto from = operands_.source_at(peer, what);
    if (from.mapped != nullptr) return from.mapped + offset;
    from.offset += offset;
    return copy_unmapped(peer, from, room, bytes) ? room : nullptr;
  }

  /// Copies memory of a peer that this rank does not map. Returns false if that is not possible: the peer's process has
  /// ended, which its watch may find milliseconds later; its call has ended, which the next look at the group finds; or
  /// the memory is unsuitable, which is an error after many attempts.
  bool copy_unmapped(int peer, const typename operands<State>::source_place& from, std::byte* to, std::size_t bytes) {
    if constexpr (transport::copies_memory<endpoints_type>) {
      constexpr unsigned most_failures = 10'000;
      const auto copied = state_.endpoints().copy(peer, from.handle, from.offset, to, bytes);
      if (copied == transport::memory_copy::done) return true;
      if (copied == transport::memory_copy::failed && ++failed_copies_ == most_failures) {
        cause_ = make_failure(errc::system,
                              "can't read the peer's buffer from its process; use ordinary memory, or memory of "
                              "hocket::allocate",
                              {.peer = peer});
      }
    }
    return false;
  }

  machine_status copy_unmapped_slice(lane& at, typename operands<State>::source_place from) {
    const std::size_t first = at.elements;
    const std::size_t count = next_slice(at, copy_slice_bytes);
    from.offset += first * element_size();
    std::byte* const to = operands_.destination(at.current) + first * element_size();
    if (!copy_unmapped(at.current.peer, from, to, count * element_size())) return blocked_or_failed();
    operands_.copy_to_staging(at.current, first, count);
    return slice_done(at, count) ? machine_status::done : machine_status::progressed;
  }

  machine_status copy_slice(lane& at, const std::byte* from) {
    if (bound_.on_device != nullptr) [[unlikely]]
      return copy_on_device(at, from);
    const std::size_t first = at.elements;
    const std::size_t count = next_slice(at, copy_slice_bytes);
    std::byte* const to = operands_.destination(at.current) + first * element_size();
    from += first * element_size();
    if (count > 0 && to != from) {
      const bool is_large = platform::exceeds_cache(at.size * element_size(), static_cast<std::size_t>(state_.size()));
      const auto copy = is_large ? bound_.element_kernel->copy_past_caches : bound_.element_kernel->copy;
      copy(to, from, count * element_size());
    }
    operands_.copy_to_staging(at.current, first, count);
    return slice_done(at, count) ? machine_status::done : machine_status::progressed;
  }

  machine_status copy_on_device(lane& at, const std::byte* from) {
    std::byte* const to = operands_.destination(at.current);
    if (at.size == 0 || to == from) return machine_status::done;
    if (at.elements == 0) {
      cause_ = bound_.on_device->begin(to, from, at.size * element_size());
      at.elements = at.size;
    }
    bool over = false;
    if (!cause_) cause_ = bound_.on_device->look(over);
    return over ? machine_status::done : blocked_or_failed();
  }

  std::size_t next_slice(const lane& at, std::size_t bytes = slice_bytes) const noexcept {
    const std::size_t most = std::max<std::size_t>(1, bytes / element_size());
    return std::min(at.size - at.elements, most);
  }

  bool slice_done(lane& at, std::size_t count) const noexcept {
    at.elements += count;
    return at.elements == at.size;
  }

  // ── Flags ────────────────────────────────────────────────────────────────────────────────────────────────────────

  flag_word flag() const noexcept { return make_flag(sequence_, bound_.signature); }

  template <class Act>
  void for_each_peer(std::int32_t peer, Act act) {
    if (peer != plan::all_peers) return act(peer);
    for (int each = 0; each < state_.size(); ++each) {
      if (each != state_.rank()) act(each);
    }
  }

  machine_status push(lane& at) {
    const plan::action& what = at.current;
    const std::size_t bytes = at.size * element_size();
    for_each_peer(what.peer, [&](int peer) {
      if (!transport::flag_reaches(state_.endpoints(), peer)) return;
      push_line& line = state_.push_line_at(peer, slot());
      if (bytes > 0) std::memcpy(line.payload, operands_.source(what), bytes);
      line.word.store(flag(), std::memory_order_release);
      transport::wake(state_.endpoints(), peer);
      state_.counts().note_sent(kind_, peer, bytes);
    });
    return machine_status::done;
  }

  machine_status signal(lane& at) {
    for_each_peer(at.current.peer, [&](int peer) {
      if (!transport::flag_reaches(state_.endpoints(), peer)) return;
      signal_line& line = state_.signal_line_at(peer, slot());
      if (operands_.has_two_layouts()) [[unlikely]] {
        line.in.store(operands_.publish_block_for(peer), std::memory_order_relaxed);
        line.length.store(operands_.block_for(peer).size, std::memory_order_relaxed);
      } else {
        line.in.store(operands_.in_handle(), std::memory_order_relaxed);
      }
      line.out.store(operands_.out_handle(), std::memory_order_relaxed);
      line.words[at.current.tag].store(flag(), std::memory_order_release);
      transport::wake(state_.endpoints(), peer);
    });
    return machine_status::done;
  }

  machine_status wait(lane& at) {
    const int end = at.current.peer == plan::all_peers ? state_.size() : at.current.peer + 1;
    if (at.current.peer != plan::all_peers && at.next_peer == 0) at.next_peer = at.current.peer;
    for (; at.next_peer < end; ++at.next_peer) {
      if (at.next_peer == state_.rank()) continue;
      if (!has_signalled(at.next_peer, at.current)) return blocked_or_failed();
    }
    return machine_status::done;
  }

  bool has_signalled(int peer, const plan::action& what) {
    const std::atomic<flag_word>& from = what.from == plan::region::inbox
                                             ? state_.push_line_from(peer, slot()).word
                                             : state_.signal_line_from(peer, slot()).words[what.tag];
    const flag_word word = from.load(std::memory_order_acquire);
    if (word == flag()) {
      state_.note_completed(peer, sequence_);
      return true;
    }
    if (is_of_operation(word, sequence_)) [[unlikely]]
      cause_ = transport::call_mismatch(peer);
    return false;
  }

  // ── Failure and trace ────────────────────────────────────────────────────────────────────────────────────────────

  machine_status blocked_or_failed() const noexcept {
    return cause_ ? machine_status::failed : machine_status::blocked;
  }

  machine_status fail(const lane& at, unsigned number) {
    if (operands_.has_two_layouts() && cause_.context.sequence != 0) explain_lengths(cause_.context.peer);
    cause_.context.sequence = sequence_;
    cause_.context.lane = static_cast<int>(number);
    cause_.context.step = static_cast<int>(at.position);
    return machine_status::failed;
  }

  /// The calls match except for the lengths of the block from `peer`.
  HOCKET_COLD void explain_lengths(int peer) {
    const std::size_t wanted = bound_.out_layout->block(static_cast<std::uint32_t>(peer)).size;
    append(cause_.reason,
           {"; on rank ", peer, ", send_counts for rank ", state_.rank(), " must equal receive_counts here for rank ",
            peer, ", which is ", wanted, " elements of ", element_size(), " bytes"});
    if (bound_.checksummed) cause_.reason += ", plus a checksum of 8 bytes";
    has_full_cause_ = true;
  }

  int awaited_peer(const lane& at) const noexcept {
    return at.current.peer == plan::all_peers ? at.next_peer : at.current.peer;
  }

  void report(const lane& at, unsigned number) {
    const std::size_t bytes = at.size * element_size();
    if constexpr (transport::observes_steps<endpoints_type>) {
      state_.endpoints().on_step(sequence_, number, at.current, bytes);
    }
    if (bound_.observer.on_step == nullptr) return;
    bound_.observer.on_step(bound_.observer.context, completed_step{sequence_, number, at.position, at.current, bytes});
  }

  State& state_;
  const binding bound_;
  const plan::shape shape_;
  const call_kind kind_;
  const std::uint32_t sequence_;
  operands<State> operands_;
  bool begun_ = false;
  lane first_lane_;
  std::unique_ptr<lane[]> further_lanes_;
  failure cause_;
  bool has_full_cause_ = false;
  unsigned failed_copies_ = 0;
};

}  // namespace detail
HOCKET_END_NAMESPACE
