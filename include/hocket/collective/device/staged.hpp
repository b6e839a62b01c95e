// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Collectives over memory of devices, on every transport: chunks come to pinned memory of the host, are what the host's
/// collective is called on, and go back. While one chunk is combined, the next one comes and the last one goes.
///
/// `all_reduce`, `reduce_scatter`, `all_gather`, `all_to_all` and `broadcast` take `cuda::device(...)`,
/// `cuda::pinned(...)` and `cuda::managed(...)` where this header was included. What is particular to such calls:
///
/// **Order.** What is read is what is there when all work is done that `stream` was given before the call. What `stream` is
///   given after the call finds the result. Other streams know nothing of the call.
/// **Return.** The call returns when this rank's part of the collective is over on the host and the last copies to the
///   device are under way: they may not be done. `in` and `out` may be used in the stream's order, and by the host once the
///   stream is synchronised. A stream that is being captured into a graph is refused: the host takes part in each call.
/// **The `_async` forms** return at once, and read what is there when all work is done that `stream` was given before. The
///   rest is done when the communicator is driven. What `stream` is given after the request is over, by `test` or `wait`, finds
///   the result; what it is given before that does not wait for it, and must leave `in` and `out` alone.
/// **Chunks.** `with(cuda::staging{bytes})`, equal on all ranks, as everything else. Each block is cut at the same places on
///   every rank, each chunk is combined by one plan, and ranks may differ in where their memory is.
/// **Order of results.** Of a chunk as of a host's vector of that size. So an algorithm that adds in rank order, and
///   `require(rank_count_invariant)`, give the bits of the host's call; one whose order depends on where an element stands
///   (ring, halving_doubling), or a choice that depends on the size, gives the same bits on all ranks and from run to run,
///   which may be others than the host's.
/// **Pinned memory** is copied only where blocks must be cut.
/// **What only moves** is carried by the transport instead where it can be: see device/carried.hpp. All but `Chunks` holds there too.
/// **Errors.** As for the host's call. `invalid_argument` before anything is sent if memory is not what its tag says. What the
///   driver complains of, at any time, ends the communicator; work that `stream` was given before and that does not end is a
///   `timeout`. What `out` has then is not defined, but what is still under way comes before what `stream` is given next.
///   Pinned memory that a stream may touch is not freed.
#pragma once

#include <hocket/collective/detail/call.hpp>
#include <hocket/collective/detail/move.hpp>
#include <hocket/collective/detail/reduce.hpp>
#include <hocket/collective/detail/run.hpp>
#include <hocket/collective/device/carried.hpp>
#include <hocket/collective/device/memory.hpp>
#include <hocket/collective/device/session.hpp>
#include <hocket/communicator/communicator.hpp>
#include <hocket/communicator/last_call.hpp>
#include <hocket/communicator/signature.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/deadline.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/options.hpp>
#include <hocket/core/placed_buffer.hpp>
#include <hocket/core/strong_types.hpp>
#include <hocket/engine/operation.hpp>
#include <hocket/engine/step_event.hpp>
#include <hocket/operation/traits.hpp>
#include <hocket/transport/cuda_ipc/context_scope.hpp>
#include <hocket/transport/cuda_ipc/driver.hpp>
#include <hocket/transport/cuda_ipc/driver_status.hpp>
#include <hocket/transport/cuda_ipc/memory_query.hpp>
#include <hocket/transport/cuda_ipc/memory_space.hpp>
#include <hocket/transport/cuda_ipc/staging.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <source_location>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// Whether the host's job reads `in` once, before anything else, and works on a copy.
template <class Job>
inline constexpr bool works_on_copy = false;
template <plan::goal_kind Kind, class Op, class T, class Blocks>
inline constexpr bool works_on_copy<reduction_job<Kind, Op, T, Blocks>> = reduction<Op, T>::prepares;

/// A host's job whose `in` and `out` are elsewhere.
template <class HostJob, class Driver>
struct staged_job {
  static constexpr plan::goal_kind goal = HostJob::goal;
  static constexpr const char* name = HostJob::name;
  static constexpr bool has_input = goal != plan::goal_kind::broadcast;
  using element_type = typename decltype(HostJob::out)::value_type;

  template <class State>
  class work;

  HostJob host;
  cuda_ipc::memory_space in_tag;
  cuda_ipc::memory_space out_tag;
  std::size_t chunk_bytes;
  std::shared_ptr<device_session<Driver>> session;

  template <class State>
  outcome check(State& state) const {
    return session->check(state, host, in_tag, out_tag);
  }

  template <class State>
  call_request asked(const State& state) const {
    call_request request = host.asked(state);
    const std::size_t size = std::max(sizeof(element_type), request.element_size);
    const auto blocks = static_cast<std::size_t>(request.what.blocks(state.size()));
    request.block_elements = std::min(request.block_elements, std::max<std::size_t>(chunk_bytes / size / blocks, 1));
    const bool may_be_direct = in_tag == cuda_ipc::memory_space::pinned && out_tag == cuda_ipc::memory_space::pinned;
    request.in_place = works_on_copy<HostJob> || (may_be_direct && request.in_place);
    request.type_signature = mix(request.type_signature, hash_text("staged"));
    return request;
  }

  /// The plan was chosen for a chunk.
  void divide(planned_call& whole) const {
    const std::size_t chunk = std::min(whole.layout.block_size(), whole.segment_elements);
    const std::size_t block = is_reduction ? host.out.size() : host.out.size() / whole.layout.blocks();
    whole.layout = {block, whole.layout.blocks(), whole.layout.pieces()};
    whole.segment_elements = std::max<std::size_t>(chunk, 1);
    if (HOCKET_MISMATCH_DETECTION) whole.signature = mix(mix(whole.signature, block), whole.segment_elements);
  }

 private:
  static constexpr bool is_reduction = goal == plan::goal_kind::all_reduce || goal == plan::goal_kind::reduce_scatter;
};

/// Such a call under way: one part after the other is a host's call on a slot.
template <class HostJob, class Driver>
template <class State>
class staged_job<HostJob, Driver>::work final : public operation {
  using element_type = typename staged_job::element_type;
  using part_type = typename HostJob::template work<State>;
  static constexpr std::size_t slots = cuda_ipc::staging_slots;

  /// One of the caller's buffers.
  struct side {
    std::byte* data = nullptr;
    std::size_t blocks = 0;  ///< in it; each is cut into chunks
    bool is_direct = false;  ///< the host reads or writes it where it is
    bool is_copied = false;
    std::size_t at = 0;  ///< in a slot
  };

 public:
  work(State& state, const staged_job& job, const planned_call& call, step_observer observer)
      : state_(state), host_(job.host), session_(job.session), call_(call), observer_(observer),
        chunks_(segments_of(call.layout.block_size(), call.segment_elements)) {
    first_ = state.take_sequence(chunks_);
    call_.signature = state.calls().extend_history(call.signature);
    call_.is_part = true;
    place(in_, job.host.in.data(), job.host.in.size(), job.in_tag);
    place(out_, job.host.out.data(), job.host.out.size(), job.out_tag);
    in_.is_copied = in_.blocks != 0 && !in_.is_direct;
    out_.is_copied = out_.blocks != 0 && !out_.is_direct;
    out_.at = in_.is_copied ? rounded(bytes_of(in_, largest())) : 0;
    slot_bytes_ = out_.at + (out_.is_copied ? bytes_of(out_, largest()) : 0);
  }
  ~work() override {
    if (begun_ && !joined_) session_->settle();
  }

  machine_status advance() override {
    if (failure found = session_->take_complaint()) return fail(std::move(found));
    const cuda_ipc::context_scope scope(session_->driver(), session_->context());
    if (scope.said() != cuda_ipc::status::success) {
      return fail(status_failure(session_->driver(), "entering the stream's context", scope.said()));
    }
    if (!begun_) {
      begun_ = true;
      if (failure found = lane().follow(session_->stream())) return fail(std::move(found));
    }
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
  bool explained() const override { return cause_ || (part_ && part_->explained()); }
  failure overdue() const override {
    if (part_) return part_->overdue();
    return device_session<Driver>::overdue();
  }
  void locate(error_context& context) override {
    if (part_) return part_->locate(context);
    context.sequence = first_ + std::min(taken_, chunks_ - 1);
    context.lane = context.step = context.peer = -1;
  }

 private:
  cuda_ipc::staging_lane<Driver>& lane() const noexcept { return *session_->lane(); }
  static constexpr std::size_t rounded(std::size_t bytes) noexcept { return (bytes + 255) / 256 * 256; }
  static std::size_t bytes_of(const side& one, std::size_t elements) noexcept {
    return one.blocks * elements * sizeof(element_type);
  }

  std::size_t block() const noexcept { return call_.layout.block_size(); }
  std::size_t largest() const noexcept { return std::min(block(), call_.segment_elements); }
  std::size_t begin_of(std::uint32_t chunk) const noexcept { return chunk * call_.segment_elements; }
  std::size_t size_of(std::uint32_t chunk) const noexcept {
    return std::min(call_.segment_elements, block() - begin_of(chunk));
  }

  void place(side& one, const void* data, std::size_t size, cuda_ipc::memory_space tag) const noexcept {
    one.data = static_cast<std::byte*>(const_cast<void*>(data));
    one.blocks = block() == 0 ? 0 : size / block();
    one.is_direct = tag == cuda_ipc::memory_space::pinned && (one.blocks == 1 || chunks_ == 1);
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
    const std::size_t size = size_of(chunk) * sizeof(element_type);
    const std::size_t whole = block() * sizeof(element_type);
    std::byte* const slot = lane().memory(chunk % slots) + one.at;
    if (size == whole) return copy(one.data, slot, one.blocks * whole);  // all blocks, in one piece
    for (std::size_t b = 0; b < one.blocks; ++b) {
      failure found = copy(one.data + b * whole + begin_of(chunk) * sizeof(element_type), slot + b * size, size);
      if (found) return found;
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
    HostJob part = host_;
    part.in = {elements_of(in_), in_.blocks * size_of(taken_)};
    part.out = {elements_of(out_), out_.blocks * size_of(taken_)};
    part_.emplace(state_, part, call, observer_);
    moved = true;
    return {};
  }
  element_type* elements_of(const side& one) const noexcept {
    std::byte* at = nullptr;
    if (one.is_copied) at = lane().memory(taken_ % slots) + one.at;
    if (one.is_direct) at = one.data + begin_of(taken_) * sizeof(element_type);
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
    if (failure found = lane().join(session_->stream())) return fail(std::move(found));
    joined_ = true;
    return machine_status::done;
  }

  machine_status fail(failure cause) {
    cause_ = std::move(cause);
    return machine_status::failed;
  }

  State& state_;
  const HostJob host_;
  const std::shared_ptr<device_session<Driver>> session_;
  planned_call call_;
  const step_observer observer_;
  const std::uint32_t chunks_;
  std::uint32_t first_ = 0;  ///< sequence number of the first chunk
  side in_;
  side out_;
  std::size_t slot_bytes_ = 0;
  std::uint32_t brought_ = 0;  ///< chunks whose copy to the host has begun
  std::uint32_t taken_ = 0;    ///< chunks whose copy back has begun
  std::optional<part_type> part_;
  bool begun_ = false;
  bool joined_ = false;
  failure cause_;
};

/// The calls over CUDA's kinds of memory: carried by the transport where it can do all there is to do, else staged.
template <cuda::memory Space>
struct placed_calls<Space> {
  template <class Options>
  static constexpr bool takes = Options::template has<kind::stream>;

  template <plan::goal_kind Kind, class How, class Wire, class T, class From, class U, class Op, class Options>
  static auto reduce(const communicator<Wire>& comm, placed_buffer<T, From> in, placed_buffer<U, Space> out,
                     const Op& op, const Options& options, const std::source_location& site) {
    const auto hosts = for_host(options);
    return run<How, From>(comm, make_reduction_job<Kind>(input(in), output(out), op, hosts), options, hosts, site);
  }
  template <plan::goal_kind Kind, class How, class Wire, class T, class From, class U, class Options>
  static auto move(const communicator<Wire>& comm, placed_buffer<T, From> in, placed_buffer<U, Space> out,
                   const Options& options, const std::source_location& site) {
    const auto hosts = for_host(options);
    return run<How, From>(comm, make_moving_job<Kind>(input(in), output(out), 0, hosts), options, hosts, site);
  }
  template <class How, class Wire, class T, class Options>
  static auto broadcast(const communicator<Wire>& comm, placed_buffer<T, Space> buffer, root from,
                        const Options& options, const std::source_location& site) {
    const auto hosts = for_host(options);
    const auto job =
        make_moving_job<plan::goal_kind::broadcast>(std::span<const T>(), output(buffer), from.rank, hosts);
    return run<How, Space>(comm, job, options, hosts, site);
  }

 private:
  template <class T, class From>
  static std::span<const std::remove_const_t<T>> input(placed_buffer<T, From> in) {
    return {in.data(), in.size()};
  }
  template <class T>
  static std::span<T> output(placed_buffer<T, Space> out) {
    return {out.data(), out.size()};
  }
  template <class Options>
  static auto for_host(const Options& options) {
    return options.template without<kind::stream>().template without<kind::staging>();
  }

  template <class How, class From, class Wire, class HostJob, class Options, class HostOptions>
  static auto run(const communicator<Wire>& comm, const HostJob& host, const Options& options, const HostOptions& hosts,
                  const std::source_location& site) {
    const auto stream = options.template get<kind::stream>(0);
    using driver_type = typename decltype(stream)::driver_type;
    const auto session = std::make_shared<device_session<driver_type>>(stream);
    if constexpr (may_be_carried<HostJob, Options, Wire>) {
      if (carries_device_memory(comm)) {
        return How::run(comm, carried_job<HostJob, driver_type>{host, From::space, Space::space, session}, hosts, site);
      }
    }
    const std::size_t chunk_bytes = options.template get<kind::staging>(cuda::staging{}).chunk_bytes;
    return How::run(comm, staged_job<HostJob, driver_type>{host, From::space, Space::space, chunk_bytes, session},
                    hosts, site);
  }
};

}  // namespace detail
HOCKET_END_NAMESPACE
