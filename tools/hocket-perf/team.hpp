// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The ranks of a measurement: where each one runs, and how they exchange results.
#pragma once

#include "settings.hpp"
#include "trial.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace perf {

/// Where a rank runs.
struct rank_facts {
  std::int64_t process = 0;
  std::int32_t core = 0;  ///< at the start; fixed if the rank is pinned
  std::int32_t usable_cores = 1;
  std::array<char, 64> host{};
};

/// Pins this thread to the `which`-th of its usable cores, modulo their number.
void pin_to_core(int which);

/// One rank's view of all of them.
class team {
 public:
  /// Collective. With `pin`, each rank of a host gets its own core if there are enough cores.
  team(any_communicator comm, bool pin);

  int rank() const { return rank_; }
  int size() const { return static_cast<int>(facts_.size()); }
  const std::vector<rank_facts>& facts() const { return facts_; }
  /// Returns whether any host has more ranks than usable cores.
  bool outnumbers_cores() const;
  const std::string& transport() const { return transport_; }

  void barrier() const;
  std::uint64_t sum(std::uint64_t value) const;
  /// Combines the times of all ranks; the result is equal on all ranks. Collective.
  void average(std::vector<double>& seconds, averaging how) const;

 private:
  any_communicator comm_;
  int rank_ = 0;
  std::vector<rank_facts> facts_;
  std::string transport_;
};

}  // namespace perf
