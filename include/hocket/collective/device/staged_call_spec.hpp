// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// A collective over memory of devices that is staged: one host's call for each chunk, on pinned memory, between a copy to the
/// host and one back. While one chunk is combined, the next one comes and the last one goes.
///
/// A chunk has of each block the same elements on all ranks, so each of them is a call of its own, and is planned as one of
/// that size is. Sequence numbers for all of them are taken when the call is made.
#pragma once

#include <hocket/collective/device/call_resources.hpp>
#include <hocket/collective/device/call_spec.hpp>
#include <hocket/collective/device/chunks.hpp>
#include <hocket/collective/device/memory.hpp>
#include <hocket/collective/host/blocks.hpp>
#include <hocket/collective/host/call.hpp>
#include <hocket/collective/host/reduce.hpp>
#include <hocket/communicator/last_call.hpp>
#include <hocket/communicator/signature.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/engine/operation.hpp>
#include <hocket/engine/step_observer.hpp>
#include <hocket/operation/traits.hpp>
#include <hocket/transport/cuda_ipc/context_scope.hpp>
#include <hocket/transport/cuda_ipc/memory_space.hpp>
#include <hocket/transport/cuda_ipc/staging.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// Whether the host call's specification reads `in` once, before anything else, and works on a copy.
template <class Spec>
inline constexpr bool works_on_copy = false;
template <plan::collective_kind Kind, class Op, class T, class Blocks>
inline constexpr bool works_on_copy<reduction_spec<Kind, Op, T, Blocks>> = reduction<Op, T>::prepares;

/// One that is cut into chunks, each of which is a host's call.
template <class HostSpec, class Driver>
struct staged_call_spec : device_call_spec<HostSpec, Driver> {
  using typename device_call_spec<HostSpec, Driver>::blocks_type;
  using element_type = typename decltype(HostSpec::out)::value_type;

  template <class State>
  class operation_state;

  std::size_t chunk_bytes;

  template <class State>
  outcome check(State& state) const {
    outcome wrong = check_chunk(chunk_bytes, std::max(this->host.in.size_bytes(), this->host.out.size_bytes()));
    return wrong.failed() ? std::move(wrong) : device_call_spec<HostSpec, Driver>::check(state);
  }

  template <class State>
  call_request asked(const State& state) const {
    call_request request = this->host.asked(state);
    const std::size_t size = std::max(sizeof(element_type), request.element_size);
    const auto blocks = static_cast<std::size_t>(request.what.blocks(state.size()));
    request.block_elements = std::min(request.block_elements, std::max<std::size_t>(chunk_bytes / size / blocks, 1));
    if constexpr (cuts_given_lengths) request.total_elements = this->host.blocks.total(request.block_elements);
    const bool may_be_direct =
        this->in_tag == cuda_ipc::memory_space::pinned && this->out_tag == cuda_ipc::memory_space::pinned;
    request.in_place = works_on_copy<HostSpec> || (may_be_direct && request.in_place);
    request.type_signature = mix(request.type_signature, hash_text("staged"));
    request.types = HostSpec::template types<cuda::tagged_memory>();
    return request;
  }

  /// The plan was chosen for a chunk.
  void divide(planned_call& whole) const {
    if constexpr (is_known_to_pairs) return;
    const std::size_t chunk = std::min(whole.layout.block_size(), whole.segment_elements);
    const std::size_t block = longest_block(whole.layout.blocks());
    whole.layout = {block, whole.layout.blocks(), whole.layout.pieces()};
    whole.segment_elements = std::max<std::size_t>(chunk, 1);
    if (HOCKET_MISMATCH_DETECTION) whole.signature = mix(mix(whole.signature, block), whole.segment_elements);
  }

 private:
  /// Then no rank knows the longest block of all, and so not how many chunks there would be: the vector is one.
  static constexpr bool is_known_to_pairs = std::is_same_v<blocks_type, exchanged_blocks>;
  static constexpr bool cuts_given_lengths = blocks_type::are_given && !is_known_to_pairs;
  static constexpr bool is_reduction =
      device_call_spec<HostSpec, Driver>::collective == plan::collective_kind::all_reduce ||
      device_call_spec<HostSpec, Driver>::collective == plan::collective_kind::reduce_scatter;

  std::size_t longest_block(std::uint32_t blocks) const noexcept {
    if constexpr (cuts_given_lengths) {
      return this->host.blocks.longest();
    } else {
      return is_reduction ? this->host.out.size() : this->host.out.size() / blocks;
    }
  }
};

/// Such a call under way: one part after the other is a host's call on a slot.
template <class HostSpec, class Driver>
template <class State>
class staged_call_spec<HostSpec, Driver>::operation_state final : public operation {
  using element_type = typename staged_call_spec::element_type;
  using blocks_type = typename staged_call_spec::blocks_type;
  using part_type = typename HostSpec::template operation_state<State>;
  static constexpr bool has_input = staged_call_spec::has_input;
  static constexpr std::size_t slots = cuda_ipc::staging_slots;

  /// One of the caller's buffers.
  struct side {
    std::byte* data = nullptr;
    chunked_blocks blocks;
    bool is_direct = false;  ///< the host reads or writes it where it is
    bool is_copied = false;
    std::size_t at = 0;  ///< in a slot
  };

 public:
  operation_state(State& state, const staged_call_spec& spec, const planned_call& call, step_observer observer)
      : state_(state), host_(spec.host), resources_(spec.resources), call_(call), observer_(observer),
        chunks_(segments_of(call.layout.block_size(), call.segment_elements)) {
    first_ = state.take_sequence(chunks_);
    call_.signature = state.calls().extend_history(call.signature);
    call_.is_part = true;
    std::vector<std::size_t> in_lengths, out_lengths;
    if constexpr (blocks_type::are_given) {
      host_.blocks.copy_lengths(state.rank(), in_lengths, out_lengths);
    } else if (const std::size_t block = call.layout.block_size(); block != 0) {
      in_lengths.assign(host_.in.size() / block, block);
      out_lengths.assign(host_.out.size() / block, block);
    }
    place(in_, host_.in.data(), std::move(in_lengths), spec.in_tag);
    place(out_, host_.out.data(), std::move(out_lengths), spec.out_tag);
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
      if (failure found = bring(moved)) return fail(std::move(found));
      if (failure found = begin_part(moved)) return fail(std::move(found));
      if (!part_) break;
      const machine_status status = part_->poll();
      if (status == machine_status::failed || status == machine_status::progressed) return status;
      if (status == machine_status::blocked) return moved ? machine_status::progressed : status;
      if (failure found = take_back()) return fail(std::move(found));
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
  static std::size_t bytes_of(const side& one, std::uint32_t chunk) noexcept {
    return one.blocks.size(chunk) * sizeof(element_type);
  }

  void place(side& one, const void* data, std::vector<std::size_t> lengths, cuda_ipc::memory_space tag) const {
    one.data = static_cast<std::byte*>(const_cast<void*>(data));
    one.blocks = chunked_blocks(std::move(lengths), call_.segment_elements);
    one.is_direct = tag == cuda_ipc::memory_space::pinned && (one.blocks.count() == 1 || chunks_ == 1);
    one.is_copied = !one.is_direct && bytes_of(one, 0) != 0;
  }

  bool reads_out() const noexcept { return !has_input && host_root() == state_.rank(); }
  bool writes_out() const noexcept { return has_input || host_root() != state_.rank(); }
  int host_root() const noexcept {
    if constexpr (has_input) {
      return 0;
    } else {
      return host_.root;
    }
  }

  /// Calls `copy(place of the caller's, place in the slot, bytes)` for what a chunk has of each block.
  template <class Copy>
  failure each_block(const side& one, std::uint32_t chunk, Copy copy) const {
    std::byte* slot = lane().memory(chunk % slots) + one.at;
    if (chunks_ == 1) return copy(one.data, slot, bytes_of(one, chunk));
    std::byte* block = one.data;
    for (std::size_t b = 0; b < one.blocks.count(); ++b) {
      const std::size_t bytes = one.blocks.size(chunk, b) * sizeof(element_type);
      if (bytes != 0) {
        if (failure found = copy(block + one.blocks.begin(chunk) * sizeof(element_type), slot, bytes)) return found;
      }
      slot += bytes;
      block += one.blocks.length(b) * sizeof(element_type);
    }
    return {};
  }

  /// Begins copies to the host, as far as there are slots.
  failure bring(bool& moved) {
    while (brought_ < chunks_ && brought_ < taken_ + slots) {
      bool ready = false;
      failure found = lane().prepare(brought_ % slots, slot_bytes_, ready);
      if (found || !ready) return found;
      const auto down = [&](void* theirs, void* slot, std::size_t bytes) {
        return lane().copy_down(slot, theirs, bytes);
      };
      if (in_.is_copied) found = each_block(in_, brought_, down);
      if (!found && out_.is_copied && reads_out()) found = each_block(out_, brought_, down);
      if (!found) found = lane().note_down(brought_ % slots);
      if (found) return found;
      ++brought_;
      moved = true;
    }
    return {};
  }

  /// Begins the host's call on the next chunk, if that has come.
  failure begin_part(bool& moved) {
    if (part_ || taken_ == brought_) return {};
    bool ready = false;
    failure found = lane().is_down(taken_ % slots, ready);
    if (found || !ready) return found;
    planned_call call = call_;
    call.layout = {size_of(taken_), call_.layout.blocks(), call_.layout.pieces()};
    call.part_number = first_ + taken_;
    HostSpec part = host_;
    part.in = {elements_of(in_), in_.blocks.size(taken_)};
    part.out = {elements_of(out_), out_.blocks.size(taken_)};
    if constexpr (blocks_type::are_given) {
      in_.blocks.copy_sizes(taken_, in_sizes_);
      out_.blocks.copy_sizes(taken_, out_sizes_);
      part.blocks = host_.blocks.of_lengths(in_sizes_, out_sizes_);
    }
    part_.emplace(state_, part, call, observer_);
    moved = true;
    return {};
  }
  /// Elements that a chunk has of the longest block.
  std::size_t size_of(std::uint32_t chunk) const noexcept {
    const std::size_t begin = chunk == 0 ? 0 : chunk * call_.segment_elements;
    return std::min(call_.segment_elements, call_.layout.block_size() - begin);
  }
  element_type* elements_of(const side& one) const noexcept {
    std::byte* at = nullptr;
    if (one.is_copied) at = lane().memory(taken_ % slots) + one.at;
    if (one.is_direct) at = one.data + std::min(one.blocks.begin(taken_), one.blocks.total()) * sizeof(element_type);
    return reinterpret_cast<element_type*>(at);
  }

  /// Begins copies of a finished chunk to the device.
  failure take_back() {
    part_.reset();
    failure found;
    if (out_.is_copied && writes_out()) {
      found = each_block(out_, taken_, [&](void* theirs, void* slot, std::size_t bytes) {
        return lane().copy_up(theirs, slot, bytes);
      });
    }
    if (!found) found = lane().note_up(taken_ % slots);
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
  const HostSpec host_;
  const std::shared_ptr<device_call_resources<Driver>> resources_;
  planned_call call_;
  const step_observer observer_;
  const std::uint32_t chunks_;
  std::uint32_t first_ = 0;  ///< sequence number of the first chunk
  side in_;
  side out_;
  std::vector<std::size_t> in_sizes_, out_sizes_;  ///< of the blocks of the chunk that is under way
  std::size_t slot_bytes_ = 0;
  std::uint32_t brought_ = 0;  ///< chunks whose copy to the host has begun
  std::uint32_t taken_ = 0;    ///< chunks whose copy back has begun
  std::optional<part_type> part_;
  bool joined_ = false;
  failure cause_;
};

}  // namespace detail
HOCKET_END_NAMESPACE
