// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// How checkpoints are named and described on the command line.
#pragma once

#include <hocket/checkpoint/folder.hpp>
#include <hocket/checkpoint/manifest.hpp>
#include <hocket/core/error.hpp>

#include <array>
#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

namespace checkpoint_tool {

/// For printf.
inline unsigned long long number(std::uint64_t value) { return value; }

/// Returns "1.5 GiB" or "12 B".
inline std::string bytes_text(std::uint64_t bytes) {
  constexpr std::array<const char*, 6> units{"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < units.size(); ++unit) value /= 1024;
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), unit == 0 ? "%.0f %s" : "%.1f %s", value, units[unit]);
  return text.data();
}

inline std::string shape_text(const hocket::checkpoint::sizes_type& extents) {
  std::string text;
  for (const std::uint64_t each : extents) text += (text.empty() ? "" : " x ") + std::to_string(each);
  return text.empty() ? "a number" : text;
}

inline std::uint64_t bytes_in(const hocket::checkpoint::manifest& of) {
  std::uint64_t bytes = 0;
  for (const auto& each : of.tensors) bytes += each.bytes_in(hocket::checkpoint::whole_of(each.extents));
  return bytes;
}

inline hocket::checkpoint::position position_of(const std::string& name) {
  const auto found = hocket::checkpoint::position_named(name);
  if (!found) throw std::runtime_error("'" + name + "' is no name of a checkpoint: pass one such as step-200.0.1");
  return *found;
}

/// Returns the positions of all checkpoints, newest first. Throws if there is none.
inline std::vector<hocket::checkpoint::position> valid_in(const hocket::checkpoint::folder& all) {
  std::vector<hocket::checkpoint::position> result;
  if (hocket::failure cause = all.find_valid(result)) hocket::raise(std::move(cause));
  if (result.empty()) throw std::runtime_error("there is no checkpoint in '" + all.path() + "'");
  return result;
}

/// Returns the manifest of the checkpoint with this name, or of the newest if it is empty.
inline hocket::checkpoint::manifest manifest_of(const hocket::checkpoint::folder& all, const std::string& name,
                                                std::string& text) {
  hocket::checkpoint::manifest result;
  const auto at = name.empty() ? valid_in(all).front() : position_of(name);
  if (hocket::failure cause = all.read(at, text, result)) hocket::raise(std::move(cause));
  return result;
}

}  // namespace checkpoint_tool
