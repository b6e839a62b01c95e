// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// How many cores other programs, or other virtual machines, use during the measurement.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace perf {

/// Seconds of all cores of this host since it started.
struct core_seconds {
  double used = 0;    ///< by any program
  double stolen = 0;  ///< by other virtual machines
};

/// Reads the content of /proc/stat; none if it has another form. Ticks are those of sysconf(_SC_CLK_TCK).
std::optional<core_seconds> parse_core_seconds(const std::string& stat, double ticks_per_second);

/// What one rank has observed between two points in time.
struct usage {
  std::int32_t host = 0;     ///< the lowest rank on the same host
  std::int32_t process = 0;  ///< the lowest rank in the same process
  std::int32_t known = 0;    ///< whether /proc/stat could be read
  double elapsed = 0;        ///< seconds
  double used = 0;           ///< seconds of all cores of the host
  double stolen = 0;
  double own = 0;  ///< seconds of the rank's process
};

/// Observes usage from construction on.
class usage_meter {
 public:
  usage_meter();
  /// Returns the usage until now; `host` and `process` are left to the caller.
  usage read() const;

 private:
  std::optional<core_seconds> cores_;
  double own_ = 0;
  double time_ = 0;
};

/// Cores that did not work for the measurement, on the host with most of them.
struct foreign_load {
  double other_cores = 0;   ///< used by other programs
  double stolen_cores = 0;  ///< used by other virtual machines
  double elapsed = 0;       ///< seconds of observation

  /// Returns whether the measurement was disturbed. The kernel counts in ticks of mostly 10 ms, so that a short
  /// observation needs a larger share to be certain.
  bool is_busy() const { return other_cores + stolen_cores > 0.1 + (elapsed > 0 ? 0.1 / elapsed : 0); }
};

/// Combines the observations of all ranks; none if no rank could observe its host.
std::optional<foreign_load> combine(const std::vector<usage>& of_ranks);

/// Returns the text of a warning.
std::string busy_text(const foreign_load& load);

}  // namespace perf
