// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The ranks that measure together: who they are, where they run, and what they have to tell each other.
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
  std::int32_t core = 0;  ///< at the start; for good if it was pinned
  std::int32_t usable_cores = 1;
  std::array<char, 64> host{};
};

/// Keeps this thread on the `which`-th of the cores that it may run on, counting round.
void pin_to_core(int which);

/// One rank's view of all of them.
class team {
 public:
  /// Collective. With `pin`, each rank of a host gets a core of its own as far as there are enough.
  team(any_communicator comm, bool pin);

  int rank() const { return rank_; }
  int size() const { return static_cast<int>(facts_.size()); }
  const std::vector<rank_facts>& facts() const { return facts_; }
  /// Whether some host has more ranks than cores that they may run on.
  bool outnumbers_cores() const;
  const std::string& transport() const { return transport_; }

  void barrier() const;
  std::uint64_t sum(std::uint64_t value) const;
  /// One list out of those of all ranks, equal on all of them.
  void average(std::vector<double>& seconds, averaging how) const;

 private:
  any_communicator comm_;
  int rank_ = 0;
  std::vector<rank_facts> facts_;
  std::string transport_;
};

}  // namespace perf
