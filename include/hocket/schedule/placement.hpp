// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The placement of stages on ranks. Every schedule is based on one of these maps, and a message is needed exactly if
/// two neighbouring stages of a microbatch lie on two ranks.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace plan::pipeline {

namespace detail {

/// Returns the first of `ranks` ranks that has no stage, or -1. Negative entries are ignored.
constexpr int rank_without_stage(const std::vector<int>& rank_of_stage, int ranks) {
  std::vector<char> has_stage(static_cast<std::size_t>(ranks), false);
  for (const int rank : rank_of_stage) {
    if (rank >= 0 && rank < ranks) has_stage[static_cast<std::size_t>(rank)] = true;
  }
  const auto found = std::find(has_stage.begin(), has_stage.end(), false);
  return found == has_stage.end() ? -1 : static_cast<int>(found - has_stage.begin());
}

}  // namespace detail

/// A map from (stage, microbatch) to rank.
///
/// | placement | stages | rank of stage s |
/// |---|---|---|
/// | `loop(P, v)` | P*v | s mod P |
/// | `v_shape(P)` | 2P | s where s < P, else 2P-1-s: the last stage lies beside the first |
/// | `two_directions(P, M)` | P, two copies of each | s for the first M/2 microbatches, P-1-s for the others |
/// | `given(ranks)` | as many as there are entries | the entry |
class placement {
 public:
  /// Far more than any machine has ranks. Numbers of stages, and of pairs of stages, do not overflow.
  static constexpr int most_stages = 1 << 27;

  /// Stage s lies on rank s % ranks.
  static constexpr placement loop(int ranks, int stages_per_rank = 1) {
    require(ranks >= 1, "a loop needs at least one rank", ranks);
    require(stages_per_rank >= 1, "a loop needs at least one stage per rank", stages_per_rank);
    require(stages_per_rank <= most_stages / ranks,
            "a pipeline can have at most 2^27 stages: use fewer stages per rank", stages_per_rank);
    return {kind::loop, ranks, ranks * stages_per_rank};
  }

  /// Two stages per rank: down the ranks and up again.
  static constexpr placement v_shape(int ranks) {
    require(ranks >= 1, "a V needs at least one rank", ranks);
    require(ranks <= most_stages / 2,
            "a V has two stages for each rank, and a pipeline at most 2^27 stages: use fewer ranks", ranks);
    return {kind::v_shape, ranks, 2 * ranks};
  }

  /// One stage per rank in each direction; half of the microbatches pass in each.
  static constexpr placement two_directions(int ranks, int microbatches) {
    require(ranks >= 1, "two directions need at least one rank", ranks);
    require(ranks <= most_stages,
            "two directions have one stage for each rank, and a pipeline at most 2^27 stages: use fewer ranks", ranks);
    require(microbatches >= 0 && microbatches % 2 == 0, "two directions need an even number of microbatches",
            microbatches);
    placement made{kind::two_directions, ranks, ranks};
    made.turn_ = microbatches / 2;
    return made;
  }

  /// A user-defined map: stage s lies on `rank_of_stage[s]`.
  static constexpr placement given(std::vector<int> rank_of_stage) {
    require(!rank_of_stage.empty(), "a placement needs at least one stage", 0);
    int ranks = 0;
    for (const int rank : rank_of_stage) {
      require(rank >= 0, "rank numbers in a placement must not be negative", rank);
      require(rank < most_stages, "a pipeline has at most 2^27 ranks", rank);
      ranks = std::max(ranks, rank + 1);
    }
    placement made{kind::given, ranks, static_cast<int>(rank_of_stage.size())};
    const int empty = detail::rank_without_stage(rank_of_stage, ranks);
    require(empty < 0, "every rank needs a stage; rank without a stage", empty);
    made.given_ = std::move(rank_of_stage);
    return made;
  }

  constexpr int ranks() const noexcept { return ranks_; }
  constexpr int stages() const noexcept { return stages_; }  ///< number of stages

  /// Returns the rank that holds `stage` for `microbatch`.
  constexpr int rank_of(int stage, int microbatch) const noexcept {
    switch (kind_) {
      case kind::loop: return stage % ranks_;
      case kind::v_shape: return stage < ranks_ ? stage : 2 * ranks_ - 1 - stage;
      case kind::two_directions: return microbatch < turn_ ? stage : ranks_ - 1 - stage;
      case kind::given: return given_[static_cast<std::size_t>(stage)];
    }
    return 0;
  }

  /// Returns whether `rank` has the parameters of `stage`.
  constexpr bool holds(int rank, int stage) const noexcept {
    return rank_of(stage, 0) == rank || (has_two_directions() && rank_of(stage, turn_) == rank);
  }

  /// True if each stage lies on two ranks, and microbatches from `turn()` on pass the ranks in reverse order.
  constexpr bool has_two_directions() const noexcept { return kind_ == kind::two_directions; }
  constexpr int turn() const noexcept { return turn_; }  ///< the first microbatch of the reverse direction
  /// True if this is a user-defined map, whose entries are part of its text form.
  constexpr bool is_given() const noexcept { return kind_ == kind::given; }

  /// Returns the name in the text form of a schedule: loop, v, two_directions or given.
  constexpr const char* name() const noexcept {
    switch (kind_) {
      case kind::loop: return "loop";
      case kind::v_shape: return "v";
      case kind::two_directions: return "two_directions";
      case kind::given: return "given";
    }
    return "unknown";
  }

  friend constexpr bool operator==(const placement&, const placement&) = default;

 private:
  enum class kind : std::uint8_t { loop, v_shape, two_directions, given };

  constexpr placement(kind which, int ranks, int stages) noexcept : kind_(which), ranks_(ranks), stages_(stages) {}

  static constexpr void require(bool holds, const char* rule, int found) {
    if (!holds) raise(errc::invalid_argument, std::string(rule) + ": found " + std::to_string(found));
  }

  kind kind_;
  int ranks_;
  int stages_;
  int turn_ = 0;  ///< two_directions: the first microbatch that passes the ranks in reverse order
  std::vector<int> given_;
};

}  // namespace plan::pipeline
HOCKET_END_NAMESPACE
