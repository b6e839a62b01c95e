// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Costs of links: as text, and measured by two ranks. The ranks are threads; the kernel copies from their own process.
#include "support/catch.hpp"

#include <hocket/transport/host/link_measurement.hpp>
#include <hocket/transport/link_costs.hpp>
#include <hocket/transport/link_costs_text.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <thread>

#include <unistd.h>

namespace host = hocket::host;
using hocket::transport::link_costs;

namespace {

constexpr std::align_val_t alignment{64};
struct free_aligned {
  void operator()(std::byte* at) const { ::operator delete(at, alignment); }
};
using aligned_memory = std::unique_ptr<std::byte, free_aligned>;

aligned_memory zeroed() {
  aligned_memory result(static_cast<std::byte*>(::operator new(host::measured_bytes, alignment)));
  std::memset(result.get(), 0, host::measured_bytes);
  return result;
}

host::measured_links measure_with_partner(bool copies) {
  const aligned_memory a = zeroed(), b = zeroed();
  const pid_t process = copies ? ::getpid() : 0;
  host::measured_links found;
  std::thread partner([&] { host::measure_links({b.get(), a.get(), process, false}); });
  found = host::measure_links({a.get(), b.get(), process, true});
  partner.join();
  return found;
}

std::string without(const std::string& text, const std::string& name) {
  const std::size_t begin = text.find(name + " = ");
  return text.substr(0, begin) + text.substr(text.find('\n', begin) + 1);
}

}  // namespace

TEST_CASE("costs as text have the same values when they are read") {
  const link_costs all[] = {{}, {1.0 / 3, 2e-300, 3, 4.5, 5e-11, 6e-7, 7e-10, 8e5, 8192}};
  for (const link_costs& each : all) {
    link_costs found{.message_latency = -1};
    CHECK(read_costs(to_text(each), found) == "");
    CHECK(found == each);
  }
}

TEST_CASE("a text with costs that is incomplete or wrong is refused with line and name") {
  const std::string right = to_text(link_costs{});
  link_costs ignored;
  CHECK(read_costs("", ignored) == "message_latency is missing");
  CHECK(read_costs(without(right, "fresh_bytes"), ignored) == "fresh_bytes is missing");
  CHECK(read_costs(without(right, "eager_bytes"), ignored) == "eager_bytes is missing");
  CHECK(read_costs("\n # text\nspeed = 1\n", ignored) == "line 3: 'speed' is not the name of a cost");
  CHECK(read_costs("load_latency", ignored) == "line 1: it must be 'name = value'");
  CHECK(read_costs("load_latency = 1\r\nload_latency=1", ignored) == "line 2: 'load_latency' has a value already");
  for (const char* const value : {"", "fast", "-1", "nan", "inf", "1 s"}) {
    CHECK(read_costs(std::string("load_latency = ") + value, ignored) ==
          "line 1: load_latency is '" + std::string(value) + "'; it must be a number, 0 or more");
  }
  CHECK(read_costs("eager_bytes = -1", ignored) == "line 1: eager_bytes is '-1'; it must be a number of bytes");
}

TEST_CASE("a text with costs that is truncated, or partly zeroed, is refused or has the same costs") {
  const link_costs costs{1.0 / 3, 2e-300, 3, 4.5, 5e-11, 6e-7, 7e-10, 8e5, 8192};
  const std::string right = to_text(costs);
  const auto is_safe = [&](const std::string& damaged) {
    link_costs found;
    return !read_costs(damaged, found).empty() || found == costs;
  };
  std::size_t refused = 0;
  for (std::size_t length = 0; length < right.size(); ++length) {
    link_costs ignored;
    refused += !read_costs(right.substr(0, length), ignored).empty();
  }
  CHECK(refused == right.size());
  for (const std::size_t zeroed : {1U, 2U, 7U, 60U, 400U}) {
    for (std::size_t begin = 0; begin + zeroed <= right.size(); ++begin) {
      INFO(zeroed << " bytes from " << begin);
      if (!is_safe(std::string(right).replace(begin, zeroed, zeroed, '\0'))) CHECK(zeroed == 0);
    }
  }
}

TEST_CASE("two ranks measure plausible times, or report that they were disturbed") {
  for (const bool copies : {false, true}) {
    for (int i = 0; i < 5; ++i) {
      const host::measured_links found = measure_with_partner(copies);
      if (!found.is_valid) continue;
      CHECK((found.line_latency > 0 && found.line_latency < 1e-6));
      CHECK((found.read_per_byte > 1e-13 && found.read_per_byte < 1e-7));
      CHECK((found.pass_per_byte > 1e-13 && found.pass_per_byte < 1e-6));
      CHECK((found.fresh_per_byte >= 0 && found.fresh_bytes >= 0));
      CHECK((found.copy_per_byte > 0) == copies);
    }
  }
}

TEST_CASE("a rank whose partner comes after it has given up reports that it was disturbed") {
  const aligned_memory a = zeroed(), b = zeroed();
  host::measured_links late;
  std::atomic<bool> is_over{false};  // relaxed: the thread sanitizer must not take it for a synchronization
  std::thread partner([&] {
    while (!is_over.load(std::memory_order_relaxed)) std::this_thread::yield();
    late = host::measure_links({b.get(), a.get(), ::getpid(), false});
  });
  const host::measured_links found = host::measure_links({a.get(), b.get(), ::getpid(), true});
  is_over.store(true, std::memory_order_relaxed);
  partner.join();
  CHECK(!found.is_valid);
  CHECK(!late.is_valid);
}

TEST_CASE("a rank whose partner does not come gives up soon") {
  const aligned_memory a = zeroed(), b = zeroed();
  const auto begin = std::chrono::steady_clock::now();
  CHECK(!host::measure_links({a.get(), b.get(), 0, true}).is_valid);
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(2));
}
