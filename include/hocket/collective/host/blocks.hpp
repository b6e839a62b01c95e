// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// How the vector of a call is cut into blocks, one for each rank: of equal length, or of lengths that the caller
/// gives.
///
/// A call's specification (move.hpp, reduce.hpp) has one of these types. Checks and signatures read the caller's counts;
/// what runs has `places`, offsets in memory that the communicator lends, so that the counts may go once the call is
/// made.
#pragma once

#include <hocket/communicator/last_call.hpp>
#include <hocket/communicator/signature.hpp>
#include <hocket/core/buffer.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/strong_types.hpp>
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

/// All of one length, which follows from the sizes of the buffers.
struct equal_blocks {
  static constexpr bool are_given = false;
  static constexpr block_lengths lengths = block_lengths::equal;
  static constexpr const char* name_of(plan::collective_kind kind) noexcept { return plan::to_string(kind); }
  static constexpr std::uint32_t signature_of(plan::collective_kind kind) noexcept {
    return static_cast<std::uint32_t>(kind);
  }

  template <class State>
  struct places {
    places(State&, const equal_blocks&, const planned_call&) noexcept {}
    static const plan::layout& layout(const planned_call& call) noexcept { return call.layout; }
    static constexpr const plan::layout* out_layout() noexcept { return nullptr; }
  };
};

/// What is wrong with one list of counts; no failure if nothing is. `total` gets their sum.
inline outcome check_counts(const char* name, std::span<const std::size_t> counts, int ranks, std::size_t& total) {
  if (counts.size() != static_cast<std::size_t>(ranks)) {
    return make_failure(errc::invalid_argument, std::string(name) + " has " + std::to_string(counts.size()) +
                                                    " numbers; there must be one for each of the " +
                                                    std::to_string(ranks) + " ranks");
  }
  total = 0;
  for (const std::size_t each : counts) {
    if (each > std::numeric_limits<std::size_t>::max() - total) {
      return make_failure(errc::invalid_argument, std::string(name) + " adds up to more than memory can hold");
    }
    total += each;
  }
  return {};
}

/// Of a buffer that has not as many elements as the counts say.
inline failure wrong_size(const char* buffer, std::size_t has, const char* source, std::size_t wanted) {
  return make_failure(errc::invalid_argument, std::string(buffer) + " has " + std::to_string(has) + " elements; " +
                                                  source + " says " + std::to_string(wanted));
}

/// Writes where blocks begin, and the last one ends. Returns the end of what was written.
inline std::size_t* write_offsets(std::size_t* to, std::span<const std::size_t> counts) noexcept {
  std::size_t begin = 0;
  *to++ = begin;
  for (const std::size_t each : counts) *to++ = begin += each;
  return to;
}

/// Ends a loan of the communicator. Where there is no memory to keep it for later calls, it is freed.
template <class State>
void give_back(State& state, growing_buffer& lent) noexcept {
#if HOCKET_HAS_EXCEPTIONS
  try {
    state.give_back(std::move(lent));
  } catch (const std::bad_alloc&) {}
#else
  state.give_back(std::move(lent));
#endif
}

/// Memory for offsets, on loan from the communicator.
template <class State>
class borrowed_offsets {
 public:
  borrowed_offsets(State& state, std::size_t count)
      : state_(state), memory_(state.borrow()),
        begin_(reinterpret_cast<std::size_t*>(memory_.get(count * sizeof(std::size_t)))) {}
  borrowed_offsets(const borrowed_offsets&) = delete;
  borrowed_offsets& operator=(const borrowed_offsets&) = delete;
  ~borrowed_offsets() { give_back(state_, memory_); }

  std::size_t* begin() const noexcept { return begin_; }

 private:
  State& state_;
  growing_buffer memory_;
  std::size_t* const begin_;
};

/// Of lengths that every rank gives alike: all_gather_v and reduce_scatter_v.
class given_blocks {
 public:
  static constexpr bool are_given = true;
  static constexpr block_lengths lengths = block_lengths::known_to_all;
  static constexpr const char* name_of(plan::collective_kind kind) noexcept {
    return kind == plan::collective_kind::all_gather ? "all_gather_v" : "reduce_scatter_v";
  }
  static constexpr std::uint32_t signature_of(plan::collective_kind kind) noexcept { return hash_text(name_of(kind)); }

  template <class State>
  class places;

  given_blocks(plan::collective_kind kind, std::span<const std::size_t> counts) noexcept
      : gathers_(kind == plan::collective_kind::all_gather), counts_(counts) {}

  template <class State>
  outcome check(const State& state, std::size_t in, std::size_t out) const {
    std::size_t total = 0;
    outcome wrong = check_counts("counts", counts_, state.size(), total);
    if (wrong.failed()) return wrong;
    const std::size_t own = counts_[static_cast<std::size_t>(state.rank())];
    const std::size_t block = gathers_ ? in : out, whole = gathers_ ? out : in;
    if (block != own) return wrong_size(gathers_ ? "in" : "out", block, "counts, at the place of this rank,", own);
    if (whole != total) return wrong_size(gathers_ ? "out" : "in", whole, "the sum of counts", total);
    return {};
  }

  /// Where the block of `rank` begins.
  std::ptrdiff_t begin_of(int rank) const noexcept {
    std::size_t begin = 0;
    for (int before = 0; before < rank; ++before) begin += counts_[static_cast<std::size_t>(before)];
    return static_cast<std::ptrdiff_t>(begin);
  }

  void describe(call_request& request) const noexcept {
    request.lengths = lengths;
    request.block_elements = longest();
    request.total_elements = total(request.block_elements);
    for (const std::size_t each : counts_) request.lengths_signature = mix(request.lengths_signature + 1, each);
  }

  std::size_t longest() const noexcept { return counts_.empty() ? 0 : *std::ranges::max_element(counts_); }
  /// Elements of all blocks, of each `most` at most.
  std::size_t total(std::size_t most) const noexcept {
    std::size_t sum = 0;
    for (const std::size_t each : counts_) sum += std::min(each, most);
    return sum;
  }

  /// The lengths of the blocks of `in` and `out` on a rank.
  void copy_lengths(int rank, std::vector<std::size_t>& in, std::vector<std::size_t>& out) const {
    std::vector<std::size_t>& block = gathers_ ? in : out;
    std::vector<std::size_t>& whole = gathers_ ? out : in;
    block.assign(1, counts_[static_cast<std::size_t>(rank)]);
    whole.assign(counts_.begin(), counts_.end());
  }
  /// With such other ones.
  given_blocks of_lengths(std::span<const std::size_t> in, std::span<const std::size_t> out) const noexcept {
    given_blocks result = *this;
    result.counts_ = gathers_ ? out : in;
    return result;
  }

 private:
  bool gathers_;
  std::span<const std::size_t> counts_;
};

template <class State>
class given_blocks::places {
 public:
  places(State& state, const given_blocks& blocks, const planned_call& call)
      : offsets_(state, blocks.counts_.size() + 1) {
    write_offsets(offsets_.begin(), blocks.counts_);
    layout_ = plan::layout::given(offsets_.begin(), call.layout.blocks(), call.layout.pieces());
  }
  const plan::layout& layout(const planned_call&) const noexcept { return layout_; }
  static constexpr const plan::layout* out_layout() noexcept { return nullptr; }

 private:
  const borrowed_offsets<State> offsets_;
  plan::layout layout_;
};

/// Of lengths that two ranks each know: all_to_all_v. Blocks have other places in `in` than in `out`.
class exchanged_blocks {
 public:
  static constexpr bool are_given = true;
  static constexpr block_lengths lengths = block_lengths::known_to_pairs;
  static constexpr const char* name_of(plan::collective_kind) noexcept { return "all_to_all_v"; }
  static constexpr std::uint32_t signature_of(plan::collective_kind kind) noexcept { return hash_text(name_of(kind)); }

  template <class State>
  class places;

  exchanged_blocks(std::span<const std::size_t> sent, std::span<const std::size_t> received) noexcept
      : sent_(sent), received_(received) {}

  template <class State>
  outcome check(const State& state, std::size_t in, std::size_t out) const {
    std::size_t total = 0;
    outcome wrong = check_counts("send_counts", sent_, state.size(), total);
    if (wrong.failed()) return wrong;
    if (in != total) return wrong_size("in", in, "the sum of send_counts", total);
    wrong = check_counts("receive_counts", received_, state.size(), total);
    if (wrong.failed()) return wrong;
    if (out != total) return wrong_size("out", out, "the sum of receive_counts", total);
    const auto rank = static_cast<std::size_t>(state.rank());
    if (sent_[rank] == received_[rank]) return {};
    return make_failure(errc::invalid_argument, "send_counts has " + std::to_string(sent_[rank]) +
                                                    " elements for this rank itself and receive_counts " +
                                                    std::to_string(received_[rank]) + "; they must be equal");
  }

  static void describe(call_request& request) noexcept {
    request.lengths = lengths;
    request.block_elements = 0;  // what a rank knows of its own may not count
  }

  void copy_lengths(int, std::vector<std::size_t>& in, std::vector<std::size_t>& out) const {
    in.assign(sent_.begin(), sent_.end());
    out.assign(received_.begin(), received_.end());
  }
  static exchanged_blocks of_lengths(std::span<const std::size_t> in, std::span<const std::size_t> out) noexcept {
    return {in, out};
  }

 private:
  std::span<const std::size_t> sent_;
  std::span<const std::size_t> received_;
};

template <class State>
class exchanged_blocks::places {
 public:
  places(State& state, const exchanged_blocks& blocks, const planned_call& call)
      : offsets_(state, blocks.sent_.size() + blocks.received_.size() + 2) {
    std::size_t* const received = write_offsets(offsets_.begin(), blocks.sent_);
    write_offsets(received, blocks.received_);
    in_ = plan::layout::given(offsets_.begin(), call.layout.blocks(), call.layout.pieces());
    out_ = plan::layout::given(received, call.layout.blocks(), call.layout.pieces());
  }
  const plan::layout& layout(const planned_call&) const noexcept { return in_; }
  const plan::layout* out_layout() const noexcept { return &out_; }

 private:
  const borrowed_offsets<State> offsets_;
  plan::layout in_;
  plan::layout out_;
};

/// What a call of that kind has, by what its caller says of lengths.
template <plan::collective_kind Kind>
constexpr equal_blocks blocks_of() noexcept {
  return {};
}
template <plan::collective_kind Kind>
given_blocks blocks_of(counts lengths) noexcept {
  return {Kind, lengths.of_ranks};
}
template <plan::collective_kind Kind>
exchanged_blocks blocks_of(send_counts sent, receive_counts received) noexcept {
  return {sent.of_ranks, received.of_ranks};
}

}  // namespace detail
HOCKET_END_NAMESPACE
