// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The division of a call's vector into blocks, one for each rank: of equal length, or of lengths given by the caller.
///
/// Checks and signatures read the caller's counts. The running operation has `block_places`, offsets in memory borrowed
/// from the communicator, so that the caller may destroy the counts when the call has been made.
#pragma once

#include <hocket/communicator/planned_call.hpp>
#include <hocket/communicator/signature.hpp>
#include <hocket/core/buffer.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/strong_types.hpp>
#include <hocket/core/text.hpp>
#include <hocket/plan/layout.hpp>
#include <hocket/plan/plan.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <new>
#include <span>
#include <string>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// The lengths of a call's blocks, as its caller gives them.
struct block_counts {
  block_lengths lengths = block_lengths::equal;
  std::span<const std::size_t> counts = {};    ///< of all blocks; known to pairs: of the blocks that this rank sends
  std::span<const std::size_t> received = {};  ///< known to pairs: of the blocks that this rank receives
};

/// Returns the blocks of a call with these counts. `all_to_all_v` has `send_counts` and `receive_counts`, the other calls
/// have `counts`.
constexpr block_counts blocks_of() noexcept { return {}; }
inline block_counts blocks_of(counts lengths) noexcept { return {block_lengths::known_to_all, lengths.of_ranks}; }
inline block_counts blocks_of(send_counts sent, receive_counts received) noexcept {
  return {block_lengths::known_to_pairs, sent.of_ranks, received.of_ranks};
}

/// The kind of block lengths of a call with counts of these types.
template <class... Counts>
inline constexpr block_lengths lengths_by = sizeof...(Counts) == 0   ? block_lengths::equal
                                            : sizeof...(Counts) == 1 ? block_lengths::known_to_all
                                                                     : block_lengths::known_to_pairs;

/// The name of the call for error messages.
constexpr const char* call_name(plan::collective_kind kind, block_lengths lengths) noexcept {
  if (lengths == block_lengths::equal) return plan::to_string(kind);
  switch (kind) {
    case plan::collective_kind::all_to_all: return "all_to_all_v";
    case plan::collective_kind::all_gather: return "all_gather_v";
    case plan::collective_kind::gather: return "gather_v";
    case plan::collective_kind::scatter: return "scatter_v";
    default: return "reduce_scatter_v";
  }
}
constexpr std::uint32_t call_kind_signature(plan::collective_kind kind, block_lengths lengths) noexcept {
  return lengths == block_lengths::equal ? static_cast<std::uint32_t>(kind) : hash_text(call_name(kind, lengths));
}

/// Checks one list of counts and stores their sum in `total`.
inline outcome check_counts(const char* name, std::span<const std::size_t> counts, int ranks, std::size_t& total) {
  if (counts.size() != static_cast<std::size_t>(ranks)) {
    return make_failure(
        errc::invalid_argument,
        concat({name, " has ", counts.size(), " numbers; there must be one for each of the ", ranks, " ranks"}));
  }
  total = 0;
  for (const std::size_t each : counts) {
    if (each > std::numeric_limits<std::size_t>::max() - total) {
      return make_failure(errc::invalid_argument, concat({name, " adds up to more than memory can hold"}));
    }
    total += each;
  }
  return {};
}

/// Returns the error for a buffer whose size differs from the counts.
inline failure wrong_size(const char* buffer, std::size_t has, const char* source, std::size_t wanted) {
  return make_failure(errc::invalid_argument, concat({buffer, " has ", has, " elements; ", source, " is ", wanted}));
}

/// Checks that a buffer has the size that counts known to all ranks give it.
inline outcome check_counted(const char* name, std::size_t has, plan::buffer_part part, std::size_t own,
                             std::size_t total) {
  if (part == plan::buffer_part::own_block && has != own) return wrong_size(name, has, "the count of this rank", own);
  if (part == plan::buffer_part::whole && has != total) return wrong_size(name, has, "the sum of counts", total);
  return {};
}

/// Checks that buffers of `in` and `out` elements match the counts of a call of `what` on this rank.
inline outcome check_blocks(const block_counts& blocks, const plan::collective& what, int rank, int ranks,
                            std::size_t in, std::size_t out) {
  const auto place = static_cast<std::size_t>(rank);
  std::size_t total = 0;
  if (blocks.lengths == block_lengths::known_to_all) {
    outcome wrong = check_counts("counts", blocks.counts, ranks, total);
    if (wrong.failed()) return wrong;
    const std::size_t own = blocks.counts[place];
    wrong = check_counted("in", in, what.in_part(rank), own, total);
    return wrong.failed() ? std::move(wrong) : check_counted("out", out, what.out_part(rank), own, total);
  }
  outcome wrong = check_counts("send_counts", blocks.counts, ranks, total);
  if (wrong.failed()) return wrong;
  if (in != total) return wrong_size("in", in, "the sum of send_counts", total);
  wrong = check_counts("receive_counts", blocks.received, ranks, total);
  if (wrong.failed()) return wrong;
  if (out != total) return wrong_size("out", out, "the sum of receive_counts", total);
  if (blocks.counts[place] == blocks.received[place]) return {};
  return make_failure(errc::invalid_argument, concat({"send_counts has ", blocks.counts[place],
                                                      " elements for this rank itself and receive_counts ",
                                                      blocks.received[place], "; they must be equal"}));
}

/// Returns the offset of the block of `rank`, in elements, if all ranks know the lengths.
inline std::ptrdiff_t begin_of_block(const block_counts& blocks, int rank) noexcept {
  std::size_t begin = 0;
  for (int before = 0; before < rank; ++before) begin += blocks.counts[static_cast<std::size_t>(before)];
  return static_cast<std::ptrdiff_t>(begin);
}

inline std::size_t longest_block(const block_counts& blocks) noexcept {
  return blocks.counts.empty() ? 0 : *std::ranges::max_element(blocks.counts);
}

/// Returns the number of elements of all blocks, counting at most `most` of each.
inline std::size_t total_of_blocks(const block_counts& blocks, std::size_t most) noexcept {
  std::size_t sum = 0;
  for (const std::size_t each : blocks.counts) sum += std::min(each, most);
  return sum;
}

/// Adds given block lengths to a request.
inline void describe_blocks(const block_counts& blocks, call_request& request) noexcept {
  if (blocks.lengths == block_lengths::equal) return;
  request.lengths = blocks.lengths;
  request.block_elements = 0;  // all ranks must have the same request, so lengths that only this rank knows don't count
  if (blocks.lengths == block_lengths::known_to_pairs) return;
  request.block_elements = longest_block(blocks);
  request.total_elements = total_of_blocks(blocks, request.block_elements);
  for (const std::size_t each : blocks.counts) request.lengths_signature = mix(request.lengths_signature + 1, each);
}

/// Returns a borrowed buffer to the communicator. If there is no memory to store it for later calls, it is freed.
template <class State>
void return_buffer(State& state, growing_buffer& lent) noexcept {
#if HOCKET_HAS_EXCEPTIONS
  try {
    state.return_buffer(std::move(lent));
  } catch (const std::bad_alloc&) {}
#else
  state.return_buffer(std::move(lent));
#endif
}

/// The layouts of the blocks of `in` and `out` while an operation runs.
template <class State>
class block_places {
 public:
  block_places(State& state, const block_counts& blocks, const planned_call& call) : state_(state), in_(call.layout) {
    if (blocks.lengths == block_lengths::equal) return;
    offsets_ = state.borrow();
    const std::size_t count = blocks.counts.size() + blocks.received.size() + 2;
    auto* const sent = reinterpret_cast<std::size_t*>(offsets_.get(count * sizeof(std::size_t)));
    std::size_t* const received = plan::write_offsets(sent, blocks.counts);
    in_ = plan::layout::given(sent, call.layout.blocks(), call.layout.chunks_per_block());
    has_two_ = blocks.lengths == block_lengths::known_to_pairs;
    if (!has_two_) return;
    plan::write_offsets(received, blocks.received);
    out_ = plan::layout::given(received, call.layout.blocks(), call.layout.chunks_per_block());
  }
  block_places(const block_places&) = delete;
  block_places& operator=(const block_places&) = delete;
  ~block_places() {
    if (in_.has_given_lengths()) return_buffer(state_, offsets_);
  }

  const plan::layout& layout() const noexcept { return in_; }
  /// The layout of `out` if it differs from that of `in`; else null.
  const plan::layout* out_layout() const noexcept { return has_two_ ? &out_ : nullptr; }

 private:
  State& state_;
  growing_buffer offsets_;
  plan::layout in_;
  plan::layout out_;
  bool has_two_ = false;
};

}  // namespace detail
HOCKET_END_NAMESPACE
