// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// A staged collective on device memory: one host call for each chunk, on pinned memory, between a copy to the host and
/// one back. While one chunk is combined, the next is copied to the host and the last to the device.
///
/// A chunk has the same elements of each block on all ranks, so each chunk is a separate host call, planned for its
/// size. The sequence numbers of all chunks are taken when the call is made.
#pragma once

#include <hocket/collective/device/call_resources.hpp>
#include <hocket/collective/device/call_spec.hpp>
#include <hocket/collective/device/chunks.hpp>
#include <hocket/collective/device/memory.hpp>
#include <hocket/collective/host/blocks.hpp>
#include <hocket/collective/host/host_call.hpp>
#include <hocket/collective/host/host_operation.hpp>
#include <hocket/collective/host/impl/call.ipp>
#include <hocket/communicator/planned_call.hpp>
#include <hocket/communicator/signature.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/engine/operation.hpp>
#include <hocket/engine/step_observer.hpp>
#include <hocket/transport/cuda_ipc/context_scope.hpp>
#include <hocket/transport/cuda_ipc/memory_space.hpp>
#include <hocket/transport/cuda_ipc/staging.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// A call that is divided into chunks, each of which is a host call.
template <class Driver>
struct staged_call_spec : device_call_spec<Driver> {
  template <class State>
  class operation_state;

  std::size_t chunk_bytes;

  template <class State>
  outcome check(State& state) const {
    outcome wrong =
        check_chunk(chunk_bytes, std::max(this->host.in_count, this->host.out_count) * this->host.element_size);
    return wrong.failed() ? std::move(wrong) : device_call_spec<Driver>::check(state);
  }

  template <class State>
  call_request asked(const State& state) const {
    call_request request = this->host.asked(state);
    const std::size_t size = std::max(this->host.element_size, request.element_size);
    const auto blocks = static_cast<std::size_t>(request.what.blocks(state.size()));
    request.block_elements = std::min(request.block_elements, std::max<std::size_t>(chunk_bytes / size / blocks, 1));
    if (this->host.blocks.lengths == block_lengths::known_to_all) {
      request.total_elements = total_of_blocks(this->host.blocks, request.block_elements);
    }
    const bool may_be_direct =
        this->in_tag == cuda_ipc::memory_space::pinned && this->out_tag == cuda_ipc::memory_space::pinned;
    // A call that prepares contributions reads `in` once, first of all, and works on a copy.
    request.in_place = this->host.prepares != nullptr || (may_be_direct && request.in_place);
    request.type_signature = mix(request.type_signature, hash_text("staged"));
    return request;
  }

  /// Adapts the plan, which was chosen for a chunk, to the whole vector.
  template <class State>
  void divide(const State& state, planned_call& whole) const {
    // If no rank knows the longest block of all ranks, none knows the number of chunks: the vector is one chunk.
    if (this->host.blocks.lengths == block_lengths::known_to_pairs) return;
    const std::size_t chunk = std::min(whole.layout.block_size(), whole.segment_elements);
    const std::size_t block = this->host.blocks.lengths == block_lengths::known_to_all
                                  ? longest_block(this->host.blocks)
                                  : block_length(this->host, state.rank(), state.size());
    whole.layout = {block, whole.layout.blocks(), whole.layout.chunks_per_block()};
    whole.segment_elements = std::max<std::size_t>(chunk, 1);
    if (HOCKET_MISMATCH_DETECTION) whole.signature = mix(mix(whole.signature, block), whole.segment_elements);
  }
};

/// The operation state of such a call: chunk after chunk, a host call on a slot.
template <class Driver>
template <class State>
class staged_call_spec<Driver>::operation_state final : public operation {
  static constexpr std::size_t slot_count = cuda_ipc::staging_slots;

  /// One of the caller's buffers.
  struct side {
    std::byte* data = nullptr;
    chunked_blocks blocks;
    bool is_direct = false;  ///< the host reads or writes it without staging
    bool is_copied = false;
    std::size_t at = 0;  ///< offset in a slot
  };

 public:
  operation_state(State& state, const staged_call_spec& spec, const planned_call& call, step_observer observer)
      : state_(state), host_(spec.host), operation_(host_.operation), has_input_(spec.has_input()),
        resources_(spec.resources), call_(call), observer_(observer),
        chunks_(segments_of(call.layout.block_size(), call.segment_elements)) {
    first_ = state.take_sequence(chunks_);
    call_.signature = state.calls().extend_history(call.signature);
    call_.is_part = true;
    host_.operation.data = operation_.get();
    sent_ = cut(host_.blocks.counts);
    received_ = cut(host_.blocks.received);
    place(in_, host_.in, lengths_of(host_.what.in_part(state_.rank()), host_.blocks.counts), spec.in_tag);
    const bool pairs = host_.blocks.lengths == block_lengths::known_to_pairs;
    const auto& counts_out = pairs ? host_.blocks.received : host_.blocks.counts;
    place(out_, host_.out, lengths_of(host_.what.out_part(state_.rank()), counts_out), spec.out_tag);
    out_.at = in_.is_copied ? rounded(bytes_of(in_, 0)) : 0;
    slot_bytes_ = out_.at + (out_.is_copied ? bytes_of(out_, 0) : 0);
  }
  ~operation_state() override {
    if (!joined_) resources_->settle();
  }

  machine_status advance() override {
    std::optional<cuda_ipc::context_scope<Driver>> scope;
    if (failure found = resources_->enter(scope)) return fail(std::move(found));
    if (failure found = resources_->follow()) return fail(std::move(found));
    bool moved = false;
    for (;;) {
      if (failure found = begin_copies_to_host(moved)) return fail(std::move(found));
      if (failure found = begin_part(moved)) return fail(std::move(found));
      if (!part_) break;
      const machine_status status = part_->poll();
      if (status == machine_status::failed || status == machine_status::progressed) return status;
      if (status == machine_status::blocked) return moved ? machine_status::progressed : status;
      if (failure found = begin_copies_to_device()) return fail(std::move(found));
      moved = true;
      if (taken_ == chunks_) return end();
    }
    return moved ? machine_status::progressed : machine_status::blocked;
  }

  const failure& reported() const override { return cause_ || !part_ ? cause_ : part_->cause(); }
  bool has_full_cause() const override { return cause_ || (part_ && part_->has_full_cause()); }
  failure overdue() const override {
    if (part_) return part_->overdue();
    return device_call_resources<Driver>::overdue();
  }
  void locate(error_context& context) override {
    if (part_) return part_->locate(context);
    context.sequence = first_ + std::min(taken_, chunks_ - 1);
    context.lane = context.step = context.peer = -1;
  }

 private:
  cuda_ipc::staging_lane<Driver>& lane() const noexcept { return resources_->lane(); }
  static constexpr std::size_t rounded(std::size_t bytes) noexcept { return (bytes + 255) / 256 * 256; }
  std::size_t bytes_of(const side& one, std::uint32_t chunk) const noexcept {
    return one.blocks.size(chunk) * host_.element_size;
  }

  chunked_blocks cut(std::span<const std::size_t> counts) const {
    return {std::vector<std::size_t>(counts.begin(), counts.end()), call_.segment_elements};
  }

  /// Returns the lengths of the blocks that a buffer with this part of the vector holds on this rank.
  std::vector<std::size_t> lengths_of(plan::buffer_part part, std::span<const std::size_t> counts) const {
    if (part == plan::buffer_part::nothing) return {};
    const bool is_whole = part == plan::buffer_part::whole;
    if (host_.blocks.lengths == block_lengths::equal) {
      return std::vector<std::size_t>(is_whole ? call_.layout.blocks() : 1, call_.layout.block_size());
    }
    if (is_whole) return {counts.begin(), counts.end()};
    return {counts[static_cast<std::size_t>(state_.rank())]};
  }

  void place(side& one, const void* data, std::vector<std::size_t> lengths, cuda_ipc::memory_space tag) const {
    one.data = static_cast<std::byte*>(const_cast<void*>(data));
    one.blocks = chunked_blocks(std::move(lengths), call_.segment_elements);
    one.is_direct = tag == cuda_ipc::memory_space::pinned && (one.blocks.count() == 1 || chunks_ == 1);
    one.is_copied = !one.is_direct && bytes_of(one, 0) != 0;
  }

  bool reads_out() const noexcept { return !has_input_ && host_.what.root == state_.rank(); }
  bool writes_out() const noexcept { return has_input_ || host_.what.root != state_.rank(); }

  /// Calls `copy(address in the caller's buffer, address in the slot, bytes)` for the part of each block in a chunk.
  template <class Copy>
  failure each_block(const side& one, std::uint32_t chunk, Copy copy) const {
    std::byte* slot = lane().memory(chunk % slot_count) + one.at;
    if (chunks_ == 1) return copy(one.data, slot, bytes_of(one, chunk));
    std::byte* block = one.data;
    for (std::size_t b = 0; b < one.blocks.count(); ++b) {
      const std::size_t bytes = one.blocks.size(chunk, b) * host_.element_size;
      if (bytes != 0) {
        if (failure found = copy(block + one.blocks.begin(chunk) * host_.element_size, slot, bytes)) return found;
      }
      slot += bytes;
      block += one.blocks.length(b) * host_.element_size;
    }
    return {};
  }

  /// Begins copies to the host while slots are free.
  failure begin_copies_to_host(bool& moved) {
    while (copies_begun_ < chunks_ && copies_begun_ < taken_ + slot_count) {
      bool ready = false;
      failure found = lane().prepare(copies_begun_ % slot_count, slot_bytes_, ready);
      if (found || !ready) return found;
      const auto down = [&](void* theirs, void* slot, std::size_t bytes) {
        return lane().copy_down(slot, theirs, bytes);
      };
      if (in_.is_copied) found = each_block(in_, copies_begun_, down);
      if (!found && out_.is_copied && reads_out()) found = each_block(out_, copies_begun_, down);
      if (!found) found = lane().note_down(copies_begun_ % slot_count);
      if (found) return found;
      ++copies_begun_;
      moved = true;
    }
    return {};
  }

  /// Begins the host call on the next chunk, if that has been copied.
  failure begin_part(bool& moved) {
    if (part_ || taken_ == copies_begun_) return {};
    bool ready = false;
    failure found = lane().is_down(taken_ % slot_count, ready);
    if (found || !ready) return found;
    planned_call call = call_;
    call.layout = {size_of(taken_), call_.layout.blocks(), call_.layout.chunks_per_block()};
    call.part_number = first_ + taken_;
    host_call part = host_;
    part.in = chunk_begin(in_);
    part.in_count = in_.blocks.size(taken_);
    part.out = chunk_begin(out_);
    part.out_count = out_.blocks.size(taken_);
    if (host_.blocks.lengths != block_lengths::equal) {
      sent_.copy_sizes(taken_, sent_sizes_);
      received_.copy_sizes(taken_, received_sizes_);
      part.blocks = {host_.blocks.lengths, sent_sizes_, received_sizes_};
    }
    part_.emplace(state_, part, call, observer_);
    moved = true;
    return {};
  }
  /// Returns the number of elements of the longest block in a chunk.
  std::size_t size_of(std::uint32_t chunk) const noexcept {
    const std::size_t begin = chunk == 0 ? 0 : chunk * call_.segment_elements;
    return std::min(call_.segment_elements, call_.layout.block_size() - begin);
  }
  /// Returns the address at which the host reads or writes the current chunk.
  std::byte* chunk_begin(const side& one) const noexcept {
    if (one.is_direct) return one.data + std::min(one.blocks.begin(taken_), one.blocks.total()) * host_.element_size;
    return one.is_copied ? lane().memory(taken_ % slot_count) + one.at : nullptr;
  }

  /// Begins copies of a completed chunk to the device.
  failure begin_copies_to_device() {
    part_.reset();
    failure found;
    if (out_.is_copied && writes_out()) {
      found = each_block(out_, taken_, [&](void* theirs, void* slot, std::size_t bytes) {
        return lane().copy_up(theirs, slot, bytes);
      });
    }
    if (!found) found = lane().note_up(taken_ % slot_count);
    if (!found) ++taken_;
    return found;
  }

  machine_status end() {
    if (failure found = lane().join(resources_->stream())) return fail(std::move(found));
    joined_ = true;
    return machine_status::done;
  }

  machine_status fail(failure cause) {
    cause_ = std::move(cause);
    return machine_status::failed;
  }

  State& state_;
  host_call host_;
  const operation_copy operation_;
  const bool has_input_;
  const std::shared_ptr<device_call_resources<Driver>> resources_;
  planned_call call_;
  const step_observer observer_;
  const std::uint32_t chunks_;
  std::uint32_t first_ = 0;  ///< sequence number of the first chunk
  side in_;
  side out_;
  chunked_blocks sent_, received_;                        ///< the call's given lengths, see `block_counts`
  std::vector<std::size_t> sent_sizes_, received_sizes_;  ///< those of the current chunk
  std::size_t slot_bytes_ = 0;
  std::uint32_t copies_begun_ = 0;  ///< chunks whose copy to the host has begun
  std::uint32_t taken_ = 0;         ///< chunks whose copy back has begun
  std::optional<host_operation<State>> part_;
  bool joined_ = false;
  failure cause_;
};

}  // namespace detail
HOCKET_END_NAMESPACE
