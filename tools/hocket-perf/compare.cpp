// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compare.hpp"

#include "text.hpp"

#include <algorithm>
#include <cstdio>

namespace perf {

namespace {

const median* find(const std::vector<median>& all, const cell& of) {
  const auto found = std::find_if(all.begin(), all.end(), [&](const median& each) { return each.of == of; });
  return found == all.end() ? nullptr : &*found;
}

std::string description(const char* which, const result_file& of) {
  return std::string("# ") + which + ": " + of.name + ": hocket-perf " + of.run.version + ", " + of.run.date_utc +
         ", " + std::to_string(of.run.ranks) + " ranks; " + of.run.transport + "\n";
}

/// The call with what distinguishes it, such as "all_gather_v (linear)".
std::string call_name(const cell& of) {
  return of.distribution == "none" ? of.collective : of.collective + " (" + of.distribution + ")";
}

std::string line_of(const median& older, const median& newer, const char* mark) {
  const cell& of = older.of;
  return text("  %12zu  %-25s  %11s  %5s  %4d  %-12s  %12.2f  %12.2f  %6.3f", of.bytes, call_name(of).c_str(),
              of.type.c_str(), of.redop.c_str(), of.root, of.placement.c_str(), older.us, newer.us,
              newer.us / older.us) +
         (*mark == '\0' ? "" : std::string("  ") + mark) + "\n";
}

std::string header() {
  return text("# %12s  %-25s  %11s  %5s  %4s  %-12s  %12s  %12s  %6s\n", "size", "call", "type", "redop", "root",
              "placement", "old median", "new median", "ratio") +
         text("# %12s  %-25s  %11s  %5s  %4s  %-12s  %12s  %12s  %6s\n", "(B)", "", "", "", "", "", "(us)", "(us)",
              "new/old");
}

void warn_if_different(std::vector<std::string>& warnings, const char* what, const std::string& older,
                       const std::string& newer, const char* consequence) {
  if (older != newer) warnings.push_back(std::string(what) + ": '" + older + "' and '" + newer + "': " + consequence);
}

std::vector<std::string> warnings_of(const result_file& older, const result_file& newer) {
  std::vector<std::string> all;
  const run_description& a = older.run;
  const run_description& b = newer.run;
  const char* const other_machine = "times of different machines say nothing about a change of the program";
  const char* const other_way = "the times were not measured in the same way";
  warn_if_different(all, "different hosts", a.hosts, b.hosts, other_machine);
  warn_if_different(all, "different processors", a.processor, b.processor, other_machine);
  warn_if_different(all, "different numbers of cores", std::to_string(a.cores), std::to_string(b.cores), other_machine);
  warn_if_different(all, "different numbers of ranks", std::to_string(a.ranks), std::to_string(b.ranks),
                    "the calls do different work");
  warn_if_different(all, "different transports", a.transport, b.transport, other_way);
  warn_if_different(all, "different kinds of memory", a.memory, b.memory, other_way);
  warn_if_different(all, "different caches", a.caches, b.caches, other_way);
  warn_if_different(all, "different algorithms", a.algorithm, b.algorithm, other_way);
  warn_if_different(all, "pinned", a.pinned ? "yes" : "no", b.pinned ? "yes" : "no", other_way);
  warn_if_different(all, "shared memory", a.shared_memory ? "yes" : "no", b.shared_memory ? "yes" : "no", other_way);
  for (const result_file* each : {&older, &newer}) {
    const bool wrong =
        std::any_of(each->medians.begin(), each->medians.end(), [](const median& of) { return of.wrong != 0; });
    if (wrong) all.push_back("'" + each->name + "' has wrong results");
  }
  return all;
}

std::size_t count_missing(const std::vector<median>& from, const std::vector<median>& in) {
  return static_cast<std::size_t>(
      std::count_if(from.begin(), from.end(), [&](const median& each) { return find(in, each.of) == nullptr; }));
}

}  // namespace

comparison compare(const result_file& older, const result_file& newer, double tolerance) {
  comparison result;
  result.warnings = warnings_of(older, newer);
  result.table = description("old", older) + description("new", newer);
  result.table += "# time: median over iterations\n" + header();
  std::size_t both = 0;
  std::size_t faster = 0;
  for (const median& before : older.medians) {
    const median* const after = find(newer.medians, before.of);
    if (after == nullptr) continue;
    ++both;
    const double ratio = after->us / before.us;
    const bool is_slower = ratio > 1 + tolerance;
    const bool is_faster = ratio < 1 - tolerance;
    result.slower += is_slower ? 1U : 0U;
    faster += is_faster ? 1U : 0U;
    result.table += line_of(before, *after, is_slower ? "SLOWER" : is_faster ? "faster" : "");
  }
  if (both == 0) throw file_error("'" + older.name + "' and '" + newer.name + "' have no call and size in common");
  result.table += text(
      "# %zu compared: %zu slower and %zu faster by more than %g %%; only in the old file: %zu, only in the "
      "new file: %zu\n",
      both, result.slower, faster, 100 * tolerance, count_missing(older.medians, newer.medians),
      count_missing(newer.medians, older.medians));
  return result;
}

int compare_files(const std::string& older, const std::string& newer, double tolerance) {
  const comparison found = compare(read_results(older), read_results(newer), tolerance);
  for (const std::string& each : found.warnings) std::fprintf(stderr, "hocket-perf: warning: %s\n", each.c_str());
  std::fputs(found.table.c_str(), stdout);
  return found.slower == 0 ? 0 : 1;
}

}  // namespace perf
