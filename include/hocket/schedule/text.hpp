// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The text form of a schedule: a line per rank, its actions separated by commas. `print` writes it for inspection and
/// comparison; `parse` reads a schedule that another program wrote or a user edited. `parse(print(plan))` is the plan.
///
///     # schedule: one_forward_one_backward
///     # placement: loop
///     # stages: 2
///     # microbatches: 3
///     0F0,0F1,0B0,0F2,0B1,0B2
///     1F0,1B0,1F1,1B1,1F2,1B2
///
/// An action is `<stage><task_kind><microbatch>`, without the microbatch if the kind of task has none. Kinds: F, B, I
/// (input gradient), W (weight gradient), R (recomputation), UNSHARD, RESHARD, REDUCE_GRAD, WAIT_REDUCE_GRAD, UPDATE,
/// SEND_F, RECV_F, WAIT_SEND_F, SEND_B, RECV_B, WAIT_SEND_B. A forward and a backward pass that overlap are
/// `(7F4;0B0)OVERLAP_F_B`. The four lines with # are optional: without them, the placement and the number of
/// microbatches follow from the rows. Other lines with # are remarks, but a line that seems to be a mistyped one of the
/// four is refused. Blanks around actions and empty lines are ignored. An empty cell is idle time and has no effect; a
/// rank without actions is a line with only a comma.
///
/// Rows without these lines are the tables that PyTorch's pipeline schedules read and write.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/text.hpp>
#include <hocket/schedule/schedule.hpp>
#include <hocket/schedule/schedule_action.hpp>

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

/// Returns the name of the kind in the text form.
constexpr const char* to_string(task_kind what) noexcept {
  switch (what) {
    case task_kind::nothing: return "";
    case task_kind::forward: return "F";
    case task_kind::input_gradient: return "I";
    case task_kind::weight_gradient: return "W";
    case task_kind::backward: return "B";
    case task_kind::recompute: return "R";
    case task_kind::unshard: return "UNSHARD";
    case task_kind::reshard: return "RESHARD";
    case task_kind::reduce_gradient: return "REDUCE_GRAD";
    case task_kind::wait_reduce_gradient: return "WAIT_REDUCE_GRAD";
    case task_kind::update: return "UPDATE";
    case task_kind::send_forward: return "SEND_F";
    case task_kind::receive_forward: return "RECV_F";
    case task_kind::wait_send_forward: return "WAIT_SEND_F";
    case task_kind::send_backward: return "SEND_B";
    case task_kind::receive_backward: return "RECV_B";
    case task_kind::wait_send_backward: return "WAIT_SEND_B";
  }
  return "";
}

inline std::string to_string(const task& what) {
  std::string text = hocket::detail::concat({what.stage, to_string(what.kind)});
  if (has_microbatch(what.kind)) hocket::detail::append(text, {what.microbatch});
  return text;
}

inline std::string to_string(const schedule_action& what) {
  if (!what.is_pair()) return to_string(what.first);
  return hocket::detail::concat({'(', to_string(what.first), ';', to_string(what.second), ")OVERLAP_F_B"});
}

/// Returns the text form of `plan`.
inline std::string print(const schedule& plan) {
  std::string text = hocket::detail::concat({"# schedule: ", plan.name(), "\n# placement: ", plan.placement.name()});
  if (plan.placement.is_given()) {
    for (int stage = 0; stage < plan.stages(); ++stage) {
      hocket::detail::append(text, {stage == 0 ? " " : ",", plan.placement.rank_of(stage, 0)});
    }
  }
  hocket::detail::append(text, {"\n# stages: ", plan.stages(), "\n# microbatches: ", plan.microbatches, '\n'});
  for (const row& actions : plan.rows) {
    for (std::size_t i = 0; i < actions.size(); ++i) text += (i == 0 ? "" : ",") + to_string(actions[i]);
    text += actions.empty() ? ",\n" : "\n";
  }
  return text;
}

namespace detail {

/// Parses the text form, and reports line and column of the first error.
class schedule_parser {
 public:
  explicit schedule_parser(std::string_view text) : rest_(text) {}

  schedule parse() {
    read_lines();
    if (rows_.empty()) fail("there is no row: a schedule has a line of actions per rank");
    if (!uses_.empty()) check_last(uses_.back().first, "stage", last_stage(), "# stages: ", stages_);
    check_last(last_microbatch_at_, "microbatch", last_microbatch_, "# microbatches: ", microbatches_);
    const placement where = make_placement();
    const int microbatches = microbatches_ >= 0 ? microbatches_ : last_microbatch_ + 1;
    if (is_too_large(where, microbatches)) {
      fail_at(microbatches_ >= 0 ? header_places_[of_microbatches] : last_microbatch_at_,
              too_large_text(where, microbatches));
    }
    schedule made(name_, where, microbatches);
    if (last_stage() >= made.stages()) {
      fail_at(uses_.back().first, hocket::detail::concat({"stage ", last_stage(), " occurs; this placement has ",
                                                          stages_text(made.stages()), " on ", rows_text()}));
    }
    if (made.ranks() != static_cast<int>(rows_.size())) {
      fail_at(header_places_[of_placement],
              hocket::detail::concat(
                  {"there are ", rows_text(), "; the placement needs one for each of its ", made.ranks(), " ranks"}));
    }
    made.rows = std::move(rows_);
    return made;
  }

 private:
  /// Limit of all numbers: no model has more, and the product of two such numbers does not overflow.
  static constexpr int most = 1 << 20;

  struct place {
    int line = 0;  ///< 0: nowhere
    int column = 0;
  };

  /// Uses of a stage in the text.
  struct stage_use {
    place first;    ///< first occurrence
    int rank = -1;  ///< rank that computes it
  };

  place here() const noexcept { return {std::max(line_, 1), static_cast<int>(current_.data() - line_begin_) + 1}; }

  [[noreturn]] void fail(const std::string& what) const { fail_at(here(), what); }

  [[noreturn]] static void fail_at(const place& at, const std::string& what) {
    raise(errc::invalid_argument, hocket::detail::concat({"line ", at.line, ", column ", at.column, ": ", what}));
  }

  /// Checks that no number in the rows is beyond the limit that a line with # sets.
  static void check_last(const place& at, const std::string& of_what, int last, const std::string& line, int declared) {
    if (declared < 0 || last < declared) return;
    fail_at(at, hocket::detail::concat(
                    {of_what, ' ', last, " occurs; '", line, declared, "' allows numbers up to ", declared - 1}));
  }

  // ---- lines ----

  void read_lines() {
    while (!rest_.empty()) {
      next_line();
      skip_blanks();
      if (consume("#")) read_header();
      else if (!current_.empty()) {
        row_begins_.push_back(here());
        read_row(rows_.emplace_back());
      }
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

  enum header : std::size_t { of_schedule, of_placement, of_stages, of_microbatches };
  static constexpr std::array<std::string_view, 4> headers{"schedule", "placement", "stages", "microbatches"};

  /// Reads a line with #. It is a remark if it begins with another word, unless that seems to be a mistyped known word.
  void read_header() {
    skip_blanks();
    const place at = here();
    const std::string_view word = current_.substr(0, current_.find_first_of(": \t"));
    current_.remove_prefix(word.size());
    const bool has_colon = consume(":");
    for (std::size_t i = 0; i < headers.size(); ++i) {
      const std::string line = hocket::detail::concat({"'# ", headers[i], ":'"});
      if (word == headers[i]) {
        if (!has_colon)
          fail(hocket::detail::concat(
              {"a ':' must follow here, as in ", line, "; a remark must begin with another word"}));
        if (header_places_[i].line > 0)
          fail_at(at, hocket::detail::concat({"a second line ", line, "; the first is line ", header_places_[i].line}));
        header_places_[i] = at;
        skip_blanks();
        return read_value(static_cast<header>(i));
      }
      if (has_colon && is_near(word, headers[i])) {
        fail_at(at, hocket::detail::concat({"this must be ", line, ", or begin with another word to be a remark"}));
      }
    }
  }

  /// Returns whether so few letters must be added, dropped or changed that `known` is probably meant.
  static bool is_near(std::string_view word, std::string_view known) {
    const std::size_t few = known.size() / 5;
    if (word.size() > known.size() + few) return false;
    std::vector<std::size_t> distance(known.size() +
                                      1);  // from the part of `word` read so far to each prefix of `known`
    for (std::size_t k = 0; k < distance.size(); ++k) distance[k] = k;
    for (const char letter : word) {
      const char lower = letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
      std::size_t diagonal = distance[0]++;
      for (std::size_t k = 1; k < distance.size(); ++k) {
        const std::size_t change = diagonal + (lower != known[k - 1]);
        diagonal = distance[k];
        distance[k] = std::min({change, distance[k] + 1, distance[k - 1] + 1});
      }
    }
    return distance.back() <= few;
  }

  void read_value(header which) {
    switch (which) {
      case of_schedule: return read_name();
      case of_placement: return read_placement();
      case of_stages: stages_ = read_size("stages"); return;
      case of_microbatches: microbatches_ = read_size("microbatches"); return;
    }
  }

  void read_name() {
    const std::string_view name = current_.substr(0, current_.find_last_not_of(" \t") + 1);
    const std::size_t line_end = name.find('\r');
    if (line_end != std::string_view::npos) {
      current_.remove_prefix(line_end);
      fail("a name must not have a carriage return in it");
    }
    name_ = std::string(name);
  }

  int read_size(const char* of_what) {
    const int value = number(of_what, most + 1);
    end_of_line();
    return value;
  }

  void read_placement() {
    for (const char* name : {"loop", "v", "two_directions", "given"}) {
      const std::string_view before = current_;
      if (!consume(name) || (!current_.empty() && current_.front() != ' ' && current_.front() != '\t')) {
        current_ = before;
        continue;
      }
      placement_ = name;
      skip_blanks();
      if (placement_ == "given") {
        do {
          skip_blanks();
          given_.push_back(number("rank of a stage"));
          skip_blanks();
        } while (consume(","));
      }
      end_of_line();
      return;
    }
    fail("no such placement; use loop, v, two_directions, or given with the rank of each stage");
  }

  void end_of_line() {
    skip_blanks();
    if (!current_.empty()) fail("expected the end of the line here");
  }

  // ---- actions ----

  void read_row(row& actions) {
    do {
      skip_blanks();
      if (!current_.empty() && current_.front() != ',') actions.push_back(read_action());
      skip_blanks();
    } while (consume(","));
    if (!current_.empty()) fail("a comma or the end of the line must follow an action");
  }

  schedule_action read_action() {
    if (!consume("(")) return {read_task(), {}};
    schedule_action pair;
    pair.first = read_task();
    if (!consume(";")) fail("a ';' must follow the first of two overlapping actions");
    pair.second = read_task();
    if (!consume(")OVERLAP_F_B")) fail("')OVERLAP_F_B' must follow the second of two overlapping actions");
    return pair;
  }

  task read_task() {
    const place at = here();
    task result;
    result.stage = number("stage");
    result.kind = read_task_kind();
    if (has_microbatch(result.kind)) result.microbatch = number("microbatch");
    note(result, at);
    return result;
  }

  void note(const task& what, const place& at) {
    if (what.stage > last_stage()) uses_.resize(static_cast<std::size_t>(what.stage) + 1);
    stage_use& use = uses_[static_cast<std::size_t>(what.stage)];
    if (use.first.line == 0) use.first = at;
    if (what.microbatch > last_microbatch_) {
      last_microbatch_ = what.microbatch;
      last_microbatch_at_ = at;
    }
    if (!is_computation(what.kind)) return;
    const int rank = static_cast<int>(rows_.size()) - 1;
    if (use.rank < 0) use.rank = rank;
    if (use.rank != rank && second_rank_at_.line == 0) {
      second_rank_at_ = at;
      second_rank_ = rank;
      stage_on_two_ranks_ = what.stage;
    }
  }

  int last_stage() const noexcept { return static_cast<int>(uses_.size()) - 1; }

  /// Reads the kind of task with the longest name that matches.
  task_kind read_task_kind() {
    task_kind found = task_kind::nothing;
    std::string_view name;
    for (int i = 1; i < task_kinds; ++i) {
      const std::string_view each = to_string(static_cast<task_kind>(i));
      if (each.size() > name.size() && current_.substr(0, each.size()) == each) {
        found = static_cast<task_kind>(i);
        name = each;
      }
    }
    if (found == task_kind::nothing) {
      fail(
          "no such action; after the stage there must be F, B, I, W, R, UNSHARD, RESHARD, REDUCE_GRAD, "
          "WAIT_REDUCE_GRAD, UPDATE, SEND_F, RECV_F, WAIT_SEND_F, SEND_B, RECV_B or WAIT_SEND_B");
    }
    current_.remove_prefix(name.size());
    return found;
  }

  int number(const char* of_what, int limit = most) {
    std::size_t digits = 0;
    int value = 0;
    for (; digits < current_.size() && current_[digits] >= '0' && current_[digits] <= '9'; ++digits) {
      value = std::min(limit, 10 * value + (current_[digits] - '0'));
    }
    if (digits == 0) fail(std::string("expected a number here: the ") + of_what);
    if (value == limit) fail(hocket::detail::concat({"the ", of_what, " must be less than ", limit}));
    current_.remove_prefix(digits);
    return value;
  }

  bool consume(std::string_view text) {
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
    const int stages = stages_ >= 0 ? stages_ : last_stage() + 1;
    if (stages == 0)
      fail_at(stages_ == 0 ? header_places_[of_stages] : here(),
              "a schedule needs at least one stage, and no row has an action");
    if (placement_ == "given") {
      const int ranks_given = *std::max_element(given_.begin(), given_.end()) + 1;
      const int empty = rank_without_stage(given_, ranks_given);
      if (empty >= 0)
        fail_at(header_places_[of_placement], hocket::detail::concat({"the placement gives no stage to rank ", empty}));
      return checked(placement::given(given_), stages);
    }
    if (placement_ == "v") return checked(placement::v_shape(ranks), stages);
    if (placement_ == "two_directions") {
      const int microbatches = microbatches_ >= 0 ? microbatches_ : last_microbatch_ + 1;
      if (microbatches % 2 != 0)
        fail_at(header_places_[of_placement], "two directions need an even number of microbatches");
      return checked(placement::two_directions(ranks, microbatches), stages);
    }
    if (placement_ == "loop") {
      if (stages < ranks || stages % ranks != 0) {
        fail_at(header_places_[stages_ >= 0 ? of_stages : of_placement],
                hocket::detail::concat({stages_text(stages), " cannot be divided evenly among ", rows_text()}));
      }
      return placement::loop(ranks, stages / ranks);
    }
    return placement_of_rows(stages);
  }

  placement checked(placement made, int stages) const {
    if (stages_ >= 0 && made.stages() != stages) {
      fail_at(header_places_[of_stages],
              hocket::detail::concat({"this placement has ", stages_text(made.stages()), " on ", rows_text(),
                                      ", but '# stages:' is ", stages}));
    }
    return made;
  }

  /// Returns the placement if the text gives none: stage s lies on the rank whose row computes it.
  placement placement_of_rows(int stages) const {
    if (second_rank_at_.line > 0) fail_two_ranks();
    std::vector<int> rank_of_stage;
    for (int stage = 0; stage < stages; ++stage) {
      const int rank = stage > last_stage() ? -1 : uses_[static_cast<std::size_t>(stage)].rank;
      if (rank < 0) fail_at(place_of(stage), hocket::detail::concat({"no rank computes stage ", stage}));
      rank_of_stage.push_back(rank);
    }
    const int empty = rank_without_stage(rank_of_stage, static_cast<int>(rows_.size()));
    if (empty >= 0) {
      fail_at(row_begins_[static_cast<std::size_t>(empty)],
              hocket::detail::concat(
                  {"rank ", empty, " computes nothing; every rank needs a stage: assign one with '# placement:'"}));
    }
    return placement::given(std::move(rank_of_stage));
  }

  [[noreturn]] void fail_two_ranks() const {
    const int first = uses_[static_cast<std::size_t>(stage_on_two_ranks_)].rank;
    const bool are_opposite = first + second_rank_ == static_cast<int>(rows_.size()) - 1;
    fail_at(second_rank_at_,
            hocket::detail::concat({"stage ", stage_on_two_ranks_, " lies on ranks ", first, " and ", second_rank_,
                                    are_opposite ? ": write '# placement: two_directions' if this is intended"
                                                 : "; each stage must lie on one rank"}));
  }

  /// Returns the best place to report for a stage: its first occurrence, or the place that implies that it exists.
  const place& place_of(int stage) const noexcept {
    if (stage > last_stage()) return header_places_[of_stages];
    const place& first = uses_[static_cast<std::size_t>(stage)].first;
    return first.line > 0 ? first : uses_.back().first;
  }

  static std::string stages_text(int stages) { return hocket::detail::concat({stages, " stages"}); }
  std::string rows_text() const { return hocket::detail::concat({rows_.size(), " rows"}); }

  std::string_view rest_;
  std::string_view current_;  ///< the rest of the line
  const char* line_begin_ = nullptr;
  int line_ = 0;

  std::string name_ = "schedule";
  std::string placement_;
  std::vector<int> given_;
  int stages_ = -1;
  int microbatches_ = -1;
  int last_microbatch_ = -1;
  std::vector<row> rows_;

  // Places in the text, for errors that are found at its end.
  std::array<place, headers.size()> header_places_{};
  std::vector<place> row_begins_;
  std::vector<stage_use> uses_;  ///< by stage
  place last_microbatch_at_;
  place second_rank_at_;  ///< where a stage was first computed on a second rank
  int second_rank_ = -1;
  int stage_on_two_ranks_ = -1;
};

}  // namespace detail

/// Returns the schedule that `text` describes. Raises `errc::invalid_argument` with line and column if `text` is
/// invalid. Does not check whether the schedule can run: see schedule/prove.hpp.
inline schedule parse(std::string_view text) { return detail::schedule_parser(text).parse(); }

}  // namespace plan::pipeline
HOCKET_END_NAMESPACE
