// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// A pipeline schedule as text, as papers draw it: a row per rank, time to the right, idle time blank; below, how many
/// activations each rank holds. For a terminal and for the messages of tests.
///
///     rank 0  F0 F1       B0--- F2 B1---    B2---
///     rank 1     F0 B0--- F1 B1--- F2 B2---
///     held 0  1  2  2  2  2  2  2  2  2  1  1  1
///     held 1     1  1  1  1  1  1  1  1  1
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/text.hpp>
#include <hocket/schedule/costs.hpp>
#include <hocket/schedule/schedule.hpp>
#include <hocket/schedule/schedule_trace.hpp>
#include <hocket/schedule/text.hpp>
#include <hocket/schedule/timeline.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace plan::pipeline {

namespace detail {

/// Returns F3 if each rank has one stage, otherwise with a letter for the index of the stage on its rank: F3a, F3b.
inline std::string cell_text(const schedule& plan, const schedule_action& what) {
  std::string text;
  for_each_task(what, [&](const task& each) {
    if (!is_computation(each.kind)) return;
    if (!text.empty()) text += '&';
    hocket::detail::append(text, {to_string(each.kind), each.microbatch});
    if (plan.stages() > plan.ranks()) {
      int before = 0;
      const int rank = plan.placement.rank_of(each.stage, each.microbatch);
      for (int stage = 0; stage < each.stage; ++stage) before += plan.placement.rank_of(stage, 0) == rank;
      text += before < 26 ? static_cast<char>('a' + before) : '+';
    } else if (plan.placement.has_two_directions() && each.microbatch >= plan.placement.turn()) {
      text += '\'';
    }
  });
  return text;
}

/// The scale of a drawing in text.
struct text_scale {
  double quantum = 0;     ///< duration of a column; 0: there is nothing to draw
  std::size_t width = 2;  ///< of a column, in characters
  double end = 0;         ///< of the last action

  std::size_t column(double time) const noexcept { return static_cast<std::size_t>(std::lround(time / quantum)); }
};

/// Returns the scale. With `quantum` 0, a column is as long as the shortest action.
inline text_scale scale_of(const schedule& plan, const timeline& times, double quantum) {
  text_scale made;
  double shortest = 0;
  for (const timed_schedule_action& each : times) {
    const double duration = each.end - each.begin;
    if (duration <= 0) continue;
    shortest = shortest == 0 ? duration : std::min(shortest, duration);
    made.end = std::max(made.end, each.end);
  }
  made.quantum = quantum > 0 ? quantum : shortest;
  if (made.quantum <= 0) return made;
  for (const timed_schedule_action& each : times) {
    const std::size_t columns = std::max(std::size_t{1}, made.column(each.end - each.begin));
    const std::size_t needed = cell_text(plan, each.what).size() + 1;
    made.width = std::max(made.width, (needed + columns - 1) / columns);
  }
  return made;
}

/// Returns the line of each rank. A line that is cut ends in an ellipsis.
inline std::vector<std::string> text_lines(const schedule& plan, const timeline& times, const text_scale& scale,
                                           std::size_t most_columns) {
  const std::size_t columns = std::min(most_columns, scale.column(scale.end));
  std::vector<std::string> lines(static_cast<std::size_t>(plan.ranks()), std::string(columns * scale.width, ' '));
  for (const timed_schedule_action& each : times) {
    if (each.end <= each.begin) continue;
    std::string& line = lines[static_cast<std::size_t>(each.rank)];
    const std::size_t from = scale.column(each.begin) * scale.width;
    const std::size_t to = std::max(from + scale.width, scale.column(each.end) * scale.width);
    const std::string text = cell_text(plan, each.what);
    for (std::size_t i = from; i + 1 < to && i < line.size(); ++i)
      line[i] = i - from < text.size() ? text[i - from] : '-';
  }
  const bool cut = scale.end / scale.quantum > static_cast<double>(columns) + 0.5;
  for (std::string& line : lines) {
    line.erase(line.find_last_not_of(' ') + 1);
    if (cut) line += " ...";
  }
  return lines;
}

/// Returns, by rank, the number of activations that it holds at the begin of each column; blank if it holds none.
inline std::vector<std::string> memory_lines(const schedule& plan, const timeline& times, const text_scale& scale,
                                             std::size_t most_columns) {
  const std::size_t columns = std::min(most_columns, scale.column(scale.end));
  std::vector<std::string> lines;
  for (const auto& curve : memory_curves(plan, times)) {
    std::string& line = lines.emplace_back(columns * scale.width, ' ');
    for (std::size_t i = 0; i < curve.size(); ++i) {
      if (curve[i].held == 0) continue;
      const std::string text = std::to_string(curve[i].held);
      const std::size_t end = std::min(columns, scale.column(i + 1 < curve.size() ? curve[i + 1].time : scale.end));
      for (std::size_t at = scale.column(curve[i].time); at < end; ++at)
        line.replace(at * scale.width, text.size(), text);
    }
    line.erase(line.find_last_not_of(' ') + 1);
  }
  return lines;
}

/// Returns the lines with a word and a number in front of each.
inline std::string numbered(const std::string& word, const std::vector<std::string>& lines) {
  std::string all;
  const std::size_t digits = std::to_string(lines.size() - 1).size();
  for (std::size_t rank = 0; rank < lines.size(); ++rank) {
    const std::string number = std::to_string(rank);
    hocket::detail::append(all, {word, ' ', std::string(digits - number.size(), ' '), number, "  ", lines[rank], '\n'});
  }
  return all;
}

}  // namespace detail

/// Returns a line per rank, and below them a line per rank for its activations. A column is `quantum` long (0: the
/// shortest action); dashes extend longer actions. A letter names the stage of a rank, a ' marks the reverse direction.
/// At most `most_columns` columns are drawn; a line that is cut ends in an ellipsis.
inline std::string draw_text(const schedule& plan, const timeline& times, double quantum = 0,
                             std::size_t most_columns = 400) {
  detail::text_scale scale = detail::scale_of(plan, times, quantum);
  if (scale.quantum <= 0) return "nothing to draw\n";
  for (int rank = 0; rank < plan.ranks(); ++rank) {  // there must be a blank between two numbers
    scale.width = std::max(scale.width, std::to_string(peak_activations(plan, rank)).size() + 1);
  }
  return detail::numbered("rank", detail::text_lines(plan, times, scale, most_columns)) +
         detail::numbered("held", detail::memory_lines(plan, times, scale, most_columns));
}

inline std::string draw_text(const schedule& plan, const costs& cost = costs{}) {
  return draw_text(plan, timeline_of(plan, cost));
}

}  // namespace plan::pipeline
HOCKET_END_NAMESPACE
