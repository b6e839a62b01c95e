// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// A pipeline schedule as a value: a row of actions per rank. The same value is proven, priced, drawn, printed and run.
///
/// | generator | placement | separates the two gradients |
/// |---|---|---|
/// | `gpipe`, `one_forward_one_backward` | one stage per rank | no |
/// | `breadth_first`, `interleaved` | loop | no |
/// | `interleaved_zero_bubble`, with one stage per rank `zero_bubble` | loop | yes |
/// | `zero_bubble_v`, `v_half`, `v_min` | V | yes |
/// | `dual_pipe_v` | V | in part |
/// | `dual_pipe` | two directions | in part |
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/text.hpp>
#include <hocket/schedule/placement.hpp>
#include <hocket/schedule/schedule_action.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace plan::pipeline {

using row = std::vector<schedule_action>;  ///< the actions of one rank, in order

namespace detail {

/// Refuses a name that the text form cannot preserve; there, the name is the rest of a line.
constexpr void require_name(std::string_view name) {
  constexpr std::string_view blanks = " \t";
  const bool is_rest_of_line = name.find_first_of("\r\n") == std::string_view::npos;
  const bool is_trimmed = name.empty() || (blanks.find(name.front()) == std::string_view::npos &&
                                           blanks.find(name.back()) == std::string_view::npos);
  if (is_rest_of_line && is_trimmed) return;
  raise(errc::invalid_argument,
        "the name of a schedule must be one line without blanks at its ends; found '" + std::string(name) + "'");
}

/// Some gigabytes of actions. A larger schedule would exhaust the memory before any check could refuse it.
constexpr std::int64_t most_in_schedule = std::int64_t{1} << 27;

/// Each stage has at least two actions for each microbatch.
constexpr bool is_too_large(const placement& where, int microbatches) {
  return std::int64_t{where.stages()} * microbatches > most_in_schedule / 2;
}
inline std::string too_large_text(const placement& where, int microbatches) {
  return hocket::detail::concat({"a schedule has at most ", most_in_schedule, " actions; ", where.stages(),
                                 " stages and ", microbatches, " microbatches need more"});
}

constexpr int checked_count(const placement& where, int microbatches) {
  if (microbatches < 0) {
    raise(errc::invalid_argument,
          "the number of microbatches of a schedule must not be negative; found " + std::to_string(microbatches));
  }
  if (where.has_two_directions() && microbatches != 2 * where.turn()) {
    raise(errc::invalid_argument, "the two directions of this placement were made for " +
                                      std::to_string(2 * where.turn()) + " microbatches; the schedule has " +
                                      std::to_string(microbatches));
  }
  if (is_too_large(where, microbatches)) raise(errc::invalid_argument, too_large_text(where, microbatches));
  return microbatches;
}

}  // namespace detail

/// The actions of every rank of a pipeline, in order. All ranks must hold the same value.
class schedule {
 public:
  pipeline::placement placement;  ///< the rank of each stage
  int microbatches = 0;           ///< number of microbatches in a step
  std::vector<row> rows;          ///< one per rank

  /// A schedule without actions. Throws `invalid_argument` if the name or the count is invalid.
  constexpr schedule(std::string_view name, pipeline::placement where, int count)
      : placement(std::move(where)), microbatches(detail::checked_count(placement, count)),
        rows(static_cast<std::size_t>(placement.ranks())), name_(name.begin(), name.end()) {
    detail::require_name(name);
  }

  constexpr std::string_view name() const noexcept { return {name_.data(), name_.size()}; }  ///< the name, for texts
  /// Raises `invalid_argument` if `name` is more than one line, or has blanks at its ends.
  constexpr void rename(std::string_view name) {
    detail::require_name(name);
    name_.assign(name.begin(), name.end());
  }

  constexpr int ranks() const noexcept { return placement.ranks(); }
  constexpr int stages() const noexcept { return placement.stages(); }                      ///< number of stages
  constexpr row& of(int rank) { return rows[static_cast<std::size_t>(rank)]; }              ///< the actions of `rank`
  constexpr const row& of(int rank) const { return rows[static_cast<std::size_t>(rank)]; }  ///< the actions of `rank`

  /// Returns the index of (stage, microbatch) in a vector with an entry for each.
  constexpr std::size_t index(int stage, int microbatch) const noexcept {
    return static_cast<std::size_t>(stage) * static_cast<std::size_t>(microbatches) +
           static_cast<std::size_t>(microbatch);
  }
  /// Returns the number of entries of such a vector.
  constexpr std::size_t cells() const noexcept { return index(stages(), 0); }

  /// Returns the number of actions of all ranks.
  constexpr std::size_t length() const noexcept {
    std::size_t sum = 0;
    for (const row& each : rows) sum += each.size();
    return sum;
  }

  friend constexpr bool operator==(const schedule&, const schedule&) = default;

 private:
  std::vector<char> name_;  // g++ 12 cannot return a std::string from a constant expression
};

namespace detail {

/// Refuses numbers of ranks and microbatches that a generator does not support.
constexpr void require_rule(bool holds, const char* generator, const char* rule, int ranks, int microbatches) {
  if (holds) return;
  raise(errc::invalid_argument, std::string(generator) + " needs " + rule + "; found " + std::to_string(ranks) +
                                    " ranks and " + std::to_string(microbatches) + " microbatches");
}

constexpr void require_sizes(const char* generator, int ranks, int microbatches) {
  require_rule(ranks >= 1 && microbatches >= 1, generator, "at least one rank and one microbatch", ranks, microbatches);
}

}  // namespace detail

}  // namespace plan::pipeline
HOCKET_END_NAMESPACE
