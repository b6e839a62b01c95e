// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// A plan as a space-time diagram in SVG: time to the right, from the clock of plan/trace.hpp; a band per rank with two
/// tracks per lane: above, what the lane waits for or does; below, what leaves the rank; a mark per action in the
/// colour of its kind; a line per message, load and flag. The text is self-contained: no scripts, fonts or links.
/// Designed for up to 16 ranks; the tooltip of a mark shows the action and its times.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/text.hpp>
#include <hocket/draw/detail/svg.hpp>
#include <hocket/plan/action.hpp>
#include <hocket/plan/cost_model.hpp>
#include <hocket/plan/plan.hpp>
#include <hocket/plan/to_string.hpp>
#include <hocket/plan/trace.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace plan {
namespace detail {

/// Colours that most colour-blind readers can distinguish. White letters are readable on them, except on `wait`, which
/// has none. They contrast with light and with dark pages.
constexpr const char* colour_of(action_kind what) noexcept {
  switch (what) {
    case action_kind::copy: return "#677281";
    case action_kind::send: return "#3172c4";
    case action_kind::receive: return "#257c7f";
    case action_kind::receive_reduce: return "#b05c0a";
    case action_kind::load: return "#7f5ad1";
    case action_kind::load_reduce: return "#bf3f8f";
    case action_kind::push: return "#2a7f48";
    case action_kind::signal: return "#d1382e";
    case action_kind::wait: return "#8c95a3";
  }
  return "#000000";
}

constexpr bool is_outgoing(action_kind what) noexcept {
  return what == action_kind::send || what == action_kind::push || what == action_kind::signal;
}
constexpr bool is_receiving(action_kind what) noexcept {
  return what == action_kind::receive || what == action_kind::receive_reduce;
}

constexpr bool reads_peers(const action& what) noexcept {
  return what.kind == action_kind::load || (what.kind == action_kind::load_reduce && what.from != region::inbox);
}

/// One action, and when its message, if any, was in transit.
struct svg_mark {
  timed_action step;
  double wire_begin = 0;
  double wire_end = 0;
};

/// An observer of `trace` that records everything for the drawing.
class recorder {
 public:
  recorder(int ranks, unsigned lanes) : lanes_(lanes), rows_(static_cast<std::size_t>(ranks) * lanes) {}

  void transferred(const timed_transfer& transfer) { transfers_.push_back(transfer); }

  void performed(const timed_action& step) {
    svg_mark added{step, step.begin, step.end};
    if (is_receiving(step.what.kind)) {  // `trace` reported its message last
      const timed_transfer& message = transfers_.back();
      added.wire_begin = message.start;
      added.wire_end = message.arrival;
      svg_mark& sender = rows_[row(message.from_rank, message.from_lane)][message.from_index];
      sender.wire_begin = message.start;
      sender.wire_end = message.arrival;
    }
    rows_[row(step.rank, step.lane)].push_back(added);
    end_ = std::max(end_, step.end);
  }

  double end() const noexcept { return end_; }
  const std::vector<std::vector<svg_mark>>& rows() const noexcept { return rows_; }
  const std::vector<timed_transfer>& transfers() const noexcept { return transfers_; }

 private:
  std::size_t row(int rank, unsigned lane) const { return static_cast<std::size_t>(rank) * lanes_ + lane; }

  unsigned lanes_;
  double end_ = 0;
  std::vector<std::vector<svg_mark>> rows_;
  std::vector<timed_transfer> transfers_;
};

inline constexpr const char* idle_style = "class=\"idle\"";

/// The classes of drawings of plans. `inside` is for words on the colours of actions, `beside` for those on pale ones.
inline constexpr svg_rule plan_rules[] = {
    {"inside", "fill:#ffffff", ""},
    {"beside", "fill:#1f2933", "fill:#eef1f5"},
    {"idle", "fill:#c3cad4", "fill:#6b7585"},
    {"transit", "fill:#4b5563", "fill:#aab2bf"},
    {"pale", "fill-opacity:.26", "fill-opacity:.5"},
    {"edge", "stroke:#ffffff", "stroke:#14181f"},
    {"grid", "stroke:#d5dae2", "stroke:#39414d"},
    {"arrow", "fill:#334155", "fill:#cbd5e1"},
    {"message", "stroke:#334155", "stroke:#cbd5e1"},
    {"load", "stroke:#7553c0", "stroke:#d6c9ff"},
    {"flag", "stroke:#c4352b", "stroke:#ff9d94"},
};

/// Positions on the page, in pixels.
struct page {
  static constexpr double top = 112;
  static constexpr double right = 30;
  static constexpr double out_height = 12;
  static constexpr double own_height = 18;
  static constexpr double padding = 8;
  static constexpr double gap = 10;

  int ranks = 1;
  unsigned lanes = 1;
  double width = 1200;
  double seconds = 1;

  double left() const noexcept { return lanes > 1 ? 124 : 84; }
  double lane_height() const noexcept { return out_height + own_height + 2; }
  double band_height() const noexcept { return 2 * padding + lanes * (lane_height() + 4) - 4; }
  double band(int rank) const noexcept { return top + rank * (band_height() + gap); }
  double own_y(int rank, unsigned lane) const noexcept { return band(rank) + padding + lane * (lane_height() + 4); }
  double out_y(int rank, unsigned lane) const noexcept { return own_y(rank, lane) + own_height + 2; }
  double bottom() const noexcept { return band(ranks) - gap; }
  double height() const noexcept { return bottom() + 52; }
  double x(double time) const noexcept { return left() + time / seconds * (width - left() - right); }
};

/// Draws the actions of a lane in order: a thin line while an action waits, pale while its message is in transit, solid
/// while it works or sends.
class mark_painter {
 public:
  mark_painter(svg_writer& svg, const page& where, const cost_model& model)
      : svg_(svg), page_(where), model_(model), out_taken_(where.left()), own_taken_(where.left()) {}

  void paint(const svg_mark& mark) {
    const timed_action& step = mark.step;
    const action_kind what = step.what.kind;
    outgoing_ = is_outgoing(what);
    y_ = outgoing_ ? page_.out_y(step.rank, step.lane) : page_.own_y(step.rank, step.lane);
    height_ = outgoing_ ? page::out_height : page::own_height;
    fill_ = std::string("fill=\"") + colour_of(what) + '"';
    svg_.raw(hocket::detail::concat({"<g class=\"action\"><title>", escaped(title(step)), "</title>\n"}));

    const double begin = page_.x(what == action_kind::send ? mark.wire_begin : step.begin);
    const double end =
        page_.x(what == action_kind::send ? mark.wire_begin + model_.port(static_cast<double>(step.bytes)) : step.end);
    double wire = begin;
    if (!outgoing_) {
      const double reached = page_.x(step.reached);
      if (is_receiving(what)) wire = std::clamp(page_.x(mark.wire_begin), reached, begin);
      if (wire - reached > 0.5) svg_.rectangle({reached, y_ + height_ / 2 - 1.5}, wire - reached, 3, idle_style);
      if (begin - wire > 0.5) pale(wire, begin - wire);
    }
    if (end - begin > 0.5) solid(begin, end - begin);
    else if (begin - wire < 3) tick(begin);
    if (end - begin >= begin - wire) label(step.what, begin, end, "inside");
    else label(step.what, wire, begin, "beside");
    svg_.raw("</g>\n");
  }

 private:
  static constexpr const char* edge = " stroke-width=\"0.8\" rx=\"2\"";

  void pale(double x, double width) {
    svg_.rectangle({x, y_}, width, height_, hocket::detail::concat({"class=\"edge pale\" ", fill_, edge}));
  }

  /// Begins later if it would cover a tick, so that both are visible.
  void solid(double x, double width) {
    double& taken = outgoing_ ? out_taken_ : own_taken_;
    const double shift = std::clamp(taken - x, 0.0, width / 2);
    svg_.rectangle({x + shift, y_}, width - shift, height_, hocket::detail::concat({"class=\"edge\" ", fill_, edge}));
    taken = x + width;
  }

  /// Draws an action that takes no time as a narrow tick just before its time, or beside an earlier mark.
  void tick(double x) {
    double& taken = outgoing_ ? out_taken_ : own_taken_;
    x = std::max(x - 4, taken);
    svg_.rectangle({x, y_}, 4, height_, fill_ + " rx=\"1.5\"");
    taken = x + 5;
  }

  void label(const action& what, double from, double to, const char* where) {
    if (what.count == 0) return;
    std::string text = std::to_string(what.chunk);
    if (what.count > 1) hocket::detail::append(text, {'-', what.chunk + what.count - 1});
    const double size = outgoing_ ? 9 : 11;
    if (to - from < 0.62 * size * static_cast<double>(text.size()) + 3) return;
    svg_.caption(
        {(from + to) / 2, y_ + height_ / 2 + 0.36 * size}, text,
        hocket::detail::concat({"class=\"", where, "\" text-anchor=\"middle\" font-size=\"", decimal(size, 0), '"'}));
  }

  static std::string title(const timed_action& step) {
    std::string text = hocket::detail::concat({"rank ", step.rank, ", step ", step.index, ": ", to_string(step.what)});
    if (step.what.count != 0) text += ", " + bytes_text(step.bytes);
    return hocket::detail::concat({text, ", ", time_text(step.begin), " to ", time_text(step.end)});
  }

  svg_writer& svg_;
  const page& page_;
  const cost_model& model_;
  std::string fill_;
  bool outgoing_ = false;
  double y_ = 0;
  double height_ = 0;
  double out_taken_;  ///< the positions up to which the tracks are covered
  double own_taken_;
};

/// Draws one plan.
class svg_drawing {
 public:
  svg_drawing(const recorder& record, const page& where, const cost_model& model)
      : record_(record), page_(where), model_(model) {}

  std::string draw(const std::string& heading, const std::string& facts) {
    open(heading, facts);
    legend();
    bands();
    axis();
    for (const timed_transfer& transfer : record_.transfers()) connect(transfer);
    for (const auto& row : record_.rows())
      for (const svg_mark& mark : row) connect_loads(mark.step);
    for (const auto& row : record_.rows()) {
      mark_painter painter(svg_, page_, model_);
      for (const svg_mark& mark : row) painter.paint(mark);
    }
    for (const timed_transfer& transfer : record_.transfers()) tip(transfer);
    svg_.raw("</svg>\n");
    return svg_.take();
  }

 private:
  static constexpr const char* message_line =
      "class=\"message\" stroke-opacity=\"0.5\" stroke-width=\"1\" marker-end=\"url(#arrow)\"";
  static constexpr const char* tip_line =
      "class=\"tip message\" stroke-opacity=\"0.7\" stroke-width=\"1\" marker-end=\"url(#arrow)\"";
  static constexpr const char* load_line =
      "class=\"load\" stroke-opacity=\"0.35\" stroke-width=\"1\" marker-end=\"url(#arrow)\"";
  static constexpr const char* flag_line =
      "class=\"flag\" stroke-opacity=\"0.4\" stroke-width=\"0.8\" stroke-dasharray=\"3 2\"";

  void open(const std::string& heading, const std::string& facts) {
    style_sheet style;
    for (const svg_rule& each : plan_rules) style.add(each);
    svg_.open(page_.width, page_.height(), heading, style);
    svg_.raw(hocket::detail::concat(
        {"<desc>", escaped(facts),
         "</desc>\n<defs><marker id=\"arrow\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"6\" "
         "markerHeight=\"6\" orient=\"auto\"><path class=\"arrow\" d=\"M0 1L8 4L0 7z\"/></marker></defs>\n"}));
    svg_.caption({24, 34}, heading, "class=\"heading\" font-size=\"19\" font-weight=\"bold\"");
    svg_.caption({24, 56}, facts, "class=\"note\" font-size=\"13\"");
  }

  void legend() {
    double x = 24;
    const double y = 84;
    for (int i = 0; i <= static_cast<int>(action_kind::wait); ++i) {
      const auto what = static_cast<action_kind>(i);
      if (!uses(what)) continue;
      svg_.rectangle({x, y - 10}, 14, 12, std::string("rx=\"2\" fill=\"") + colour_of(what) + '"');
      x = legend_text(x + 19, to_string(what));
    }
    svg_.rectangle({x, y - 5.5}, 18, 3, idle_style);
    x = legend_text(x + 23, "waiting");
    if (uses(action_kind::send)) {
      svg_.rectangle({x, y - 10}, 14, 12, "class=\"transit pale\" rx=\"2\"");
      x = legend_text(x + 19, "in transit");
    }
    const auto sample = [&](bool shown, const char* style, const char* name) {
      if (!shown) return;
      svg_.line({x, y - 4}, {x + 22, y - 4}, style);
      x = legend_text(x + 27, name);
    };
    sample(uses(action_kind::send), "class=\"sample message\" marker-end=\"url(#arrow)\"", "message");
    sample(any(reads_peers), "class=\"sample load\" marker-end=\"url(#arrow)\"", "load");
    sample(uses(action_kind::signal) || uses(action_kind::push), "class=\"sample flag\" stroke-dasharray=\"3 2\"",
           "flag");
    legend_text(x, "numbers are chunks");
  }

  double legend_text(double x, const std::string& text) {
    svg_.caption({x, 84}, text, "class=\"label\"");
    return x + 7 * static_cast<double>(text.size()) + 16;
  }

  template <class Predicate>
  bool any(Predicate predicate) const {
    for (const auto& row : record_.rows())
      for (const svg_mark& mark : row)
        if (predicate(mark.step.what)) return true;
    return false;
  }

  bool uses(action_kind wanted) const {
    return any([wanted](const action& what) { return what.kind == wanted; });
  }

  void bands() {
    for (int rank = 0; rank < page_.ranks; ++rank) {
      svg_.rectangle({page_.left() - 6, page_.band(rank)}, page_.width - page_.left() - page::right + 12,
                     page_.band_height(), "class=\"band\" rx=\"5\"");
      const double middle = page_.band(rank) + page_.band_height() / 2 + 4.5;
      svg_.caption({24, middle}, hocket::detail::concat({"rank ", rank}),
                   "class=\"heading\" font-size=\"13\" font-weight=\"bold\"");
      for (unsigned lane = 0; page_.lanes > 1 && lane < page_.lanes; ++lane)
        svg_.caption({page_.left() - 12, page_.own_y(rank, lane) + page_.lane_height() / 2 + 3.5},
                     hocket::detail::concat({"lane ", lane}), "class=\"note\" text-anchor=\"end\" font-size=\"10\"");
    }
  }

  /// Returns the least of 1, 2, 5, 10, … that is not smaller than `least`.
  static double round_step(double least) {
    const double power = std::pow(10.0, std::floor(std::log10(least)));
    return (least <= power ? 1 : least <= 2 * power ? 2 : least <= 5 * power ? 5 : 10) * power;
  }

  void axis() {
    const double total = record_.end();
    const time_unit unit = unit_for(total);
    const double step = round_step(total > 0 ? total / unit.seconds / 9 : 1);
    for (int i = 0; i * step * unit.seconds <= total * (1 + 1e-9); ++i) {
      const double x = page_.x(i * step * unit.seconds);
      svg_.line({x, page::top - 6}, {x, page_.bottom() + 6}, "class=\"grid\" stroke-width=\"1\"");
      svg_.caption({x, page_.bottom() + 21}, decimal(i * step, 3), "class=\"note\" text-anchor=\"middle\"");
    }
    svg_.caption({(page_.left() + page_.width - page::right) / 2, page_.bottom() + 41},
                 std::string("time in ") + unit.name, "class=\"note\" text-anchor=\"middle\"");
  }

  point begin_of(const timed_transfer& transfer) const {
    const double y = page_.out_y(transfer.from_rank, transfer.from_lane);
    return {page_.x(transfer.start), transfer.to_rank > transfer.from_rank ? y + page::out_height : y};
  }

  point end_of(const timed_transfer& transfer) const {
    const double y = page_.own_y(transfer.to_rank, transfer.to_lane);
    return {page_.x(transfer.arrival), transfer.to_rank > transfer.from_rank ? y : y + page::own_height};
  }

  void connect(const timed_transfer& transfer) {
    svg_.line(begin_of(transfer), end_of(transfer), transfer.flag ? flag_line : message_line);
  }

  /// Draws the head of an arrow from below on top of the marks, which would hide it.
  void tip(const timed_transfer& transfer) {
    if (transfer.flag || transfer.to_rank > transfer.from_rank) return;
    const point from = begin_of(transfer);
    const point to = end_of(transfer);
    const double part = std::min(1.0, (page::out_height + 4) / (from.y - to.y));
    svg_.line({to.x + part * (from.x - to.x), to.y + part * (from.y - to.y)}, to, tip_line);
  }

  void connect_loads(const timed_action& step) {
    if (!reads_peers(step.what)) return;
    const bool all = step.what.kind == action_kind::load_reduce;
    for (int peer = all ? 0 : step.what.peer; peer < (all ? page_.ranks : step.what.peer + 1); ++peer) {
      if (peer == step.rank) continue;
      const bool down = step.rank > peer;
      svg_.line({page_.x(step.begin), page_.own_y(peer, 0) + (down ? page::own_height : 0)},
                {page_.x(step.end), page_.own_y(step.rank, step.lane) + (down ? 0 : page::own_height)}, load_line);
    }
  }

  const recorder& record_;
  const page& page_;
  const cost_model& model_;
  svg_writer svg_;
};

}  // namespace detail

/// Returns the drawing of `plan` over `ranks` ranks for a vector of `bytes` bytes on the machine that `model`
/// describes, as an SVG document at most `width` pixels wide. It shrinks with its window, and has a dark mode.
template <algorithm Plan>
std::string draw_svg(const Plan& plan, int ranks, std::size_t bytes = std::size_t{1} << 20,
                     const cost_model& model = example_machine, double width = 1200) {
  const layout where = layout_of(plan, ranks, bytes);
  const unsigned lanes = plan.shape(ranks).lanes;
  detail::recorder record(ranks, lanes);
  trace(plan, ranks, where, 1, model, record);
  const std::string heading = hocket::detail::concat(
      {plan.name(), ": ", to_string(plan.collective().kind), " over ", ranks, ranks == 1 ? " rank" : " ranks"});
  const std::string facts = hocket::detail::concat(
      {detail::bytes_text(bytes), " in ", where.chunk_count(),
       where.chunk_count() == 1 ? " chunk, done after " : " chunks, done after ", detail::time_text(record.end())});
  const detail::page page{ranks, lanes, width, record.end() > 0 ? record.end() : 1};
  return detail::svg_drawing(record, page, model).draw(heading, facts);
}

}  // namespace plan
HOCKET_END_NAMESPACE
