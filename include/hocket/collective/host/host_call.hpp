// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// A collective on buffers in host memory as plain values. The same code checks, plans and runs it for all element
/// types and operations. reduce.hpp and move.hpp make a `host_call` from the caller's arguments.
#pragma once

#include <hocket/collective/host/blocks.hpp>
#include <hocket/communicator/planned_call.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/text.hpp>
#include <hocket/kernel/host/element_kernel.hpp>
#include <hocket/plan/plan.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// The loops of an operation that must prepare contributions and finish results. Counts are in elements.
struct preparation {
  void (*prepare)(const void* op, std::byte* partials, const std::byte* contributions, std::size_t count);
  void (*finish)(const void* op, std::byte* results, const std::byte* partials, int ranks, std::size_t count);
};

/// Refers to an operation of the caller's, which is trivially copyable.
struct operation_view {
  const void* data = nullptr;  ///< null: the call has no operation
  std::size_t size = 0;
  std::size_t alignment = 1;
};

template <class State>
class host_operation;

struct host_call {
  template <class State>
  using operation_state = host_operation<State>;

  const char* name = "";
  plan::collective what = {};
  block_counts blocks = {};
  const std::byte* in = nullptr;
  std::byte* out = nullptr;
  std::size_t in_count = 0;  ///< elements
  std::size_t out_count = 0;
  std::size_t element_size = 1;  ///< of the caller's elements; `element_kernel` has that of partial results
  const kernel::element_kernel* element_kernel = nullptr;
  operation_view operation = {};
  const preparation* prepares = nullptr;  ///< null: contributions are combined unchanged
  plan::combination_order order = plan::combination_order::any_order;
  std::uint32_t type_signature = 0;
  const char* types = "";  ///< for error messages

  int root() const noexcept { return what.root; }
  template <class State>
  outcome check(const State& state) const;
  template <class State>
  call_request asked(const State& state) const;
};

/// Returns whether `[a, a + a_size)` and `[b, b + b_size)` have a byte in common.
inline bool overlap(const void* a, std::size_t a_size, const void* b, std::size_t b_size) noexcept {
  const auto a_begin = reinterpret_cast<std::uintptr_t>(a);
  const auto b_begin = reinterpret_cast<std::uintptr_t>(b);
  return a_size > 0 && b_size > 0 && a_begin < b_begin + b_size && b_begin < a_begin + a_size;
}

inline bool buffers_overlap(const host_call& call) noexcept {
  return overlap(call.in, call.in_count * call.element_size, call.out, call.out_count * call.element_size);
}

/// Returns whether this rank has both an `in` and an `out`.
inline bool has_two_buffers(const host_call& call, int rank) noexcept {
  return call.what.in_part(rank) != plan::buffer_part::nothing &&
         call.what.out_part(rank) != plan::buffer_part::nothing;
}

/// Returns the offset of `out` from `in`, in elements, if they share one buffer.
inline std::ptrdiff_t in_place_shift(const host_call& call, int rank) noexcept {
  const bool gathers = call.what.in_part(rank) == plan::buffer_part::own_block;
  if (!gathers && call.what.out_part(rank) != plan::buffer_part::own_block) return 0;
  const std::size_t own = gathers ? call.in_count : call.out_count;
  const std::ptrdiff_t begin = call.blocks.lengths == block_lengths::equal ? static_cast<std::ptrdiff_t>(own) * rank
                                                                           : begin_of_block(call.blocks, rank);
  return gathers ? -begin : begin;
}

/// Returns whether `out` lies where it must lie if `in` and `out` share one buffer.
inline bool shares_one_buffer(const host_call& call, int rank) noexcept {
  const auto shift = static_cast<std::uintptr_t>(in_place_shift(call, rank)) * call.element_size;
  return reinterpret_cast<std::uintptr_t>(call.in) + shift == reinterpret_cast<std::uintptr_t>(call.out);
}

/// Checks that `in` and `out` overlap only if corresponding elements have the same address.
inline outcome check_overlap(const host_call& call, int rank) {
  if (!has_two_buffers(call, rank) || !buffers_overlap(call) || shares_one_buffer(call, rank)) return {};
  const bool may_be_one =
      call.what.kind == plan::collective_kind::all_reduce || call.what.kind == plan::collective_kind::reduce;
  return make_failure(errc::invalid_argument,
                      may_be_one ? "in and out overlap; keep them apart, or use one buffer for both: in_place(buffer)"
                                 : "in and out overlap: keep them apart");
}

/// Returns the error for buffers whose sizes do not fit each other.
HOCKET_COLD inline failure wrong_sizes(const host_call& call, const char* rule) {
  return make_failure(errc::invalid_argument,
                      concat({"in has ", call.in_count, " elements and out ", call.out_count, "; ", rule}));
}

/// Checks that buffers of equal blocks have sizes that fit each other, if this rank uses both.
inline outcome check_sizes(const host_call& call, int rank, int ranks) {
  if (!has_two_buffers(call, rank)) return {};
  const auto count = static_cast<std::size_t>(ranks);
  const bool has_own_in = call.what.in_part(rank) == plan::buffer_part::own_block;
  const bool has_own_out = call.what.out_part(rank) == plan::buffer_part::own_block;
  if (has_own_out && call.in_count != call.out_count * count) {
    return wrong_sizes(call, "in must have the size of out times the number of ranks");
  }
  if (has_own_in && call.out_count != call.in_count * count) {
    return wrong_sizes(call, "out must have the size of in times the number of ranks");
  }
  if (has_own_in || has_own_out) return {};
  if (call.what.kind != plan::collective_kind::all_to_all) {
    return call.in_count == call.out_count ? outcome() : wrong_sizes(call, "they must be equal");
  }
  if (call.in_count == call.out_count && call.out_count % count == 0) return {};
  return wrong_sizes(call, "they must be equal, and a multiple of the number of ranks");
}

inline outcome check_root(int root, int ranks) {
  if (root >= 0 && root < ranks) return {};
  return make_failure(errc::invalid_argument, concat({"root is ", root, "; it must be one of 0 to ", ranks - 1}));
}

/// Checks the call's arguments on this rank.
inline outcome check_arguments(const host_call& call, int rank, int ranks) {
  outcome wrong = check_root(call.what.root, ranks);
  if (wrong.failed()) return wrong;
  const bool equal = call.blocks.lengths == block_lengths::equal;
  wrong = equal ? check_sizes(call, rank, ranks)
                : check_blocks(call.blocks, call.what, rank, ranks, call.in_count, call.out_count);
  if (wrong.failed()) return wrong;
  if (call.blocks.lengths != block_lengths::known_to_pairs) return check_overlap(call, rank);
  if (!buffers_overlap(call)) return {};
  return make_failure(errc::invalid_argument,
                      "in and out overlap; a block of all_to_all_v has different offsets in the two buffers, "
                      "so pass buffers that do not overlap");
}

/// Returns the length of one of equal blocks, in elements.
inline std::size_t block_length(const host_call& call, int rank, int ranks) noexcept {
  if (call.what.in_part(rank) == plan::buffer_part::own_block) return call.in_count;
  if (call.what.out_part(rank) == plan::buffer_part::own_block) return call.out_count;
  const bool has_input = call.what.in_part(rank) == plan::buffer_part::whole;
  return (has_input ? call.in_count : call.out_count) / static_cast<std::size_t>(call.what.blocks(ranks));
}

/// Returns the request from which a plan is chosen.
inline call_request request_of(const host_call& call, int rank, int ranks) noexcept {
  const bool equal = call.blocks.lengths == block_lengths::equal;
  const bool one_buffer = call.in != nullptr && call.blocks.lengths != block_lengths::known_to_pairs &&
                          has_two_buffers(call, rank) && shares_one_buffer(call, rank);
  call_request request{.what = call.what,
                       .block_elements = block_length(call, rank, ranks),
                       .element_size = call.element_kernel->size,
                       .order = call.order,
                       .in_place = call.prepares != nullptr || one_buffer,
                       .type_signature = call.type_signature,
                       .types = call.types};
  if (!equal) describe_blocks(call.blocks, request);
  return request;
}

template <class State>
outcome host_call::check(const State& state) const {
  return check_arguments(*this, state.rank(), state.size());
}

template <class State>
call_request host_call::asked(const State& state) const {
  return request_of(*this, state.rank(), state.size());
}

}  // namespace detail
HOCKET_END_NAMESPACE
