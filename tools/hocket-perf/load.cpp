// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "load.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <sstream>

#include <sys/resource.h>
#include <unistd.h>

namespace perf {

namespace {

std::optional<core_seconds> core_seconds_now() {
  std::ifstream file("/proc/stat");
  std::string first;
  if (!std::getline(file, first)) return std::nullopt;
  return parse_core_seconds(first, static_cast<double>(::sysconf(_SC_CLK_TCK)));
}

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

double own_seconds_now() {
  rusage own{};
  if (::getrusage(RUSAGE_SELF, &own) != 0) return 0;
  return seconds_of(own.ru_utime) + seconds_of(own.ru_stime);
}

double time_now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

}  // namespace

std::optional<core_seconds> parse_core_seconds(const std::string& stat, double ticks_per_second) {
  std::istringstream words(stat);
  std::string name;
  // user nice system idle iowait irq softirq steal; what follows is contained in user and nice.
  std::vector<double> ticks;
  words >> name;
  for (double each = 0; ticks.size() < 8 && words >> each;) ticks.push_back(each);
  if (name != "cpu" || ticks.size() < 4 || ticks_per_second <= 0) return std::nullopt;
  ticks.resize(8);
  const double used = ticks[0] + ticks[1] + ticks[2] + ticks[5] + ticks[6];
  return core_seconds{used / ticks_per_second, ticks[7] / ticks_per_second};
}

usage_meter::usage_meter() : cores_(core_seconds_now()), own_(own_seconds_now()), time_(time_now()) {}

usage usage_meter::read() const {
  usage found;
  found.elapsed = time_now() - time_;
  found.own = own_seconds_now() - own_;
  const std::optional<core_seconds> now = core_seconds_now();
  if (!cores_ || !now) return found;
  found.known = 1;
  found.used = now->used - cores_->used;
  found.stolen = now->stolen - cores_->stolen;
  return found;
}

std::optional<foreign_load> combine(const std::vector<usage>& of_ranks) {
  std::optional<foreign_load> worst;
  for (std::size_t rank = 0; rank < of_ranks.size(); ++rank) {
    const usage& host = of_ranks[rank];
    if (host.host != static_cast<std::int32_t>(rank) || host.known == 0 || host.elapsed <= 0) continue;
    double own = 0;
    for (std::size_t other = 0; other < of_ranks.size(); ++other) {
      const usage& each = of_ranks[other];
      if (each.host == host.host && each.process == static_cast<std::int32_t>(other)) own += each.own;
    }
    const foreign_load found{std::max(0.0, host.used - own) / host.elapsed, std::max(0.0, host.stolen) / host.elapsed,
                             host.elapsed};
    const auto sum = [](const foreign_load& load) { return load.other_cores + load.stolen_cores; };
    if (!worst || sum(found) > sum(*worst)) worst = found;
  }
  return worst;
}

std::string busy_text(const foreign_load& load) {
  char shown[120];
  std::snprintf(shown, sizeof shown, "BUSY MACHINE: during the measurement other programs used %.1f cores",
                load.other_cores);
  std::string all = shown;
  if (load.stolen_cores >= 0.05) {
    std::snprintf(shown, sizeof shown, ", and other virtual machines %.1f", load.stolen_cores);
    all += shown;
  }
  return all + ": the figures are unreliable";
}

}  // namespace perf
