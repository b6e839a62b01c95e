// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// A plan as a space-time drawing in plain ASCII: a row per rank and lane, a column per step, each action once, in the
/// first column after everything that it waits for.
///
///     ring over 3 ranks: all_reduce
///               0    1    2  ...
///     rank 0 >1:0 +2:2 >1:2  ...
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/text.hpp>
#include <hocket/plan/action.hpp>
#include <hocket/plan/cost_model.hpp>
#include <hocket/plan/plan.hpp>
#include <hocket/plan/to_string.hpp>
#include <hocket/plan/trace.hpp>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace plan {

/// Returns the action as one short symbol: a sign for the kind, the peer (* for all), then the chunks after a colon or
/// the tag after a slash; `&` in front if it joins.
inline std::string to_symbol(const action& what) {
  constexpr char signs[] = {'=', '>', '<', '+', '@', '#', '^', '!', '?'};
  const bool flag = what.kind == action_kind::signal || what.kind == action_kind::wait;
  std::string text = what.join ? "&" : "";
  text += signs[static_cast<std::size_t>(what.kind)];
  if (what.kind != action_kind::copy) text += what.peer == all_peers ? "*" : std::to_string(what.peer);
  if (flag) return hocket::detail::concat({text, '/', what.tag});
  if (what.count == 0) return text;
  hocket::detail::append(text, {':', what.chunk});
  if (what.count > 1) hocket::detail::append(text, {'-', what.chunk + what.count - 1});
  return text;
}

namespace detail {

inline constexpr const char* symbol_legend[] = {
    "=:c    copy chunk c",
    ">r:c   send chunk c to rank r",
    "<r:c   receive chunk c from rank r",
    "+r:c   receive chunk c from rank r and combine",
    "@r:c   load chunk c from rank r's memory",
    "#*:c   load chunk c of all ranks and combine",
    "^r:c   push chunk c to rank r (* all) and signal",
    "!r/t   signal tag t to rank r (* all)",
    "?r/t   wait for tag t from rank r (* all)",
};

/// An observer of `trace` that assigns a column to each action.
class column_counter {
 public:
  struct cell {
    std::size_t column = 0;
    action what;
  };
  struct row {
    int rank = 0;
    unsigned lane = 0;
    std::size_t earliest = 0;  ///< first column for the next action that other rows allow
    std::vector<cell> cells;
  };

  column_counter(int ranks, unsigned lanes) : lanes_(lanes), rows_(static_cast<std::size_t>(ranks) * lanes) {
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      rows_[i].rank = static_cast<int>(i / lanes);
      rows_[i].lane = static_cast<unsigned>(i % lanes);
    }
  }

  void transferred(const timed_transfer& transfer) {
    const std::size_t sent = at(transfer.from_rank, transfer.from_lane).cells[transfer.from_index].column;
    row& target = at(transfer.to_rank, transfer.to_lane);
    target.earliest = std::max(target.earliest, sent + 1);
  }

  void performed(const timed_action& step) {
    row& target = at(step.rank, step.lane);
    const std::size_t after_own = target.cells.empty() ? 0 : target.cells.back().column + 1;
    target.cells.push_back({std::max(after_own, std::exchange(target.earliest, 0)), step.what});
  }

  const std::vector<row>& rows() const noexcept { return rows_; }

 private:
  row& at(int rank, unsigned lane) { return rows_[static_cast<std::size_t>(rank) * lanes_ + lane]; }

  unsigned lanes_;
  std::vector<row> rows_;
};

inline std::string aligned_right(const std::string& text, std::size_t width) {
  return text.size() < width ? std::string(width - text.size(), ' ') + text : text;
}

/// Returns the width that each column needs for its symbols and its number.
inline std::vector<std::size_t> column_widths(const std::vector<column_counter::row>& rows) {
  std::vector<std::size_t> widths;
  for (const column_counter::row& row : rows) {
    for (const column_counter::cell& cell : row.cells) {
      while (widths.size() <= cell.column) widths.push_back(std::to_string(widths.size()).size());
      widths[cell.column] = std::max(widths[cell.column], to_symbol(cell.what).size());
    }
  }
  return widths;
}

inline std::string legend_text(const std::vector<column_counter::row>& rows) {
  bool used[std::size(symbol_legend)] = {};
  bool joins = false;
  for (const column_counter::row& row : rows) {
    for (const column_counter::cell& cell : row.cells) {
      used[static_cast<std::size_t>(cell.what.kind)] = true;
      joins = joins || cell.what.join;
    }
  }
  std::string text;
  for (std::size_t i = 0; i < std::size(symbol_legend); ++i)
    if (used[i]) text += std::string("  ") + symbol_legend[i] + '\n';
  if (joins) text += "  &      first wait until all earlier sends of the lane have drained\n";
  return text;
}

}  // namespace detail

/// Returns the drawing, with its legend below. Lines end in a line feed and have no trailing spaces.
template <algorithm Plan>
std::string draw_text(const Plan& plan, int ranks) {
  const unsigned lanes = plan.shape(ranks).lanes;
  detail::column_counter counter(ranks, lanes);
  trace(plan, ranks, layout_of(plan, ranks, 0), 1, cost_model{}, counter);
  const std::vector<std::size_t> widths = detail::column_widths(counter.rows());
  const std::size_t rank_width = std::to_string(ranks - 1).size();
  const auto label = [&](int rank, unsigned lane) {
    const std::string name = "rank " + detail::aligned_right(std::to_string(rank), rank_width);
    if (lanes == 1) return name;
    return hocket::detail::concat({lane == 0 ? name : std::string(name.size(), ' '), " lane ",
                                   detail::aligned_right(std::to_string(lane), std::to_string(lanes - 1).size())});
  };

  std::string text = hocket::detail::concat(
      {plan.name(), " over ", ranks, ranks == 1 ? " rank: " : " ranks: ", to_string(plan.collective().kind), '\n'});
  text += std::string(label(0, 0).size() - 4, ' ') + "step";
  for (std::size_t column = 0; column < widths.size(); ++column)
    text += ' ' + detail::aligned_right(std::to_string(column), widths[column]);
  text += '\n';
  for (const auto& row : counter.rows()) {
    std::string line = label(row.rank, row.lane);
    std::size_t column = 0;
    for (const auto& cell : row.cells) {
      for (; column < cell.column; ++column) line += ' ' + detail::aligned_right(".", widths[column]);
      line += ' ' + detail::aligned_right(to_symbol(cell.what), widths[column++]);
    }
    text += line + '\n';
  }
  return text + detail::legend_text(counter.rows());
}

}  // namespace plan
HOCKET_END_NAMESPACE
