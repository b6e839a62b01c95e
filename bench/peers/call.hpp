// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The calls that are compared: their buffers, and the contents that prove a result right.
#pragma once

#include <array>
#include <cstddef>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>

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
  barrier,
  ping_pong,
  exchange
};

inline call call_of(const std::string& name) {
  constexpr std::array<const char*, 11> names{"all_reduce", "reduce_scatter", "all_gather", "all_to_all",
                                              "broadcast",  "reduce",         "gather",     "scatter",
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

/// One call with its size, as one rank sees it.
struct subject {
  call what = call::barrier;
  std::size_t count = 0;  ///< elements of the larger of the two buffers
  std::size_t block = 0;  ///< elements per rank, for the calls that divide a buffer
  int rank = 0;
  int ranks = 1;

  /// `bytes` are those of the larger buffer, as in nccl-tests.
  subject(call of, std::size_t bytes, int my_rank, int all_ranks) : what(of), rank(my_rank), ranks(all_ranks) {
    block = bytes / sizeof(float) / static_cast<std::size_t>(ranks);
    count = divides() ? block * static_cast<std::size_t>(ranks) : bytes / sizeof(float);
  }

  friend bool operator==(const subject&, const subject&) = default;

  bool divides() const {
    return what == call::reduce_scatter || what == call::all_gather || what == call::all_to_all ||
           what == call::gather || what == call::scatter;
  }
  std::size_t in_count() const { return what == call::all_gather || what == call::gather ? block : count; }
  std::size_t out_count() const {
    if ((what == call::reduce || what == call::gather) && rank != 0) return 0;
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
      case call::scatter: return pattern::value(0, mine + i);
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
};

}  // namespace compare
