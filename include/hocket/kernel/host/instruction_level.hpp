// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The vector instructions that the element kernels of this process use.
///
/// Programs are compiled for any x86-64 processor, whose vectors have 16 bytes. The kernels therefore exist for three
/// levels, and each call uses the highest one that the machine has. Results have the same bits at all levels, so ranks
/// need not agree on one. The environment variable `HOCKET_INSTRUCTIONS` (generic, avx2 or avx512) limits the level,
/// for measurements or to rule out a cause; `set_instruction_level` does the same in a program.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/platform/instruction_set.hpp>

#include <atomic>
#include <cstdlib>
#include <string_view>

HOCKET_BEGIN_NAMESPACE
namespace kernel {

/// A set of instructions; each includes those before it.
enum class instruction_level : int {
  generic,  ///< what the program is compiled for
  avx2,     ///< AVX2 and F16C
  avx512    ///< AVX-512 F, BW, DQ and VL
};

/// Returns the name of `level` as in `HOCKET_INSTRUCTIONS`.
constexpr const char* instruction_level_name(instruction_level level) noexcept {
  return level == instruction_level::avx512 ? "avx512" : level == instruction_level::avx2 ? "avx2" : "generic";
}

/// Returns the highest level that this machine has.
inline instruction_level supported_instruction_level() noexcept {
  if (!platform::has_avx2()) return instruction_level::generic;
  return platform::has_avx512() ? instruction_level::avx512 : instruction_level::avx2;
}

/// A level, and why it is not the one that was asked for.
struct instruction_choice {
  instruction_level level = instruction_level::generic;
  const char* reason = nullptr;  ///< null if the variable is not set, or was followed
};

/// Returns the choice for a value of `HOCKET_INSTRUCTIONS`, which may be null, on a machine that has `supported`. A
/// value that can't be followed is ignored.
constexpr instruction_choice choose_instruction_level(const char* value, instruction_level supported) noexcept {
  const std::string_view asked = value == nullptr ? std::string_view() : std::string_view(value);
  if (asked.empty()) return {supported, nullptr};
  for (const auto level : {instruction_level::generic, instruction_level::avx2, instruction_level::avx512}) {
    if (asked != instruction_level_name(level)) continue;
    if (level <= supported) return {level, nullptr};
    return {supported, level == instruction_level::avx512
                           ? "HOCKET_INSTRUCTIONS=avx512 is ignored: this machine lacks AVX-512 F, BW, DQ or VL"
                           : "HOCKET_INSTRUCTIONS=avx2 is ignored: this machine lacks AVX2 or F16C"};
  }
  return {supported, "HOCKET_INSTRUCTIONS is ignored: it must be generic, avx2 or avx512"};
}

/// Returns the choice of this process's environment.
HOCKET_COLD inline instruction_choice chosen_instruction_level() noexcept {
  return choose_instruction_level(std::getenv("HOCKET_INSTRUCTIONS"), supported_instruction_level());
}

namespace detail {

inline constexpr int no_level_yet = -1;
/// Initialised at compile time, so that kernels may run before constructors of global objects.
inline std::atomic<int> level_in_use{no_level_yet};

HOCKET_COLD inline instruction_level first_instruction_level() noexcept {
  int found = no_level_yet;
  const auto chosen = static_cast<int>(chosen_instruction_level().level);
  if (level_in_use.compare_exchange_strong(found, chosen, std::memory_order_relaxed)) found = chosen;
  return static_cast<instruction_level>(found);
}

}  // namespace detail

/// Returns the level that kernels use from now on.
inline instruction_level current_instruction_level() noexcept {
  const int level = detail::level_in_use.load(std::memory_order_relaxed);
  if (level == detail::no_level_yet) return detail::first_instruction_level();
  return static_cast<instruction_level>(level);
}

/// Makes kernels of this process use `level`, or the highest supported one below it. Returns the level in use. Calls
/// that run at the same time may still use the previous one, which does not change their results. Any thread may call
/// this at any time.
inline instruction_level set_instruction_level(instruction_level level) noexcept {
  const instruction_level supported = supported_instruction_level();
  const instruction_level used = level < supported ? level : supported;
  detail::level_in_use.store(static_cast<int>(used), std::memory_order_relaxed);
  return used;
}

}  // namespace kernel
HOCKET_END_NAMESPACE
