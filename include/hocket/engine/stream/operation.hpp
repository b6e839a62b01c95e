// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// A collective on device memory, by the same plans as on the host, enqueued on streams.
///
/// Binding is collective and costs two exchanges between hosts, in which ranks publish their buffers. Enqueueing is
/// local, does not wait, and may be captured in a graph, any number of times: the host keeps no count of it. Bind once
/// to repeat an operation on the same buffers.
#pragma once

#include <hocket/bootstrap/blob.hpp>
#include <hocket/communicator/window.hpp>
#include <hocket/core/checksum.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/deadline.hpp>
#include <hocket/core/error.hpp>
#include <hocket/engine/stream/binding.hpp>
#include <hocket/engine/stream/program.hpp>
#include <hocket/plan/merged_lanes.hpp>
#include <hocket/plan/signal_reuse.hpp>
#include <hocket/transport/cuda_ipc/agreement.hpp>
#include <hocket/transport/cuda_ipc/group.hpp>
#include <hocket/transport/cuda_ipc/word_layout.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace detail {

static_assert(cuda_ipc::word_layout::tags == signal_line::tags, "plans use the same tags on streams as on the host");

/// One rank's part of a bound operation. Used by the thread that uses the group. The group must outlive it.
template <class Driver>
class stream_operation {
 public:
  using group_type = cuda_ipc::group<Driver>;

  stream_operation(const stream_operation&) = delete;
  stream_operation& operator=(const stream_operation&) = delete;
  ~stream_operation() { in_flight_->dropped = true; }

  /// Binds the plan on all ranks, or on none: then all ranks get the same error, and the group remains usable.
  ///
  /// - `invalid_argument`: streams can't run the plan, or buffers overlap.
  /// - `mismatch`: ranks bind different plans, lengths or types.
  /// - `unreachable`: peers can't open a buffer: it must be staged.
  ///
  /// Buffers must stay valid until the operation is destroyed, and, after a failure, until the group is closed.
  static failure bind(group_type& on, stream_binding bound, const transport::exchange_function& exchange,
                      std::unique_ptr<stream_operation>& result) {
    std::unique_ptr<stream_operation> made(new stream_operation(on, std::move(bound)));
    const auto ranks = static_cast<std::size_t>(on.size());
    std::vector<std::vector<std::byte>> contributions;
    if (failure found = cuda_ipc::detail::decode_answers(exchange(made->offer()), ranks, contributions)) return found;
    if (failure found = cuda_ipc::detail::agreed(made->accept(contributions), ranks, exchange)) return found;
    on.admit(*made->in_flight_);
    result = std::move(made);
    return {};
  }

  /// Enqueues it on `stream`. Local; does not wait. Each rank must enqueue the operations of a group in the same order.
  /// After a failure the group has ended, and everything that was enqueued has drained.
  failure enqueue(cuda_ipc::stream_handle stream) {
    const cuda_ipc::context_scope scope(group_.through(), group_.where().where);
    if (failure found = group_.usable()) return found;
    failure misuse;
    failure found = scope.refused();
    bool capturing = false;
    if (!found) found = group_.check(stream, capturing, misuse);
    if (misuse) return misuse;
    if (!found) found = enqueue(stream, capturing);
    return found ? group_.end_failed_group(capturing ? nullptr : stream, std::move(found)) : failure();
  }

  /// Waits until it is complete on this rank: see `group::finish`.
  failure finish(const deadline& until) { return group_.finish(in_flight_, until); }
  /// Sets `done` to whether it is complete, without waiting: see `group::test`.
  failure test(const deadline& until, bool& done) { return group_.test(in_flight_, until, done); }

  const stream_program& program() const noexcept { return program_; }

 private:
  stream_operation(group_type& on, stream_binding bound)
      : group_(on), bound_(std::move(bound)), in_flight_(on.new_in_flight_operation()) {}

  std::size_t scratch_bytes() const {
    return bound_.plan.shape(group_.size()).scratch * layout_of(bound_, group_.size()).largest_chunk() *
           bound_.element_kernel->size;
  }

  // ── Binding ──────────────────────────────────────────────────────────────────────────────────────────────────────

  std::vector<std::byte> offer() {
    std::vector<std::byte> contribution;
    const failure found = prepare(contribution);
    return cuda_ipc::detail::encode_answer(found, contribution);
  }

  failure prepare(std::vector<std::byte>& contribution) {
    const int ranks = group_.size();
    if (failure found = group_.usable()) return found;
    if (bound_.refused) return bound_.refused;
    failure wrong = bound_.fused ? refused_fused(bound_, ranks, group_.one_device())
                                 : refused_by_streams(bound_, ranks, group_.rank(), cuda_ipc::word_layout::tags);
    if (wrong) return wrong;
    in_place_ = has_in_place_input(bound_, ranks, group_.rank(), wrong) && !bound_.fused;
    if (in_place_) {
      bound_.plan = bound_.plan.for_in_place();
      wrong = refused_by_streams(bound_, ranks, group_.rank(), cuda_ipc::word_layout::tags);
    }
    if (wrong) return wrong;
    const plan::signal_reuse reuse(bound_.plan, ranks);
    order_ = plan::merge_lanes(bound_.plan, ranks);
    if (!bound_.fused && !(reuse.complete() && order_.complete)) {
      return make_failure(errc::invalid_argument,
                          "plan '" + std::string(bound_.plan.name()) +
                              "' has waits, signals or messages without a counterpart: see plan::prove");
    }
    has_messages_ = !order_.messages.empty();
    bootstrap::detail::append_integer(contribution, signature());
    if (failure found = offer_buffer(plan::region::in, bound_.in, contribution)) return found;
    if (failure found = offer_buffer(plan::region::out, bound_.out, contribution)) return found;
    if (failure found = allocate_scratch()) return found;
    return offer_buffer(plan::region::scratch, in_flight_->peer_visible, contribution);
  }

  /// Allocates scratch memory. Peers can read it only if the plan sends from it.
  failure allocate_scratch() {
    const std::size_t bytes = bound_.fused ? 0 : scratch_bytes();
    if (bytes == 0) return {};
    if (is_read_by_peers(order_, plan::region::scratch)) return group_.allocate_peer_visible(*in_flight_, bytes);
    return cuda_ipc::device_memory<Driver>::make(group_.where(), in_flight_->scratch, bytes);
  }

  /// Hash that is equal if ranks bind the same call. The in-place form counts as the same, except if there are
  /// messages: all ranks must derive the same order of them.
  std::uint64_t signature() const {
    const plan::collective collective = bound_.plan.collective();
    std::vector<std::byte> text = bootstrap::text_blob(bound_.plan.name());
    for (const std::uint64_t each :
         {static_cast<std::uint64_t>(collective.kind), static_cast<std::uint64_t>(collective.root),
          static_cast<std::uint64_t>(bound_.block_elements), static_cast<std::uint64_t>(bound_.element_kernel->size),
          static_cast<std::uint64_t>(bound_.fused), static_cast<std::uint64_t>(in_place_ && has_messages_),
          bound_.types}) {
      bootstrap::detail::append_integer(text, each);
    }
    return checksum(text);
  }

  /// Appends a handle of the buffer, if peers read it and it is not empty.
  failure offer_buffer(plan::region which, std::uint64_t data, std::vector<std::byte>& contribution) {
    const std::size_t bytes = bytes_of_region(which, group_.rank());
    const bool needed = group_.size() > 1 && data != 0 && bytes != 0 &&
                        (bound_.fused ? group_.rank() != 0 : is_read_by_peers(order_, which));
    bootstrap::detail::append_integer(contribution, static_cast<std::uint8_t>(needed));
    if (!needed) return {};
    cuda_ipc::memory_handle handle;
    if (failure found = group_.exports().handle_of(data, bytes, handle)) return found;
    bootstrap::detail::append_bytes(contribution, cuda_ipc::encode(handle));
    return {};
  }

  std::size_t bytes_of_region(plan::region which, int rank) const {
    if (which == plan::region::scratch) return bound_.fused ? 0 : scratch_bytes();
    return bytes_of(bound_, which, group_.size(), rank).size;
  }

  failure accept(const std::vector<std::vector<std::byte>>& contributions) {
    group_.free_reaped();
    stream_buffers at;
    for (int peer = 0; peer < group_.size(); ++peer) {
      bootstrap::detail::blob_reader from(contributions[static_cast<std::size_t>(peer)]);
      if (from.integer<std::uint64_t>() != signature()) {
        const std::string in_place = has_messages_ ? ", or only one of them binds in place" : "";
        return make_failure(errc::mismatch, "rank " + std::to_string(peer) +
                                                " binds a different plan, length or element size than rank " +
                                                std::to_string(group_.rank()) + in_place);
      }
      if (failure found = reach(peer, plan::region::in, from, at.in)) return found;
      if (failure found = reach(peer, plan::region::out, from, at.out)) return found;
      if (failure found = reach(peer, plan::region::scratch, from, at.scratch)) return found;
    }
    if (failure found = cuda_ipc::owned_event<Driver>::make(group_.where(), in_flight_->passed)) return found;
    if (failure found = load_kernels()) return found;
    const plan::signal_reuse reuse(bound_.plan, group_.size());
    program_ = stream_compiler<group_type>(group_, bound_, at, reuse, order_)();
    order_ = {};
    return {};
  }

  failure load_kernels() {
    if (bound_.element_kernel->load == nullptr) return {};
    const cuda_ipc::context_scope scope(group_.through(), group_.where().where);
    failure found = scope.refused();
    if (!found) found = bound_.element_kernel->load(static_cast<std::size_t>(group_.size()));
    if (!found && !bound_.fused && combines_messages(order_, group_.rank())) found = bound_.element_kernel->load(2);
    return found;
  }

  failure reach(int peer, plan::region which, bootstrap::detail::blob_reader& from, std::vector<std::uint64_t>& all) {
    const bool has_handle = from.integer<std::uint8_t>() != 0;
    const std::span<const std::byte> bytes =
        has_handle ? from.bytes(cuda_ipc::encoded_handle_bytes) : std::span<const std::byte>();
    if (peer == group_.rank()) {
      all.push_back(own_place(which));
      return {};
    }
    all.push_back(0);
    if (!has_handle || (bound_.fused && group_.rank() != 0)) return {};
    const std::optional<cuda_ipc::memory_handle> handle = cuda_ipc::decode(bytes);
    if (!handle || handle->length < bytes_of_region(which, peer)) {
      return make_failure(errc::corrupted, "the peer published an invalid buffer descriptor", {.peer = peer});
    }
    typename group_type::lease opened;
    if (failure found = group_.mappings().open(*handle, opened)) return found;
    all.back() = opened.data();
    in_flight_->leases.push_back(std::move(opened));
    return {};
  }

  std::uint64_t own_place(plan::region which) const {
    if (which == plan::region::in) return bound_.in;
    if (which == plan::region::out) return bound_.out;
    return in_flight_->peer_visible != 0 ? in_flight_->peer_visible : in_flight_->scratch.get();
  }

  // ── Enqueueing ───────────────────────────────────────────────────────────────────────────────────────────────────

  failure enqueue(cuda_ipc::stream_handle stream, bool capturing) {
    const auto turn = group_.turn(capturing);
    failure found = group_.begin(stream, capturing);
    for (std::size_t i = 0; i < program_.steps.size() && !found;) {
      const std::size_t next = group_.batches() ? end_of_words(i) : i;
      found = next > i + 1 ? put_words(stream, i, next) : put(stream, program_.steps[i]);
      const std::size_t end = std::max(next, i + 1);
      for (; i < end && !found; ++i) report_step(program_.steps[i]);
    }
    return found ? found : group_.end(stream, in_flight_, capturing);
  }

  failure put(cuda_ipc::stream_handle stream, const stream_step& what) {
    using cuda_ipc::status;
    status returned = status::success;
    failure found;
    switch (what.what) {
      case stream_action_kind::set: returned = group_.through().stream_write_value_32(stream, what.to, 1U, 0U); break;
      case stream_action_kind::await:
        returned = group_.through().stream_wait_value_32(stream, what.to, 1U, group_.wait_flags());
        if (returned == status::success) returned = group_.through().stream_write_value_32(stream, what.to, 0U, 0U);
        break;
      case stream_action_kind::copy:
        returned = group_.through().memcpy_async(what.to, what.from, what.bytes, stream);
        break;
      case stream_action_kind::combine:
        found = bound_.element_kernel->combine_many(
            stream, bound_.operation, reinterpret_cast<void*>(static_cast<std::uintptr_t>(what.to)),
            program_.sources.data() + what.first_source, what.sources, what.bytes / bound_.element_kernel->size);
        break;
      case stream_action_kind::fuse:
        found = bound_.element_kernel->to_all(stream, bound_.operation, program_.destinations.data(),
                                              program_.sources.data(), program_.destinations.size(),
                                              what.bytes / bound_.element_kernel->size);
        break;
      case stream_action_kind::nothing: break;
    }
    if (returned != status::success)
      found = cuda_ipc::status_failure(group_.through(), "enqueueing a step of the plan on the stream", returned);
    if (found) {
      found.context.step = static_cast<int>(what.position);
      return found;
    }
    return {};
  }

  /// End of the steps from `first` that are word operations, limited to what a stream takes in one batch.
  std::size_t end_of_words(std::size_t first) const noexcept {
    std::size_t words = 0;
    std::size_t end = first;
    for (; end < program_.steps.size() && words + 2 <= most_words; ++end) {
      const stream_action_kind what = program_.steps[end].what;
      if (what != stream_action_kind::set && what != stream_action_kind::await) break;
      words += what == stream_action_kind::set ? 1 : 2;
    }
    return end;
  }

  failure put_words(cuda_ipc::stream_handle stream, std::size_t first, std::size_t end) {
    words_.clear();
    for (std::size_t i = first; i < end; ++i) {
      const stream_step& what = program_.steps[i];
      const bool sets = what.what == stream_action_kind::set;
      if (!sets) {
        words_.push_back({.what = cuda_ipc::word_wait_32, .at = what.to, .value = 1, .flags = group_.wait_flags()});
      }
      words_.push_back({.what = cuda_ipc::word_write_32, .at = what.to, .value = sets ? 1U : 0U});
    }
    const cuda_ipc::status returned =
        group_.through().stream_batch_mem_op(stream, static_cast<unsigned>(words_.size()), words_.data(), 0U);
    if (returned == cuda_ipc::status::success) return {};
    failure found = cuda_ipc::status_failure(group_.through(), "enqueueing a step of the plan on the stream", returned);
    found.context.step = static_cast<int>(program_.steps[first].position);
    return found;
  }

  void report_step(const stream_step& what) const {
    if (!what.last || bound_.observer.on_step == nullptr || what.position == stream_step::after_plan) return;
    bound_.observer.on_step(bound_.observer.context, completed_step{.lane = what.lane,
                                                                    .position = what.position,
                                                                    .what = bound_.plan.at(group_.size(), group_.rank(),
                                                                                           what.lane, what.position),
                                                                    .bytes = what.bytes});
  }

  static constexpr std::size_t most_words = 255;  // limit of the driver for one batch

  group_type& group_;
  stream_binding bound_;
  std::shared_ptr<typename group_type::in_flight_operation> in_flight_;
  plan::merged_lanes order_;  ///< only while binding
  bool in_place_ = false;
  bool has_messages_ = false;
  stream_program program_;
  std::vector<cuda_ipc::word_operation> words_;  ///< rebuilt for each batch
};

}  // namespace detail
HOCKET_END_NAMESPACE
