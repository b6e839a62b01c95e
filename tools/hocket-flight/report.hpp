// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The report: for each communicator, what happened, and where each rank was and what it did last; as text or as JSON.
#pragma once

#include "incident.hpp"
#include "story.hpp"
#include "words.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace flight {

class report {
 public:
  report(const archive& all, std::size_t calls_shown) : all_(all), calls_shown_(calls_shown) {
    incidents_ = incidents_of(all, ignored_);
  }

  std::string text() const {
    std::string result;
    for (const std::string& each : all_.problems) result += "note: " + each + '\n';
    for (const std::string& each : ignored_) result += "note: " + each + ": from an earlier run, ignored\n";
    if (!result.empty()) result += '\n';
    for (const incident& each : incidents_) result += text_of(each) + '\n';
    if (!incidents_.empty()) result.pop_back();
    // Records are untrusted input: replace control characters, which could control the terminal.
    std::replace_if(
        result.begin(), result.end(),
        [](char each) { return each != '\n' && (each == 127 || (each >= 0 && each < 32)); }, '?');
    return result;
  }

  std::string json() const {
    nlohmann::json result{{"problems", all_.problems}, {"left_out", ignored_}};
    result["communicators"] = nlohmann::json::array();
    for (const incident& each : incidents_) {
      const story diagnosis = story_of(each, incidents_);
      result["communicators"].push_back({{"communicator", each.records().front()->communicator},
                                         {"ranks", each.ranks()},
                                         {"missing", each.missing()},
                                         {"kind", diagnosis.kind},
                                         {"culprits", diagnosis.culprits},
                                         {"headline", diagnosis.headline},
                                         {"details", diagnosis.details}});
    }
    return result.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + '\n';
  }

 private:
  std::string text_of(const incident& what) const {
    const record& any = *what.records().front();
    const story diagnosis = story_of(what, incidents_);
    std::string result = "Communicator " + std::to_string(any.communicator) +
                         (has_namesake(any) ? ", made at " + moment(any.made) : "") + ", " +
                         std::to_string(what.ranks()) + " ranks over " + any.transport + ": " + diagnosis.kind + "\n\n";
    result += "  " + capital(diagnosis.headline) + ".\n";
    for (const std::string& each : diagnosis.details) result += "  " + each + '\n';
    result += "\n  Where each rank was according to its record; times are relative to " + moment(what.time()) + ":\n\n";
    for (int rank = 0; rank < what.ranks(); ++rank) result += text_of(what, rank);
    return result;
  }

  /// Returns whether another communicator has the same number, for example one that `shrink` has made.
  bool has_namesake(const record& of) const {
    return std::count_if(incidents_.begin(), incidents_.end(), [&](const incident& each) {
             return each.records().front()->communicator == of.communicator;
           }) > 1;
  }

  std::string text_of(const incident& what, int rank) const {
    const record* const own = what.of(rank);
    if (own == nullptr) return "  rank " + std::to_string(rank) + ": no record\n";
    std::string result = "  rank " + std::to_string(rank);
    if (own->world_rank != rank) result += " (rank " + std::to_string(own->world_rank) + " of the world)";
    result += " on " + own->host + ", pid " + std::to_string(own->pid) + ": " + outcome_of(*own) + '\n';
    for (const auto& [number, line] : last_lines(*own, what.time())) result += "      " + line + '\n';
    return result;
  }

  static std::string outcome_of(const record& of) {
    if (!of.failed) return "no failure";
    if (of.failed->on_leaving) return "learned of the failure when it left";
    const int first = of.failed->first_on;
    if (first < 0) return of.failed->name + ", reported by an unknown rank";
    return of.failed->name + (first == of.rank ? ", found here" : ", reported by rank " + std::to_string(first));
  }

  /// Returns lines for the last calls and messages, in the order of the calls.
  std::vector<std::pair<std::int64_t, std::string>> last_lines(const record& of, nanoseconds end) const {
    std::vector<std::pair<std::int64_t, std::string>> lines;
    for (const call& each : of.calls) lines.emplace_back(2 * each.sequence, line_of(each, end));
    for (const message& each : of.messages) lines.emplace_back(2 * each.after + 1, line_of(each, end));
    std::stable_sort(lines.begin(), lines.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    if (lines.size() > calls_shown_)
      lines.erase(lines.begin(), lines.end() - static_cast<std::ptrdiff_t>(calls_shown_));
    return lines;
  }

  template <class Entry>
  static std::string line_of(const Entry& each, nanoseconds end) {
    std::string text = each.over ? "done       " : "under way  ";
    text += describe(each);
    if (each.begin) text += ", begun " + duration(end - *each.begin) + (*each.begin <= end ? " before" : " after");
    if (each.end) text += ", ended " + duration(end - *each.end) + (*each.end <= end ? " before" : " after");
    if (!each.over && each.awaits >= 0) text += ", waits for rank " + std::to_string(each.awaits);
    if constexpr (std::is_same_v<Entry, call>) {
      if (!each.over && each.step >= 0) text += " in step " + std::to_string(each.step);
    }
    return text;
  }

  const archive& all_;
  const std::size_t calls_shown_;
  std::vector<std::string> ignored_;
  std::vector<incident> incidents_;
};

}  // namespace flight
