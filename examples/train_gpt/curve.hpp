// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Draws curves over the steps as SVG pictures: the loss on the training batches, on the held-out text at the end, and that
/// of the bigram model as a line to beat; and how the training ran. Values that are not finite are stated in words instead.
#pragma once

#include "picture.hpp"
#include "training.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace gpt {

/// A picture with one pair of axes: steps to the right, a quantity upwards.
class line_picture {
 public:
  struct point {
    double step = 0;
    double value = 0;
  };

  /// @param quantity the text at the vertical axis, with its unit
  line_picture(std::string title, const std::string& quantity, int height, double first_step, double last_step,
               double lowest, double highest)
      : title_(std::move(title)), height_(height), bottom_(height - 60), first_step_(first_step), last_step_(last_step),
        lowest_(lowest), highest_(highest) {
    body_ += text(left, 28, "start", title_, "font-size=\"17\" font-weight=\"bold\"");
    draw_axes(quantity);
  }

  /// Draws a line with gaps at points that are not finite; a single point between two gaps becomes a dot.
  void draw_line(std::span<const point> points, const std::string& style) {
    const auto is_finite = [](const point& at) { return std::isfinite(at.value); };
    for (auto begin = points.begin(); begin != points.end();) {
      begin = std::find_if(begin, points.end(), is_finite);
      const auto end = std::find_if_not(begin, points.end(), is_finite);
      draw_piece(std::span<const point>(begin, end), style);
      begin = end;
    }
  }

  void draw_dots(std::span<const point> points, const std::string& style) {
    for (const point& at : points) {
      if (!std::isfinite(at.value)) continue;
      body_ += "<circle r=\"3\" " + style + " cx=\"" + number(x(at.step)) + "\" cy=\"" + number(y(at.value)) + "\"/>\n";
    }
  }

  /// Adds a warning about missing points, to the right of the title.
  void warn(const std::string& words) { body_ += text(right, 28, "end", words, "class=\"warning\""); }

  /// Adds a line to the legend in the upper right.
  void add_to_legend(const std::string& label, const std::string& style) {
    const double line = top + 18 + 22 * legend_lines_++;
    body_ += "<line " + style + " x1=\"" + number(right - 290) + "\" x2=\"" + number(right - 260) + "\" y1=\"" +
             number(line - 5) + "\" y2=\"" + number(line - 5) + "\"/>\n";
    body_ += text(right - 250, line, "start", label, "");
  }

  std::string svg() const { return begin_picture(800, height_, title_) + body_ + "</svg>\n"; }

 private:
  static constexpr double left = 70, right = 770, top = 48;

  void draw_piece(std::span<const point> points, const std::string& style) {
    if (points.size() < 2) return draw_dots(points, style);
    body_ += "<polyline fill=\"none\" " + style + " points=\"";
    for (const point& at : points) body_ += number(x(at.step)) + ',' + number(y(at.value)) + ' ';
    body_ += "\"/>\n";
  }

  double x(double step) const { return left + (right - left) * (step - first_step_) / (last_step_ - first_step_); }
  double y(double value) const {
    const double height = (value - lowest_) / (highest_ - lowest_);
    return bottom_ - (bottom_ - top) * std::clamp(height, 0.0, 1.0);
  }

  static std::string number(double value) {
    char digits[32];
    std::snprintf(digits, sizeof digits, "%.5g", value);
    return digits;
  }

  static std::string text(double x, double y, const char* anchor, const std::string& words, const std::string& style) {
    return "<text x=\"" + number(x) + "\" y=\"" + number(y) + "\" text-anchor=\"" + anchor + "\" " + style + '>' +
           words + "</text>\n";
  }

  static std::string grid_line(double x1, double y1, double x2, double y2) {
    return "<line class=\"grid\" x1=\"" + number(x1) + "\" y1=\"" + number(y1) + "\" x2=\"" + number(x2) + "\" y2=\"" +
           number(y2) + "\"/>\n";
  }

  /// Returns a round distance (1, 2 or 5 times a power of ten) that divides `range` into at most eight parts.
  static double round_distance(double range) {
    double distance = std::pow(10.0, std::floor(std::log10(range / 8)));
    for (const double factor : {2.0, 2.5, 2.0}) {
      if (range / distance > 8) distance *= factor;
    }
    return distance;
  }

  void draw_axes(const std::string& quantity) {
    const double down = round_distance(last_step_ - first_step_);
    for (double step = std::ceil(first_step_ / down) * down; step <= last_step_; step += down) {
      body_ += grid_line(x(step), top, x(step), bottom_);
      body_ += text(x(step), bottom_ + 20, "middle", number(step), "");
    }
    const double across = round_distance(highest_ - lowest_);
    for (double value = std::ceil(lowest_ / across) * across; value <= highest_ + across / 100; value += across) {
      body_ += grid_line(left, y(value), right, y(value));
      body_ += text(left - 8, y(value) + 4, "end", number(value), "");
    }
    const double middle = (top + bottom_) / 2;
    body_ += text((left + right) / 2, bottom_ + 45, "middle", "optimizer steps", "");
    body_ += text(20, middle, "middle", quantity, "transform=\"rotate(-90 20 " + number(middle) + ")\"");
  }

  std::string title_;
  int height_;
  double bottom_;
  double first_step_;
  double last_step_;
  double lowest_;
  double highest_;
  int legend_lines_ = 0;
  std::string body_;
};

/// Returns means of a quantity over groups of consecutive steps from number `begin` on, at most 200, because single steps
/// are noisy. `value(step)` returns the quantity.
template <class Value>
std::vector<line_picture::point> smoothed(std::span<const step_record> steps, double begin, Value value) {
  const std::size_t group = (steps.size() + 199) / 200;
  std::vector<line_picture::point> points;
  for (std::size_t first = 0; first < steps.size(); first += group) {
    const std::size_t count = std::min(group, steps.size() - first);
    double sum = 0;
    for (const step_record& step : steps.subspan(first, count)) sum += value(step);
    const auto size = static_cast<double>(count);
    points.push_back({begin + static_cast<double>(first) + size / 2, sum / size});
  }
  return points;
}

/// Returns the picture of `steps`, of which there must be at least one, after `taken` earlier steps, as SVG.
inline std::string draw_loss_curve(std::span<const step_record> steps, int taken, double held_out_loss,
                                   double bigram_loss) {
  const double begin = taken;
  const std::vector<line_picture::point> train =
      smoothed(steps, begin, [](const step_record& step) { return step.loss; });
  double lowest = bigram_loss, highest = bigram_loss;
  const auto make_room_for = [&](double loss) {
    if (!std::isfinite(loss)) return;
    lowest = std::min(lowest, loss);
    highest = std::max(highest, loss);
  };
  make_room_for(held_out_loss);
  for (const line_picture::point& at : train) make_room_for(at.value);
  const double last = begin + static_cast<double>(steps.size());
  const line_picture::point bigram[] = {{begin, bigram_loss}, {last, bigram_loss}},
                            held_out[] = {{last, held_out_loss}};
  const std::string train_style = "class=\"training\" stroke-width=\"1.5\"";
  const std::string held_out_style = "class=\"held-out\" stroke-width=\"4\"";
  const std::string bigram_style = "class=\"bigram\" stroke-width=\"1.5\" stroke-dasharray=\"6 4\"";
  const auto label = [](const char* name, double loss) {
    char words[80];
    std::snprintf(words, sizeof words, "%s: %.3f", name, loss);
    return std::isfinite(loss) ? std::string(words) : std::string(name) + ": not finite";
  };
  line_picture curve("Loss during training", "cross entropy (nats per byte)", 480, begin, last,
                     std::floor(lowest * 4 - 0.4) / 4, std::ceil(highest * 4) / 4);
  curve.draw_line(train, train_style);
  curve.draw_line(bigram, bigram_style);
  curve.draw_dots(held_out, held_out_style);
  const auto lost = std::count_if(steps.begin(), steps.end(), [](const auto& at) { return !std::isfinite(at.loss); });
  if (lost > 0) {
    curve.warn("not shown: the loss of " + std::to_string(lost) + " of " + std::to_string(steps.size()) +
               " steps is not finite");
  }
  curve.add_to_legend(label("training batches, at the end", train.back().value), train_style);
  curve.add_to_legend(label("held-out text, at the end", held_out_loss), held_out_style);
  curve.add_to_legend(label("held-out text, bigram model", bigram_loss), bigram_style);
  return curve.svg();
}

/// Draws a quantity of the steps, from 0 upwards.
template <class Value>
std::string draw_run_curve(const std::string& title, const std::string& quantity, std::span<const step_record> steps,
                           int taken, Value value) {
  const double begin = taken, last = begin + static_cast<double>(steps.size());
  const std::vector<line_picture::point> points = smoothed(steps, begin, value);
  double highest = 0;
  for (const line_picture::point& at : points) {
    if (std::isfinite(at.value)) highest = std::max(highest, at.value);
  }
  line_picture picture(title, quantity, 260, begin, last, 0, highest > 0 ? 1.05 * highest : 1);
  picture.draw_line(points, "class=\"training\" stroke-width=\"1.5\"");
  return picture.svg();
}

/// Draws how the training ran, one picture below the other.
/// @param bytes_per_step number of bytes that all ranks together predict in a step
inline std::vector<std::string> draw_run_curves(std::span<const step_record> steps, int taken, double bytes_per_step) {
  const auto share = [](double step_record::*part) {
    return [part](const step_record& step) { return step.seconds > 0 ? 100 * step.*part / step.seconds : 0; };
  };
  return {draw_run_curve("Throughput", "bytes of text per second", steps, taken,
                         [&](const step_record& step) { return step.seconds > 0 ? bytes_per_step / step.seconds : 0; }),
          draw_run_curve("Learning rate", "learning rate", steps, taken,
                         [](const step_record& step) { return step.learning_rate; }),
          draw_run_curve("Norm of the gradient, before clipping", "norm", steps, taken,
                         [](const step_record& step) { return step.gradient_norm; }),
          draw_run_curve("Exposed communication of gradients", "% of the step", steps, taken,
                         share(&step_record::gradient_seconds)),
          draw_run_curve("Waits between pipeline stages, bubbles included", "% of the step", steps, taken,
                         share(&step_record::pipeline_seconds))};
}

}  // namespace gpt
