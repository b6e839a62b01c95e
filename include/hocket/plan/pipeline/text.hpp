// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The text form of a schedule: a line per rank, its actions between commas. Printed to look at and to compare, parsed to
/// run a schedule that another program has made or that was changed by hand. `parse(print(plan))` is the plan.
///
///     # schedule: one_forward_one_backward
///     # placement: loop
///     # stages: 2
///     # microbatches: 3
///     0F0,0F1,0B0,0F2,0B1,0B2
///     1F0,1B0,1F1,1B1,1F2,1B2
///
/// An action is `<stage><verb><microbatch>`, the microbatch left out where the verb has none. Verbs: F, B, I (input
/// gradient), W (weight gradient), R (the forward pass once more), UNSHARD, RESHARD, REDUCE_GRAD, WAIT_REDUCE_GRAD,
/// UPDATE, SEND_F, RECV_F, WAIT_SEND_F, SEND_B, RECV_B, WAIT_SEND_B. A forward and a backward pass that overlap are
/// `(7F4;0B0)OVERLAP_F_B`. The lines that begin with # may be left out: then the placement is that of the rows, and the
/// microbatches are those that occur. Blanks around actions and empty lines do not count. An empty cell is idle time
/// and means nothing; a rank that does nothing is a line with a comma alone.
///
/// Rows without these lines are the tables that PyTorch's pipeline schedules read and write.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/plan/pipeline/action.hpp>
#include <hocket/plan/pipeline/schedule.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace plan::pipeline {

/// As it stands in the text form.
constexpr const char* to_string(verb what) noexcept {
  switch (what) {
    case verb::nothing: return "";
    case verb::forward: return "F";
    case verb::input_gradient: return "I";
    case verb::weight_gradient: return "W";
    case verb::backward: return "B";
    case verb::recompute: return "R";
    case verb::unshard: return "UNSHARD";
    case verb::reshard: return "RESHARD";
    case verb::reduce_gradient: return "REDUCE_GRAD";
    case verb::wait_reduce_gradient: return "WAIT_REDUCE_GRAD";
    case verb::update: return "UPDATE";
    case verb::send_forward: return "SEND_F";
    case verb::receive_forward: return "RECV_F";
    case verb::wait_send_forward: return "WAIT_SEND_F";
    case verb::send_backward: return "SEND_B";
    case verb::receive_backward: return "RECV_B";
    case verb::wait_send_backward: return "WAIT_SEND_B";
  }
  return "";
}

inline std::string to_string(const work& what) {
  std::string text = std::to_string(what.stage) + to_string(what.what);
  if (has_microbatch(what.what)) text += std::to_string(what.microbatch);
  return text;
}

inline std::string to_string(const action& what) {
  if (!what.is_pair()) return to_string(what.first);
  return '(' + to_string(what.first) + ';' + to_string(what.second) + ")OVERLAP_F_B";
}

/// The text form.
inline std::string print(const schedule& plan) {
  std::string text = "# schedule: " + std::string(plan.name()) + "\n# placement: " + plan.placement.name();
  if (plan.placement.is_given()) {
    for (int stage = 0; stage < plan.stages(); ++stage) {
      text += (stage == 0 ? " " : ",") + std::to_string(plan.placement.rank_of(stage, 0));
    }
  }
  text +=
      "\n# stages: " + std::to_string(plan.stages()) + "\n# microbatches: " + std::to_string(plan.microbatches) + '\n';
  for (const row& actions : plan.rows) {
    for (std::size_t i = 0; i < actions.size(); ++i) text += (i == 0 ? "" : ",") + to_string(actions[i]);
    text += actions.empty() ? ",\n" : "\n";
  }
  return text;
}

namespace detail {

/// Reads the text form, and says where it stops being one.
class schedule_parser {
 public:
  explicit schedule_parser(std::string_view text) : rest_(text) {}

  schedule parse() {
    read_lines();
    if (rows_.empty()) fail("there is no row: a schedule has a line of actions per rank");
    check_last("stage", last_stage_, "# stages: ", stages_);
    check_last("microbatch", last_microbatch_, "# microbatches: ", microbatches_);
    schedule made(name_, make_placement(), microbatches_ >= 0 ? microbatches_ : last_microbatch_ + 1);
    if (made.ranks() != static_cast<int>(rows_.size())) {
      fail("there are " + rows_text() + "; the placement needs one for each of its " + std::to_string(made.ranks()) +
           " ranks");
    }
    made.rows = std::move(rows_);
    return made;
  }

 private:
  /// No model has more, and the product of two such numbers is still a number.
  static constexpr int most = 1 << 20;

  [[noreturn]] void fail(const std::string& what) const {
    raise(errc::invalid_argument,
          "line " + std::to_string(line_) + ", column " + std::to_string(column()) + ": " + what);
  }

  /// No number in the rows may be beyond what a line with # says.
  void check_last(const std::string& of_what, int last, const std::string& line, int said) const {
    if (said < 0 || last < said) return;
    fail(of_what + ' ' + std::to_string(last) + " occurs; '" + line + std::to_string(said) +
         "' says that the last one is " + std::to_string(said - 1));
  }

  std::size_t column() const noexcept { return static_cast<std::size_t>(current_.data() - line_begin_) + 1; }

  // ---- lines ----

  void read_lines() {
    while (!rest_.empty()) {
      next_line();
      skip_blanks();
      if (take("#")) read_header();
      else if (!current_.empty()) read_row(rows_.emplace_back());
    }
  }

  void next_line() {
    const std::size_t end = std::min(rest_.find('\n'), rest_.size());
    current_ = rest_.substr(0, end);
    line_begin_ = current_.data();
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    if (!current_.empty() && current_.back() == '\r') current_.remove_suffix(1);
    ++line_;
  }

  void read_header() {
    skip_blanks();
    if (take("schedule:")) {
      skip_blanks();
      name_ = std::string(current_);
    } else if (take("placement:")) {
      skip_blanks();
      read_placement();
    } else if (take("stages:")) {
      stages_ = read_size("stages");
    } else if (take("microbatches:")) {
      microbatches_ = read_size("microbatches");
    }  // any other is a remark
  }

  int read_size(const char* of_what) {
    skip_blanks();
    const int value = number(of_what);
    end_of_line();
    return value;
  }

  void read_placement() {
    for (const char* name : {"loop", "v", "two_directions", "given"}) {
      const std::string_view before = current_;
      if (!take(name) || (!current_.empty() && current_.front() != ' ')) {
        current_ = before;
        continue;
      }
      placement_ = name;
      skip_blanks();
      if (placement_ == "given") {
        do {
          given_.push_back(number("rank of a stage"));
        } while (take(","));
      }
      end_of_line();
      return;
    }
    fail("no such placement; there are loop, v, two_directions, and given with the rank of each stage");
  }

  void end_of_line() {
    skip_blanks();
    if (!current_.empty()) fail("nothing may follow here");
  }

  // ---- actions ----

  void read_row(row& actions) {
    do {
      skip_blanks();
      if (!current_.empty() && current_.front() != ',') actions.push_back(read_action());
      skip_blanks();
    } while (take(","));
    if (!current_.empty()) fail("a comma or the end of the line must follow an action");
  }

  action read_action() {
    if (!take("(")) return {read_work(), {}};
    action pair;
    pair.first = read_work();
    if (!take(";")) fail("a ';' must follow the first of two overlapping actions");
    pair.second = read_work();
    if (!take(")OVERLAP_F_B")) fail("')OVERLAP_F_B' must follow the second of two overlapping actions");
    return pair;
  }

  work read_work() {
    work result;
    result.stage = number("stage");
    result.what = read_verb();
    if (has_microbatch(result.what)) result.microbatch = number("microbatch");
    last_stage_ = std::max(last_stage_, result.stage);
    last_microbatch_ = std::max(last_microbatch_, result.microbatch);
    return result;
  }

  /// The longest name that fits.
  verb read_verb() {
    verb found = verb::nothing;
    std::string_view name;
    for (int i = 1; i < verbs; ++i) {
      const std::string_view each = to_string(static_cast<verb>(i));
      if (each.size() > name.size() && current_.substr(0, each.size()) == each) {
        found = static_cast<verb>(i);
        name = each;
      }
    }
    if (found == verb::nothing) {
      fail(
          "no such action; after the stage there must be F, B, I, W, R, UNSHARD, RESHARD, REDUCE_GRAD, "
          "WAIT_REDUCE_GRAD, UPDATE, SEND_F, RECV_F, WAIT_SEND_F, SEND_B, RECV_B or WAIT_SEND_B");
    }
    current_.remove_prefix(name.size());
    return found;
  }

  int number(const char* of_what) {
    std::size_t digits = 0;
    int value = 0;
    for (; digits < current_.size() && current_[digits] >= '0' && current_[digits] <= '9'; ++digits) {
      value = std::min(most, 10 * value + (current_[digits] - '0'));
    }
    if (digits == 0) fail(std::string("a number must stand here: the ") + of_what);
    if (value == most) fail(std::string("the ") + of_what + " must be less than " + std::to_string(most));
    current_.remove_prefix(digits);
    return value;
  }

  bool take(std::string_view text) {
    if (current_.substr(0, text.size()) != text) return false;
    current_.remove_prefix(text.size());
    return true;
  }

  void skip_blanks() {
    while (!current_.empty() && (current_.front() == ' ' || current_.front() == '\t')) current_.remove_prefix(1);
  }

  // ---- placement ----

  placement make_placement() {
    const int ranks = static_cast<int>(rows_.size());
    const int stages = stages_ >= 0 ? stages_ : last_stage_ + 1;
    if (stages == 0) fail("a schedule needs at least one stage, and no row has an action");
    if (placement_ == "given") {
      for (int rank = *std::max_element(given_.begin(), given_.end()); rank >= 0; --rank) {
        if (std::find(given_.begin(), given_.end(), rank) == given_.end()) {
          fail("the placement gives no stage to rank " + std::to_string(rank));
        }
      }
      return checked(placement::given(given_), stages);
    }
    if (placement_ == "v") return checked(placement::v_shape(ranks), stages);
    if (placement_ == "two_directions") {
      const int microbatches = microbatches_ >= 0 ? microbatches_ : last_microbatch_ + 1;
      if (microbatches % 2 != 0) fail("two directions need an even number of microbatches");
      return checked(placement::two_directions(ranks, microbatches), stages);
    }
    if (placement_ == "loop") {
      if (stages < ranks || stages % ranks != 0) fail(stages_text(stages) + " cannot be dealt to " + rows_text());
      return placement::loop(ranks, stages / ranks);
    }
    return placement_of_rows(stages);
  }

  placement checked(placement made, int stages) const {
    if (stages_ >= 0 && made.stages() != stages) {
      fail("this placement has " + stages_text(made.stages()) + " on " + rows_text() + ", '# stages:' says " +
           std::to_string(stages));
    }
    return made;
  }

  /// Where nothing is said: stage s lies on the rank whose row computes it.
  placement placement_of_rows(int stages) const {
    std::vector<int> rank_of_stage(static_cast<std::size_t>(stages), -1);
    for (std::size_t rank = 0; rank < rows_.size(); ++rank) {
      for (const action& each : rows_[rank]) {
        for_each_work(each, [&](const work& what) {
          int& known = rank_of_stage[static_cast<std::size_t>(what.stage)];
          if (!is_computation(what.what)) return;
          if (known >= 0 && known != static_cast<int>(rank)) {
            fail("stage " + std::to_string(what.stage) + " lies on ranks " + std::to_string(known) + " and " +
                 std::to_string(rank) + ": say '# placement: two_directions' if this is meant");
          }
          known = static_cast<int>(rank);
        });
      }
    }
    for (std::size_t stage = 0; stage < rank_of_stage.size(); ++stage) {
      if (rank_of_stage[stage] < 0) fail("no rank computes stage " + std::to_string(stage));
    }
    return placement::given(std::move(rank_of_stage));
  }

  static std::string stages_text(int stages) { return std::to_string(stages) + " stages"; }
  std::string rows_text() const { return std::to_string(rows_.size()) + " rows"; }

  std::string_view rest_;
  std::string_view current_;  ///< what is left of the line
  const char* line_begin_ = nullptr;
  int line_ = 0;

  std::string name_ = "schedule";
  std::string placement_;
  std::vector<int> given_;
  int stages_ = -1;
  int microbatches_ = -1;
  int last_stage_ = -1;
  int last_microbatch_ = -1;
  std::vector<row> rows_;
};

}  // namespace detail

/// The schedule that `text` says. Raises `errc::invalid_argument` with line and column where it is none. Whether the
/// schedule can be run is another question: see plan/pipeline/prove.hpp.
inline schedule parse(std::string_view text) { return detail::schedule_parser(text).parse(); }

}  // namespace plan::pipeline
HOCKET_END_NAMESPACE
