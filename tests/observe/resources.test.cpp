// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// What a process uses, as the kernel counts it.
#include "support/catch.hpp"
#include "support/scratch.hpp"

#include <hocket/observe/resources.hpp>

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <memory>
#include <string>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

namespace {

using namespace hocket::observe;
namespace platform = hocket::platform;

double value_of(const registry& metrics, const std::string& wanted) {
  for (const family& each : metrics.read()) {
    for (const sample& one : each.samples) {
      if (name_of(each.name, one.labels) == wanted) return one.value;
    }
  }
  FAIL("no metric " << wanted);
  return 0;
}

}  // namespace

TEST_CASE("lines of the kernel are read, and others are ignored") {
  const std::string text =
      "Inter-|   Receive                                                |  Transmit\n"
      " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls\n"
      "    lo: 1234       5    0    0    0     0          0         0     5678       5    0    0    0     0\n"
      "eth0:18446744073709551615 5 0 0 0 0 0 0 7 5 0 0 0 0\n"
      "cut: 1 2 3\n"
      "none:\n"
      ":1 2 3 4 5 6 7 8 9";
  const auto found = platform::interfaces_in(text);
  REQUIRE(found.size() == 3);
  CHECK((found[0].name == "lo" && found[0].received_bytes == 1234 && found[0].sent_bytes == 5678));
  CHECK((found[1].name == "eth0" && found[1].received_bytes == ~std::uint64_t{0} && found[1].sent_bytes == 7));
  CHECK((found[2].name.empty() && found[2].received_bytes == 1 && found[2].sent_bytes == 9));
  CHECK(platform::interfaces_in("").empty());

  const std::string storage = "rchar: 1\nread_bytes: 4096\nwrite_bytes: 8192\ncancelled_write_bytes: 5\nbad: x\n";
  CHECK(platform::number_after(storage, "read_bytes:") == 4096U);
  CHECK(platform::number_after(storage, "write_bytes:") == 8192U);
  CHECK_FALSE(platform::number_after(storage, "bad:"));
  CHECK_FALSE(platform::number_after(storage, "none:"));
  CHECK(platform::read_process_file("/proc/none").empty());
}

TEST_CASE("resources follow what the process does") {
  registry metrics;
  resources used(metrics);
  const double cpu = value_of(metrics, "process_cpu_seconds"),
               memory = value_of(metrics, "process_resident_memory_bytes"),
               faults = value_of(metrics, "process_page_faults{kind=\"minor\"}");
  CHECK(cpu > 0);
  constexpr std::size_t bytes = 64 << 20;
  const auto mapped = std::make_unique<char[]>(bytes);
  for (std::size_t i = 0; i < bytes; i += 4096) mapped[i] = 1;
  const std::clock_t begin = std::clock();
  while (std::clock() - begin < CLOCKS_PER_SEC / 20) {}
  used.update();
  CHECK(value_of(metrics, "process_cpu_seconds") >= cpu + 0.04);
  CHECK(value_of(metrics, "process_resident_memory_bytes") >= memory + bytes / 2.0);
  CHECK(value_of(metrics, "process_page_faults{kind=\"minor\"}") >= faults);
  CHECK(value_of(metrics, "process_page_faults{kind=\"major\"}") >= 0);
  for (const platform::interface_usage& each : platform::usage_of_interfaces())
    CHECK(value_of(metrics, "network_received_bytes{interface=\"" + each.name + "\"}") >= 0);
}

TEST_CASE("resources count bytes that are written to storage") {
  if (!platform::usage_of_this_process().written_bytes) {
    WARN("left out: this process may not read /proc/self/io");
    return;
  }
  registry metrics;
  resources used(metrics);
  const double before = value_of(metrics, "process_disk_written_bytes");
  const hocket_test::scratch_directory scratch;
  const std::string text(1 << 20, 'x');
  const int file = ::open((scratch.path() + "/a").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  REQUIRE(::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  ::fsync(file);
  ::close(file);
  used.update();
  const double written = value_of(metrics, "process_disk_written_bytes") - before;
  CHECK((written == 0 || written >= static_cast<double>(text.size())));  // 0: in memory, as tmpfs is
}
