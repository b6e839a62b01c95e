// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// One collective call that is under way, whatever it is: what the progress loop and `request` know of it.
#pragma once

#include <hocket/communicator/call_log.hpp>
#include <hocket/communicator/last_call.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/text.hpp>
#include <hocket/engine/binding.hpp>
#include <hocket/engine/machine.hpp>

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

/// Why a call ends in which the caller's reduction operation threw `what`.
inline failure left_by_exception(const char* what) {
  return make_failure(
      errc::invalid_argument,
      concat({"the reduction operation threw, which it must not, as the other ranks wait for it: ", what}));
}

#if HOCKET_HAS_EXCEPTIONS
/// Why a call ends in which memory ran out: its own, or what the caller's operation asked for. In words, if these still
/// find memory.
HOCKET_COLD inline failure left_by_bad_alloc(const std::bad_alloc& thrown) noexcept {
  failure result{make_error_code(errc::out_of_memory), {}, {}};
  try {
    result.reason = concat(
        {"the call, or its reduction operation, could not get memory beside the caller's buffers: ", thrown.what()});
  } catch (const std::bad_alloc&) {  // the code says it, too
  }
  return result;
}
#endif

/// Advanced until it is done or has failed; then it is not advanced again.
class operation {
 public:
  operation() = default;
  operation(const operation&) = delete;
  operation& operator=(const operation&) = delete;
  virtual ~operation() = default;

  virtual machine_status advance() = 0;
  /// What `advance` failed with.
  virtual const failure& reported() const = 0;
  /// Whether that tells all that the peer could add.
  virtual bool has_full_cause() const { return false; }
  /// What it waits for in vain, if that is no peer.
  virtual failure overdue() const { return {}; }
  /// Where it stands.
  virtual void locate(error_context& context) = 0;

  machine_status status() const noexcept { return status_; }
  bool over() const noexcept { return status_ == machine_status::done || status_ == machine_status::failed; }
  /// After `failed`.
  const failure& cause() const { return thrown_ ? thrown_ : reported(); }
  /// It is done, but what it did is worth nothing.
  void discard(failure cause) {
    discarded_ = true;
    thrown_ = std::move(cause);
    status_ = machine_status::failed;
  }
  bool discarded() const noexcept { return discarded_; }
  /// As `advance`, and remembers the answer.
  machine_status poll() {
    if (!over()) status_ = advance_safely();
    return status_;
  }
  /// Where the communicator's log speaks of it.
  void set_entry(const log_entry& entry) noexcept { entry_ = entry; }
  const log_entry& entry() const noexcept { return entry_; }

 private:
  /// The caller's operation may throw, or memory may run out, and its peers wait for this rank: then the call fails as any
  /// other does.
  machine_status advance_safely() {
#if HOCKET_HAS_EXCEPTIONS
    try {
      return advance();
    } catch (const std::bad_alloc& thrown) {
      thrown_ = left_by_bad_alloc(thrown);
    } catch (const std::exception& thrown) {
      thrown_ = left_by_exception(thrown.what());
    } catch (...) {
      thrown_ = left_by_exception("something that is no std::exception");
    }
    record_position();
    return machine_status::failed;
#else
    return advance();
#endif
  }

  /// Where it was when it failed; whom it waited for is not to blame.
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

/// Runs one plan over a vector: at once, or, where peers can read only `segment_elements` of each block at a time,
/// segment after segment. Segments have consecutive sequence numbers, taken when the call is made.
template <class State>
class plan_run {
 public:
  plan_run(State& state, binding bound, std::size_t segment_elements)
      : state_(state), bound_(shown(state, std::move(bound))), segment_(std::max<std::size_t>(1, segment_elements)) {
    next_sequence_ = state.take_sequence(segments_of(bound_.layout.block_size(), segment_));
    start_segment();
  }

  /// The same for a call, or for a part of one: that was numbered before, and is no call of its own in the history.
  plan_run(State& state, binding bound, const planned_call& call)
      : state_(state), bound_(call.is_part ? std::move(bound) : shown(state, std::move(bound))),
        segment_(std::max<std::size_t>(1, call.segment_elements)) {
    next_sequence_ =
        call.is_part ? call.part_number : state.take_sequence(segments_of(bound_.layout.block_size(), segment_));
    start_segment();
  }

  machine_status advance() {
    for (;;) {
      const machine_status status = machine_->advance();
      if (status != machine_status::done || begin_ >= bound_.layout.block_size()) return status;
      start_segment();
    }
  }

  const failure& cause() const { return machine_->cause(); }
  bool has_full_cause() const { return machine_->has_full_cause(); }
  void locate(error_context& context) { machine_->locate(context); }
  std::uint32_t sequence() const noexcept { return machine_->sequence(); }

 private:
  static binding shown(State& state, binding bound) {
    bound.signature = state.calls().extend_history(bound.signature);
    return bound;
  }

  void start_segment() {
    binding part = bound_;
    const std::size_t size = std::min(segment_, bound_.layout.block_size() - begin_);
    // Blocks of given lengths are never cut into segments.
    if (!bound_.layout.has_given_lengths()) part.layout = {size, bound_.layout.blocks(), bound_.layout.pieces()};
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
