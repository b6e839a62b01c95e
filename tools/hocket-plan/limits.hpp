// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Limits of the numbers on the command line, and checks of them that name the option and its limits. They keep every
/// computation of the tool within its types, and within seconds and a few GiB.
#pragma once

#include "usage_error.hpp"

#include <CLI/CLI.hpp>

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <system_error>

namespace plans {

inline constexpr std::uint64_t most_ranks = 5'000'000;            ///< of a collective: its price takes seconds
inline constexpr std::uint64_t most_pipeline_number = 1'000'000;  ///< ranks, microbatches, …
inline constexpr std::uint64_t most_pipeline_tasks = 10'000'000;
inline constexpr std::uint64_t most_simulated_actions = 10'000'000'000;
inline constexpr std::uint64_t most_bytes = std::uint64_t{1} << 50;
inline constexpr std::uint64_t most_shown = 4'000'000;  ///< actions, messages and flags in a text or a drawing

/// Sets `value` and returns true if `text` is a whole number without sign.
inline bool read_number(const std::string& text, std::uint64_t& value) {
  const char* const end = text.data() + text.size();
  const auto [stop, problem] = std::from_chars(text.data(), end, value);
  return problem == std::errc() && stop == end;
}

/// Accepts whole numbers from `least` to `most`.
inline CLI::Validator whole_number(std::uint64_t least, std::uint64_t most) {
  const std::string range = "from " + std::to_string(least) + " to " + std::to_string(most);
  return CLI::Validator(
      [=](std::string& text) {
        std::uint64_t value = 0;
        if (read_number(text, value) && value >= least && value <= most) return std::string();
        return "must be a whole number " + range + ", not '" + text + "'";
      },
      range);
}

/// Accepts sizes such as 1000 or 1MiB, up to `most`, and replaces them by the number of bytes.
inline CLI::Validator size_in_bytes(std::uint64_t most, const std::string& most_text) {
  return CLI::Validator(
      [=](std::string& text) {
        std::string number = text;
        std::uint64_t value = 0;
        try {
          CLI::AsSizeValue(false)(number);
        } catch (const CLI::ParseError&) {
          number.clear();
        }
        if (!read_number(number, value) || value > most) {
          return "must be a size from 0 to " + most_text + ", such as 1000 or 1MiB, not '" + text + "'";
        }
        text = number;
        return std::string();
      },
      "SIZE up to " + most_text);
}

}  // namespace plans
