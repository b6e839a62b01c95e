// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Measures checkpoints beside `dd` with direct access to the same folder: saving and loading, one after the other in each
// round, with the page cache dropped where that is permitted; how much longer steps of computation take while a thread
// writes a checkpoint, beside a copy of the same bytes in memory; and the resident memory after 3 and after 100 saves.
//
//   checkpoint [FOLDER] [--mib N] [--check]
//
// FOLDER: where files of up to 10 times the state are written and removed again (default: a new folder in the current one).
// --mib: size of the state (default: 1024). With --check the exit status is nonzero if a median of saving or loading is
// below 85 % of dd's, if an asynchronous save costs more than 1.5 copies, or if memory grows.

#include <hocket/checkpoint/store.hpp>
#include <hocket/group/local.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include <unistd.h>

namespace {

using hocket::checkpoint::store;

constexpr int rounds = 5;

double seconds_of(const std::function<void()>& act) {
  const auto begin = std::chrono::steady_clock::now();
  act();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Returns whether it was permitted.
bool drop_page_cache() {
  ::sync();
  std::ofstream control("/proc/sys/vm/drop_caches");
  control << "3" << std::flush;
  return control.good();
}

bool run(const std::string& command) { return std::system((command + " 2>/dev/null").c_str()) == 0; }

std::uint64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::uint64_t all = 0, resident = 0;
  file >> all >> resident;
  return resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

/// A state of one array, with bytes that do not repeat.
struct sample {
  std::vector<std::uint64_t> values;
  hocket::checkpoint::state now;

  explicit sample(std::size_t bytes) : values(bytes / sizeof(std::uint64_t)) {
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = i * 0x9e3779b97f4a7c15U;
    now.add("values", values);
  }
};

struct times {
  std::vector<double> dd_write, save, dd_read, load;
};

times measure(const hocket::local::communicator& comm, const std::string& folder, int mib) {
  sample what(static_cast<std::size_t>(mib) << 20);
  store saved(folder + "/saved", comm, {.keep = {.last = 2}});
  const std::string file = folder + "/dd", blocks = " bs=4M count=" + std::to_string(std::max(1, mib / 4));
  saved.save(0, what.now);
  times all;
  for (int i = 0; i < rounds; ++i) {
    std::filesystem::remove(file);
    const bool drops = drop_page_cache();
    if (i == 0 && !drops) std::printf("the page cache is not dropped: that needs root\n");
    all.dd_write.push_back(
        seconds_of([&] { run("dd if=/dev/zero of='" + file + "'" + blocks + " oflag=direct conv=fsync"); }));
    drop_page_cache();
    all.save.push_back(seconds_of([&] { saved.save(static_cast<std::uint64_t>(i) + 1, what.now); }));
    drop_page_cache();
    all.dd_read.push_back(seconds_of([&] { run("dd if='" + file + "' of=/dev/null bs=4M iflag=direct"); }));
    drop_page_cache();
    all.load.push_back(seconds_of([&] { saved.load_newest(what.now); }));
  }
  return all;
}

/// Computes for some ms, in the cache.
double compute(int loops) {
  static double values[512];
  for (int loop = 0; loop < loops; ++loop) {
    for (double& each : values) each = each * 0.999 + 1;
  }
  return values[7];
}

struct delay {
  double copy;   ///< seconds of a copy of the state
  double steps;  ///< by which the steps during a save took longer in sum
};

delay measure_delay(const hocket::local::communicator& comm, const std::string& folder, int mib) {
  constexpr int loops = 20'000;
  sample what(static_cast<std::size_t>(mib) << 20);
  std::vector<std::uint64_t> other(what.values.size(), 1);
  store saved(folder + "/background", comm, {.keep = {.last = 100}});  // nothing is removed while steps are measured
  saved.save_async(0, what.now);                                       // allocates the snapshot
  saved.wait();
  std::vector<double> copies, delays;
  for (int i = 0; i < rounds; ++i) {
    std::vector<double> alone;  // before and after, because the speed of a virtual core changes
    const auto measure_alone = [&] {
      for (int step = 0; step < 100; ++step) alone.push_back(seconds_of([] { compute(loops); }));
    };
    measure_alone();
    copies.push_back(seconds_of([&] { std::memcpy(other.data(), what.values.data(), other.size() * 8); }));
    double during = 0;
    int steps = 0;
    during += seconds_of([&] { saved.save_async(static_cast<std::uint64_t>(i) + 1, what.now); });
    for (; !saved.is_done(); ++steps) during += seconds_of([] { compute(loops); });
    saved.wait();
    measure_alone();
    delays.push_back(during - steps * median(alone));
  }
  return {median(copies), median(delays)};
}

/// Returns the resident memory after 3 and after 100 saves.
std::pair<std::uint64_t, std::uint64_t> measure_memory(const hocket::local::communicator& comm,
                                                       const std::string& folder) {
  sample what(std::size_t{8} << 20);
  store saved(folder + "/many", comm, {.keep = {.last = 1}});
  std::uint64_t after_3 = 0;
  for (std::uint64_t i = 0; i < 100; ++i) {
    i % 2 == 0 ? saved.save(i, what.now) : saved.save_async(i, what.now);
    saved.wait();
    if (i == 2) after_3 = resident_bytes();
  }
  return {after_3, resident_bytes()};
}

/// Prints one figure beside another, as throughput, and returns whether it is at least 85 % of it.
bool print_rates(const char* what, int mib, const std::vector<double>& own, const std::vector<double>& dd) {
  const double bytes = static_cast<double>(mib) * 1.048576, share = median(dd) / median(own);
  std::printf("%-12s %8.0f MB/s   dd %8.0f MB/s   %4.0f %%   (medians of %d)\n", what, bytes / median(own),
              bytes / median(dd), 100 * share, rounds);
  return share >= 0.85;
}

bool run_all(const std::string& folder, int mib) {
  bool holds = true;
  hocket::local::run(1, [&](const hocket::local::communicator& comm) {
    const times all = measure(comm, folder, mib);
    holds = print_rates("save", mib, all.save, all.dd_write) && holds;
    holds = print_rates("load", mib, all.load, all.dd_read) && holds;
    const delay found = measure_delay(comm, folder, mib);
    std::printf("save_async   delays the steps during it by %.0f ms, a copy of the state takes %.0f ms: %.2f copies\n",
                1e3 * found.steps, 1e3 * found.copy, found.steps / found.copy);
    holds = found.steps <= 1.5 * found.copy && holds;
    const auto [after_3, after_100] = measure_memory(comm, folder);
    std::printf("memory       %.1f MB resident after 3 saves, %.1f MB after 100\n", static_cast<double>(after_3) / 1e6,
                static_cast<double>(after_100) / 1e6);
    holds = static_cast<double>(after_100) <= 1.01 * static_cast<double>(after_3) && holds;
  });
  return holds;
}

}  // namespace

int main(int count, char** arguments) {
  std::string folder = "checkpoint-benchmark." + std::to_string(::getpid());
  int mib = 1024;
  bool checks = false;
  for (int i = 1; i < count; ++i) {
    const std::string each = arguments[i];
    if (each == "--check") checks = true;
    else if (each == "--mib" && i + 1 < count) mib = std::atoi(arguments[++i]);
    else if (!each.starts_with("--")) folder = each + "/checkpoint-benchmark." + std::to_string(::getpid());
  }
  if (mib < 4) {
    std::fprintf(stderr, "checkpoint: --mib must be a number from 4 on\n");
    return 2;
  }
  std::filesystem::create_directories(folder);
  const bool holds = run_all(folder, mib);
  std::filesystem::remove_all(folder);
  return checks && !holds ? 1 : 0;
}
