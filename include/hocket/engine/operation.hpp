// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Interface of an active collective call, for the progress loop and `request`.
#pragma once

#include <hocket/communicator/active_operations.hpp>
#include <hocket/communicator/call_log.hpp>
#include <hocket/communicator/planned_call.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/text.hpp>
#include <hocket/engine/binding.hpp>
#include <hocket/engine/machine.hpp>
#include <hocket/transport/operation_event.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <new>
#include <optional>
#include <string>
#include <utility>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// Failure of a call whose reduction operation threw `what`.
inline failure left_by_exception(const char* what) {
  return make_failure(
      errc::invalid_argument,
      concat({"the reduction operation must not throw, because other ranks wait for it; it threw: ", what}));
}

#if HOCKET_HAS_EXCEPTIONS
/// The same for the exception that is being handled. Throws it again if it is a std::bad_alloc.
HOCKET_COLD inline failure left_by_current_exception() {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& thrown) {
    return left_by_exception(thrown.what());
  } catch (...) {
    return left_by_exception("an exception that is not a std::exception");
  }
}

/// Failure of a call that ran out of memory, in the library or in the caller's reduction operation. The text is omitted
/// if there is no memory for it.
HOCKET_COLD inline failure left_by_bad_alloc(const std::bad_alloc& thrown) noexcept {
  failure result{make_error_code(errc::out_of_memory), {}, {}};
  try {
    result.reason = concat({"the call or its reduction operation could not allocate memory: ", thrown.what()});
  } catch (const std::bad_alloc&) {  // the code alone must do
  }
  return result;
}
#endif

/// Advanced until it is complete or has failed, and not again after that.
class operation : public active_link<operation> {
 public:
  operation() = default;
  operation(const operation&) = delete;
  operation& operator=(const operation&) = delete;
  virtual ~operation() = default;

  virtual machine_status advance() = 0;
  /// The failure of `advance`.
  virtual const failure& reported() const = 0;
  /// True if asking the peer would add nothing to `reported()`.
  virtual bool has_full_cause() const { return false; }
  /// What the operation has waited for too long, if that is not a peer.
  virtual failure overdue() const { return {}; }
  /// True if it waits only for peers, which wake this rank: see `transport::can_sleep`.
  virtual bool waits_for_peers() const noexcept { return false; }
  /// The events in virtual time without which `advance` would return `blocked` again.
  virtual transport::awaited_events awaited_events() const { return transport::every_event; }
  /// Adds the operation's position to `context`.
  virtual void locate(error_context& context) = 0;

  machine_status status() const noexcept { return status_; }
  bool over() const noexcept { return status_ == machine_status::done || status_ == machine_status::failed; }
  /// The failure, after `failed`.
  const failure& cause() const { return thrown_ ? thrown_ : reported(); }
  /// Marks a complete operation as failed, because its result is invalid.
  void discard(failure cause) {
    discarded_ = true;
    thrown_ = std::move(cause);
    status_ = machine_status::failed;
  }
  bool discarded() const noexcept { return discarded_; }
  /// Like `advance`, and records the status.
  machine_status poll() {
    if (!over()) status_ = advance_safely();
    return status_;
  }
  /// Sets the operation's entry in the communicator's log.
  void set_entry(const log_entry& entry) noexcept { entry_ = entry; }
  const log_entry& entry() const noexcept { return entry_; }

 private:
  /// If the caller's operation throws or memory runs out while peers wait for this rank, the call fails like any other
  /// call.
  machine_status advance_safely() {
#if HOCKET_HAS_EXCEPTIONS
    try {
      return advance();
    } catch (const std::bad_alloc& thrown) {
      thrown_ = left_by_bad_alloc(thrown);
    } catch (...) {
      thrown_ = left_by_current_exception();
    }
    record_position();
    return machine_status::failed;
#else
    return advance();
#endif
  }

  /// Records the position at which it failed; the awaited rank is not the culprit.
  void record_position() {
    error_context at;
    locate(at);
    thrown_.context.sequence = at.sequence;
    thrown_.context.lane = at.lane;
    thrown_.context.step = at.step;
  }

  machine_status status_ = machine_status::blocked;
  bool discarded_ = false;
  log_entry entry_;
  failure thrown_;
};

/// Runs one plan over a vector: as a whole, or, if peers can read only `segment_elements` of each block at a time, one
/// segment after another. Segments have consecutive sequence numbers, which are taken when the call is made.
template <class State>
class plan_run {
 public:
  plan_run(State& state, binding bound, std::size_t segment_elements)
      : state_(state), bound_(shown(state, std::move(bound))), segment_(std::max<std::size_t>(1, segment_elements)) {
    next_sequence_ = state.take_sequence(segments_of(bound_.layout.block_size(), segment_));
    start_segment();
  }

  /// For a call, or for a part of one: a part was numbered before and does not extend the history.
  plan_run(State& state, binding bound, const planned_call& call)
      : state_(state), bound_(call.is_part ? std::move(bound) : shown(state, std::move(bound))),
        segment_(std::max<std::size_t>(1, call.segment_elements)) {
    next_sequence_ =
        call.is_part ? call.part_number : state.take_sequence(segments_of(bound_.layout.block_size(), segment_));
    start_segment();
    machine_->skip(call.performed);
  }

  machine_status advance() {
    for (;;) {
      const machine_status status = machine_->advance();
      if (status != machine_status::done || begin_ >= bound_.layout.block_size()) return status;
      start_segment();
    }
  }

  const failure& cause() const { return machine_->cause(); }
  bool waits_for_credit() const noexcept { return machine_->waits_for_credit(); }
  bool has_full_cause() const { return machine_->has_full_cause(); }
  void locate(error_context& context) { machine_->locate(context); }
  std::uint32_t sequence() const noexcept { return machine_->sequence(); }
  transport::awaited_events awaited_events() const noexcept {
    const bool is_last_segment = begin_ >= bound_.layout.block_size();
    transport::awaited_events result = transport::every_event;
    if (is_last_segment) result[0] = transport::operation_event::step(machine_->sequence());
    return result;
  }

 private:
  static binding shown(State& state, binding bound) {
    bound.signature = state.calls().extend_history(bound.signature);
    return bound;
  }

  void start_segment() {
    binding part = bound_;
    const std::size_t size = std::min(segment_, bound_.layout.block_size() - begin_);
    // Blocks of given lengths are never split into segments.
    if (!bound_.layout.has_given_lengths())
      part.layout = {size, bound_.layout.blocks(), bound_.layout.chunks_per_block()};
    if (part.in != nullptr) part.in += begin_ * bound_.element_kernel->size;
    if (part.out != nullptr) part.out += begin_ * bound_.element_kernel->size;
    begin_ += size;
    machine_.emplace(state_, next_sequence_++, std::move(part));
  }

  State& state_;
  const binding bound_;
  const std::size_t segment_;
  std::size_t begin_ = 0;
  std::uint32_t next_sequence_ = 0;
  std::optional<machine<State>> machine_;
};

}  // namespace detail
HOCKET_END_NAMESPACE
