// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "report.hpp"

#include "distribution.hpp"

#include <hocket/core/config.hpp>

#include <cinttypes>
#include <cstdarg>
#include <cstdio>
#include <stdexcept>

namespace perf {

namespace {

__attribute__((format(printf, 1, 2))) std::string text(const char* format, ...) {
  char line[512];
  std::va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  return line;
}

const char* type_name(const row& line) { return line.what == collective::barrier ? "none" : to_string(line.type); }
const char* operation_name(const row& line) { return reduces(line.what) ? to_string(line.op) : "none"; }

std::string wrong_text(const figures& of) { return of.wrong ? std::to_string(*of.wrong) : "N/A"; }

/// Returns the five columns of one placement.
std::string columns(const row& line, const std::optional<figures>& of) {
  if (!of) return text(" %9s %9s %8s %8s %7s", "N/A", "N/A", "N/A", "N/A", "N/A");
  return text(" %9.2f %9.2f %8.3f %8.3f %7s", 1e6 * percentile(of->seconds, 0.5), 1e6 * percentile(of->seconds, 0.99),
              line.algorithm_bandwidth(*of), line.bus_bandwidth(*of), wrong_text(*of).c_str());
}

std::string escaped(const std::string& plain) {
  std::string result = "\"";
  for (const char c : plain) {
    if (c == '"' || c == '\\') result += '\\';
    result += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return result + '"';
}

std::string placement_json(const row& line, const std::optional<figures>& of) {
  if (!of) return "null";
  std::string all =
      text("{\"time_us\": %.4f, \"p99_us\": %.4f, \"algbw\": %.6g, \"busbw\": %.6g, \"wrong\": %s, ",
           1e6 * percentile(of->seconds, 0.5), 1e6 * percentile(of->seconds, 0.99), line.algorithm_bandwidth(*of),
           line.bus_bandwidth(*of), of->wrong ? std::to_string(*of->wrong).c_str() : "null");
  all += "\"iterations_us\": [";
  for (std::size_t i = 0; i < of->seconds.size(); ++i) all += text(i == 0 ? "%.4f" : ", %.4f", 1e6 * of->seconds[i]);
  return all + "]}";
}

std::string memory_text(const settings& wanted) {
  switch (wanted.buffers) {
    case memory::host: break;
    case memory::pinned: return "in pinned host memory; each call is followed by a wait for its stream";
    case memory::device: return "in device memory; each call is followed by a wait for its stream";
    case memory::managed: return "in managed memory; each call is followed by a wait for its stream";
  }
  return wanted.shared_memory ? "from hocket::allocate, which other ranks can read" : "in each rank's private memory";
}

std::string cache_text(const settings& wanted) {
  if (!wanted.cold) return "warm: every iteration uses the same buffers, which stay in the caches as far as they fit";
#if defined(__SSE2__)
  return "cold: before each iteration every rank flushes its buffers from all caches and enters a barrier";
#else
  return "cold: before each iteration every rank rewrites its buffers and enters a barrier";
#endif
}

}  // namespace

void report::begin() const {
  if (!prints()) return;
  std::printf("# hocket-perf %d.%d.%d\n", HOCKET_VERSION_MAJOR, HOCKET_VERSION_MINOR, HOCKET_VERSION_PATCH);
  std::printf("# %d ranks; %s\n", team_.size(), team_.transport().c_str());
  for (int rank = 0; rank < team_.size(); ++rank) {
    const rank_facts& at = team_.facts()[static_cast<std::size_t>(rank)];
    std::printf("#   rank %3d  pid %7" PRId64 " on %s, core %d%s\n", rank, at.process, at.host.data(), at.core,
                wanted_.pin ? " (pinned)" : " at the start, free to move");
  }
  if (team_.outnumbers_cores()) {
    std::printf("# MORE RANKS THAN CORES: ranks share cores, so times say little about the links\n");
  }
  std::printf("# minbytes %zu maxbytes %zu %s %g, %d iterations after %d for warm-up, check %s, algorithm %s\n",
              wanted_.least_bytes, wanted_.most_bytes, wanted_.step_bytes != 0 ? "stepbytes" : "stepfactor",
              wanted_.step_bytes != 0 ? static_cast<double>(wanted_.step_bytes) : wanted_.step_factor,
              wanted_.iterations, wanted_.warmups, wanted_.check ? "on" : "OFF", wanted_.algorithm.c_str());
  std::printf("# buffers %s\n", memory_text(wanted_).c_str());
  std::printf("# caches %s\n", cache_text(wanted_).c_str());
  std::printf("# every rank times its own calls; the time of an iteration is %s\n", to_string(wanted_.average));
  std::printf("# time: median over iterations, p99: their 99th percentile; 1 GB is 1e9 bytes\n");
}

void report::begin(collective what) const {
  if (!prints()) return;
  std::printf("#\n# %s\n", to_string(what));
  if (takes_counts(what)) std::printf("# distribution %s\n", describe(wanted_.blocks, team_.size()).c_str());
  const std::string names = text(" %9s %9s %8s %8s %7s", "time", "p99", "algbw", "busbw", "#wrong");
  const std::string units = text(" %9s %9s %8s %8s %7s", "(us)", "(us)", "(GB/s)", "(GB/s)", "");
  std::printf("# %49s %30s %45s\n", "", "out-of-place", "in-place");
  std::printf("# %10s %12s %12s %6s %5s %s%s\n", "size", "count", "type", "redop", "root", names.c_str(),
              names.c_str());
  std::printf("# %10s %12s %12s %6s %5s %s%s\n", "(B)", "(elements)", "", "", "", units.c_str(),
              units.substr(0, units.find_last_not_of(' ') + 1).c_str());
  std::fflush(stdout);
}

void report::explain(const std::string& why) const {
  if (!prints()) return;
  std::string shown = "#   ";
  for (const char c : why.substr(0, why.find_last_not_of('\n') + 1)) shown += c == '\n' ? "\n#   " : std::string(1, c);
  std::printf("%s\n", shown.c_str());
}

void report::add(row line) {
  if (prints()) {
    std::printf("  %10zu %12zu %12s %6s %5d %s%s\n", line.bytes, line.count, type_name(line), operation_name(line),
                line.root, columns(line, line.out_of_place).c_str(), columns(line, line.in_place).c_str());
    std::fflush(stdout);
  }
  rows_.push_back(std::move(line));
}

std::uint64_t report::count_wrong() const {
  std::uint64_t wrong = 0;
  for (const row& line : rows_) {
    for (const auto* each : {&line.out_of_place, &line.in_place}) wrong += *each ? (*each)->wrong.value_or(0) : 0;
  }
  return wrong;
}

double report::average_bandwidth() const {
  double sum = 0;
  int cells = 0;
  for (const row& line : rows_) {
    for (const auto* each : {&line.out_of_place, &line.in_place}) {
      if (!*each) continue;
      sum += line.bus_bandwidth(**each);
      ++cells;
    }
  }
  return cells == 0 ? 0 : sum / cells;
}

bool report::end() const {
  const std::uint64_t wrong = count_wrong();
  if (prints()) {
    if (wanted_.check) {
      std::printf("# Out of bounds values : %" PRIu64 " %s\n", wrong, wrong == 0 ? "OK" : "FAILED");
    } else {
      std::printf("# Out of bounds values : not checked\n");
    }
    std::printf("# Avg bus bandwidth    : %.6g\n", average_bandwidth());
    std::fflush(stdout);
    if (!wanted_.json.empty()) write_json();
  }
  return wrong == 0;
}

std::string report::as_json() const {
  std::string all = text("{\n  \"program\": \"hocket-perf\", \"version\": \"%d.%d.%d\",\n", HOCKET_VERSION_MAJOR,
                         HOCKET_VERSION_MINOR, HOCKET_VERSION_PATCH);
  all += "  \"transport\": " + escaped(team_.transport()) + ",\n";
  all += text(
      "  \"more_ranks_than_cores\": %s, \"pinned\": %s, \"shared_memory\": %s, \"memory\": \"%s\", "
      "\"caches\": \"%s\",\n",
      team_.outnumbers_cores() ? "true" : "false", wanted_.pin ? "true" : "false",
      wanted_.shared_memory ? "true" : "false", to_string(wanted_.buffers), wanted_.cold ? "cold" : "warm");
  all += text("  \"iterations\": %d, \"warmup_iterations\": %d, ", wanted_.iterations, wanted_.warmups);
  all +=
      "\"algorithm\": " + escaped(wanted_.algorithm) + ", \"average\": " + escaped(to_string(wanted_.average)) + ",\n";
  all += "  \"ranks\": [";
  for (std::size_t rank = 0; rank < team_.facts().size(); ++rank) {
    const rank_facts& at = team_.facts()[rank];
    all += text("%s\n    {\"rank\": %zu, \"pid\": %" PRId64 ", \"core\": %d, \"host\": ", rank == 0 ? "" : ",", rank,
                at.process, at.core);
    all += escaped(at.host.data()) + "}";
  }
  all += "\n  ],\n  \"results\": [";
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const row& line = rows_[i];
    all += text(
        "%s\n    {\"collective\": \"%s\", \"size\": %zu, \"count\": %zu, \"type\": \"%s\", \"redop\": \"%s\", "
        "\"root\": %d,\n",
        i == 0 ? "" : ",", to_string(line.what), line.bytes, line.count, type_name(line), operation_name(line),
        line.root);
    all += "     \"out_of_place\": " + placement_json(line, line.out_of_place) + ",\n";
    all += "     \"in_place\": " + placement_json(line, line.in_place) + "}";
  }
  all += text("\n  ],\n  \"checked\": %s, \"wrong\": %" PRIu64 ", \"average_busbw\": %.6g\n}\n",
              wanted_.check ? "true" : "false", count_wrong(), average_bandwidth());
  return all;
}

void report::write_json() const {
  const std::string all = as_json();
  std::FILE* const file = std::fopen(wanted_.json.c_str(), "w");
  const bool written = file != nullptr && std::fwrite(all.data(), 1, all.size(), file) == all.size();
  if (file == nullptr || std::fclose(file) != 0 || !written) {
    throw std::runtime_error("--json: cannot write '" + wanted_.json + "'");
  }
}

}  // namespace perf
