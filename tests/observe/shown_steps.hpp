// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Which steps of a tag TensorBoard shows: files of a folder by name, and the start of a session drops earlier events of
/// its step and later ones.
#pragma once

#include "observe/events.hpp"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace observe_test {

/// Returns whether an event has a value of `tag`.
inline bool has_tag(const message& event, const std::string& tag) {
  if (!event.texts.contains(5)) return false;
  const message summary = event.at(5);
  if (!summary.texts.contains(1)) return false;
  for (std::size_t v = 0; v < summary.texts.at(1).size(); ++v) {
    if (summary.at(1, v).text(1) == tag) return true;
  }
  return false;
}

/// Returns the steps that TensorBoard shows of `tag`, in the order of the files.
inline std::vector<std::uint64_t> shown_steps(const std::string& folder, const std::string& tag) {
  std::vector<std::string> paths;
  for (const auto& each : std::filesystem::directory_iterator(folder)) paths.push_back(each.path().string());
  std::sort(paths.begin(), paths.end());
  std::vector<std::uint64_t> result;
  for (const std::string& path : paths) {
    for (const message& event : events_in(path)) {
      const std::uint64_t step = event.numbers.at(2).at(0);
      if (event.texts.contains(7)) std::erase_if(result, [&](std::uint64_t each) { return each >= step; });
      if (has_tag(event, tag)) result.push_back(step);
    }
  }
  return result;
}

}  // namespace observe_test
