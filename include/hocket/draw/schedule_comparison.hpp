// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The planned and the measured timeline of a schedule in one picture with one time axis: it shows at which action a
/// run loses time. Both timelines must be in the same unit: price the plan with measured costs.
///
///     rank 0 plan  F0 F1       B0--- F2 B1---    B2---
///            run   F0 F1          B0--- F2 B1---    B2---
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/text.hpp>
#include <hocket/draw/detail/svg.hpp>
#include <hocket/draw/schedule_svg.hpp>
#include <hocket/draw/schedule_text.hpp>
#include <hocket/schedule/schedule.hpp>
#include <hocket/schedule/timeline.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace plan::pipeline {

/// Returns two lines per rank. A column is `quantum` long (0: the shortest planned action); `most_columns` limits them.
inline std::string draw_comparison_text(const schedule& plan, const timeline& planned, const timeline& run,
                                        double quantum = 0, std::size_t most_columns = 400) {
  detail::text_scale scale = detail::scale_of(plan, planned, quantum);
  if (scale.quantum <= 0) return "nothing to draw\n";
  const detail::text_scale of_run = detail::scale_of(plan, run, scale.quantum);
  scale.end = std::max(scale.end, of_run.end);
  const std::vector<std::string> above = detail::text_lines(plan, planned, scale, most_columns);
  const std::vector<std::string> below = detail::text_lines(plan, run, scale, most_columns);
  const std::size_t digits = std::to_string(plan.ranks() - 1).size();
  std::string all;
  for (std::size_t rank = 0; rank < above.size(); ++rank) {
    const std::string number = std::to_string(rank);
    hocket::detail::append(all,
                           {"rank ", std::string(digits - number.size(), ' '), number, " plan  ", above[rank], '\n'});
    hocket::detail::append(all, {std::string(5 + digits, ' '), " run   ", below[rank], '\n'});
  }
  return all;
}

/// Returns the plan above, and the run below it. `options.until` may be later than the end of both.
inline std::string draw_comparison_svg(const schedule& plan, const timeline& planned, const timeline& run,
                                       const svg_options& options = {}) {
  svg_options both = options;
  for (const timeline* times : {&planned, &run}) {
    for (const timed_schedule_action& each : *times) both.until = std::max(both.until, each.end);
  }
  const std::string heading(options.heading.empty() ? plan.name() : options.heading);
  const std::string above_heading = heading + ", planned";
  const std::string below_heading = heading + ", run";
  svg_options above_options = both;
  above_options.heading = above_heading;
  svg_options below_options = both;
  below_options.heading = below_heading;
  detail::schedule_drawing above(plan, planned, above_options);
  detail::schedule_drawing below(plan, run, below_options);
  plan::detail::svg_writer svg;
  svg.open(options.width, above.height() + below.height(), heading + ", planned and run", detail::schedule_style());
  svg.raw(above.draw_part());
  svg.raw(hocket::detail::concat({"<g transform=\"translate(0 ", plan::detail::decimal(above.height(), 0), ")\">\n",
                                  below.draw_part(), "</g>\n</svg>\n"}));
  return svg.take();
}

}  // namespace plan::pipeline
HOCKET_END_NAMESPACE
