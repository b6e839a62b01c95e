// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The handle of a buffer, made of the driver's answers: encoding, decoding, and checks of invalid bytes.
#include "support/catch.hpp"
#include "support/text.hpp"
#include "transport/cuda_ipc/host_driver.hpp"
#include "transport/cuda_ipc/silent_calls.hpp"

#include <hocket/transport/cuda_ipc/memory_handle.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace ipc = hocket::cuda_ipc;
using hocket_test::host_driver;
using hocket_test::host_machine;
using ipc::status;

namespace {

constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();

ipc::memory_handle example() {
  ipc::memory_handle result;
  for (std::size_t i = 0; i < 64; ++i) result.allocation.bytes[i] = static_cast<unsigned char>(200 + i);
  for (std::size_t i = 0; i < 16; ++i) result.device.bytes[i] = static_cast<unsigned char>(i);
  result.process = {most - 1, 4026531836, 123456789, -5};
  result.generation = 0x0123456789abcdef;
  result.base = 0x7f0000000000;
  result.size = 4096;
  result.offset = 100;
  result.length = 3996;
  return result;
}

bool passes(std::uint64_t base, std::uint64_t size, std::uint64_t offset, std::uint64_t length) {
  ipc::memory_handle what = example();
  what.base = base;
  what.size = size;
  what.offset = offset;
  what.length = length;
  return ipc::decode(ipc::encode(what)).has_value();
}

}  // namespace

TEST_CASE("a decoded handle equals the encoded one") {
  const std::vector<std::byte> bytes = ipc::encode(example());
  CHECK(bytes.size() == ipc::encoded_handle_bytes);
  const auto again = ipc::decode(bytes);
  REQUIRE(again);
  CHECK(*again == example());
}

TEST_CASE("bytes of another length or format are refused") {
  std::vector<std::byte> bytes = ipc::encode(example());
  for (std::size_t size = 0; size < bytes.size(); ++size) CHECK_FALSE(ipc::decode(std::span(bytes).first(size)));
  bytes.push_back(std::byte{0});
  CHECK_FALSE(ipc::decode(bytes));
  bytes.pop_back();
  bytes[0] = std::byte{2};
  CHECK_FALSE(ipc::decode(bytes));
}

TEST_CASE("a handle that exceeds its allocation is refused, also if sums overflow") {
  CHECK(passes(1, 10, 0, 10));
  CHECK(passes(1, 10, 10, 0));
  CHECK(passes(1, most - 1, 0, most - 1));
  CHECK_FALSE(passes(0, 10, 0, 10));
  CHECK_FALSE(passes(1, 0, 0, 0));
  CHECK_FALSE(passes(2, most - 1, 0, 1));
  CHECK_FALSE(passes(1, 10, 11, 0));
  CHECK_FALSE(passes(1, 10, 0, 11));
  CHECK_FALSE(passes(1, 10, 5, most - 4));
  CHECK_FALSE(passes(1, 10, most, 2));
}

TEST_CASE("only sound handles are decoded from random bytes") {
  std::mt19937 random(5);
  int taken = 0;
  for (int round = 0; round < 2000; ++round) {
    std::vector<std::byte> bytes = ipc::encode(example());
    for (int changes = 0; changes < 3; ++changes) bytes[random() % bytes.size()] = static_cast<std::byte>(random());
    const auto found = ipc::decode(bytes);
    if (!found) continue;
    ++taken;
    CHECK(found->sound());
    CHECK(ipc::encode(*found) == bytes);
  }
  CHECK(taken > 0);
  CHECK(taken < 2000);
}

TEST_CASE("a buffer is described by its allocation and its offset") {
  host_machine machine(2);
  host_driver driver(machine, 3, 1);
  ipc::address base = 0;
  REQUIRE(driver.mem_alloc(&base, 8192) == status::success);
  ipc::memory_handle whole, part, empty;
  CHECK_FALSE(ipc::describe(driver, base, 8192, driver.mark(), whole));
  CHECK_FALSE(ipc::describe(driver, base + 4097, 95, driver.mark(), part));
  CHECK_FALSE(ipc::describe(driver, base + 8191, 0, driver.mark(), empty));
  CHECK(part.allocation == whole.allocation);
  CHECK(part.base == base);
  CHECK(part.size == 8192);
  CHECK(part.offset == 4097);
  CHECK(part.length == 95);
  CHECK(part.generation == whole.generation);
  CHECK(part.process == driver.mark());
  CHECK(part.device.bytes[0] == 2);

  const auto too_long = ipc::describe(driver, base + 4097, 4096, driver.mark(), part);
  CHECK(too_long.code == hocket::errc::invalid_argument);
  CHECK(too_long.reason.find("offset 4097") != std::string::npos);
  CHECK(part.length == 95);  // a failure does not change the handle
  CHECK(driver.mem_free(base) == status::success);
}

TEST_CASE("new memory at the same address has another generation and another handle") {
  host_machine machine;
  host_driver driver(machine, 3);
  ipc::address first = 0, second = 0;
  ipc::memory_handle before, after;
  REQUIRE(driver.mem_alloc(&first, 4096) == status::success);
  CHECK_FALSE(ipc::describe(driver, first, 16, driver.mark(), before));
  REQUIRE(driver.mem_free(first) == status::success);
  driver.reuse(first);
  REQUIRE(driver.mem_alloc(&second, 4096) == status::success);
  REQUIRE(second == first);
  CHECK_FALSE(ipc::describe(driver, second, 16, driver.mark(), after));
  CHECK(before.base == after.base);
  CHECK(before.generation != after.generation);
  CHECK_FALSE(before.allocation == after.allocation);
  CHECK(driver.mem_free(second) == status::success);
}

TEST_CASE("describe explains why peers can't open host memory and pooled memory") {
  host_machine machine;
  host_driver driver(machine, 3);
  ipc::memory_handle made;
  std::array<std::byte, 16> on_host{};
  const auto host = ipc::describe(driver, reinterpret_cast<ipc::address>(on_host.data()), 16, driver.mark(), made);
  CHECK(host.code == hocket::errc::unreachable);
  CHECK(host.reason.find("host's") != std::string::npos);

  driver.pool_memory(true);
  ipc::address pooled = 0;
  REQUIRE(driver.mem_alloc(&pooled, 4096) == status::success);
  const auto pool = ipc::describe(driver, pooled, 16, driver.mark(), made);
  CHECK(pool.code == hocket::errc::unreachable);
  CHECK(pool.reason.find("expandable_segments") != std::string::npos);
  CHECK(driver.mem_free(pooled) == status::success);
}

TEST_CASE("if any call fails with any code, describe reports it and makes no handle") {
  for (const status code : hocket_test::every_code()) {
    host_machine machine;
    host_driver driver(machine, 3);
    ipc::address base = 0;
    REQUIRE(driver.mem_alloc(&base, 4096) == status::success);
    int calls = 0;
    for (;; ++calls) {
      driver.inject(calls, code);
      ipc::memory_handle made;
      const hocket::failure found = ipc::describe(driver, base, 16, driver.mark(), made);
      if (!driver.has_failed()) {
        CHECK_FALSE(found);
        break;
      }
      INFO("call " << calls << ", " << driver.failed_call() << ", code " << static_cast<int>(code));
      CHECK(found);
      CHECK(found.code.category() == hocket::error_category());
      CHECK(hocket_test::contains(found.reason, hocket_test::words_for_failed(driver, code)));
      CHECK(made.size == 0);
    }
    CHECK(calls >= 8);
    driver.forget_faults();
    CHECK(driver.mem_free(base) == status::success);
  }
}

TEST_CASE("a process mark matches only its own process, and an empty mark matches none") {
  const ipc::process_mark own = ipc::own_mark();
  CHECK(own == ipc::own_mark());
  CHECK(own.same_process(ipc::own_mark()));
  ipc::process_mark other = own;
  ++other.start_time;  // its number was reused
  CHECK_FALSE(own.same_process(other));
  CHECK_FALSE(ipc::process_mark{}.same_process(ipc::process_mark{}));
}
