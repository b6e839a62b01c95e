// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Reads a trace like Perfetto, and summarises it.
#pragma once

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace hocket_test {

struct trace_summary {
  std::string problem;  ///< empty if the trace is JSON with valid events
  std::size_t ranks = 0;
  std::size_t steps = 0;
  std::size_t arrows_begun = 0;
  std::size_t arrows_ended = 0;
  std::size_t backward_arrows = 0;  ///< arrows that end before they begin
  double earliest_microseconds = std::numeric_limits<double>::infinity();
  double latest_microseconds = 0;
  std::map<std::pair<int, std::string>, std::vector<double>> counters;  ///< values by rank and name, in order of time
};

inline trace_summary read_trace(const std::string& path) {
  trace_summary result;
  std::ifstream file(path);
  const auto trace = nlohmann::json::parse(file, nullptr, false);
  if (trace.is_discarded() || !trace.contains("traceEvents")) {
    result.problem = "it is not JSON, or has no traceEvents";
    return result;
  }
  std::set<int> ranks;
  std::map<std::uint64_t, double> begins, ends;
  std::map<std::pair<int, std::string>, std::multimap<double, double>> times_of_counters;
  for (const auto& each : trace["traceEvents"]) {
    const std::string kind = each.at("ph");
    if (kind == "M") continue;
    if (!each.contains("pid") || !each.contains("tid") || !each.contains("ts")) result.problem = "a field is missing";
    ranks.insert(each.at("pid").get<int>());
    const double time = each.at("ts");
    result.earliest_microseconds = std::min(result.earliest_microseconds, time);
    if (kind == "C") {
      times_of_counters[{each.at("pid"), each.at("name")}].emplace(time, each.at("args").at("value").get<double>());
    } else if (kind == "X") {
      if (each.at("args").contains("step")) ++result.steps;
      result.latest_microseconds = std::max(result.latest_microseconds, time + each.at("dur").get<double>());
    } else if (!(kind == "s" ? begins : ends).emplace(each.at("id"), time).second) {
      result.problem = "two arrows have the number " + std::to_string(each.at("id").get<std::uint64_t>());
    }
  }
  result.ranks = ranks.size();
  for (const auto& [counter, values] : times_of_counters) {
    for (const auto& [time, value] : values) result.counters[counter].push_back(value);
  }
  result.arrows_begun = begins.size();
  for (const auto& [id, time] : ends) {
    const auto begin = begins.find(id);
    if (begin == begins.end()) continue;
    ++result.arrows_ended;
    if (begin->second > time) ++result.backward_arrows;
  }
  return result;
}

}  // namespace hocket_test
