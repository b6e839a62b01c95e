// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The ranks of a measurement: where each one runs, and how they exchange results.
#pragma once

#include "load.hpp"
#include "rank_facts.hpp"
#include "settings.hpp"
#include "trial.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace perf {

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
  /// Returns the values of all ranks. Collective.
  std::vector<double> gather(double value) const;
  std::vector<usage> gather(const usage& value) const;
  /// Sets the host and the process of this rank's usage.
  usage locate(usage own) const;
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
