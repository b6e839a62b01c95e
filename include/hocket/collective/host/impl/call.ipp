// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Definitions of <hocket/collective/host/call.hpp>, and the code that runs a collective on any transport: it checks
/// the call, chooses a plan, binds it to memory, and drives it or returns it as a started call.
#pragma once

#include <hocket/collective/host/call.hpp>
#include <hocket/collective/host/call_settings.hpp>
#include <hocket/collective/host/comparison.hpp>
#include <hocket/collective/host/host_call.hpp>
#include <hocket/collective/host/host_operation.hpp>
#include <hocket/communicator/communicator.hpp>
#include <hocket/communicator/communicator_guard.hpp>
#include <hocket/communicator/planned_call.hpp>
#include <hocket/communicator/signature.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/platform/ticks.hpp>
#include <hocket/core/request.hpp>
#include <hocket/core/text.hpp>
#include <hocket/engine/direct_run.hpp>
#include <hocket/engine/drive.hpp>
#include <hocket/engine/operation.hpp>
#include <hocket/engine/plan_limits.hpp>
#include <hocket/selection/select.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <new>
#include <optional>
#include <source_location>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

HOCKET_BEGIN_NAMESPACE

namespace detail {

/// Returns the costs by which a call chooses.
template <class State>
transport::link_costs costs_for(const State& state, bool must_repeat) noexcept {
  return must_repeat ? transport::agreed_costs(*state.domain()).repeatable : state.domain()->costs();
}

/// Returns how many bytes of a buffer peers can read, for the choice of a plan; 0: no limit. Whether the kernel copies
/// between processes is measured at start-up, so a choice that must be alike in each run assumes that it does not. The
/// segments of a plan that reads peers' memory change no bits: it combines each element in the same order.
template <class State>
std::size_t staging_of_choice(const State& state, const call_request& asked) noexcept {
  return asked.has_repeatable_choice ? state.layout().staging_bytes : state.staging_limit();
}

template <class State>
selection::query query_of(const State& state, const call_request& asked) {
  const bool known = asked.lengths != block_lengths::known_to_pairs;
  return {.what = asked.what,
          .bytes = known ? asked.block_elements * asked.element_size : selection::guessed_block_bytes,
          .ranks = state.size(),
          .order = asked.order,
          .peer_pointers = state.has_windows() && !asked.checksummed && !asked.on_device,
          .staging_bytes = staging_of_choice(state, asked),
          .costs = costs_for(state, asked.has_repeatable_choice),
          .total_bytes = asked.total_elements * asked.element_size,
          .lengths_are_known = known,
          .equal_lengths = asked.lengths == block_lengths::equal};
}

template <class State>
std::size_t block_count(const State& state, const call_request& asked) {
  return static_cast<std::size_t>(asked.what.blocks(state.size()));
}

/// Returns how many elements of each block peers can read at the same time.
template <class State>
std::size_t segment_elements(const State& state, const call_request& asked) {
  const std::size_t staging = state.staging_limit();
  if (staging == 0) return std::numeric_limits<std::size_t>::max();
  return std::max<std::size_t>(1, staging / asked.element_size / block_count(state, asked));
}

/// Returns whether peers can read the vector: as a whole or, if it is a single block, segment after segment.
template <class State>
bool fits_staging(const State& state, const call_request& asked) {
  const std::size_t staging = state.staging_limit();
  const std::size_t blocks = block_count(state, asked);
  if (staging == 0 || (state.size() == 1 && asked.lengths != block_lengths::equal)) return true;
  if (asked.lengths == block_lengths::known_to_all) return asked.total_elements * asked.element_size <= staging;
  if (asked.element_size * blocks > staging) return false;
  return blocks == 1 || asked.block_elements <= segment_elements(state, asked);
}

/// Limit that keeps the number of chunks below 2^32 for the largest number of ranks.
inline constexpr std::uint32_t most_pieces = 1U << 16U;

/// Returns why `chosen` can't run here; empty if it can.
template <class State>
std::string obstacle(const State& state, const call_request& asked, const plan::any_algorithm& chosen) {
  const plan::shape shape = chosen.shape(state.size());
  if (!(chosen.collective() == asked.what))
    return "the plan is for another collective or another root: choose a plan for this call";
  if (shape.chunks_per_block == 0) return "the plan cuts the vector into 0 pieces; it needs at least 1";
  if (shape.chunks_per_block > most_pieces) {
    return concat({"the plan cuts the vector into ", shape.chunks_per_block, " pieces; the maximum is ", most_pieces});
  }
  if (shape.peer_pointers && state.size() > 1 && !state.has_windows()) {
    return "the plan reads peers' memory, which this transport does not support; choose one that sends messages";
  }
  if (shape.peer_pointers && state.size() > 1 && asked.checksummed) {
    return "the plan reads peers' memory, which require(checksummed) can't check; choose one that sends messages";
  }
  if (shape.peer_pointers && state.size() > 1 && asked.on_device) {
    return "the plan reads peers' memory, but device memory is sent in messages here; choose one that sends messages";
  }
  if (shape.equal_blocks && asked.lengths != block_lengths::equal) {
    return "the plan moves several blocks together, which needs blocks of equal length; choose another one";
  }
  if (shape.order > asked.order && asked.order == plan::combination_order::fixed_tree) {
    return "require(fixed_tree) needs a plan that combines in the fixed tree and whose shape declares `order = "
           "combination_order::fixed_tree`: choose one, or omit the algorithm; plan::prove checks a plan's order";
  }
  if (shape.order > asked.order) {
    return "the plan reorders operands, and the operation is not known to be commutative: give it "
           "`static constexpr bool commutative = true`, or choose a plan that keeps rank order";
  }
  if (shape.peer_pointers && state.size() > 1 && asked.lengths == block_lengths::known_to_pairs &&
      state.staging_limit() > 0) {
    return "the plan reads peers' memory, which this transport stages, and no rank knows whether the blocks of another "
           "rank fit the staging memory; choose one that sends messages";
  }
  if (shape.peer_pointers && !fits_staging(state, asked)) {
    const std::size_t elements =
        asked.lengths == block_lengths::equal ? asked.block_elements * block_count(state, asked) : asked.total_elements;
    return concat({"the vector of ", elements * asked.element_size, " bytes does not fit the staging memory of ",
                   state.staging_limit(), " bytes; choose an algorithm that sends messages"});
  }
  return {};
}

/// Returns why the plan that the caller named can't run; empty if it can. A user-defined plan may throw if it does not
/// support the number of ranks.
template <class State>
std::string obstacle_of_named(const State& state, const call_request& asked, const call_settings& settings,
                              [[maybe_unused]] failure& fail) {
  const auto find = [&] {
    std::string reason = obstacle(state, asked, *settings.algorithm);
    return reason.empty() && settings.checks_limits ? exceeded_limit(state, asked, *settings.algorithm) : reason;
  };
#if HOCKET_HAS_EXCEPTIONS
  try {
    return find();
  } catch (const error& refused) {
    fail = refused.cause();
    return {};
  }
#else
  return find();
#endif
}

/// Returns the plan that the caller named, if it can run. If not, returns the cheapest plan for a hint, else fails.
template <class State>
plan::any_algorithm choose_plan(State& state, const call_request& asked, const call_settings& settings, failure& fail) {
  if (settings.algorithm != nullptr) {
    const plan::any_algorithm& named = *settings.algorithm;
    const std::string reason = obstacle_of_named(state, asked, settings, fail);
    if (reason.empty() && !fail) return named;
    if (!settings.is_hint) {
      if (!fail) fail = make_failure(errc::invalid_argument, concat({named.name(), ": ", reason}));
      return named;
    }
    fail = {};
  }
  return selection::table(query_of(state, asked)).best().make(asked.what.root);
}

/// Returns whether nothing keeps a call from beginning: no failure, abort, stop, or message of a peer about one.
template <class State>
bool may_begin(State& state, stop_query stop) {
  return state.usable() && !state.flagged() && !state.endpoints().has_control_message() &&
         state.open_inquiries().empty() && !stop();
}

/// Looks for the reason why no call may begin. A call that was stopped before it began revokes the communicator like any
/// other failed call, because its peers may have begun it.
template <class State>
HOCKET_COLD outcome reason_to_refuse(State& state, stop_query stop, std::chrono::nanoseconds timeout) {
  const auto nowhere = [] { return waiting_call{.operation = "no call"}; };
  outcome refused = poll_control_messages(state, nowhere);
  const auto cancelled = [&] { return state.aborted() || stop(); };
  if (state.flagged() && !state.revoked()) await_revocation_reason(state, nowhere, timeout, cancelled);
  if (state.revoked()) return state.consume_cause();
  if (!refused.failed() && state.aborted()) {
    refused = state.consume_abort();
  } else if (!refused.failed() && stop()) {
    refused = make_failure(errc::aborted, "the stop token of this call was triggered before it began");
  }
  if (refused.failed()) state.revoke(refused.cause());
  return refused;
}

/// Returns why no call may begin; no failure if one may, which takes only some ns.
template <class State>
outcome refuse_if_over(State& state, stop_query stop, std::chrono::nanoseconds timeout) {
  if (may_begin(state, stop)) [[likely]]
    return {};
  return reason_to_refuse(state, stop, timeout);
}

/// Returns why this call may not begin, whatever its arguments.
template <class State>
outcome refuse_early(State& state, const call_settings& settings, std::chrono::nanoseconds timeout) {
  outcome refused = refuse_if_over(state, settings.stop, timeout);
  if (!refused.failed() && settings.has_negative_timeout()) refused = negative_timeout(timeout);
  return refused;
}

/// Returns the plan's name, valid while the call log has a call by it. Only a plan that the caller named may own its name;
/// those of the table have static ones.
template <class State>
const char* name_to_log(State& state, const plan::any_algorithm& plan, const call_settings& settings) {
  const bool may_own_name = call_log::retains_calls && settings.algorithm != nullptr;
  return may_own_name ? state.calls().plan_name(plan.name()) : plan.name();
}

/// Chooses the plan of a call and derives its layout and signature. Independent of the element type, so that it is
/// compiled once for all types.
template <class State>
planned_call make_plan(State& state, const call_request& asked, const call_settings& settings, failure& fail) {
  planned_call result;
  result.plan = choose_plan(state, asked, settings, fail);
  if (fail) return result;
  const bool equal = asked.lengths == block_lengths::equal;
  if (equal && result.plan.shape(state.size()).peer_pointers) result.segment_elements = segment_elements(state, asked);
  if (asked.in_place) result.plan = result.plan.for_in_place();
  result.plan_name = name_to_log(state, result.plan, settings);
  result.layout = {asked.block_elements, static_cast<std::uint32_t>(asked.what.blocks(state.size())),
                   result.plan.shape(state.size()).chunks_per_block};
  result.types = asked.types;
  result.checksummed = asked.checksummed;
  result.signature =
      call_signature(call_signature(asked.type_signature, result.plan.name(), asked.what.root), asked.block_elements);
  if (HOCKET_MISMATCH_DETECTION && !equal) result.signature = mix(result.signature, asked.lengths_signature);
  if (HOCKET_MISMATCH_DETECTION && asked.checksummed) result.signature = mix(result.signature, 1);
  // The caller may pass the number of pieces: double_tree(pieces).
  const std::uint32_t chunks_per_block = result.layout.chunks_per_block();
  if (HOCKET_MISMATCH_DETECTION && settings.algorithm != nullptr && chunks_per_block > 1)
    result.signature = mix(result.signature, chunks_per_block);
  result.signature = with_agreement(result.signature, asked.agreement);
  return result;
}

/// Plans a call that is not remembered, and remembers it. `lengths` are those of its blocks, if all ranks know them and
/// they differ. Returns null, and sets `refused`, if that fails.
template <class State>
HOCKET_NO_INLINE const remembered_call* plan_new_call(State& state, const call_request& asked,
                                                      std::span<const std::size_t> lengths,
                                                      const call_settings& settings, outcome& refused) {
  failure fail;
  planned_call planned = make_plan(state, asked, settings, fail);
  if (fail) {
    refused = std::move(fail);
    return nullptr;
  }
  auto& calls = state.remembered();
  remembered_call& made = settings.algorithm != nullptr ? calls.replace_named() : calls.replace(asked);
  // Until the end, the old call remains without steps, because memory may run out.
  short_plan steps = short_plan_of(state, asked, planned, lengths, std::exchange(made.steps, {}));
  made = {asked, std::move(planned), std::move(steps)};
  return &made;
}

/// Checks a call and plans it. `Call` is `host_call` or a spec for device memory. Returns null, and sets `refused`, if the
/// call can't run. The result is valid until another call is planned.
template <class Call, class State>
const remembered_call* plan_checked(State& state, const Call& what, const call_settings& settings, outcome& refused) {
  refused = refuse_early(state, settings, timeout_of(state, settings));
  if (!refused.failed()) refused = what.check(state);
  if (refused.failed()) return nullptr;
  call_request asked = what.asked(state);
  asked.checksummed = settings.checksummed;
  asked.has_repeatable_choice = settings.has_repeatable_choice;
  asked.agreement = settings.agreement;
  const remembered_call* const known = settings.algorithm == nullptr ? state.remembered().find(asked) : nullptr;
  if (known != nullptr) return known;
  std::span<const std::size_t> lengths;
  if constexpr (std::is_same_v<Call, host_call>) lengths = what.blocks.counts;  // only such a call can run directly
  return plan_new_call(state, asked, lengths, settings, refused);
}

/// Returns the plan of a call. A call that divides its vector into parts itself has `divide`, which adapts the plan.
template <class Call, class State>
planned_call plan_for(const State& state, const Call& what, const remembered_call& known) {
  planned_call whole = known.planned;
  if constexpr (requires { what.divide(state, whole); }) what.divide(state, whole);
  return whole;
}

/// Counts and logs the call whose first sequence number is `first`, and that began at `begun`. `history` is the history
/// before the call.
template <class State>
HOCKET_ALWAYS_INLINE log_entry log_call(State& state, std::uint32_t first, std::uint32_t history,
                                        const planned_call& planned, const call_site& call, bool blocks,
                                        std::uint64_t begun) {
  const call_kind kind = kind_of(planned.plan.collective().kind);
  state.counts().note_call(kind);
  const std::size_t block = planned.layout.block_size();
  const std::uint32_t operations = segments_of(block, planned.segment_elements) + (compares_first ? 1U : 0U);
  return enter(state.calls(),
               call_record{first,
                           operations,
                           planned.signature,
                           history,
                           call.operation,
                           planned.types,
                           planned.plan_name,
                           block,
                           planned.plan.collective().root,
                           call.site,
                           {begun, 0}
#if HOCKET_ASSERTION_LEVEL >= 3
                           ,
                           description_of(planned, first)
#endif
               },
               state.timed(kind, blocks, begun));
}

/// Returns whether `run` has completed. If the caller's operation throws, `thrown` is set.
template <class Run, class Log>
bool complete_directly(Run& run, const Log& log, [[maybe_unused]] std::optional<failure>& thrown) {
#if HOCKET_HAS_EXCEPTIONS
  try {
    return run.run(log);
  } catch (...) {
    thrown = left_by_current_exception();
    return false;
  }
#else
  return run.run(log);
#endif
}

/// The part of a call that has been performed without an operation state.
struct direct_part {
  bool has_begun = false;
  std::uint32_t sequence = 0;
  std::uint32_t signature = 0;  ///< of the call and all before it
  unsigned performed = 0;       ///< steps
  log_entry entry;
  std::optional<failure> thrown;  ///< by the caller's operation
};

/// Tries to complete a call without an operation state: see engine/direct_run.hpp. Returns whether that succeeded.
template <class State>
bool run_directly(State& state, const host_call& what, const remembered_call& known, const call_settings& settings,
                  const call_site& call, direct_part& part) {
  const bool is_plain = what.prepares == nullptr && settings.observer.on_step == nullptr;
  const bool is_usable = known.steps.is_usable && known.steps.has_lengths(what.blocks.counts);
  if (compares_first || !is_usable || !is_plain || !can_run_directly(state)) return false;
  const planned_call& planned = known.planned;
  part.has_begun = true;
  part.sequence = state.take_sequence();
  const std::uint32_t history = state.calls().history();
  part.signature = state.calls().extend_history(planned.signature);
  const call_kind kind = kind_of(what.what.kind);
  state.counts().note_call(kind);
  direct_run<State> run(state, kind, known.steps, *what.element_kernel, what.operation.data, what.in, what.out,
                        part.sequence, part.signature);
  bool is_logged = false;
  const auto log = [&] {
    state.calls().add_brief({part.sequence, 1, planned.signature, history, call.operation, planned.types,
                             planned.plan_name, planned.layout.block_size(), what.what.root, call.site});
    is_logged = true;  // last, because the first entry allocates memory
  };
  if (complete_directly(run, log, part.thrown)) {
    state.complete(part.sequence);
    if (run.has_yielded()) [[unlikely]]
      state.reopen(kind).ends();
    return true;
  }
  if (!is_logged) log();
  part.entry = state.reopen(kind);
  part.performed = run.position();
  return false;
}

/// Completes a call by an operation state. `part` has been performed.
template <class Call, class State>
outcome run_by_operation_state(State& state, const Call& what, planned_call planned, const direct_part& part,
                               const call_settings& settings, const call_site& call) {
  if (part.has_begun) {
    planned.signature = part.signature;
    planned.is_part = true;
    planned.part_number = part.sequence;
    planned.performed = part.performed;
  }
  const std::uint64_t begun = platform::ticks();
  const std::uint32_t first = state.last_sequence() + 1, history = state.calls().history();
  asserted_operation_state<State, typename Call::template operation_state<State>> operation_state(state, what, planned,
                                                                                                  settings.observer);
  // Peers may read the memory of the operation state: it must not be destroyed before they are informed of a failure.
  const auto locate = [&](error_context& at) { operation_state.locate(at); };
  return if_memory_lasts(state, call, locate, [&] {
    operation_state.poll();
    operation_state.set_entry(part.has_begun ? part.entry
                                             : log_call(state, first, history, planned, call, true, begun));
    return drive(state, operation_state, settings.stop, call);
  });
}

/// Runs a call. The calling thread must have entered the communicator.
template <class Call, class State>
outcome run_inside(State& state, const Call& what, const call_settings& settings, const call_site& call) {
  outcome refused;
  const remembered_call* const known = plan_checked(state, what, settings, refused);
  if (known == nullptr) return refuse(state, refused.cause(), call);
  direct_part part;
  if constexpr (std::is_same_v<Call, host_call> && transport::sends_eagerly<typename State::endpoints_type>) {
    if (run_directly(state, what, *known, settings, call, part)) return {};
    if (part.thrown) [[unlikely]] {
      const auto locate = [&](error_context& at) {
        at.sequence = part.sequence;
        at.step = static_cast<int>(part.performed);
      };
      locate(part.thrown->context);
      return end_failed_call(state, *std::move(part.thrown), call, locate);
    }
  }
  return run_by_operation_state(state, what, plan_for(state, what, *known), part, settings, call);
}

template <class Call, class Domain>
HOCKET_NO_INLINE outcome run_call(const communicator<Domain>& comm, const Call& what, const call_settings& settings,
                                  const std::source_location& site) {
  const std::source_location at = site;  // read on every path, so that g++ passes it in a register
  if (communicator_access::is_moved_from(comm)) [[unlikely]]
    return used_after_move(what.name, at);
  auto& state = communicator_access::state(comm);
  const call_site call = site_of(state, what.name, settings, at);
  const communicator_guard here(state);
  const outcome refused = here.refused();
  if (refused.failed()) return in_context(refused.cause(), state, call);
  return if_memory_lasts(state, call, next_number(state), [&] { return run_inside(state, what, settings, call); });
}

/// Counts the time since `begun`, in which a thread waited for a started call.
template <class State>
void note_wait(State& state, std::uint64_t begun) noexcept {
  const std::uint64_t now = platform::ticks();
  if (!transport::keeps_virtual_time<typename State::endpoints_type> && now > begun)
    state.counts().note_exposed(now - begun);
}

/// A started operation of any type together with the communicator that drives it: see `started`.
template <class State>
class started_call : public pending {
 public:
  bool test() final {
    const communicator_guard here(*state_);
    return !refused(here) && (over() || move_on());
  }

  void wait() final {
    const communicator_guard here(*state_);
    if (refused(here)) return;
    if (!over()) run();
    if (cause_) state_->mark_cause_delivered();
  }

  void wait_undelivered() final {
    const communicator_guard here(*state_);
    if (refused(here) || over()) return;
    const typename State::keep_undelivered unheard(*state_);
    run();
  }

  void set_entry(const log_entry& entry) noexcept { operation_state_->set_entry(entry); }

  /// Like `test`, for callers that have entered the communicator.
  bool move_on() {
    bool is_over = true;
    const typename State::keep_undelivered unheard(*state_);
    fail_without_memory([&] { is_over = advance(); });
    return is_over;
  }

  const failure& cause() const final { return cause_ ? cause_ : refused_; }
  const void* driver() const noexcept final { return state_.get(); }
  bool in_forked_child() const noexcept final { return state_->in_forked_child(); }

 protected:
  started_call(std::shared_ptr<State> state, const call_site& call, const stop_check& stop)
      : state_(std::move(state)), call_(call), stop_(stop.of_copy(token_)), waiting_(call.timeout, state_->spin()) {}

  /// `operation_state` belongs to the derived class, and must exist until `drop` or, if nothing fails, `finish`.
  void enter(operation& operation_state) {
    operation_state_ = &operation_state;
    state_->active().add(*operation_state_);
  }
  void finish() {
    const communicator_guard here(*state_, call_.timeout);
    if (!over() && !refused(here)) return run();
    if (!over()) cause_ = std::move(refused_);
    leave();
  }

  State& state() const noexcept { return *state_; }

 private:
  /// Destroys the failed operation, and with it all transfers from and to the caller's buffers that are in flight.
  virtual void drop() noexcept = 0;

  bool over() const noexcept { return cause_ || operation_state_->status() == machine_status::done; }

  void run() {
    fail_without_memory([&] {
      const auto locate = [&](error_context& at) { operation_state_->locate(at); };
      wait_policy waiting(call_.timeout, state_->spin());
      failure found = failed_meanwhile(*state_, *operation_state_, stop_, waiting, call_, locate);
      const std::uint64_t begun = platform::ticks();
      const outcome ended = found ? end_failed_call(*state_, std::move(found), call_, locate)
                                  : drive(*state_, *operation_state_, stop_, call_);
      note_wait(*state_, begun);
      if (ended.failed()) cause_ = ended.cause();
    });
    leave();
  }

  /// Returns true when the operation has completed or failed.
  bool advance() {
    const auto locate = [&](error_context& at) { operation_state_->locate(at); };
    if (failure found = failed_meanwhile(*state_, *operation_state_, stop_, waiting_, call_, locate))
      return end(std::move(found));
    state_->endpoints().progress();
    advance_others(*state_, operation_state_);
    if (state_->revoked() && !operation_state_->over()) return end(state_->consume_cause());
    switch (operation_state_->poll()) {
      case machine_status::done:
        operation_state_->entry().ends();
        // Data that was read from the buffers of a peer that has failed meanwhile may be invalid.
        return state_->flagged() ? end(reason_to_end(*state_, stop_, waiting_, call_, locate)) : true;
      case machine_status::progressed:
        waiting_.progressed();
        if (!should_check_failures(*state_)) return false;
        break;
      case machine_status::failed:
        return end(reason_of_failure(*state_, *operation_state_, stop_, waiting_, call_, locate));
      case machine_status::blocked:
        if (!waiting_.tick()) return false;
        break;
    }
    failure cause = reason_to_end(*state_, stop_, waiting_, call_, locate);
    return cause ? end(with_overdue_reason(*state_, *operation_state_, std::move(cause))) : false;
  }

  /// Runs `body`. If memory runs out in it, the operation fails with `out_of_memory`.
  template <class Body>
  void fail_without_memory(Body body) {
#if HOCKET_HAS_EXCEPTIONS
    try {
      body();
    } catch (const std::bad_alloc& thrown) {
      cause_ = end_without_memory(*state_, thrown, call_, [&](error_context& at) { operation_state_->locate(at); });
    }
#else
    body();
#endif
  }

  /// Returns whether another thread uses the communicator. The operation continues there; the caller can wait later.
  bool refused(const communicator_guard<State>& here) {
    const outcome refused = here.refused();
    refused_ = refused.failed() ? in_context(refused.cause(), *state_, call_) : failure{};
    return refused.failed();
  }

  bool end(failure cause) {
    cause_ = in_context(std::move(cause), *state_, call_);
    state_->revoke_undelivered(cause_);
    record_failure(*state_, cause_);
    leave();
    return true;
  }

  /// Removes the operation from the active calls. The caller must have entered the communicator.
  void leave() {
    if (operation_state_ == nullptr) return;
    fail_without_memory([&] {  // peers wait for an operation that failed before it completed
      if (cause_ && !operation_state_->over()) state_->revoke_undelivered(cause_);
    });
    state_->active().remove(*operation_state_);
    if (!cause_) return;
    operation_state_ = nullptr;
    drop();
  }

  const std::shared_ptr<State> state_;
  const call_site call_;
  std::shared_ptr<const void> token_;  ///< a copy of the caller's
  const stop_check stop_;
  wait_policy waiting_;                   ///< of `test`
  operation* operation_state_ = nullptr;  ///< null after `drop`
  failure cause_;
  failure refused_;  ///< why the latest call of this request was refused; the operation continues
};

template <class State, class Operation>
class started final : public started_call<State> {
 public:
  template <class... Arguments>
  started(std::shared_ptr<State> state, const call_site& call, const stop_check& stop, Arguments&&... arguments)
      : started_call<State>(std::move(state), call, stop),
        operation_(std::in_place, this->state(), std::forward<Arguments>(arguments)...) {
    this->enter(*operation_);
  }
  ~started() override { this->finish(); }

 private:
  void drop() noexcept override { operation_.reset(); }

  std::optional<Operation> operation_;
};

template <class Call, class Domain>
request start_call(const communicator<Domain>& comm, const Call& what, const call_settings& settings,
                   const std::source_location& site) {
  using state_type = communicator_state<Domain>;
  using operation_state_type =
      asserted_operation_state<state_type, typename Call::template operation_state<state_type>>;
  const auto& state = communicator_access::shared_state(comm);
  const call_site call = site_of(*state, what.name, settings, site);
  const communicator_guard here(*state);
  outcome refused = here.refused();
  if (refused.failed()) raise(in_context(refused.cause(), *state, call));
  using started_type = started<state_type, operation_state_type>;
  std::unique_ptr<started_type> pending;
  deliver(if_memory_lasts(*state, call, next_number(*state), [&]() -> outcome {
    const remembered_call* const known = plan_checked(*state, what, settings, refused);
    if (known == nullptr) return refuse(*state, refused.cause(), call);
    const planned_call planned = plan_for(*state, what, *known);
    const std::uint32_t first = state->last_sequence() + 1;
    const log_entry entry = log_call(*state, first, state->calls().history(), planned, call, false, platform::ticks());
    pending = std::make_unique<started_type>(state, call, settings.stop, what, planned, settings.observer);
    pending->set_entry(entry);
    pending->move_on();
    return {};
  }));
  return request(std::move(pending));
}

}  // namespace detail
HOCKET_END_NAMESPACE
