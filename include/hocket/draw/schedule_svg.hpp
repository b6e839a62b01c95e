// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// A pipeline schedule as a picture, as papers draw it: a row per rank, time to the right; forward passes, input and
/// weight gradients in their colours, later stages of a rank darker, bubbles white; below, the activations that each
/// rank holds. The picture shows a plan or a measured run; to compare the two, see draw/schedule_comparison.hpp.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/text.hpp>
#include <hocket/draw/detail/svg.hpp>
#include <hocket/draw/schedule_text.hpp>
#include <hocket/schedule/costs.hpp>
#include <hocket/schedule/schedule.hpp>
#include <hocket/schedule/schedule_clock.hpp>
#include <hocket/schedule/timeline.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace plan::pipeline {

/// Options of a picture.
struct svg_options {
  double width = 1200;            ///< of the page, in pixels
  double until = 0;               ///< the time at the right edge; 0: the end of the last action
  std::string_view unit = "";     ///< of time, written at the axis
  std::string_view heading = "";  ///< instead of the name of the schedule
};

namespace detail {

/// Colours that most colour-blind readers can distinguish; `later` is for later stages of a rank.
struct shades {
  const char* first;
  const char* later;
  const char* name;
};

constexpr shades shades_of(task_kind what) noexcept {
  switch (what) {
    case task_kind::forward: return {"#4f8fd6", "#1f4e8c", "forward"};
    case task_kind::input_gradient: return {"#2ba39b", "#14605b", "input gradient"};
    case task_kind::weight_gradient: return {"#8bbf4d", "#4f7d1c", "weight gradient"};
    case task_kind::backward: return {"#e08a3c", "#a2540e", "backward"};
    case task_kind::recompute: return {"#a5b4d4", "#6b7ba3", "forward again"};
    default: return {"#9aa3af", "#9aa3af", "other"};
  }
}

/// Draws one schedule. Positions are in pixels.
class schedule_drawing {
 public:
  schedule_drawing(const schedule& plan, const timeline& times, const svg_options& options)
      : plan_(plan), times_(times), options_(options), end_(options.until), held_(memory_curves(plan, times)) {
    for (const timed_schedule_action& each : times) end_ = std::max(end_, each.end);
    if (end_ <= 0) end_ = 1;
    for (const auto& curve : held_) {
      for (const activations_held& each : curve) most_held_ = std::max(most_held_, each.held);
    }
  }

  double height() const { return memory_top() + memory_height + 40; }

  std::string draw() {
    open();
    legend();
    for (int rank = 0; rank < plan_.ranks(); ++rank) row_of(rank);
    for (const timed_schedule_action& each : times_) cell(each);
    axis();
    memory();
    svg_.raw("</svg>\n");
    return svg_.take();
  }

 private:
  static constexpr double left = 84;
  static constexpr double right = 24;
  static constexpr double top = 104;
  static constexpr double row_height = 24;
  static constexpr double row_pitch = 28;
  static constexpr double memory_height = 120;

  double x(double time) const { return left + time / end_ * (options_.width - left - right); }
  double y(int rank) const { return top + rank * row_pitch; }
  double bottom() const { return y(plan_.ranks()) - (row_pitch - row_height); }
  double memory_top() const { return bottom() + 64; }
  double memory_y(int held) const {
    return memory_top() + memory_height * (1 - static_cast<double>(held) / std::max(1, most_held_));
  }

  void open() {
    const std::string heading(options_.heading.empty() ? plan_.name() : options_.heading);
    const std::string width = plan::detail::decimal(options_.width, 0);
    const std::string tall = plan::detail::decimal(height(), 0);
    svg_.raw(hocket::detail::concat({"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"", width, "\" height=\"", tall,
                                     "\" viewBox=\"0 0 ", width, ' ', tall, "\" role=\"img\" aria-label=\"",
                                     plan::detail::escaped(heading),
                                     "\" font-family=\"Helvetica, Arial, sans-serif\" font-size=\"12\">\n<title>",
                                     plan::detail::escaped(heading), "</title>\n"}));
    svg_.rectangle({0, 0}, options_.width, height(), "fill=\"#ffffff\"");
    svg_.words({24, 34}, heading, "font-size=\"19\" font-weight=\"bold\" fill=\"#111827\"");
    svg_.words({24, 56}, facts(), "font-size=\"13\" fill=\"#4b5563\"");
  }

  std::string facts() const {
    double makespan = 0;
    double busy = 0;
    for (const timed_schedule_action& each : times_) {
      makespan = std::max(makespan, each.end);
      busy += each.end - each.begin;
    }
    const double share = makespan > 0 ? 1 - busy / (makespan * plan_.ranks()) : 0;
    return hocket::detail::concat({plan_.ranks(), " ranks, ", plan_.stages(), " stages, ", plan_.microbatches,
                                   " microbatches: ", number(makespan), " long, ranks idle for ",
                                   plan::detail::decimal(100 * share, 1), " % of it, at most ", most_held_,
                                   " activations on a rank"});
  }

  std::string number(double time) const {
    return plan::detail::decimal(time, 3) + (options_.unit.empty() ? "" : " ") + std::string(options_.unit);
  }

  void legend() {
    double at = 24;
    for (const task_kind what : {task_kind::forward, task_kind::backward, task_kind::input_gradient,
                                 task_kind::weight_gradient, task_kind::recompute}) {
      if (!uses(what)) continue;
      const shades colours = shades_of(what);
      svg_.rectangle({at, 72}, 14, 12, std::string("rx=\"2\" fill=\"") + colours.first + '"');
      at += 19;
      if (has_later_stages()) {
        svg_.rectangle({at - 3, 72}, 14, 12, std::string("rx=\"2\" fill=\"") + colours.later + '"');
        at += 16;
      }
      svg_.words({at, 82}, colours.name, "fill=\"#374151\"");
      at += 7 * static_cast<double>(std::string_view(colours.name).size()) + 16;
    }
    const char* rest = has_later_stages()
                           ? "numbers are microbatches; dark: later stages of the rank, or the other direction"
                           : "numbers are microbatches";
    svg_.words({at, 82}, rest, "fill=\"#374151\"");
  }

  bool uses(task_kind wanted) const {
    bool found = false;
    for (const timed_schedule_action& each : times_) {
      for_each_task(each.what, [&](const task& what) { found = found || what.what == wanted; });
    }
    return found;
  }

  bool has_later_stages() const { return plan_.stages() > plan_.ranks() || plan_.placement.has_two_directions(); }

  bool is_later(const task& what) const {
    if (plan_.placement.has_two_directions()) return what.microbatch >= plan_.placement.turn();
    return what.stage >= plan_.ranks();
  }

  void row_of(int rank) {
    svg_.words({24, y(rank) + row_height / 2 + 4.5}, hocket::detail::concat({"rank ", rank}),
               "font-size=\"13\" font-weight=\"bold\" fill=\"#1f2937\"");
    svg_.rectangle({left, y(rank)}, options_.width - left - right, row_height, "fill=\"none\" stroke=\"#e5e7eb\"");
  }

  void cell(const timed_schedule_action& at) {
    if (at.end <= at.begin) return;
    svg_.raw(hocket::detail::concat(
        {"<g class=\"action\"><title>",
         plan::detail::escaped(hocket::detail::concat({"rank ", at.rank, ", step ", at.index, ": ", to_string(at.what),
                                                       ", ", number(at.begin), " to ", number(at.end)})),
         "</title>\n"}));
    const int parts = at.what.is_pair() ? 2 : 1;
    int part = 0;
    for_each_task(at.what, [&](const task& what) {
      const shades colours = shades_of(what.what);
      const double high = row_height / parts;
      const double above = y(at.rank) + part++ * high;
      const double wide = x(at.end) - x(at.begin);
      svg_.rectangle({x(at.begin), above}, wide, high,
                     hocket::detail::concat({"fill=\"", is_later(what) ? colours.later : colours.first,
                                             "\" stroke=\"#ffffff\" stroke-width=\"0.8\""}));
      const std::string text = std::to_string(what.microbatch);
      const double size = parts == 2 ? 9 : 11;
      if (wide < 0.62 * size * static_cast<double>(text.size()) + 2) return;
      svg_.words({x(at.begin) + wide / 2, above + high / 2 + 0.36 * size}, text,
                 hocket::detail::concat(
                     {"text-anchor=\"middle\" font-size=\"", plan::detail::decimal(size, 0), "\" fill=\"#ffffff\""}));
    });
    svg_.raw("</g>\n");
  }

  void axis() {
    const double at = bottom() + 16;
    svg_.words({left, at}, "0", "fill=\"#6b7280\"");
    svg_.words({options_.width - right, at}, number(end_), "text-anchor=\"end\" fill=\"#6b7280\"");
  }

  /// Draws a curve per rank, from dark for the first rank to light.
  void memory() {
    svg_.words({24, memory_top() - 14}, "activations held, by rank (dark: rank 0)", "fill=\"#374151\"");
    svg_.rectangle({left, memory_top()}, options_.width - left - right, memory_height,
                   "fill=\"none\" stroke=\"#e5e7eb\"");
    svg_.words({left - 8, memory_top() + 10}, std::to_string(most_held_), "text-anchor=\"end\" fill=\"#6b7280\"");
    svg_.words({left - 8, memory_top() + memory_height}, "0", "text-anchor=\"end\" fill=\"#6b7280\"");
    for (int rank = plan_.ranks() - 1; rank >= 0; --rank) {
      std::string points = at(0, 0);
      int before = 0;
      for (const activations_held& each : held_[static_cast<std::size_t>(rank)]) {
        points += at(each.time, before) + at(each.time, each.held);
        before = each.held;
      }
      const int light = plan_.ranks() == 1 ? 30 : 30 + 45 * rank / (plan_.ranks() - 1);
      svg_.raw(hocket::detail::concat({"<polyline class=\"memory\" fill=\"none\" stroke=\"hsl(255,45%,", light,
                                       "%)\" stroke-width=\"1.5\" points=\"", points, "\"><title>rank ", rank,
                                       "</title></polyline>\n"}));
    }
  }

  std::string at(double time, int held) const {
    return plan::detail::decimal(x(time), 2) + ',' + plan::detail::decimal(memory_y(held), 2) + ' ';
  }

  const schedule& plan_;
  const timeline& times_;
  const svg_options& options_;
  double end_;
  std::vector<std::vector<activations_held>> held_;  ///< by rank
  int most_held_ = 0;
  plan::detail::svg_writer svg_;
};

}  // namespace detail

/// Returns the picture, self-contained: no scripts, fonts or links. Designed for up to some tens of ranks.
inline std::string draw_svg(const schedule& plan, const timeline& times, const svg_options& options = {}) {
  return detail::schedule_drawing(plan, times, options).draw();
}

inline std::string draw_svg(const schedule& plan, const costs& cost = costs{}, const svg_options& options = {}) {
  return draw_svg(plan, timeline_of(plan, cost), options);
}

}  // namespace plan::pipeline
HOCKET_END_NAMESPACE
