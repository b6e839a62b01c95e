// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// needs: nlohmann_json
// Writes results as CSV and JSON.
#include "results.hpp"

#include "machine.hpp"
#include "text.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace perf {

namespace {

using nlohmann::ordered_json;

/// Name and value of consecutive columns.
using columns = std::vector<std::pair<std::string, std::string>>;

std::string hosts_of(const std::vector<rank_facts>& facts) {
  std::vector<std::string> seen;
  std::string all;
  for (const rank_facts& each : facts) {
    const std::string host = each.host.data();
    if (std::find(seen.begin(), seen.end(), host) != seen.end()) continue;
    seen.push_back(host);
    all += (all.empty() ? "" : " ") + host;
  }
  return all;
}

/// Times of one row in microseconds.
struct summary {
  explicit summary(const figures& of) : seconds(of.seconds) {
    for (const double each : seconds) mean += 1e6 * each / static_cast<double>(seconds.size());
    least = at(0);
    median = at(50);
    most = at(100);
  }
  double at(double percent) const { return 1e6 * percentile(seconds, percent / 100); }

  const std::vector<double>& seconds;
  double mean = 0;
  double least = 0;
  double median = 0;
  double most = 0;
};

/// The 99th percentile and those that were asked for, each once.
std::vector<double> percentiles_of(const settings& wanted) {
  std::vector<double> all{99};
  for (const double each : wanted.percentiles) {
    if (std::find(all.begin(), all.end(), each) == all.end()) all.push_back(each);
  }
  return all;
}

std::string quoted_if_needed(const std::string& plain) {
  if (plain.find_first_of(",\"\r\n") == std::string::npos) return plain;
  std::string result = "\"";
  for (const char c : plain) result += c == '"' ? "\"\"" : std::string(1, c);
  return result + '"';
}

template <class Part>
std::string csv_line(const columns& of, Part part) {
  std::string line;
  for (const auto& each : of) line += (line.empty() ? "" : ",") + quoted_if_needed(part(each));
  return line + '\n';
}

columns run_columns(const measurement& all) {
  const run_description& run = all.run;
  return {{"program", "hocket-perf"},
          {"version", run.version},
          {"date_utc", run.date_utc},
          {"hosts", run.hosts},
          {"processor", run.processor},
          {"cores", std::to_string(run.cores)},
          {"kernel", run.kernel},
          {"ranks", std::to_string(run.ranks)},
          {"transport", run.transport},
          {"memory", run.memory},
          {"caches", run.caches},
          {"algorithm", run.algorithm},
          {"pinned", run.pinned ? "true" : "false"},
          {"shared_memory", run.shared_memory ? "true" : "false"},
          {"average", to_string(all.wanted.average)},
          {"warmup_iterations", std::to_string(all.wanted.warmups)},
          {"other_cores_in_use", all.load ? text("%.2f", all.load->other_cores) : ""},
          {"stolen_cores", all.load ? text("%.2f", all.load->stolen_cores) : ""}};
}

columns row_columns(const measurement& all, const row& line, const figures& of, const char* placed) {
  const summary times(of);
  columns result{{"collective", to_string(line.what)},
                 {"distribution", distribution_name(line, all.wanted)},
                 {"type", type_name(line)},
                 {"redop", operation_name(line)},
                 {"root", std::to_string(line.root)},
                 {"size_bytes", std::to_string(line.bytes)},
                 {"count_elements", std::to_string(line.count)},
                 {"placement", placed},
                 {"iterations", std::to_string(of.seconds.size())},
                 {"time_us", text("%.4f", times.median)},
                 {"mean_us", text("%.4f", times.mean)},
                 {"min_us", text("%.4f", times.least)},
                 {"max_us", text("%.4f", times.most)}};
  for (const double each : percentiles_of(all.wanted)) {
    result.emplace_back(percentile_name(each) + "_us", text("%.4f", times.at(each)));
  }
  result.emplace_back("algbw_gb_per_s", text("%.6g", line.algorithm_bandwidth(of)));
  result.emplace_back("busbw_gb_per_s", text("%.6g", line.bus_bandwidth(of)));
  result.emplace_back("wrong_elements", of.wrong ? std::to_string(*of.wrong) : "");
  return result;
}

/// Rounds to what the measurement can tell, so that the file has no long fractions.
double rounded_time(double us) { return std::strtod(text("%.4f", us).c_str(), nullptr); }
double rounded(double value) { return std::strtod(text("%.6g", value).c_str(), nullptr); }

ordered_json placement_json(const measurement& all, const row& line, const std::optional<figures>& of) {
  if (!of) return nullptr;
  const summary times(*of);
  ordered_json result{{"time_us", rounded_time(times.median)},
                      {"mean_us", rounded_time(times.mean)},
                      {"min_us", rounded_time(times.least)},
                      {"max_us", rounded_time(times.most)}};
  for (const double each : percentiles_of(all.wanted)) {
    result[percentile_name(each) + "_us"] = rounded_time(times.at(each));
  }
  result["algbw_gb_per_s"] = rounded(line.algorithm_bandwidth(*of));
  result["busbw_gb_per_s"] = rounded(line.bus_bandwidth(*of));
  result["wrong_elements"] = of->wrong ? ordered_json(*of->wrong) : ordered_json();
  ordered_json& iterations = result["iterations_us"] = ordered_json::array();
  for (const double each : of->seconds) iterations.push_back(rounded_time(1e6 * each));
  return result;
}

ordered_json row_json(const measurement& all, const row& line) {
  ordered_json result{{"collective", to_string(line.what)},
                      {"distribution", distribution_name(line, all.wanted)},
                      {"type", type_name(line)},
                      {"redop", operation_name(line)},
                      {"root", line.root},
                      {"size_bytes", line.bytes},
                      {"count_elements", line.count}};
  if (!line.lengths.empty()) result["block_elements"] = line.lengths;
  result["out_of_place"] = placement_json(all, line, line.out_of_place);
  result["in_place"] = placement_json(all, line, line.in_place);
  return result;
}

ordered_json ranks_json(const std::vector<rank_facts>& facts) {
  ordered_json all = ordered_json::array();
  for (std::size_t rank = 0; rank < facts.size(); ++rank) {
    const rank_facts& at = facts[rank];
    all.push_back({{"rank", rank}, {"pid", at.process}, {"core", at.core}, {"host", at.host.data()}});
  }
  return all;
}

ordered_json run_json(const measurement& all) {
  const run_description& run = all.run;
  return {{"program", "hocket-perf"},
          {"version", run.version},
          {"date_utc", run.date_utc},
          {"hosts", run.hosts},
          {"processor", run.processor},
          {"cores", run.cores},
          {"kernel", run.kernel},
          {"rank_count", run.ranks},
          {"ranks", ranks_json(all.facts)},
          {"more_ranks_than_cores", all.more_ranks_than_cores},
          {"transport", run.transport},
          {"memory", run.memory},
          {"caches", run.caches},
          {"algorithm", run.algorithm},
          {"pinned", run.pinned},
          {"shared_memory", run.shared_memory},
          {"average", to_string(all.wanted.average)},
          {"iterations", all.wanted.iterations},
          {"warmup_iterations", all.wanted.warmups},
          {"other_cores_in_use", all.load ? ordered_json(rounded(all.load->other_cores)) : ordered_json()},
          {"stolen_cores", all.load ? ordered_json(rounded(all.load->stolen_cores)) : ordered_json()},
          {"checked", all.wanted.check},
          {"wrong_elements", count_wrong(all.rows)},
          {"average_busbw_gb_per_s", rounded(average_bandwidth(all.rows))}};
}

std::string dump(const ordered_json& value) {
  return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

run_description describe_run(const settings& wanted, const std::vector<rank_facts>& facts,
                             const std::string& transport) {
  run_description run;
  run.version = version();
  run.date_utc = now_utc();
  run.hosts = hosts_of(facts);
  run.processor = processor_name();
  run.cores = facts.empty() ? 0 : facts[0].usable_cores;
  run.kernel = kernel_name();
  run.ranks = static_cast<int>(facts.size());
  run.transport = transport;
  run.memory = to_string(wanted.buffers);
  run.caches = wanted.cold ? "cold" : "warm";
  run.algorithm = wanted.algorithm;
  run.pinned = wanted.pin;
  run.shared_memory = wanted.shared_memory;
  return run;
}

const char* type_name(const row& line) { return line.what == collective::barrier ? "none" : to_string(line.type); }
const char* operation_name(const row& line) { return reduces(line.what) ? to_string(line.op) : "none"; }
const char* distribution_name(const row& line, const settings& wanted) {
  return takes_counts(line.what) ? to_string(wanted.blocks) : "none";
}
std::string percentile_name(double percent) { return text("p%g", percent); }

std::uint64_t count_wrong(const std::vector<row>& rows) {
  std::uint64_t wrong = 0;
  for (const row& line : rows) {
    for (const auto* each : {&line.out_of_place, &line.in_place}) wrong += *each ? (*each)->wrong.value_or(0) : 0;
  }
  return wrong;
}

double average_bandwidth(const std::vector<row>& rows) {
  double sum = 0;
  int cells = 0;
  for (const row& line : rows) {
    for (const auto* each : {&line.out_of_place, &line.in_place}) {
      if (!*each) continue;
      sum += line.bus_bandwidth(**each);
      ++cells;
    }
  }
  return cells == 0 ? 0 : sum / cells;
}

std::string as_csv(const measurement& all) {
  std::vector<columns> lines;
  for (const row& line : all.rows) {
    if (line.out_of_place) lines.push_back(row_columns(all, line, *line.out_of_place, "out_of_place"));
    if (line.in_place) lines.push_back(row_columns(all, line, *line.in_place, "in_place"));
  }
  std::string result;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    columns whole = run_columns(all);
    whole.insert(whole.end(), lines[i].begin(), lines[i].end());
    whole.emplace_back("row", std::to_string(i + 1));
    whole.emplace_back("rows", std::to_string(lines.size()));
    if (i == 0) result += csv_line(whole, [](const auto& each) { return each.first; });
    result += csv_line(whole, [](const auto& each) { return each.second; });
  }
  return result;
}

std::string as_json(const measurement& all) {
  const ordered_json run = run_json(all);
  std::string result = "{\n";
  for (const auto& [name, value] : run.items()) result += "  \"" + name + "\": " + dump(value) + ",\n";
  result += "  \"results\": [";
  for (std::size_t i = 0; i < all.rows.size(); ++i) {
    result += (i == 0 ? "\n    " : ",\n    ") + dump(row_json(all, all.rows[i]));
  }
  return result + "\n  ]\n}\n";
}

}  // namespace perf
