// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// needs: ucx nlohmann_json
/// @file
/// hocket-perf measures how fast hocket's collectives are on this machine, and checks their results. Flags, columns and
/// formulas are those of nccl-tests. It also compares two results, and writes costs of links. See `hocket-perf --help`.
#include "compare.hpp"
#include "constants.hpp"
#include "device_side.hpp"
#include "output_file.hpp"
#include "session.hpp"
#include "settings.hpp"

#include <hocket/bootstrap/environment.hpp>
#include <hocket/bootstrap/launch.hpp>
#include <hocket/core/platform/cpu.hpp>
#include <hocket/group/local.hpp>
#include <hocket/ucx.hpp>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <exception>
#include <string>
#include <vector>

namespace {

using perf::settings;

constexpr int wrong_results = 1;
constexpr int bad_usage = 2;

std::chrono::nanoseconds timeout_of(const settings& wanted) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(wanted.timeout));
}

/// Checks that the JSON file can be written, in the process that writes it or starts the ranks.
void check_output(const settings& wanted) {
  if (wanted.json.empty() || perf::can_write(wanted.json)) return;
  throw perf::usage_error("--json: cannot write '" + wanted.json + "': " + std::strerror(errno));
}

int default_ranks() { return std::max(2, hocket::platform::usable_cores()); }

int run_threads(const settings& wanted) {
  const int ranks = wanted.threads > 0 ? wanted.threads : default_ranks();
  perf::check(wanted, ranks);
  std::atomic<bool> right{true};
  hocket::local::run(ranks, [&](hocket::local::communicator comm) {
    comm.set_timeout(timeout_of(wanted));
    if (!perf::measure(&comm, wanted)) right = false;
  });
  return right ? 0 : wrong_results;
}

/// Runs this process as one of the ranks.
int run_rank(const settings& wanted) {
  const hocket::bootstrap::world_description world = hocket::bootstrap::read_environment();
  try {
    if (wanted.threads > 0) {
      throw perf::usage_error("--threads: a launcher started this process, so ranks are processes: omit the option");
    }
    if (wanted.processes > 0 && wanted.processes != world.ranks) {
      throw perf::usage_error("--processes " + std::to_string(wanted.processes) + ": a launcher started " +
                              std::to_string(world.ranks) + " processes: omit the option");
    }
    perf::device_side::require(wanted.buffers);
    perf::check(wanted, world.ranks);
    if (world.rank == 0) check_output(wanted);
    if (!wanted.constants.empty()) perf::measure_costs_at_start_up();
    hocket::ucx::communicator comm = hocket::ucx::connect(world);
    comm.set_timeout(timeout_of(wanted));
    if (!wanted.constants.empty()) {
      perf::write_costs(comm, wanted.constants);
      return 0;
    }
    return perf::measure(&comm, wanted) ? 0 : wrong_results;
  } catch (const perf::usage_error& problem) {
    if (world.rank == 0) std::fprintf(stderr, "hocket-perf: %s\n", problem.what());
    return bad_usage;
  }
}

int spawn_ranks(int ranks, int count, char** arguments) {
  std::vector<std::string> command(arguments, arguments + count);
  command[0] = "/proc/self/exe";
  hocket::launch::spawn_options how;
  how.report = false;  // the ranks print their errors themselves
  const int status = hocket::launch::spawn(ranks, command, how);
  if (status > bad_usage) std::fprintf(stderr, "hocket-perf: a rank exited with status %d\n", status);
  return status;
}

int run(const settings& wanted, int count, char** arguments) {
  if (hocket::launch::is_rank()) return run_rank(wanted);
  perf::device_side::require(wanted.buffers);
  const int processes = wanted.processes == 0 && !wanted.constants.empty() ? default_ranks() : wanted.processes;
  if (processes > 0) perf::check(wanted, processes);
  check_output(wanted);
  if (processes > 0) return spawn_ranks(processes, count, arguments);
  return run_threads(wanted);
}

}  // namespace

int main(int count, char** arguments) {
  settings wanted;
  int status = 0;
  if (!perf::read_command_line(count, arguments, wanted, status)) return status;
  try {
    if (!wanted.compared.empty()) return perf::compare_files(wanted.compared[0], wanted.compared[1], wanted.tolerance);
    return run(wanted, count, arguments);
  } catch (const perf::file_error& problem) {
    std::fprintf(stderr, "hocket-perf: --compare: %s\n", problem.what());
    return bad_usage;
  } catch (const perf::usage_error& problem) {
    std::fprintf(stderr, "hocket-perf: %s\n", problem.what());
    return bad_usage;
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "hocket-perf: %s\n", problem.what());
    return 1;
  }
}
