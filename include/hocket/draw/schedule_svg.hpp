// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// A pipeline schedule as a picture, as papers draw it: a row per rank, time to the right; forward passes, input and
/// weight gradients in their colours, later stages of a rank darker, bubbles white; below, the activations that each
/// rank holds. The picture shows a plan or a measured run; to compare the two, see draw/schedule_comparison.hpp. It
/// shrinks with its window, and is dark where the reader prefers dark pages.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/text.hpp>
#include <hocket/draw/detail/svg.hpp>
#include <hocket/draw/schedule_text.hpp>
#include <hocket/schedule/costs.hpp>
#include <hocket/schedule/schedule.hpp>
#include <hocket/schedule/schedule_trace.hpp>
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
  double width = 1200;            ///< the greatest width of the picture, in pixels
  double until = 0;               ///< the time at the right edge; 0: the end of the last action
  std::string_view unit = "";     ///< of time, written at the axis
  std::string_view heading = "";  ///< instead of the name of the schedule
};

namespace detail {

/// Colours that most colour-blind readers can distinguish. Dark letters are readable on `first`, white ones on `later`,
/// which is for later stages of a rank; `dark_later` replaces it on dark pages.
struct shades {
  const char* css;  ///< the class of the cells; those of later stages also have the class `later`
  const char* name;
  const char* first;
  const char* later;
  const char* dark_later;
};

constexpr shades shades_of(task_kind what) noexcept {
  switch (what) {
    case task_kind::forward: return {"forward", "forward", "#4f8fd6", "#1f4e8c", "#2b6bc1"};
    case task_kind::input_gradient: return {"input-gradient", "input gradient", "#2ba39b", "#14605b", "#197872"};
    case task_kind::weight_gradient: return {"weight-gradient", "weight gradient", "#8bbf4d", "#4f7d1c", "#4c771b"};
    case task_kind::backward: return {"backward", "backward", "#e08a3c", "#a2540e", "#a7570e"};
    case task_kind::recompute: return {"forward-again", "forward again", "#a5b4d4", "#5e6c8e", "#5e6c8e"};
    default: return {"other", "other", "#9aa3af", "#676c74", "#676c74"};
  }
}

/// The classes of pictures of schedules. Words in cells have `inside-first` or, on the colours of later stages,
/// `inside-later`.
inline constexpr plan::detail::svg_rule schedule_rules[] = {
    {"cell", "stroke:#ffffff", "stroke:#14181f"},
    {"inside-first", "fill:#111827", ""},
    {"inside-later", "fill:#ffffff", ""},
    {"memory", "fill:none;stroke:#372a6f", "stroke:#bdb0f5"},
};

/// Returns the style sheet: the common rules, these, and two for each colour.
inline plan::detail::style_sheet schedule_style() {
  plan::detail::style_sheet style;
  for (const plan::detail::svg_rule& each : schedule_rules) style.add(each);
  for (const task_kind what : {task_kind::forward, task_kind::backward, task_kind::input_gradient,
                               task_kind::weight_gradient, task_kind::recompute, task_kind::nothing}) {
    const shades colours = shades_of(what);
    const std::string later = hocket::detail::concat({colours.css, ".later"});
    style.add({colours.css, hocket::detail::concat({"fill:", colours.first}), ""});
    style.add({later, hocket::detail::concat({"fill:", colours.later}),
               hocket::detail::concat({"fill:", colours.dark_later})});
  }
  return style;
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
    svg_.open(options_.width, height(), heading(), schedule_style());
    contents();
    svg_.raw("</svg>\n");
    return svg_.take();
  }

  /// Returns the elements without a root, as a part of another picture.
  std::string draw_part() {
    contents();
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

  void contents() {
    svg_.caption({24, 34}, heading(), "class=\"heading\" font-size=\"19\" font-weight=\"bold\"");
    svg_.caption({24, 56}, facts(), "class=\"note\" font-size=\"13\"");
    legend();
    for (int rank = 0; rank < plan_.ranks(); ++rank) row_of(rank);
    for (const timed_schedule_action& each : times_) cell(each);
    axis();
    memory();
  }

  std::string_view heading() const { return options_.heading.empty() ? plan_.name() : options_.heading; }

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
      const std::string_view name = shades_of(what).name;
      svg_.rectangle({at, 72}, 14, 12, class_of(what, false) + " rx=\"2\"");
      at += 19;
      if (has_later_stages()) {
        svg_.rectangle({at - 3, 72}, 14, 12, class_of(what, true) + " rx=\"2\"");
        at += 16;
      }
      svg_.caption({at, 82}, name, "class=\"label\"");
      at += 7 * static_cast<double>(name.size()) + 16;
    }
    const char* rest = has_later_stages()
                           ? "numbers are microbatches; dark: later stages of the rank, or the other direction"
                           : "numbers are microbatches";
    svg_.caption({at, 82}, rest, "class=\"label\"");
  }

  static std::string class_of(task_kind what, bool later) {
    return hocket::detail::concat({"class=\"cell ", shades_of(what).css, later ? " later\"" : "\""});
  }

  bool uses(task_kind wanted) const {
    bool found = false;
    for (const timed_schedule_action& each : times_) {
      for_each_task(each.what, [&](const task& what) { found = found || what.kind == wanted; });
    }
    return found;
  }

  bool has_later_stages() const { return plan_.stages() > plan_.ranks() || plan_.placement.has_two_directions(); }

  bool is_later(const task& what) const {
    if (plan_.placement.has_two_directions()) return what.microbatch >= plan_.placement.turn();
    return what.stage >= plan_.ranks();
  }

  void row_of(int rank) {
    svg_.caption({24, y(rank) + row_height / 2 + 4.5}, hocket::detail::concat({"rank ", rank}),
                 "class=\"heading\" font-size=\"13\" font-weight=\"bold\"");
    svg_.rectangle({left, y(rank)}, options_.width - left - right, row_height, "class=\"frame\"");
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
      const bool later = is_later(what);
      const double high = row_height / parts;
      const double above = y(at.rank) + part++ * high;
      const double wide = x(at.end) - x(at.begin);
      svg_.rectangle({x(at.begin), above}, wide, high, class_of(what.kind, later) + " stroke-width=\"0.8\"");
      const std::string text = std::to_string(what.microbatch);
      const double size = parts == 2 ? 9 : 11;
      if (wide < 0.62 * size * static_cast<double>(text.size()) + 2) return;
      svg_.caption(
          {x(at.begin) + wide / 2, above + high / 2 + 0.36 * size}, text,
          hocket::detail::concat({"class=\"inside-", later ? "later" : "first",
                                  "\" text-anchor=\"middle\" font-size=\"", plan::detail::decimal(size, 0), '"'}));
    });
    svg_.raw("</g>\n");
  }

  void axis() {
    const double at = bottom() + 16;
    svg_.caption({left, at}, "0", "class=\"note\"");
    svg_.caption({options_.width - right, at}, number(end_), "class=\"note\" text-anchor=\"end\"");
  }

  /// Draws a curve per rank, from opaque for the first rank to pale.
  void memory() {
    svg_.caption({24, memory_top() - 14}, "activations held, by rank (strongest line: rank 0)", "class=\"label\"");
    svg_.rectangle({left, memory_top()}, options_.width - left - right, memory_height, "class=\"frame\"");
    svg_.caption({left - 8, memory_top() + 10}, std::to_string(most_held_), "class=\"note\" text-anchor=\"end\"");
    svg_.caption({left - 8, memory_top() + memory_height}, "0", "class=\"note\" text-anchor=\"end\"");
    for (int rank = plan_.ranks() - 1; rank >= 0; --rank) {
      std::string points = at(0, 0);
      int before = 0;
      for (const activations_held& each : held_[static_cast<std::size_t>(rank)]) {
        points += at(each.time, before) + at(each.time, each.held);
        before = each.held;
      }
      const double opacity = plan_.ranks() == 1 ? 1 : 1 - 0.5 * rank / (plan_.ranks() - 1);
      svg_.raw(hocket::detail::concat({"<polyline class=\"memory\" stroke-opacity=\"",
                                       plan::detail::decimal(opacity, 2), "\" stroke-width=\"1.5\" points=\"", points,
                                       "\"><title>rank ", rank, "</title></polyline>\n"}));
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
