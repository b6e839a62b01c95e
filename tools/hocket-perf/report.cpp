// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "report.hpp"

#include "distribution.hpp"
#include "output_file.hpp"
#include "tables.hpp"

#include <hocket/core/config.hpp>

#include <cinttypes>
#include <cstdio>

namespace perf {

namespace {

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

/// Returns whether `line` continues the table of OSU Micro-Benchmarks in which `before` is.
bool same_osu_table(const row& before, const row& line) {
  return before.what == line.what && before.type == line.type && before.op == line.op &&
         before.out_of_place.has_value() == line.out_of_place.has_value();
}

}  // namespace

report::report(const team& who, const settings& wanted) : team_(who), wanted_(wanted) {
  all_.run = describe_run(wanted, who.facts(), who.transport());
  all_.wanted = wanted;
  all_.facts = who.facts();
  all_.more_ranks_than_cores = who.outnumbers_cores();
}

void report::begin() const {
  if (!prints() || !prints_table(wanted_)) return;
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
  if (wanted_.format == output_format::osu) {
    std::printf("# latency: mean over iterations and ranks; Min, Max: means of the fastest and the slowest rank\n");
  } else {
    std::printf("# every rank times its own calls; the time of an iteration is %s\n", to_string(wanted_.average));
    std::printf("# shown is the median over iterations; 1 GB is 1e9 bytes\n");
  }
}

void report::begin(collective what) const {
  if (!prints() || !prints_table(wanted_)) return;
  std::printf("#\n# %s\n", to_string(what));
  if (takes_counts(what)) std::printf("# distribution %s\n", describe(wanted_.blocks, team_.size()).c_str());
  if (wanted_.format == output_format::nccl_tests) {
    const std::string once = one_placement_text(what, wanted_);
    if (!once.empty()) std::printf("# %s\n", once.c_str());
    std::fputs(nccl_header(wanted_).c_str(), stdout);
  }
  std::fflush(stdout);
}

void report::explain(const std::string& why) const {
  if (!prints()) return;
  std::string shown = "#   ";
  for (const char c : why.substr(0, why.find_last_not_of('\n') + 1)) shown += c == '\n' ? "\n#   " : std::string(1, c);
  std::fprintf(prints_table(wanted_) ? stdout : stderr, "%s\n", shown.c_str());
}

void report::add(row line) {
  if (prints() && prints_table(wanted_)) print_row(line);
  all_.rows.push_back(std::move(line));
}

void report::print_row(const row& line) const {
  if (wanted_.format == output_format::nccl_tests) {
    std::fputs(nccl_row(line, wanted_).c_str(), stdout);
  } else {
    const bool continues = !all_.rows.empty() && same_osu_table(all_.rows.back(), line);
    if (!continues) std::fputs(osu_header(line, wanted_).c_str(), stdout);
    std::fputs(osu_row(line, wanted_).c_str(), stdout);
  }
  std::fflush(stdout);
}

bool report::end(const std::optional<foreign_load>& load) {
  all_.load = load;
  if (prints()) {
    print_load();
    if (wanted_.format == output_format::csv) {
      std::fputs(as_csv(all_).c_str(), stdout);
    } else if (wanted_.format == output_format::json) {
      std::fputs(as_json(all_).c_str(), stdout);
    } else {
      print_summary();
    }
    std::fflush(stdout);
    const std::uint64_t wrong = count_wrong(all_.rows);
    if (wrong != 0 && !prints_table(wanted_)) {
      std::fprintf(stderr, "hocket-perf: %" PRIu64 " elements of the results are wrong\n", wrong);
    }
    if (!wanted_.json.empty()) write_file(wanted_.json, as_json(all_), "--json");
  }
  return count_wrong(all_.rows) == 0;
}

/// Programs that read files for programs expect nothing else on stdout.
void report::print_load() const {
  if (!all_.load || !all_.load->is_busy()) return;
  const std::string warning = busy_text(*all_.load);
  if (prints_table(wanted_)) {
    std::printf("# %s\n", warning.c_str());
  } else {
    std::fprintf(stderr, "hocket-perf: warning: %s\n", warning.c_str());
  }
}

void report::print_summary() const {
  const std::uint64_t wrong = count_wrong(all_.rows);
  if (wanted_.check) {
    std::printf("# Out of bounds values : %" PRIu64 " %s\n", wrong, wrong == 0 ? "OK" : "FAILED");
  } else {
    std::printf("# Out of bounds values : not checked\n");
  }
  if (wanted_.format == output_format::nccl_tests) {
    std::printf("# Avg bus bandwidth    : %.6g\n#\n", average_bandwidth(all_.rows));
  }
}

}  // namespace perf
