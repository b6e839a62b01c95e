// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The calls that are compared: their buffers, and the contents that prove a result right.
#pragma once

#include <array>
#include <cstddef>
#include <limits>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace compare {

/// Rank 0 is the root of calls with a root.
enum class call {
  all_reduce,
  reduce_scatter,
  all_gather,
  all_to_all,
  broadcast,
  reduce,
  gather,
  scatter,
  gather_v,
  scatter_v,
  barrier,
  ping_pong,
  exchange
};

inline call call_of(const std::string& name) {
  constexpr std::array<const char*, 13> names{"all_reduce", "reduce_scatter", "all_gather", "all_to_all", "broadcast",
                                              "reduce",     "gather",         "scatter",    "gather_v",   "scatter_v",
                                              "barrier",    "ping_pong",      "exchange"};
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (name == names[i]) return static_cast<call>(i);
  }
  throw std::invalid_argument("unknown call '" + name + "'");
}

/// The values that ranks contribute. They are small integers, so that sums are exact in any order, and repeat after a
/// prime number of elements, so that a block at a wrong place is found.
class pattern {
 public:
  static constexpr std::size_t period = 61;

  explicit pattern(int ranks) {
    for (std::size_t i = 0; i < period; ++i) {
      for (int rank = 0; rank < ranks; ++rank) sums_[i] += value(rank, i);
    }
  }

  static float value(int rank, std::size_t i) {
    return static_cast<float>((i * 7 + static_cast<std::size_t>(rank) * 31) % period) - 30.0F;
  }
  float sum(std::size_t i) const { return sums_[i % period]; }

 private:
  std::array<float, period> sums_{};
};

/// The blocks of gather_v and scatter_v, in the forms in which libraries take them: made once, not in each call.
struct uneven_blocks {
  std::vector<std::size_t> lengths{};  ///< elements of each rank
  std::vector<int> int_lengths{};      ///< the same, as MPI takes them
  std::vector<int> int_offsets{};      ///< elements before the block of each rank

  uneven_blocks() = default;

  /// In each pair of ranks the first has half of a block less and the second half of a block more.
  uneven_blocks(std::size_t block, int ranks) : lengths(static_cast<std::size_t>(ranks), block) {
    for (std::size_t first = 0; first + 1 < lengths.size(); first += 2) {
      lengths[first] -= block / 2;
      lengths[first + 1] += block / 2;
    }
    int_lengths.assign(lengths.begin(), lengths.end());
    int_offsets.resize(lengths.size());
    std::exclusive_scan(int_lengths.begin(), int_lengths.end(), int_offsets.begin(), 0);
  }

  friend bool operator==(const uneven_blocks&, const uneven_blocks&) = default;

  std::size_t of(int rank) const { return lengths[static_cast<std::size_t>(rank)]; }
  std::size_t before(int rank) const { return static_cast<std::size_t>(int_offsets[static_cast<std::size_t>(rank)]); }
  std::size_t sum() const { return std::accumulate(lengths.begin(), lengths.end(), std::size_t{0}); }
};

/// One call with its size, as one rank sees it.
struct subject {
  call what = call::barrier;
  std::size_t count = 0;  ///< elements of the larger of the two buffers
  std::size_t block = 0;  ///< elements per rank, for the calls that divide a buffer; in gather_v and scatter_v the mean
  int rank = 0;
  int ranks = 1;
  uneven_blocks blocks{};  ///< for gather_v and scatter_v

  /// `bytes` are those of the larger buffer, as in nccl-tests.
  subject(call of, std::size_t bytes, int my_rank, int all_ranks) : what(of), rank(my_rank), ranks(all_ranks) {
    block = bytes / sizeof(float) / static_cast<std::size_t>(ranks);
    count = divides() ? block * static_cast<std::size_t>(ranks) : bytes / sizeof(float);
    if (what == call::gather_v || what == call::scatter_v) blocks = {block, ranks};
  }

  friend bool operator==(const subject&, const subject&) = default;

  bool divides() const {
    return what == call::reduce_scatter || what == call::all_gather || what == call::all_to_all ||
           what == call::gather || what == call::scatter || what == call::gather_v || what == call::scatter_v;
  }
  std::size_t in_count() const {
    if (what == call::gather_v) return blocks.of(rank);
    return what == call::all_gather || what == call::gather ? block : count;
  }
  std::size_t out_count() const {
    if ((what == call::reduce || what == call::gather || what == call::gather_v) && rank != 0) return 0;
    if (what == call::scatter_v) return blocks.of(rank);
    return what == call::reduce_scatter || what == call::scatter ? block : count;
  }

  /// The other rank of a pair, or `ranks` if this rank has none.
  int partner() const { return (rank ^ 1) < ranks ? rank ^ 1 : ranks; }

  bool has_result() const {
    if (what == call::barrier || out_count() == 0) return false;
    return (what != call::ping_pong && what != call::exchange) || partner() < ranks;
  }

  float expected(const pattern& values, std::size_t i) const {
    const std::size_t mine = static_cast<std::size_t>(rank) * block;
    switch (what) {
      case call::all_reduce:
      case call::reduce: return values.sum(i);
      case call::reduce_scatter: return values.sum(mine + i);
      case call::all_gather:
      case call::gather: return pattern::value(static_cast<int>(i / block), i % block);
      case call::all_to_all: return pattern::value(static_cast<int>(i / block), mine + i % block);
      case call::broadcast: return pattern::value(0, i);
      case call::gather_v: return gathered(i);
      case call::scatter: return pattern::value(0, mine + i);
      case call::scatter_v: return pattern::value(0, blocks.before(rank) + i);
      case call::ping_pong:
      case call::exchange: return pattern::value(partner(), i);
      case call::barrier: break;
    }
    return 0;
  }

  /// Writes the contribution, and values to the place of the result that no call produces. A broadcast has one buffer.
  void write(std::span<float> in, std::span<float> out) const {
    for (std::size_t i = 0; i < in.size(); ++i) in[i] = pattern::value(rank, i);
    const bool is_root = what == call::broadcast && rank == 0;
    for (std::size_t i = 0; i < out.size(); ++i) {
      out[i] = is_root ? pattern::value(0, i) : std::numeric_limits<float>::quiet_NaN();
    }
  }

  std::size_t count_wrong(const pattern& values, std::span<const float> out) const {
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < out.size(); ++i) wrong += out[i] == expected(values, i) ? 0U : 1U;
    return wrong;
  }

 private:
  float gathered(std::size_t i) const {
    int from = 0;
    while (i >= blocks.of(from)) i -= blocks.of(from++);
    return pattern::value(from, i);
  }
};

}  // namespace compare
