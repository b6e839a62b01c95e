// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// One cache and several processes: each file is downloaded once, kills do no harm, and the bound holds.
#include "data/cache/processes.hpp"
#include "data/cache/local_source.hpp"
#include "support/catch.hpp"
#include "support/system_call_filter.hpp"

#include <hocket/core/error.hpp>
#include <hocket/data/cache/file_cache.hpp>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <sys/resource.h>
#include <sys/syscall.h>

namespace {

using namespace std::chrono_literals;
using namespace cache_test;
using hocket::data::cached_name;
using hocket::data::file_cache;
using hocket::data::opened_file;
namespace fs = std::filesystem;

constexpr std::size_t file_bytes = 20'000, piece_of_file = 1000;

/// Opens files in this order and compares their bytes. Returns what is wrong.
std::string open_all(file_cache& cache, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    const opened_file opened = cache.open(name);
    if (text_of(opened) != content(name, file_bytes)) return "the bytes of '" + name + "' are wrong";
  }
  return "";
}

/// 20, or the value of HOCKET_SOAK_MOMENTS if it is more.
unsigned kills() {
  const char* const value = std::getenv("HOCKET_SOAK_MOMENTS");
  return value == nullptr ? 20 : std::max(20U, static_cast<unsigned>(std::strtoul(value, nullptr, 10)));
}

/// Returns the names in a folder of files that are neither whole nor the lock.
std::vector<std::string> leftovers(const std::string& folder) {
  std::vector<std::string> result;
  for (const auto& each : fs::directory_iterator(folder)) {
    const std::string name = each.path().filename().string();
    if (name != "lock" && !hocket::data::is_cached_name(name)) result.push_back(name);
  }
  return result;
}

/// Returns the bytes of all files in the folder, while no process can change it.
std::uint64_t bytes_on_disk(const file_cache& cache) {
  hocket::data::detail::cache_folder::guard locked;
  if (cache.files().lock(hocket::deadline::after(60s), locked)) return UINT64_MAX;
  std::uint64_t result = 0;
  for (const auto& each : fs::directory_iterator(cache.folder())) {
    const std::string name = each.path().filename().string();
    if (name != "lock" && !name.ends_with(".json") && name != "record.new") result += each.file_size();
  }
  return result;
}

}  // namespace

TEST_CASE("processes that open the same files at the same time download each once") {
  for (const int count : {1, 2, 3, 5}) {
    INFO(count << " processes");
    storage files(6, file_bytes);
    files.source.delay = 100us;
    processes all(count, [&](int i) {
      file_cache cache(files.folder(), files.source, {.bytes = 6 * file_bytes, .piece_bytes = piece_of_file});
      std::vector<std::string> order = files.names;
      if (i % 2 == 1) std::reverse(order.begin(), order.end());
      return open_all(cache, order);
    });
    all.begin();
    CHECK(all.end() == "");
    const auto read = files.source.bytes_read();
    for (const std::string& name : files.names) CHECK(read.at(name) == file_bytes);
    CHECK(leftovers(files.folder()).empty());
  }
}

TEST_CASE("others continue the download of a process that is killed") {
  std::uint64_t read_again = 0;
  int killed = 0;
  for (unsigned seed = 0; seed < kills(); ++seed) {
    INFO("seed " << seed);
    std::mt19937 random(seed);
    storage files(4, file_bytes);
    files.source.delay = 100us;
    const auto body = [&](int) {
      file_cache cache(files.folder(), files.source, {.bytes = 4 * file_bytes, .piece_bytes = piece_of_file});
      return open_all(cache, {"0", "1", "2"});
    };
    constexpr int count = 3;
    processes all(count, body);
    all.begin();
    for (std::size_t victim = 0; victim < count - 1; ++victim) {  // the last one survives
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 10'000));
      all.kill(victim);
    }
    CHECK(all.end() == "");
    killed += all.killed();
    auto read = files.source.bytes_read();
    for (const char* name : {"0", "1", "2"}) {
      CHECK(read[name] >= file_bytes);
      CHECK(read[name] <= file_bytes + (count - 1) * piece_of_file);  // at most the piece in progress of each victim
      read_again += read[name] - file_bytes;
    }
    file_cache cache(files.folder(), files.source, {.bytes = 4 * file_bytes, .piece_bytes = piece_of_file});
    CHECK(open_all(cache, files.names) == "");
    CHECK(leftovers(files.folder()).empty());
    CHECK(cache.bytes_in_use() == 4 * file_bytes);
  }
  std::printf("%d kills: %llu bytes were read again\n", killed, static_cast<unsigned long long>(read_again));
  CHECK(killed > 0);
}

TEST_CASE("the bound holds at any time, and no file in use is removed") {
  constexpr std::uint64_t bound = 4 * file_bytes + file_bytes / 2;
  storage files(12, file_bytes);
  processes all(3, [&](int i) -> std::string {
    std::string problem;
    file_cache* counted = nullptr;
    file_cache cache(
        files.folder(), files.source,
        {.bytes = bound, .piece_bytes = piece_of_file * 5, .on_piece = [&](const remote_file&, std::uint64_t) {
           if (counted->bytes_in_use() > bound) problem = "more is reserved than the bound";
         }});
    counted = &cache;
    std::mt19937 random(static_cast<unsigned>(i));
    opened_file
        held;  // with that of the loop, three processes hold at most four files that are whole, and need room for one
    for (int turn = 0; turn < 60 && problem.empty(); ++turn) {
      const std::string name = files.names[random() % files.names.size()];
      if (i != 0) held = {};
      const opened_file opened = cache.open(name);
      if (text_of(opened) != content(name, file_bytes)) problem = "the bytes are wrong";
      if (!fs::exists(files.folder() + '/' + cached_name(cache.describe(name)))) problem = "a file in use was removed";
      if (i == 0) held = opened;
    }
    return problem;
  });
  file_cache cache(files.folder(), files.source, {.bytes = bound});
  std::atomic<bool> has_ended{false};
  std::uint64_t most = 0, samples = 0;
  all.begin();
  std::thread sampler([&] {
    while (!has_ended) {
      most = std::max(most, bytes_on_disk(cache));
      ++samples;
      std::this_thread::sleep_for(200us);
    }
  });
  const std::string problem = all.end();
  has_ended = true;
  sampler.join();
  CHECK(problem == "");
  CHECK(samples > 10);
  CHECK(most > bound / 2);
  CHECK(most <= bound);
}

TEST_CASE("errors of the operating system name the path") {
  struct fault {
    std::string name;
    std::function<bool()> cause;
    std::string expected;
  };
  // The filters and limits remain until a process ends.
  const std::vector<fault> faults{
      {"no locks", [] { return hocket_test::refuse_system_call(SYS_flock, ENOLCK); },
       "/lock': No locks available: a cache needs a folder on a disk of this host"},
      {"full disk", [] { return hocket_test::refuse_system_call(SYS_pwrite64, ENOSPC); },
       ".partial.json': No space left on device"},
      {"read-only", [] { return hocket_test::refuse_system_call(SYS_openat, EROFS); }, "': Read-only file system"},
      {"limit of files",
       [] {
         const rlimit most{file_bytes - 1, file_bytes - 1};
         return ::setrlimit(RLIMIT_FSIZE, &most) == 0;
       },
       ".partial': the limit of the size of files is 19999 bytes"},
  };
  for (const fault& each : faults) {
    INFO(each.name);
    storage files(1, file_bytes);
    processes one(1, [&](int) -> std::string {
      file_cache cache(files.folder(), files.source, {.bytes = file_bytes});
      const remote_file file = cache.describe("0");
      if (!each.cause()) return "skipped";
      opened_file opened;
      const failure found = cache.try_open(file, {}, opened);
      return found.reason.find("'" + files.folder() + '/') != std::string::npos &&
                     found.reason.find(each.expected) != std::string::npos
                 ? "expected"
                 : "found: " + found.reason;
    });
    const std::string result = one.end();
    if (result != "process 0: skipped\n") CHECK(result == "process 0: expected\n");
  }
}
