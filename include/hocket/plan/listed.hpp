// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// A user-defined plan that needs no new type: the actions of each rank, listed one by one. It is proven, priced,
/// drawn, simulated and run like any other plan.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/plan/plan.hpp>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace plan {

/// A plan for one number of ranks. Raises `errc::invalid_argument` if it is used with another number of ranks.
///
/// @code
/// plan::listed swap("swap", {plan::collective_kind::all_gather}, 2, {});
/// for (int rank = 0; rank < 2; ++rank) {
///   const unsigned own = rank, other = 1 - rank;
///   swap.lane(rank) = {plan::send(1 - rank, {own}, plan::in(own)), plan::copy({own}, plan::in(own), plan::out(own)),
///                      plan::receive(1 - rank, {other}, plan::out(other))};
/// }
/// @endcode
///
/// The lists of all ranks must match each other; `plan::prove` checks this. A list must not change while the plan runs.
class listed {
 public:
  static constexpr unsigned most_lanes = 256;  ///< the most lanes that a rank can have

  /// A plan without actions. Throws `invalid_argument` if it has no rank or no lane, or too many lanes.
  constexpr listed(std::string name, plan::collective collective, int ranks, plan::shape shape)
      : name_(std::move(name)), collective_(collective), ranks_(ranks), shape_(shape) {
    if (ranks < 1) raise(errc::invalid_argument, "plan '" + name_ + "' needs at least one rank");
    if (shape.lanes < 1) raise(errc::invalid_argument, "plan '" + name_ + "' needs at least one lane");
    if (shape.lanes > most_lanes) {
      raise(errc::invalid_argument, "plan '" + name_ + "' has " + std::to_string(shape.lanes) +
                                        " lanes; it can have at most " + std::to_string(most_lanes));
    }
    lanes_.resize(static_cast<std::size_t>(ranks) * shape.lanes);
  }

  /// Actions of one lane of one rank, which the caller fills in.
  constexpr std::vector<action>& lane(int rank, unsigned lane = 0) { return lanes_[index(rank, lane)]; }
  constexpr const std::vector<action>& lane(int rank, unsigned lane = 0) const { return lanes_[index(rank, lane)]; }

  constexpr int ranks() const noexcept { return ranks_; }

  constexpr const char* name() const noexcept { return name_.c_str(); }
  constexpr plan::collective collective() const noexcept { return collective_; }

  constexpr plan::shape shape(int ranks) const {
    require(ranks);
    return shape_;
  }

  constexpr unsigned length(int ranks, int rank, unsigned lane) const {
    require(ranks);
    return static_cast<unsigned>(lanes_[index(rank, lane)].size());
  }

  constexpr action at(int ranks, int rank, unsigned lane, unsigned i) const {
    require(ranks);
    return lanes_[index(rank, lane)][i];
  }

 private:
  constexpr void require(int ranks) const {
    if (ranks == ranks_) return;
    raise(errc::invalid_argument, "plan '" + name_ + "' is listed for " + std::to_string(ranks_) +
                                      " ranks and cannot run on " + std::to_string(ranks) +
                                      ": list it for that number too, or choose another algorithm");
  }

  constexpr std::size_t index(int rank, unsigned lane) const {
    if (rank < 0 || rank >= ranks_ || lane >= shape_.lanes) {
      raise(errc::invalid_argument, "plan '" + name_ + "' has " + std::to_string(ranks_) + " ranks with " +
                                        std::to_string(shape_.lanes) + " lanes each: there is no lane " +
                                        std::to_string(lane) + " of rank " + std::to_string(rank));
    }
    return static_cast<std::size_t>(rank) * shape_.lanes + lane;
  }

  std::string name_;
  plan::collective collective_;
  int ranks_;
  plan::shape shape_;
  std::vector<std::vector<action>> lanes_;
};

static_assert(algorithm<listed>);

/// Returns all actions of `plan` for `ranks` ranks as lists, to inspect, change, or run without computing them again.
/// The lists claim no symmetry, so that one rank's list may be changed alone.
template <algorithm Plan>
constexpr listed materialise(const Plan& plan, int ranks) {
  plan::shape shape = plan.shape(ranks);
  shape.symmetry = rank_symmetry::none;
  listed all(plan.name(), plan.collective(), ranks, shape);
  for (int rank = 0; rank < ranks; ++rank) {
    for (unsigned lane = 0; lane < shape.lanes; ++lane) {
      const unsigned length = plan.length(ranks, rank, lane);
      all.lane(rank, lane).reserve(length);
      for (unsigned i = 0; i < length; ++i) all.lane(rank, lane).push_back(plan.at(ranks, rank, lane, i));
    }
  }
  return all;
}

}  // namespace plan
HOCKET_END_NAMESPACE
