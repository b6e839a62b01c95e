// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// A group of ranks that order each other's streams, and all that they share from the first exchange to the last.
///
/// Each rank offers the others words in its device memory; for `signal` a stream writes a peer's word, for `wait` it
/// waits for its own word and resets it. No kernel spins, and no rank needs another rank's host while streams work. For
/// the choice of words and why they are free in time, see plan/signal_reuse.hpp; for messages, plan/merged_lanes.hpp.
///
/// **One operation after the other.** All operations of a group are one sequence, the same on all ranks. Two operations
/// on different streams of a rank are ordered by an event. The caller must order graphs that contain captured
/// operations: one after the other, and in the same order on all ranks.
///
/// **What ends a wait.** A stream has no deadline, but `finish` has. When it passes, or a peer has abandoned the group
/// or ended, the group ends. Then this rank writes the words that its own streams wait for, until the streams are idle;
/// their results are invalid, and an error reports that. Resources of a stream that does not end are never freed.
#pragma once

#include <hocket/bootstrap/blob.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/deadline.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/text.hpp>
#include <hocket/transport/concept.hpp>
#include <hocket/transport/cuda_ipc/agreement.hpp>
#include <hocket/transport/cuda_ipc/check_shared_device.hpp>
#include <hocket/transport/cuda_ipc/context_scope.hpp>
#include <hocket/transport/cuda_ipc/driver_status.hpp>
#include <hocket/transport/cuda_ipc/driver_types.hpp>
#include <hocket/transport/cuda_ipc/export_cache.hpp>
#include <hocket/transport/cuda_ipc/host_words.hpp>
#include <hocket/transport/cuda_ipc/mapping_cache.hpp>
#include <hocket/transport/cuda_ipc/memory_handle.hpp>
#include <hocket/transport/cuda_ipc/peer_visible_memory.hpp>
#include <hocket/transport/cuda_ipc/probe.hpp>
#include <hocket/transport/cuda_ipc/process_mark.hpp>
#include <hocket/transport/cuda_ipc/resources.hpp>
#include <hocket/transport/cuda_ipc/stream_order.hpp>
#include <hocket/transport/cuda_ipc/teardown.hpp>
#include <hocket/transport/cuda_ipc/word_layout.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace cuda_ipc {

struct group_options {
  device_number device = 0;
  process_mark process;  ///< `own_mark()` of this rank
  deadline until;        ///< for making the group
  /// A stream for operations: runs its first work while the group is made, if threads share its device.
  stream_handle stream = nullptr;
  /// Number of streams of a process that run concurrently on a device; 0: CUDA_DEVICE_MAX_CONNECTIONS, or 8.
  int connections = 0;
  /// Passes consecutive word operations to a stream in one call. One call for each has the same effect, but costs more.
  bool batches = true;
  /// Returns whether a peer's process has ended; empty: the kernel is queried.
  std::function<bool(int peer)> has_ended = {};
  /// Called now and then while waiting for streams: returns a failure that ends the wait. Empty: never ends a wait.
  std::function<failure()> interrupted = {};
  /// Called with the reason when the group ends, before peers learn of it and streams are drained.
  std::function<void(const failure&)> ends = {};
  /// Time that streams may take to become idle once the group has ended.
  std::chrono::nanoseconds drain = std::chrono::seconds(5);
};

/// One rank's part of a group. Use from one thread at a time.
template <class Driver>
class group {
 public:
  using lease = typename mapping_cache<Driver>::lease;

  /// Resources of one bound operation, held while a stream may use them.
  struct in_flight_operation {
    std::uint64_t number = 0;  ///< position among the operations that all ranks have bound
    std::vector<lease> leases;
    device_memory<Driver> scratch;
    address peer_visible = 0;    ///< scratch memory that peers read
    owned_event<Driver> passed;  ///< recorded after it was last enqueued
    bool recorded = false;
    bool captured = false;  ///< a graph may replay it at any time
    bool dropped = false;   ///< it will not be enqueued again

    void abandon() noexcept {
      for (lease& each : leases) each.abandon();
      scratch.abandon();
      passed.abandon();
    }
  };

  group(const group&) = delete;
  group& operator=(const group&) = delete;

  /// Without `close`, memory that peers may have mapped or a stream may use is not freed.
  ~group() {
    if (!closed_) abandon();
  }

  /// Makes the group. Collective over the `ranks` that `exchange` joins; milliseconds. All ranks get one, or the same
  /// error, which names a rank: `unreachable` if two can't reach each other's memory, or a stream can't wait for words;
  /// `bad_environment` if ranks of a process would block each other on a device; errors of the driver. Throws what
  /// `exchange` throws. Driver and context must outlive the group.
  static failure make(const driver_context<Driver>& at, int rank, int ranks,
                      const transport::exchange_function& exchange, group_options options,
                      std::unique_ptr<group>& result) {
    std::unique_ptr<group> made(new group(at, rank, ranks, std::move(options)));
    failure found = made->exchange_handles(exchange);
    if (found) {
      made->undo(exchange);
      return found;
    }
    result = std::move(made);
    return {};
  }

  int rank() const noexcept { return rank_; }
  int size() const noexcept { return ranks_; }
  Driver& through() const noexcept { return *at_.through; }
  const driver_context<Driver>& where() const noexcept { return at_; }
  const word_layout& words() const noexcept { return layout_; }
  bool batches() const noexcept { return options_.batches; }
  /// True if all ranks are on the same device.
  bool one_device() const noexcept { return one_device_; }

  /// Returns this rank's address of the word of `owner` for a signal of `signaller`.
  address word(int owner, word_bank bank, unsigned number, int signaller) const noexcept {
    const address base = owner == rank_ ? own_words_ : their_words_[static_cast<std::size_t>(owner)].data();
    return base + layout_.offset(bank, number, signaller);
  }
  /// Returns the flags for waits of this rank's streams.
  unsigned wait_flags() const noexcept { return wait_until_at_least | (order_.flushes ? wait_then_flush : 0U); }

  export_cache<Driver>& exports() noexcept { return exports_; }
  const peer_visible_memory<Driver>& peer_visible() const noexcept { return peer_visible_; }
  mapping_cache<Driver>& mappings() noexcept { return mappings_; }

  /// Returns why operations can't be enqueued any more; no failure if they can.
  failure usable() const {
    if (closed_)
      return make_failure(errc::revoked, "this rank has closed the group of devices: make a new one with reach_peers");
    if (!over_) return {};
    return make_failure(errc::revoked, "an earlier failure ended the group of these ranks: " + over_.quoted(),
                        {.peer = over_.context.peer});
  }

  /// Checks that a stream can wait for others; sets `misuse` if it can't. Sets `capturing` to whether it is captured:
  /// its flags are then irrelevant, and the driver refuses to return them.
  failure check(stream_handle stream, bool& capturing, failure& misuse) {
    if (is_default_stream(stream)) {
      misuse =
          make_failure(errc::invalid_argument,
                       "pass a stream that was created with cudaStreamNonBlocking: the default stream blocks all other "
                       "streams, including those that it would wait for");
    }
    if (misuse) return {};
    capture_status now = capture_status::none;
    status returned = through().stream_is_capturing(stream, &now);
    if (returned != status::success)
      return status_failure(through(), "asking the driver whether the stream is being captured", returned);
    capturing = now != capture_status::none;
    if (capturing || !shares_context_) return {};
    unsigned flags = 0;
    returned = through().stream_get_flags(stream, &flags);
    if (returned != status::success)
      return status_failure(through(), "asking the driver for the flags of the stream", returned);
    if ((flags & stream_non_blocking) != 0) return {};
    misuse = make_failure(errc::invalid_argument,
                          "the stream waits for the default stream, where a copy by one rank would block work that "
                          "another rank waits for: ranks that are threads on one device must create their streams with "
                          "cudaStreamNonBlocking");
    return {};
  }

  /// Returns a new record of an operation, which this group retains until the operation has passed.
  std::shared_ptr<in_flight_operation> new_in_flight_operation() {
    reap();
    in_flight_.push_back(std::make_shared<in_flight_operation>());
    return in_flight_.back();
  }

  /// Numbers an operation that all ranks have bound.
  void admit(in_flight_operation& what) noexcept { what.number = ++bound_; }

  /// Frees the resources of completed operations. The driver may then wait for streams, and these for ranks that have
  /// not enqueued yet; so call it only when all ranks have enqueued their operations.
  void free_reaped() { reaped_.clear(); }

  /// Allocates scratch memory that peers may map, for the lifetime of `what`; it is reused afterwards. Local.
  failure allocate_peer_visible(in_flight_operation& what, std::size_t bytes) {
    return peer_visible_.allocate(bytes, what.peer_visible);
  }

  /// Returns a lock to hold while enqueueing: empty if no other rank shares the context, or the stream is captured.
  std::unique_lock<std::mutex> turn(bool capturing) const {
    return shares_context_ && !capturing ? std::unique_lock(detail::turns_of_threads())
                                         : std::unique_lock<std::mutex>();
  }

  /// Call before an operation is enqueued on `stream`. Local.
  failure begin(stream_handle stream, bool capturing) {
    if (failure found = usable()) return found;
    if (capturing || last_ == nullptr || !last_->recorded) return {};
    const status returned = through().stream_wait_event(stream, last_->passed.get(), 0U);
    return returned == status::success
               ? failure()
               : status_failure(through(), "ordering the stream after the group's previous operation", returned);
  }

  /// Call after the operation was enqueued.
  failure end(stream_handle stream, const std::shared_ptr<in_flight_operation>& what, bool capturing) {
    if (capturing) {
      what->captured = true;
      return {};
    }
    const status returned = through().event_record(what->passed.get(), stream);
    if (returned != status::success)
      return status_failure(through(), "recording an event after an operation on the stream", returned);
    what->recorded = true;
    last_ = what;
    history_ = (history_ ^ what->number) * 0x9e3779b97f4a7c15U;
    history_ ^= history_ >> 29U;
    host_.arrive(++operations_, history_);
    return {};
  }

  /// Waits until all work on `stream` is done. Local. `timeout` at `until` names a rank that has enqueued fewer
  /// operations than this rank; `mismatch` if a rank has enqueued operations in another order; `aborted` if a peer has
  /// abandoned the group; `peer_lost` if its process has ended; errors of the driver. After any of these the group has
  /// ended, and results are invalid.
  failure finish(stream_handle stream, const deadline& until) {
    const context_scope scope(through(), at_.where);
    if (failure found = scope.refused()) return end_failed_group(stream, std::move(found));
    return wait_for([&] { return through().stream_query(stream); }, stream, until);
  }
  /// Like `finish`, for one operation.
  failure finish(const std::shared_ptr<in_flight_operation>& what, const deadline& until) {
    if (!what->recorded) return over_ ? usable() : failure();
    const context_scope scope(through(), at_.where);
    if (failure found = scope.refused()) return end_failed_group(nullptr, std::move(found));
    return wait_for(query_of(*what), nullptr, until);
  }
  /// Sets `done` without waiting, with the failures of `finish`.
  failure test(const std::shared_ptr<in_flight_operation>& what, const deadline& until, bool& done) {
    done = !what->recorded;
    if (done) return over_ ? usable() : failure();
    const context_scope scope(through(), at_.where);
    if (failure found = scope.refused()) return end_failed_group(nullptr, std::move(found));
    return look(query_of(*what), nullptr, until, true, done);
  }

  /// Ends the group on this rank because of `cause`, reports that to the others, and drains `stream` and all active
  /// operations. Returns `cause`.
  failure end_failed_group(stream_handle stream, failure cause) {
    if (!over_) {
      over_ = cause;
      if (options_.ends) options_.ends(cause);
    }
    host_.report_end(cause.context.peer >= 0 && cause.context.peer < ranks_ ? cause.context.peer : rank_);
    if (!drained(stream)) stuck_ = true;
    return cause;
  }

  /// Ends the group. Collective; ranks may arrive at any time. Waits for active operations, unmaps, waits for the
  /// others and frees. Graphs that replay operations of this group must be done. May be called again after `timeout`.
  ///
  /// - errors of `finish` for an active operation: everything is freed if the streams have become idle.
  /// - errors of teardown. An interruption leaves others the time of `drain`, and is returned even if all was freed.
  failure close(const deadline& until) {
    if (closed_) return {};
    failure first;
    for (const std::shared_ptr<in_flight_operation>& each : in_flight_) {
      if (stuck_ || !each->recorded || over_) continue;
      failure found = finish(each, until);
      if (found && !first) first = std::move(found);
    }
    if (stuck_) {
      abandon();
      return first ? first
                   : make_failure(errc::timeout,
                                  "the work on a stream of this rank does not end: the memory that it may use stays "
                                  "allocated until the process ends");
    }
    for (const auto* const all : {&in_flight_, &reaped_}) {
      for (const std::shared_ptr<in_flight_operation>& each : *all) each->leases.clear();
    }
    their_words_.clear();
    auto peers = host_.teardown_peers(has_ended_);
    failure cancelled;
    const auto interrupted = [&] {
      if (!cancelled) cancelled = interruption();
      return cancelled;
    };
    failure ending = teardown_(peers, until, interrupted, options_.drain);
    closed_ = teardown_.done();
    if (closed_) free_all();
    if (cancelled && !over_) {  // and has not been reported
      over_ = cancelled;
      if (options_.ends) options_.ends(cancelled);
      if (!first) first = std::move(cancelled);
    }
    return first ? std::move(first) : std::move(ending);
  }

  bool closed() const noexcept { return closed_; }
  /// Returns the number of operations that the group retains.
  std::size_t in_flight() const noexcept { return in_flight_.size(); }

 private:
  group(const driver_context<Driver>& at, int rank, int ranks, group_options options)
      : at_(at), rank_(rank), ranks_(ranks), options_(std::move(options)), layout_(ranks),
        mappings_(*at.through, at.where, options_.process), exports_(at, options_.process), peer_visible_(at),
        teardown_(mappings_, peer_visible_) {}

  // ── Making ───────────────────────────────────────────────────────────────────────────────────────────────────────

  failure exchange_handles(const transport::exchange_function& exchange) {
    const auto ranks = static_cast<std::size_t>(ranks_);
    const std::vector<std::byte> offer = own_offer();
    std::vector<std::vector<std::byte>> contributions;
    failure found = detail::decode_answers(exchange(offer), ranks, contributions);
    if (found) return found;
    const reach reached = probe(at_, options_.process, rank_, ranks, exchange, options_.until);
    found = detail::agreed(open_all(contributions, reached), ranks, exchange);
    host_.hide();
    return found;
  }

  std::vector<std::byte> own_offer() {
    memory_handle words;
    const failure found = prepare(words);
    std::vector<std::byte> contribution;
    if (!found) {
      contribution = encode(words);
      bootstrap::detail::append_bytes(contribution, host_.ticket());
    }
    return detail::encode_answer(found, contribution);
  }

  failure prepare(memory_handle& words) {
    failure found = host_.make();
    if (!found) found = peer_visible_.allocate(layout_.bytes(), own_words_);
    if (!found) found = owned_stream<Driver>::make(at_, cleanup_stream_);
    if (!found) found = clear_words();
    if (!found) found = exports_.handle_of(own_words_, layout_.bytes(), words);
    if (found) return found;
    order_ = stream_order_of(at_, options_.device, options_.until);
    if (order_.words) return {};
    return make_failure(errc::unreachable,
                        "streams of this device can't wait for a word in device memory: " + order_.why_not);
  }

  /// Clears the words on the stream that may have to rescue others: its first work ensures that it has a connection.
  failure clear_words() {
    pinned_memory<Driver> zeros;
    failure found = pinned_memory<Driver>::make(at_, zeros, layout_.bytes());
    if (found) return found;
    std::memset(zeros.get(), 0, layout_.bytes());
    const context_scope scope(through(), at_.where);
    status returned = scope.entered();
    if (returned == status::success) {
      returned = through().memcpy_async(own_words_, reinterpret_cast<address>(zeros.get()), layout_.bytes(),
                                        cleanup_stream_.get());
    }
    if (returned != status::success)
      return status_failure(through(), "clearing the words in device memory that streams wait for", returned);
    bool idle = false;
    found = cuda_ipc::finish(through(), cleanup_stream_.get(), options_.until, idle);
    if (!idle) {
      stuck_ = true;
      zeros.abandon();
      cleanup_stream_.abandon();
    }
    return found;
  }

  /// Opens everything that peers have offered.
  failure open_all(const std::vector<std::vector<std::byte>>& contributions, const reach& reached) {
    std::vector<std::vector<std::byte>> tickets;
    std::vector<memory_handle> handles;
    for (const std::vector<std::byte>& each : contributions) {
      const std::span<const std::byte> bytes(each);
      const std::size_t split = std::min(bytes.size(), encoded_handle_bytes);
      const std::optional<memory_handle> handle = decode(bytes.first(split));
      if (!handle) {
        return make_failure(
            errc::corrupted,
            hocket::detail::concat(
                {"rank ", handles.size(), " sent an invalid handle of the device memory that its peers must open"}));
      }
      handles.push_back(*handle);
      tickets.emplace_back(bytes.begin() + static_cast<std::ptrdiff_t>(split), bytes.end());
    }
    if (failure found = host_.open(rank_, tickets)) return found;
    if (failure found = reached_all(reached)) return found;
    if (failure found = share(handles)) return found;
    if (failure found = settle()) return found;
    watch(handles);
    one_device_ = std::all_of(handles.begin(), handles.end(),
                              [&](const memory_handle& each) { return each.device == handles.front().device; });
    their_words_.resize(handles.size());
    for (std::size_t peer = 0; peer < handles.size(); ++peer) {
      if (static_cast<int>(peer) == rank_) continue;
      if (failure found = mappings_.open(handles[peer], their_words_[peer])) return found;
    }
    return {};
  }

  failure reached_all(const reach& reached) const {
    for (int a = 0; a < ranks_; ++a) {
      for (int b = 0; b < a; ++b) {
        if (!reached.why_not(a, b).empty()) return make_failure(errc::unreachable, reached.why_not(a, b));
      }
    }
    return {};
  }

  /// Finds out whether other ranks of this process share the device, and checks that they can.
  failure share(const std::vector<memory_handle>& all) {
    const auto together = std::count_if(all.begin(), all.end(), [&](const memory_handle& each) {
      return each.process.same_process(options_.process) && each.device == all[index(rank_)].device;
    });
    shares_context_ = together > 1;
    return shares_context_ ? check_shared_device(through(), static_cast<int>(together), options_.connections)
                           : failure();
  }

  /// Enqueues the first work on the stream of the options and waits for it: see check_shared_device.hpp. Writes the
  /// word for signals of this rank to itself, which is otherwise unused.
  failure settle() {
    const stream_handle stream = options_.stream;
    if (!shares_context_ || is_default_stream(stream)) return {};
    const context_scope scope(through(), at_.where);
    if (failure found = scope.refused()) return found;
    capture_status now = capture_status::none;
    status returned = through().stream_is_capturing(stream, &now);
    if (returned == status::success && now != capture_status::none) return {};
    if (returned == status::success) {
      returned =
          through().stream_write_value_32(stream, own_words_ + layout_.offset(word_bank::early, 0, rank_), 0U, 0U);
    }
    if (returned != status::success)
      return status_failure(through(), "enqueueing the first work on the stream", returned);
    bool idle = false;
    failure found = cuda_ipc::finish(through(), stream, options_.until, idle);
    if (!idle) stuck_ = true;
    return found;
  }

  void watch(const std::vector<memory_handle>& all) {
    has_ended_ = options_.has_ended;
    if (has_ended_) return;
    std::vector<process_mark> marks;
    for (const memory_handle& each : all) marks.push_back(each.process);
    auto watches = std::make_shared<process_watches>(options_.process, marks);
    has_ended_ = [watches](int peer) { return (*watches)(peer); };
  }

  /// Cleans up after a failure that all ranks know of. Frees nothing before all have unmapped.
  void undo(const transport::exchange_function& exchange) {
    their_words_.clear();
    failure unmapping = mappings_.close_all();
    if (mappings_.size() == 0) unmapping = {};  // a mapping that fails to close is unusable anyway
    const failure found = detail::agreed(unmapping, static_cast<std::size_t>(ranks_), exchange);
    if (!found && !stuck_) static_cast<void>(peer_visible_.free_all());
    closed_ = true;
  }

  // ── Waiting ──────────────────────────────────────────────────────────────────────────────────────────────────────

  /// Returns a function that queries whether an operation is done.
  auto query_of(const in_flight_operation& what) const {
    return [this, &what] { return through().event_query(what.passed.get()); };
  }

  template <class Query>
  failure wait_for(Query query, stream_handle stream, const deadline& until) {
    for (std::size_t round = 0;; ++round) {
      bool done = false;
      failure found = look(query, stream, until, round % 64 == 63, done);
      if (done || found) return found;
      if (round < 1000) {
        std::this_thread::yield();
      } else {
        std::this_thread::sleep_for(std::chrono::microseconds(20));
      }
    }
  }

  /// Sets `done` to whether `query` succeeds; or returns why it never will.
  template <class Query>
  failure look(const Query& query, stream_handle stream, const deadline& until, bool ask_kernel, bool& done) {
    const status returned = query();
    done = returned == status::success;
    if (!done && returned != status::not_ready) {
      return end_failed_group(stream, status_failure(through(), "waiting for the work on a stream", returned));
    }
    if (!done) {
      if (failure found = interruption()) return end_failed_group(stream, std::move(found));
    }
    // A peer that abandons the group reports that before it signals work that it has not done.
    if (failure found = peers_failed(ask_kernel && !done))
      return end_failed_group(stream, prefer_interruption(std::move(found)));
    const bool late = !done && until.passed();
    if (done || late) {
      if (failure found = order_failure()) return end_failed_group(stream, std::move(found));
    }
    if (late) return end_failed_group(stream, late_failure());
    return done && over_ ? usable() : failure();
  }

  failure interruption() const { return options_.interrupted ? options_.interrupted() : failure(); }
  /// Prefers an interruption to `found`: the abandoning rank may have reported a more precise reason elsewhere before.
  failure prefer_interruption(failure found) const {
    failure preferred = interruption();
    return preferred ? preferred : found;
  }

  failure peers_failed(bool ask_kernel) {
    for (int peer = 0; peer < ranks_; ++peer) {
      if (peer == rank_) continue;
      if (const int culprit = host_.culprit_named_by(peer); culprit >= 0 && culprit < ranks_) {
        const std::string fault = culprit == peer ? "" : hocket::detail::concat({" because of rank ", culprit});
        return make_failure(
            errc::aborted,
            hocket::detail::concat({"rank ", peer, " has abandoned the group", fault, ": its contribution is missing"}),
            {.peer = culprit});
      }
      if (ask_kernel && has_ended_(peer)) {
        return make_failure(errc::peer_lost, "the rank's process has ended", {.peer = peer});
      }
    }
    return {};
  }

  failure order_failure() const {
    for (int peer = 0; peer < ranks_; ++peer) {
      const std::uint64_t other = peer == rank_ ? 0 : host_.first_difference(peer);
      if (other == 0) continue;
      return make_failure(errc::mismatch,
                          hocket::detail::concat(
                              {"operation ", other, " that rank ", peer,
                               " has enqueued differs from this rank's: all ranks must enqueue the same calls in the "
                               "same order"}),
                          {.peer = peer});
    }
    return {};
  }

  failure late_failure() const {
    for (int peer = 0; peer < ranks_; ++peer) {
      if (peer == rank_ || host_.arrived(peer) >= operations_) continue;
      return make_failure(
          errc::timeout,
          hocket::detail::concat({"all ranks must enqueue the same operations: rank ", peer, " has enqueued ",
                                  host_.arrived(peer), " operations, but this rank has enqueued ", operations_}),
          {.peer = peer});
    }
    return make_failure(errc::timeout,
                        "all ranks have enqueued the operation, but the work on the stream did not end before the "
                        "deadline: look for slow work on the streams of all ranks, or set a longer timeout");
  }

  /// Signals this rank's own streams until they no longer wait. Repeats that, because each wait resets its word.
  /// Returns false if the streams do not end, or the driver does not confirm it.
  bool drained(stream_handle stream) {
    const context_scope scope(through(), at_.where);
    const deadline until = deadline::after(options_.drain);
    bool rescued = false;
    while (!at_rest(stream)) {
      if (until.passed()) return false;
      for (std::size_t i = 0; i < layout_.count(); ++i) {
        static_cast<void>(
            through().stream_write_value_32(cleanup_stream_.get(), own_words_ + i * sizeof(std::uint32_t), 1U, 0U));
      }
      rescued = true;
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    while (rescued && through().stream_query(cleanup_stream_.get()) != status::success) {
      if (until.passed()) return false;
      std::this_thread::yield();
    }
    return true;
  }

  bool at_rest(stream_handle stream) {
    if (stream != nullptr && through().stream_query(stream) != status::success) return false;
    for (const std::shared_ptr<in_flight_operation>& each : in_flight_) {
      if (each->recorded && query_of(*each)() != status::success) return false;
    }
    return true;
  }

  // ── Storage ──────────────────────────────────────────────────────────────────────────────────────────────────────

  void reap() {
    if (std::none_of(in_flight_.begin(), in_flight_.end(), [](const auto& each) { return each->dropped; })) return;
    const context_scope scope(through(), at_.where);
    std::erase_if(in_flight_, [&](const std::shared_ptr<in_flight_operation>& each) {
      if (!each->dropped || each->captured || each == last_ || stuck_) return false;
      if (each->recorded && query_of(*each)() != status::success) return false;
      peer_visible_.mark_spare(each->peer_visible);
      reaped_.push_back(each);
      return true;
    });
  }

  /// Frees all operations. Callers may still hold their records.
  void free_all() {
    for (const std::shared_ptr<in_flight_operation>& each : in_flight_) {
      each->scratch = {};
      each->passed = {};
      each->recorded = false;
    }
    in_flight_.clear();
    reaped_.clear();
    last_.reset();
    cleanup_stream_ = {};
  }

  void abandon() noexcept {
    for (const auto* const all : {&in_flight_, &reaped_}) {
      for (const std::shared_ptr<in_flight_operation>& each : *all) each->abandon();
    }
    for (lease& each : their_words_) each.abandon();
    cleanup_stream_.abandon();
  }

  std::size_t index(int rank) const noexcept { return static_cast<std::size_t>(rank); }

  const driver_context<Driver> at_;
  const int rank_;
  const int ranks_;
  const group_options options_;
  const word_layout layout_;
  stream_order order_;
  host_words host_;
  mapping_cache<Driver> mappings_;
  export_cache<Driver> exports_;
  peer_visible_memory<Driver> peer_visible_;
  teardown<Driver> teardown_;
  address own_words_ = 0;
  std::vector<lease> their_words_;
  owned_stream<Driver> cleanup_stream_;
  std::function<bool(int)> has_ended_;
  std::vector<std::shared_ptr<in_flight_operation>> in_flight_;
  std::vector<std::shared_ptr<in_flight_operation>> reaped_;  ///< completed, and not freed yet
  std::shared_ptr<in_flight_operation> last_;
  std::uint64_t bound_ = 0;       ///< operations that all ranks have bound
  std::uint64_t operations_ = 0;  ///< operations that were enqueued
  std::uint64_t history_ = 0;     ///< hash of these, in their order
  failure over_;
  bool one_device_ = false;
  bool shares_context_ = false;  ///< other ranks use the same context
  bool stuck_ = false;
  bool closed_ = false;
};

}  // namespace cuda_ipc
HOCKET_END_NAMESPACE
