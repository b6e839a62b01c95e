// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// needs: nlohmann_json
// Reads results, and explains why a file has none.
#include "results.hpp"

#include <hocket/core/platform/input_file.hpp>

#include <nlohmann/json.hpp>

#include <charconv>
#include <cmath>
#include <cstddef>
#include <map>

namespace perf {

namespace {

using nlohmann::json;

[[noreturn]] void refuse(const std::string& name, const std::string& why) { throw file_error("'" + name + "' " + why); }

[[noreturn]] void refuse_foreign(const std::string& name) {
  refuse(name, "was not written by hocket-perf --format json, --format csv or --json");
}

[[noreturn]] void refuse_incomplete(const std::string& name, const std::string& why) {
  refuse(name, "is incomplete: " + why + "; measure again");
}

std::string read_file(const std::string& name) {
  constexpr std::size_t most_bytes = std::size_t{1} << 28;
  std::string content;
  const std::string problem =
      hocket::platform::read_whole(name, hocket::platform::file_kinds::regular_or_pipe, most_bytes, content);
  const bool is_blank = content.find_first_not_of(" \t\r\n") == std::string::npos;
  if (!problem.empty()) refuse(name, "can't be read: " + problem);
  if (is_blank) refuse(name, "can't be read: it is empty");
  return content;
}

/// Figures of a result that depend on each other.
struct stated_figures {
  double us = 0;
  double least_us = 0;
  double most_us = 0;
  double bandwidth = 0;  ///< GB/s
};

/// Returns whether a changed digit would show: the time is between its extremes, and equals bytes by bandwidth except for
/// the rounding of both.
bool fit_each_other(const stated_figures& of, std::size_t bytes) {
  constexpr double rounding_us = 1e-4, rounding = 1e-5;
  const double moved = of.us * of.bandwidth * 1e3, expected = static_cast<double>(bytes);
  const bool is_between = of.us >= of.least_us && of.us <= of.most_us;
  return is_between && std::abs(moved - expected) <= expected * (rounding + rounding_us / of.us);
}

median checked(median found, const stated_figures& stated, const std::string& name, std::size_t number) {
  const std::string result = "the time of result " + std::to_string(number);
  if (!(found.us > 0 && std::isfinite(found.us))) refuse(name, "is damaged: " + result + " is not a positive number");
  if (fit_each_other(stated, found.of.bytes)) return found;
  refuse(name, "is damaged: " + result + " contradicts its size, bandwidth, minimum or maximum; measure again");
}

// ---- JSON ----------------------------------------------------------------------------------------------------------

void read_run(const json& from, run_description& run) {
  run.version = from.at("version").get<std::string>();
  run.date_utc = from.at("date_utc").get<std::string>();
  run.hosts = from.at("hosts").get<std::string>();
  run.processor = from.at("processor").get<std::string>();
  run.cores = from.at("cores").get<int>();
  run.kernel = from.at("kernel").get<std::string>();
  run.ranks = from.at("rank_count").get<int>();
  run.transport = from.at("transport").get<std::string>();
  run.memory = from.at("memory").get<std::string>();
  run.caches = from.at("caches").get<std::string>();
  run.algorithm = from.at("algorithm").get<std::string>();
  run.pinned = from.at("pinned").get<bool>();
  run.shared_memory = from.at("shared_memory").get<bool>();
}

cell read_cell(const json& from) {
  cell of;
  of.collective = from.at("collective").get<std::string>();
  of.distribution = from.at("distribution").get<std::string>();
  of.type = from.at("type").get<std::string>();
  of.redop = from.at("redop").get<std::string>();
  of.root = from.at("root").get<int>();
  of.bytes = from.at("size_bytes").get<std::size_t>();
  return of;
}

void read_json_results(const json& from, result_file& to) {
  for (const json& each : from) {
    for (const char* const placement : {"out_of_place", "in_place"}) {
      const json& times = each.at(placement);
      if (times.is_null()) continue;
      median found{read_cell(each), times.at("time_us").get<double>(), 0};
      found.of.placement = placement;
      const json& wrong = times.at("wrong_elements");
      if (!wrong.is_null()) found.wrong = wrong.get<std::uint64_t>();
      const stated_figures stated{found.us, times.at("min_us").get<double>(), times.at("max_us").get<double>(),
                                  times.at("algbw_gb_per_s").get<double>()};
      to.medians.push_back(checked(found, stated, to.name, to.medians.size() + 1));
    }
  }
}

bool claims_to_be_ours(const std::string& content) {
  return content.substr(0, 200).find("\"hocket-perf\"") != std::string::npos;
}

result_file read_json(const std::string& name, const std::string& content) {
  result_file found;
  found.name = name;
  json all;
  try {
    all = json::parse(content);
  } catch (const json::parse_error& problem) {
    if (!claims_to_be_ours(content)) refuse_foreign(name);
    refuse_incomplete(name, "the JSON text ends or breaks at byte " + std::to_string(problem.byte));
  }
  if (!all.is_object() || all.value("program", json()) != "hocket-perf") refuse_foreign(name);
  try {
    read_run(all, found.run);
    read_json_results(all.at("results"), found);
  } catch (const json::exception& problem) {
    refuse(name, "lacks a member that this version of hocket-perf writes, or has another type for it: " +
                     std::string(problem.what()));
  }
  return found;
}

// ---- CSV -----------------------------------------------------------------------------------------------------------

/// Splits CSV into lines of fields. A line without an end is incomplete.
std::vector<std::vector<std::string>> csv_lines(const std::string& name, const std::string& content) {
  std::vector<std::vector<std::string>> lines;
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (std::size_t i = 0; i < content.size(); ++i) {
    const char c = content[i];
    if (quoted) {
      if (c != '"') {
        fields.back() += c;
      } else if (i + 1 < content.size() && content[i + 1] == '"') {
        fields.back() += content[++i];
      } else {
        quoted = false;
      }
    } else if (c == '"') {
      quoted = true;
    } else if (c == ',') {
      fields.emplace_back();
    } else if (c == '\n') {
      lines.push_back(std::move(fields));
      fields.assign(1, "");
    } else if (c != '\r') {
      fields.back() += c;
    }
  }
  if (fields.size() > 1 || !fields[0].empty()) refuse_incomplete(name, "the last line has no end");
  return lines;
}

/// One line of a CSV file, by the names of its columns.
class csv_row {
 public:
  csv_row(const std::string& file, std::size_t line, const std::vector<std::string>& names,
          const std::vector<std::string>& values)
      : file_(file), line_(line) {
    if (values.size() != names.size()) {
      refuse_incomplete(file, "line " + std::to_string(line) + " has " + std::to_string(values.size()) + " of " +
                                  std::to_string(names.size()) + " columns");
    }
    for (std::size_t i = 0; i < names.size(); ++i) values_[names[i]] = values[i];
  }

  const std::string& text(const std::string& column) const {
    const auto found = values_.find(column);
    if (found == values_.end())
      refuse(file_, "lacks the column " + column + ", which this version of hocket-perf writes");
    return found->second;
  }

  template <class Number>
  Number number(const std::string& column) const {
    const std::string& shown = text(column);
    Number value{};
    const auto [end, problem] = std::from_chars(shown.data(), shown.data() + shown.size(), value);
    if (problem != std::errc() || end != shown.data() + shown.size()) refuse_value(column);
    return value;
  }

  bool is_true(const std::string& column) const {
    const std::string& shown = text(column);
    if (shown != "true" && shown != "false") refuse_value(column);
    return shown == "true";
  }

 private:
  [[noreturn]] void refuse_value(const std::string& column) const {
    refuse(file_, "is damaged: in line " + std::to_string(line_) + ", " + column + " is '" + text(column) + "'");
  }

  std::string file_;
  std::size_t line_;
  std::map<std::string, std::string> values_;
};

run_description read_run(const csv_row& from) {
  run_description run;
  run.version = from.text("version");
  run.date_utc = from.text("date_utc");
  run.hosts = from.text("hosts");
  run.processor = from.text("processor");
  run.cores = from.number<int>("cores");
  run.kernel = from.text("kernel");
  run.ranks = from.number<int>("ranks");
  run.transport = from.text("transport");
  run.memory = from.text("memory");
  run.caches = from.text("caches");
  run.algorithm = from.text("algorithm");
  run.pinned = from.is_true("pinned");
  run.shared_memory = from.is_true("shared_memory");
  return run;
}

median read_median(const csv_row& from) {
  median found;
  found.of = {from.text("collective"), from.text("distribution"), from.text("type"),
              from.text("redop"),      from.number<int>("root"),  from.number<std::size_t>("size_bytes"),
              from.text("placement")};
  found.us = from.number<double>("time_us");
  if (!from.text("wrong_elements").empty()) found.wrong = from.number<std::uint64_t>("wrong_elements");
  return found;
}

result_file read_csv(const std::string& name, const std::string& content) {
  result_file found;
  found.name = name;
  const auto lines = csv_lines(name, content);
  if (lines.size() < 2) refuse_incomplete(name, "it has no results");
  std::size_t expected = 0;
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const csv_row line(name, i + 1, lines[0], lines[i]);
    if (line.text("program") != "hocket-perf") refuse_foreign(name);
    if (i == 1) found.run = read_run(line);
    expected = line.number<std::size_t>("rows");
    if (line.number<std::size_t>("row") != i) refuse_incomplete(name, "row " + std::to_string(i) + " is missing");
    const median each = read_median(line);
    const stated_figures stated{each.us, line.number<double>("min_us"), line.number<double>("max_us"),
                                line.number<double>("algbw_gb_per_s")};
    found.medians.push_back(checked(each, stated, name, i));
  }
  if (found.medians.size() != expected) {
    refuse_incomplete(name,
                      "it has " + std::to_string(found.medians.size()) + " of " + std::to_string(expected) + " rows");
  }
  return found;
}

}  // namespace

result_file read_results(const std::string& name) {
  const std::string content = read_file(name);
  if (content[content.find_first_not_of(" \t\r\n")] == '{') return read_json(name, content);
  if (content.starts_with("program,version,")) return read_csv(name, content);
  refuse_foreign(name);
}

}  // namespace perf
