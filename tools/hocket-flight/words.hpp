// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Calls, ranks and times formatted for readers.
#pragma once

#include "record.hpp"

#include <cmath>
#include <cstddef>
#include <cstdio>
#include <ctime>
#include <regex>
#include <string>
#include <vector>

namespace flight {

inline std::string place(const site& where) {
  return where.line == 0 ? "" : where.file + ':' + std::to_string(where.line);
}

/// Removes hocket's inline namespaces, which are long and carry no information for the reader.
inline std::string short_types(const std::string& types) {
  static const std::regex versions("v[0-9]+_[0-9]+_exceptions[01]_assertions[0-9](_no_mismatch_detection)?::");
  return std::regex_replace(types, versions, "");
}

/// "all_reduce #7 (1000 elements of (float, std::plus<void>) by two_shot) at train.cpp:30".
inline std::string describe(const call& what) {
  std::string text = what.operation + " #" + std::to_string(what.sequence);
  if (what.operation != "barrier" && !what.types.empty()) {
    text += " (" + std::to_string(what.elements) + " elements of (" + short_types(what.types) + ") by " + what.plan;
    text += (what.root != 0 || what.operation == "broadcast" ? ", root " + std::to_string(what.root) : "") + ")";
  }
  return what.where.line == 0 ? text : text + " at " + place(what.where);
}

/// "send of 8 bytes to rank 1 (tag 3) at train.cpp:30".
inline std::string describe(const message& what) {
  std::string text = what.operation;
  if (what.to >= 0) text += " of " + std::to_string(what.bytes) + " bytes to rank " + std::to_string(what.to);
  if (what.to >= 0 && what.from >= 0) text += " and";
  if (what.from >= 0)
    text += " of up to " + std::to_string(what.room) + " bytes from rank " + std::to_string(what.from);
  if (what.tag != 0) text += " (tag " + std::to_string(what.tag) + ')';
  return what.where.line == 0 ? text : text + " at " + place(what.where);
}

/// "rank 3", "ranks 0, 1 and 2".
inline std::string ranks(const std::vector<int>& which) {
  std::string text = which.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < which.size(); ++i) {
    if (i > 0) text += i + 1 == which.size() ? " and " : ", ";
    text += std::to_string(which[i]);
  }
  return text;
}

inline std::string capital(std::string text) {
  if (!text.empty() && text.front() >= 'a' && text.front() <= 'z')
    text.front() = static_cast<char>(text.front() - 'a' + 'A');
  return text;
}

/// "1.52 s", "73 ms", "8 us".
inline std::string duration(nanoseconds length) {
  const double seconds = std::abs(static_cast<double>(length)) * 1e-9;
  char text[40];
  if (seconds >= 100) {
    std::snprintf(text, sizeof text, "%.0f s", seconds);
  } else if (seconds >= 1) {
    std::snprintf(text, sizeof text, "%.3g s", seconds);
  } else if (seconds >= 1e-3) {
    std::snprintf(text, sizeof text, "%.3g ms", seconds * 1e3);
  } else {
    std::snprintf(text, sizeof text, "%.3g us", seconds * 1e6);
  }
  return text;
}

/// "2026-11-21 19:28:03.852 UTC".
inline std::string moment(nanoseconds when) {
  const auto seconds = static_cast<std::time_t>(when / 1'000'000'000);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char day[40];
  std::strftime(day, sizeof day, "%Y-%m-%d %H:%M:%S", &parts);
  char text[64];
  std::snprintf(text, sizeof text, "%s.%03d UTC", day, static_cast<int>(when / 1'000'000 % 1000));
  return text;
}

}  // namespace flight
